"""Random models of single operators held against LiteRT's reference kernels: several at a time side by side in one
model, which is imported, interpreted and built once. One that differs is looked for, and found, alone."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relay import signature
from relay.compile.entry import build
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_models import Array, Case, Reference, joined

RUNS = 3
TOGETHER = 20
"""Operators of one model: more save little."""
Make = Callable[[np.random.Generator], Case]


def compare(result: Array, wanted: Array, what: str) -> None:
    """Equal integers; floats within 1e-5 of the largest."""
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), what
    if wanted.dtype.kind == "f":
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6)
        assert np.allclose(result, wanted, rtol=1e-5, atol=1e-5 * float(largest)), what
    else:
        assert np.array_equal(result, wanted), what


@dataclass
class Accepted:
    """A model that LiteRT takes: what goes in, and what came out, run by run."""

    case: Case
    feeds: Sequence[Sequence[Array]]
    outputs: Sequence[Sequence[Array]]


def accepted(case: Case, rng: np.random.Generator) -> Accepted | None:
    """A few runs of LiteRT, variables carried on; None where it does not take the model."""
    try:
        reference = Reference(case.model(), case.kernels)
    except (RuntimeError, ValueError):
        return None
    feeds = [case.feeds(rng) for _ in range(RUNS)]
    return Accepted(case, feeds, [reference.run(given) for given in feeds])


def check(models: Sequence[Accepted], *, built: bool) -> None:
    """The same numbers from the interpreter and, if `built`, from compiled code; states are equal between those two."""
    module = from_tflite(joined([model.case for model in models]))
    module.verify()
    inputs, outputs = signature.read(module["main"])
    states: Sequence[Array] = [np.array(info.initial) for info in inputs if info.kind == "state"]
    count = sum(info.kind == "output" for info in outputs)
    names = [model.case.kind for model in models for _ in model.case.outputs]
    executable = build(module) if built else None
    for turn in range(RUNS):
        feeds = [array for model in models for array in model.feeds[turn]]
        expected = [array for model in models for array in model.outputs[turn]]
        results = run(module, [*feeds, *states])
        for name, result, wanted in zip(names, results[:count], expected, strict=True):
            compare(result, wanted, f"interpreted: {name}")
        if executable is not None:
            found = executable.run(*feeds, *states)
            every = found if isinstance(found, tuple) else (found,)
            for number, (result, wanted) in enumerate(zip(every, results, strict=True)):
                assert result is not None
                what = names[number] if number < count else f"state {number - count}"
                compare(result, wanted, f"compiled, by the interpreter: {what}")
                if number < count:
                    compare(result, expected[number], f"compiled: {what}")
        states = results[count:]


@dataclass
class Tally:
    """How models of one kind fared."""

    name: str
    tried: int = 0
    refused: int = 0
    """By LiteRT."""
    equal: Counter[str] = field(default_factory=Counter[str])
    """By the type of what comes in."""
    wrong: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        equal = ", ".join(f"{count} {dtype}" for dtype, count in sorted(self.equal.items()))
        text = f"{self.name}: {self.tried} tried, {self.refused} refused, {self.equal.total()} equal ({equal})"
        return f"{text}, {len(self.wrong)} wrong" if self.wrong else text

    def enter(self, models: Sequence[Accepted], *, built: bool) -> None:
        """Check these, together and, where that fails, each alone."""
        try:
            check(models, built=built)
        except Exception as error:
            if len(models) == 1:
                with np.printoptions(threshold=64):
                    self.wrong.append(f"{type(error).__name__}: {str(error)[:500]}\n  {models[0].case}")
                return
            before = len(self.wrong)
            for model in models:
                self.enter([model], built=built)
            if len(self.wrong) == before:
                self.wrong.append(f"only side by side, {type(error).__name__}: {str(error)[:500]}")
            return
        self.equal.update(type_of(model.case) for model in models)


def type_of(case: Case) -> str:
    """Of codes, if there are any, else of the first input."""
    tensors = [tensor for tensor in (*case.inputs, *case.outputs) if tensor is not None]
    return next((tensor.dtype for tensor in tensors if tensor.scale is not None), tensors[0].dtype)


def compare_many(name: str, make: Make, numbers: Iterable[int], seed: int, *, built: bool) -> None:
    """A model that LiteRT takes for each of the numbers. What it takes and we refuse is wrong; prints the tally."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    tally, waiting = Tally(name), list[Accepted]()
    for _ in numbers:
        while (model := accepted(make(rng), rng)) is None:
            tally.tried, tally.refused = tally.tried + 1, tally.refused + 1
            assert tally.refused <= 3 * tally.tried // 4 + 40, f"LiteRT refuses most models: {tally}"
        tally.tried += 1
        waiting.append(model)
        if len(waiting) == TOGETHER:
            tally.enter(waiting, built=built)
            waiting.clear()
    if waiting:
        tally.enter(waiting, built=built)
    print(tally, flush=True)
    assert not tally.wrong, "\n".join([str(tally), *tally.wrong[:10]])
