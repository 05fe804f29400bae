"""Timing of several runtimes side by side: a process for each, measured in rounds whose order is shuffled each time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from relay.tools.peers import Array


@dataclass
class Runner:
    """A process that runs one model in one runtime with a number of threads; `note` says why it does not run."""

    peer: str
    threads: int
    process: subprocess.Popen[str]
    outputs: Path
    note: str = ""
    loaded: dict[str, Any] = field(default_factory=dict[str, Any])
    rounds: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    def answer(self) -> dict[str, Any]:
        """Read the process's next line, a JSON object; its key `failed` says that the process ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return cast(dict[str, Any], json.loads(line)) if line else {"failed": f"ended with {self.process.wait()}"}

    def load(self) -> bool:
        """Wait until the process has loaded the model. Returns False, and sets `note`, if it could not."""
        self.loaded = self.answer()
        self.note = self.loaded.get("skipped", "") or self.loaded.get("failed", "")
        return not self.note

    def round(self, seconds: float) -> None:
        """Have the runtime's process call the model for this many seconds, and append its answer, the measured times,
        to `rounds`."""
        assert self.process.stdin is not None
        print(seconds, file=self.process.stdin, flush=True)
        self.rounds.append(self.answer())

    def close(self) -> None:
        """Close the process's input, which ends it, and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    @property
    def median(self) -> float:
        """The median of the rounds' medians, in seconds: a disturbed round counts once."""
        return float(np.median([round["median"] for round in self.rounds]))

    @property
    def processor(self) -> float:
        """The median of the rounds' processor times, in seconds, which is less disturbed than wall time by other
        programs."""
        return float(np.median([round["processor"] for round in self.rounds]))

    @property
    def spread(self) -> float:
        """The interquartile range of the rounds' processor times, divided by their median."""
        low, high = np.percentile([round["processor"] for round in self.rounds], (25, 75))
        return float(high - low) / self.processor

    @property
    def minimum(self) -> float:
        """The shortest call of all rounds, in seconds."""
        return min(round["minimum"] for round in self.rounds)

    def results(self) -> list[Array]:
        """The output arrays that the process saved from its first call of the model."""
        with np.load(self.outputs) as arrays:
            return [arrays[name] for name in arrays.files]


def start(peer: str, model: Path, threads: int, inputs: Path, folder: Path) -> Runner:
    """Start the process of a runtime, which begins to load the model at once."""
    outputs = folder / f"{peer}-{model.stem}-{threads}.npz"
    command = [sys.executable, "-m", "relay.tools.peers.worker", peer, model, str(threads), inputs, outputs]
    errors = outputs.with_suffix(".log").open("w")
    process = subprocess.Popen(
        [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
    )
    return Runner(peer, threads, process, outputs)


@contextmanager
def started(
    models: Sequence[tuple[str, Path]], threads: Sequence[int], inputs: Sequence[Array]
) -> Generator[list[Runner]]:
    """Start a process for each pair of a runtime (with its model file) and a number of threads, and load the models.
    The `note` of a runner that cannot run its model says why. The processes end when the context manager exits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "inputs.npz", *inputs)
        runners: list[Runner] = []
        try:
            for peer, model in models:
                for count in threads:
                    runners.append(start(peer, model, count, folder / "inputs.npz", folder))
                    runners[-1].load()  # one at a time, since the time and memory of loading are measured
            yield runners
        finally:
            for runner in runners:
                runner.close()


def interleave(runners: Sequence[Runner], rounds: int, seconds: float) -> Iterator[None]:
    """Time all runners `rounds` times, for `seconds` each per round, in a shuffled order; yields after each round."""
    order = list(runners)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for runner in order:
            runner.round(seconds)
        yield


def difference(ours: Sequence[Array], theirs: Sequence[Array]) -> str:
    """How far two lists of outputs differ, as text: the largest absolute difference and, for integers, how many
    elements differ."""
    if [a.size for a in ours] != [a.size for a in theirs]:
        return "other shapes"
    if not all(a.dtype == b.dtype for a, b in zip(ours, theirs, strict=True)):
        return "other types"
    pairs = [
        (a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)) for a, b in zip(ours, theirs, strict=True)
    ]
    apart = np.concatenate([np.abs(a - b) for a, b in pairs])
    if all(a.dtype.kind in "iu" for a in ours):
        return f"max {int(apart.max())}, {np.count_nonzero(apart)} of {apart.size}"
    return f"max {apart.max():.1e}"
