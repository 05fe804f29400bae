"""Listen for a wake word in a recording, with the models and the audio front end of the package pymicro-wakeword.

`python examples/wakeword/run.py [recording.wav] [--model okay_nabu]`. The recording has one channel of 16-bit samples,
16,000 a second; without one, it is two seconds of a rising tone. Needs relay and `pip install pymicro-wakeword`, whose
own TensorFlow Lite is not used.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import wave
from collections import deque
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import relay

PACKAGE = "pymicro_wakeword"
RATE = 16_000
STEP = RATE // 100
"""Samples between two rows of features, 10 ms."""


def models() -> Path | None:
    """The folder of models of the installed package, without importing it; None where it is not installed."""
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent / "models" if spec is not None and spec.origin is not None else None


class Detector:
    """A stream of a model: takes features, a row of 40 for each 10 ms; gives a probability."""

    def __init__(self, folder: Path, name: str):
        row: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
        self.word, self.threshold = str(row["wake_word"]), float(row["micro"]["probability_cutoff"])
        executable = relay.build(folder / row["model"])
        self.stream = executable.stream()
        self.takes, self.gives = self.stream.inputs[0], self.stream.outputs[0]
        self.last: deque[float] = deque(maxlen=int(row["micro"]["sliding_window_size"]))

    def probability(self, features: npt.NDArray[np.float32]) -> float:
        """The mean over the last steps, after as many rows of features as a step of the model takes."""
        codes = self.stream.run(self.takes.quantize(features.reshape(self.takes.shape)))
        self.last.append(float(self.gives.dequantize(np.asarray(codes)).max()))
        return sum(self.last) / self.last.maxlen if self.last.maxlen else 0.0


def rows(samples: npt.NDArray[np.int16]) -> Iterator[npt.NDArray[np.float32]]:
    """Features of a recording by the package's front end, that of TensorFlow Lite Micro."""
    front_end = import_module("pymicro_features").MicroFrontend()
    place = 0
    while place + STEP <= len(samples):
        found = front_end.process_samples(samples[place : place + STEP].tobytes())
        place += int(found.samples_read)
        if found.features:
            yield np.asarray(found.features, np.float32)


def recording(path: str | None) -> npt.NDArray[np.int16]:
    """The samples of a file, or of a rising tone."""
    if path is None:
        time = np.arange(2 * RATE) / RATE
        return (8000 * np.sin(2 * np.pi * (200 * time + 500 * time**2))).astype(np.int16)
    with wave.open(path) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            sys.exit(f"{path}: one channel of 16-bit samples, {RATE} a second, is needed")
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("recording", nargs="?")
    parser.add_argument("--model", default="okay_nabu")
    given, folder = parser.parse_args(arguments), models()
    if folder is None:
        print(f"the package {PACKAGE} is not installed; pip install pymicro-wakeword")
        return 1
    detector = Detector(folder, given.model)
    pending: list[npt.NDArray[np.float32]] = []
    best, heard, seconds, steps = 0.0, list[float](), 0.0, 0
    for number, row in enumerate(rows(recording(given.recording))):
        pending.append(row)
        if len(pending) == detector.takes.shape[1]:
            started = time.perf_counter()
            probability = detector.probability(np.stack(pending))
            seconds += time.perf_counter() - started
            steps, best, pending = steps + 1, max(best, probability), []
            if probability > detector.threshold:
                heard.append(number / 100)
    places = ", ".join(f"{place:.2f} s" for place in heard) or "nowhere"
    print(f"{detector.word!r} is heard {places}; the largest probability is {best:.3f} of {detector.threshold} needed")
    print(f"{steps} steps of {10 * detector.takes.shape[1]} ms of sound, {1e6 * seconds / max(steps, 1):.0f} us each")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
