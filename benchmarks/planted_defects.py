"""Whether certificates find defects: `python -m benchmarks.planted_defects FILE --count 200 --seed 1`, where FILE is a
saved executable for this machine.

Half of the defects are random changes of bytes of code or constants; the others are of kinds, in turn: weights of two
inputs swapped, a wrong last channel, a wrong border, a rescale that is one step off, a sum that saturates at another
code. Only changes count that alter some output, or crash, in one of `INPUTS` runs on random inputs. Each defect is run
and checked in processes of its own. Exit code 1 if one is not found.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relay.runtime import archive
from relay.runtime.executable import Executable
from relay.runtime.library import Library
from relay.runtime.memory import aligned_bytes
from relay.validation import certify
from relay.validation.machine_code import functions_of, offsets

INPUTS = 24
TRIES = 100
"""Of one kind, before the next one has its turn."""
SECONDS = 60
"""What a run may take: broken code may not end."""
Saved = archive.Saved
Bytes = npt.NDArray[np.uint8]


def opened(data: bytes) -> Saved:
    """The parts of a file, its constants writable."""
    memory = aligned_bytes(len(data))
    memory[:] = np.frombuffer(data, np.uint8)
    return archive.unpack(memory, "planted")


def with_constants(saved: Saved, constants: Bytes) -> Saved:
    """The same with other constants."""
    params = dict(saved.params)
    for row in saved.graph["constants"]:
        array, start = params[row["name"]], int(row["offset"])
        params[row["name"]] = constants[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    return saved._replace(params=params, constants=constants)


class Planter:
    """Defects in one artifact."""

    def __init__(self, data: bytes, rng: np.random.Generator):
        self.data, self.rng = data, rng
        self.saved = opened(data)
        self.rows = {str(row["name"]): row for row in self.saved.graph["constants"]}

    def changed(self, kinds: Sequence[str], change: Callable[[npt.NDArray[Any]], bool]) -> Saved | None:
        """One constant, whose name has one of these words, changed; None if there is none, or it cannot be changed."""
        names = [name for name in self.rows if any(kind in name for kind in kinds)]
        if not names:
            return None
        name = str(self.rng.choice(names))
        assert self.saved.constants is not None
        row, constants = self.rows[name], self.saved.constants.copy()
        array = self.saved.params[name]
        part = constants[int(row["offset"]) : int(row["offset"]) + array.nbytes].view(array.dtype)
        return with_constants(self.saved, constants) if change(part) else None

    def swapped_weights(self) -> Saved | None:
        """Two weights that differ, swapped."""

        def change(part: npt.NDArray[Any]) -> bool:
            first, second = (int(n) for n in self.rng.integers(0, part.size, 2))
            if part[first] == part[second]:
                return False
            part[[first, second]] = part[[second, first]]
            return True

        return self.changed([".packed"], change)

    def last_channel(self) -> Saved | None:
        """The sum of the last channel is a little too large."""

        def change(part: npt.NDArray[Any]) -> bool:
            live = np.flatnonzero(part)
            if not live.size:
                return False
            part[live[-1]] += np.asarray(self.rng.integers(1, 2000), part.dtype)
            return True

        return self.changed([".start"], change)

    def border(self) -> Saved | None:
        """The first sum of a channel, which is the border's where borders have their own."""

        def change(part: npt.NDArray[Any]) -> bool:
            part[int(self.rng.integers(0, min(part.size, 16)))] -= np.asarray(self.rng.integers(1, 2000), part.dtype)
            return True

        return self.changed([".start"], change)

    def rescale(self) -> Saved | None:
        """The scale of a channel is off by a 2^-8th to a 2^-14th."""

        def change(part: npt.NDArray[Any]) -> bool:
            at = int(self.rng.integers(0, part.size))
            part[at] *= np.asarray(1 + 2.0 ** -float(self.rng.integers(8, 15)), part.dtype)
            return True

        return self.changed(["scale.f32", "scale.f64"], change)

    def saturation(self) -> Saved | None:
        """The scale of a channel is negative or far too large: what is too large is not cut where it shall be."""

        def change(part: npt.NDArray[Any]) -> bool:
            part[int(self.rng.integers(0, part.size))] *= np.asarray(self.rng.choice([-1, 64, 4096]), part.dtype)
            return True

        return self.changed(["scale.f32", "scale.f64"], change)

    def code_byte(self) -> Saved | None:
        """A byte of a kernel is another."""
        code = bytearray(self.saved.code)
        kernels = set(self.saved.graph["functions"])
        functions = [where for name, where in functions_of(self.saved.code).items() if name in kernels]
        start, size = functions[int(self.rng.integers(0, len(functions)))]
        shift = next(at - base for base, at, length in offsets(self.saved.code) if base <= start < base + length)
        code[start + shift + int(self.rng.integers(0, size))] ^= int(self.rng.integers(1, 256))
        return self.saved._replace(code=bytes(code))

    def constant_byte(self) -> Saved | None:
        """A byte of a constant is another."""

        def change(part: npt.NDArray[Any]) -> bool:
            part.view(np.uint8)[int(self.rng.integers(0, part.nbytes))] ^= np.uint8(self.rng.integers(1, 256))
            return True

        return self.changed([""], change)

    def defects(self) -> Iterator[tuple[str, bytes]]:
        """What was done, and the file, without end."""
        kinds = [self.swapped_weights, self.last_channel, self.border, self.rescale, self.saturation]
        number = tries = 0
        while True:
            bytewise = (self.code_byte, self.constant_byte)[number // 2 % 2]
            plant = kinds[number // 2 % len(kinds)] if number % 2 else bytewise
            if (saved := plant()) is not None and alters(self.saved, saved, int(self.rng.integers(1 << 30))):
                yield plant.__name__.replace("_", " "), archive.pack(saved)
                number, tries = number + 1, 0
            elif (tries := tries + 1) == TRIES:  # of this kind there is none here
                number, tries = number + 1, 0


def drawn(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Random numbers: each code as likely, or floats."""
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def alters(sound: Saved, broken: Saved, seed: int) -> bool:
    """Whether some output is another, or the code crashes or does not end; in a process of its own."""
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            first, second = (Executable(s.graph, Library(s.code), s.params, s.constants) for s in (sound, broken))
            rng = np.random.default_rng(seed)
            same = True
            for _ in range(INPUTS):
                inputs = [drawn(rng, spec.shape, spec.dtype) for spec in first.inputs]
                results = [np.atleast_1d(np.asarray(each.run(*inputs))) for each in (first, second)]
                same = same and np.array_equal(results[0], results[1])
            status = 0 if same else 1
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return ended != 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_defects", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bits", type=int, default=4, help="of certify (default: %(default)s)")
    given = parser.parse_args(arguments)
    data = given.file.read_bytes()
    found = 0
    planted = Planter(data, np.random.default_rng(given.seed)).defects()
    for number, (kind, broken) in zip(range(given.count), planted, strict=False):
        wrong = certify(broken, bits=given.bits, first=True).wrong
        found += bool(wrong)
        print(f"{number} {kind}: {wrong[0] if wrong else 'NOT FOUND'}", flush=True)
    print(f"found {found} of {given.count}")
    return int(found < given.count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
