"""Whether a graph gives a reference's numbers, interpreted and compiled; graphs that once did not are kept."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relay import signature
from relay.compile.entry import build
from relay.errors import RelayError
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import load
from relay.target import host, resolve
from tests.numeric.litert_models import Array

KEPT = Path(__file__).parents[1] / "regressions"
"""Models that once differed; beside one, where numbers or options matter, what went in, and the reference's results."""
TARGETS = (
    "llvm", "x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu -mcpu=haswell",
    "x86_64-unknown-linux-gnu -mcpu=skylake-avx512", "x86_64-unknown-linux-gnu -mcpu=cascadelake",
)  # fmt: skip
"""This machine, and each level of x86-64: SSE2, AVX2, AVX512 without and with VNNI. What it cannot run is left out."""
Runs = list[list[Array]]
"""Arrays, run by run."""


class Server:
    """A function in a child process, because LiteRT aborts the process for some parameters: then None is the result,
    and the next call has another child. None is the result, too, of RuntimeError and ValueError."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work = work
        self.pipes: tuple[BinaryIO, BinaryIO] | None = None
        self.child = 0
        atexit.register(self.end)

    def __call__(self, *given: Any) -> Any:
        into, out = self.pipes or self.start()
        try:
            pickle.dump(given, into)
            into.flush()
            return pickle.load(out)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self.end()
            return None

    def start(self) -> tuple[BinaryIO, BinaryIO]:
        (given, into), (out, result) = os.pipe(), os.pipe()
        self.child = os.fork()
        if not self.child:
            os.close(into)
            os.close(out)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                self.serve(os.fdopen(given, "rb"), os.fdopen(result, "wb"))
            finally:
                os._exit(0)
        os.close(given)
        os.close(result)
        self.pipes = os.fdopen(into, "wb"), os.fdopen(out, "rb")
        return self.pipes

    def serve(self, given: BinaryIO, result: BinaryIO) -> None:
        while True:
            call = pickle.load(given)
            try:
                found = self.work(*call)
            except (RuntimeError, ValueError):
                found = None
            pickle.dump(found, result)
            result.flush()

    def end(self) -> None:
        if self.pipes is not None:
            for pipe in self.pipes:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
            os.waitpid(self.child, 0)
        self.pipes = None


@dataclass
class Sample:
    """A model, what goes in run by run, and the importer's options."""

    model: bytes
    feeds: Runs
    suffix: str
    """Of its file."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    tolerance: float = 1e-5
    """How far floats may be off, as a part of the largest."""


Importer = Callable[[Sample], IRModule]


def steps_of(seed: int) -> range:
    """Of a graph: two to eight."""
    return range(int(np.random.default_rng([seed, 999]).integers(2, 9)))


def way_of(seed: int) -> dict[str, Any]:
    """Arguments of `build` for a target that this machine can run, and `saved` to run what was saved and loaded."""
    rng, targets = np.random.default_rng([seed, 997]), [each for each in TARGETS if is_runnable(each)]
    way: dict[str, Any] = {"opt_level": int(rng.integers(5)), "num_threads": int(rng.integers(1, 4))}
    return way | {"target": targets[int(rng.integers(len(targets)))], "saved": bool(rng.integers(2))}


def is_runnable(target: str) -> bool:
    return resolve(target).features <= host().features


def same(result: Array, wanted: Array, tolerance: float) -> bool:
    """Equal integers; floats within a part of the largest, and what is not finite at the same places, but where LiteRT
    has the largest float for an infinity, as docs/support.md says. Where all are below 1e-3, within a part of it:
    ONNX Runtime's Sigmoid is off by up to 1e-7."""
    if (result.dtype, result.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(result, wanted)
    wanted = np.where(np.isinf(result) & (np.abs(wanted) == np.finfo(wanted.dtype).max), result, wanted)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-3)
    with np.errstate(all="ignore"):
        return np.allclose(result, wanted, rtol=tolerance, atol=tolerance * float(largest), equal_nan=True)


def differing(sample: Sample, wanted: Runs, imported: Importer, ways: Sequence[dict[str, Any]]) -> str:
    """Which way gives other numbers; empty if none. The interpreter always, then one build for each of `ways`."""
    module = imported(sample)
    inputs, outputs = signature.read(module["main"])
    states: Sequence[Array] = [np.array(info.initial) for info in inputs if info.kind == "state"]
    amount = sum(info.kind == "output" for info in outputs)

    def check(how: str, each: Callable[..., Sequence[Array]]) -> str:
        held = states
        for turn, given in enumerate(sample.feeds):
            found = each(*given, *held)
            held = found[amount:]
            for number, (result, want) in enumerate(zip(found, wanted[turn], strict=False)):
                if not same(result, want, sample.tolerance):
                    return f"{how}, run {turn}, output {number}: {said(result, want)}"
        return ""

    if found := check("interpreted", lambda *given: run(module, [*given])):
        return found
    for way in ways:
        if found := check(str(way), built(sample, way)):
            return found
    return ""


