"""Continue a text, byte by byte, with the int8 and the four-bit model, and print how fast that was.

`python examples/decoder/run.py [--prompt TEXT] [--bytes 80] [--temperature 0.7]`. It needs relay and nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

import relay
from relay.runtime.dynamic import DynamicExecutable
from relay.runtime.stream import Stream

HERE = Path(__file__).resolve().parent
MODELS = ("int8", "4bit")
LENGTH, PIECE = 128, 16
"""Positions of the caches, and bytes of a prompt that are read at once."""
Scores = npt.NDArray[np.float32]
Choose = Callable[[Scores], int]


class Decoder:
    """A text that grows: the caches of its keys and values stay in streams, one for pieces, one for single bytes."""

    def __init__(self, path: Path):
        executable = relay.build(path)
        assert isinstance(executable, DynamicExecutable), "the number of bytes is open"
        self.executable = executable
        kept = {
            each.name: each.name.replace("present", "past") for each in executable.outputs if "present" in each.name
        }
        self.pieces = executable.variant(n=PIECE).stream(kept)
        self.bytes = executable.variant(n=1).stream(kept)
        self.position = 0

    def start(self, prompt: bytes) -> Scores:
        """Read a prompt in a new text; the scores of the next byte."""
        self.pieces.reset()
        self.position = 0
        scores = np.zeros(256, np.float32)
        whole = len(prompt) // PIECE * PIECE
        for first in range(0, whole, PIECE):
            scores = self._read(self.pieces, prompt[first : first + PIECE])
        self.bytes.set_states(self.pieces.states)
        for byte in prompt[whole:]:
            scores = self.next(byte)
        return scores

    def next(self, byte: int) -> Scores:
        """Read one byte more; the scores of the next."""
        return self._read(self.bytes, bytes([byte]))

    def _read(self, stream: Stream, text: bytes) -> Scores:
        tokens = np.frombuffer(text, np.uint8).astype(np.int64)
        scores = stream.run(tokens[None], np.arange(self.position, self.position + len(text)))
        self.position += len(text)
        return np.asarray(scores)[0, -1]


def greedy(scores: Scores) -> int:
    """The likeliest byte."""
    return int(scores.argmax())


def sampled(temperature: float, seed: int) -> Choose:
    """Bytes by their probability; a lower temperature prefers likely ones."""
    rng = np.random.default_rng(seed)

    def choose(scores: Scores) -> int:
        p = np.exp((scores - scores.max()).astype(np.float64) / temperature)
        return int(rng.choice(len(p), p=p / p.sum()))

    return choose


def continued(decoder: Decoder, prompt: bytes, count: int, choose: Choose) -> tuple[bytes, float, float]:
    """So many bytes behind a prompt, and the seconds for the prompt and for them."""
    started = time.perf_counter()
    scores = decoder.start(prompt)
    read, found = time.perf_counter(), bytearray()
    while len(found) < count:
        found.append(choose(scores))
        if len(found) < count:
            scores = decoder.next(found[-1])
    return bytes(found), read - started, time.perf_counter() - read


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompt", default="The executable of a model ")
    parser.add_argument("--bytes", type=int, default=80)
    parser.add_argument("--temperature", type=float, default=0.7)
    given = parser.parse_args(arguments)
    prompt = given.prompt.encode()
    if not prompt or given.bytes < 1 or len(prompt) + given.bytes > LENGTH + 1:
        parser.error(f"a prompt and what follows have from 2 to {LENGTH + 1} bytes")
    for name in MODELS:
        started = time.perf_counter()
        decoder = Decoder(HERE / f"decoder_{name}.onnx")
        print(f"{name}: built in {time.perf_counter() - started:.2f} s")
        for way, choose in (("greedy", greedy), ("sampled", sampled(given.temperature, 0))):
            text, read, written = continued(decoder, prompt, given.bytes, choose)
            print(f"  {way}: {given.prompt}|{text.decode(errors='replace')!r}")
            rates = f"{len(prompt) / read:.0f} bytes/s of the prompt, {len(text) / written:.0f} bytes/s after it"
            print(f"  {' ' * len(way)}  {rates}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