def built(sample: Sample, way: dict[str, Any]) -> Callable[..., Sequence[Array]]:
    """The model, compiled so."""
    options = sample.options | {name: value for name, value in way.items() if name != "saved"}
    executable = build(sample.model, **options)
    if way.get("saved"):
        with tempfile.TemporaryDirectory() as folder:
            executable.save(f"{folder}/graph.relay")
            executable = load(f"{folder}/graph.relay")

    def each(*given: Array) -> Sequence[Array]:
        found: object = executable.run(*given)
        return [np.asarray(result) for result in (found if isinstance(found, tuple) else (found,))]

    return each


def said(result: Array, wanted: Array) -> str:
    """Where the first of the numbers that differ is."""
    if (result.dtype, result.shape) != (wanted.dtype, wanted.shape):
        return f"{result.dtype}{result.shape} instead of {wanted.dtype}{wanted.shape}"
    wrong = np.argwhere(result != wanted)
    place = tuple(int(i) for i in wrong[0])
    return f"{len(wrong)} of {wanted.size} differ, first {place}: {result[place]} instead of {wanted[place]}"


@dataclass
class Oracle:
    """Random graphs and who judges them: `draw` makes the graph of these steps of a seed, or None if it is empty,
    and tells its kinds of operators; `wanted` gives the reference's results, or None if it refuses."""

    draw: Callable[[int, Sequence[int]], tuple[Sample, list[str]] | None]
    wanted: Callable[[Sample], Runs | None]
    imported: Importer

    def outcome(self, seed: int, steps: Sequence[int], ways: Sequence[dict[str, Any]]) -> tuple[str, list[str]]:
        """`refused` by the reference, `unsupported` by us, empty where all is equal, else what differs; operators."""
        drawn = self.draw(seed, steps)
        if drawn is None:
            return "refused", []
        sample, kinds = drawn
        wanted = self.wanted(sample)
        if wanted is None:
            return "refused", kinds
        try:
            return differing(sample, wanted, self.imported, ways), kinds
        except RelayError as error:
            return f"unsupported: {error}", kinds
        except Exception as error:  # what is no error of ours is a failure
            return f"{type(error).__name__}: {error}", kinds

    def shrunk(self, seed: int, steps: Sequence[int], ways: Sequence[dict[str, Any]]) -> list[int]:
        """The steps without which the graph would not differ."""
        kept = [*steps]
        for step in steps:
            less = [each for each in kept if each != step]
            if less and differs(self.outcome(seed, less, ways)[0]):
                kept = less
        return kept

    def fuzz(self, seeds: Iterable[int], *, compiled: bool) -> Counter[str]:
        """How graphs ended, interpreted and perhaps compiled.

        What differs is shrunk, and its file kept in `tests/regressions`."""
        ends, sizes = Counter[str](), list[int]()
        wrong = list[str]()
        for seed in seeds:
            steps, built = steps_of(seed), [way_of(seed)] if compiled else []
            found, kinds = self.outcome(seed, steps, built)
            ends["differing" if differs(found) else found.partition(":")[0] or "equal"] += 1
            sizes += [len(kinds)] * (not found)
            if differs(found):
                least = self.shrunk(seed, steps, built)
                drawn = self.draw(seed, least)
                assert drawn is not None
                keep(drawn[0], self.wanted(drawn[0]), f"graph_{seed}")
                wrong.append(f"seed {seed}, steps {least}, {drawn[1]}, {drawn[0].options}, {built}: {found}")
                print(wrong[-1], flush=True)
        print(dict(ends), f"operators, median: {int(np.median(sizes or [0]))}")
        assert not wrong, "\n".join(wrong)
        return ends


def differs(found: str) -> bool:
    return found != "" and found.partition(":")[0] not in ("refused", "unsupported")


def keep(sample: Sample, wanted: Runs | None, name: str) -> None:
    """Write the model, and what goes in and should come out."""
    arrays = {f"feed_{turn}_{i}": each for turn, given in enumerate(sample.feeds) for i, each in enumerate(given)}
    arrays |= {f"wanted_{turn}_{i}": each for turn, given in enumerate(wanted or ()) for i, each in enumerate(given)}
    (KEPT / f"{name}.{sample.suffix}").write_bytes(sample.model)
    np.savez_compressed(
        KEPT / f"{name}.npz", allow_pickle=False, options=np.array(json.dumps(sample.options)), **arrays
    )


def kept(file: Path) -> tuple[Sample, Runs]:
    """The model and its numbers."""
    with np.load(file.with_suffix(".npz")) as held:
        options = json.loads(str(held["options"]))
        runs: dict[str, Runs] = {"feed": [], "wanted": []}
        for name in held.files:
            if name != "options":
                what, turn, _ = name.split("_")
                runs[what] += [[] for _ in range(int(turn) + 1 - len(runs[what]))]
                runs[what][int(turn)].append(held[name])
    return Sample(file.read_bytes(), runs["feed"], file.suffix[1:], options), runs["wanted"]
