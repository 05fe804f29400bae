"""Random `.tflite` graphs of every operator that single models are drawn of: each reads what others made, brought to
the type, scale and shape that it wants by QUANTIZE, DEQUANTIZE, CONCATENATION, STRIDED_SLICE and RESHAPE."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relay import signature
from relay.compile.entry import build
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.runtime import load
from tests.numeric.litert_models import Array, Case, Reference, T, pack, random_numbers, schema
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES

CODES = ("int8", "uint8", "int16")
MAKERS: list[tuple[str, Callable[[np.random.Generator], Case]]] = [
    *((kind, lambda rng, kind=kind: CASES[kind](rng, kind)) for kind in sorted(CASES)),
    *((kind, lambda rng, key=key: QUANTISED[key](rng, *key)) for key in sorted(QUANTISED) for kind in key[:1]),
]
EXACT = {"DEQUANTIZE", "RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "CONCATENATION", "PAD", "GATHER", "SPLIT"}
"""Kinds whose floats are equal to the last bit: only they are quantized again, or compared with others."""
MOST = 4096
"""Elements of a tensor that is read again."""
LEFT_OUT = {"CALL_ONCE", "VAR_HANDLE", "IF", "WHILE"}
"""No models by themselves. DIV of codes is left out too, and layers that find an asymmetric scale get random floats
only: see the table of docs/support.md."""
STRETCH = (0.25, 4.0, 2.0**-7, 2.0**7, 2.0**-13, 2.0**13)
"""What scales of results are multiplied by where parameters are drawn beyond the usual."""


@dataclass
class Value:
    """A tensor of the graph."""

    index: int
    spec: T
    exact: bool


class Graph:
    """A model that grows by operators. `steps` are the numbers of those that are entered."""

    def __init__(self, seed: int, steps: Sequence[int], *, stretched: bool = False):
        s = schema()
        self.model, self.graph = s.ModelT(), s.SubGraphT()
        self.graph.name, self.graph.tensors, self.graph.operators = b"main", [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.model.version, self.model.description, self.model.buffers = 3, b"graph", [s.BufferT()]
        self.model.operatorCodes, self.model.subgraphs = [], [self.graph]
        self.model.metadata, self.model.signatureDefs = [], []
        self.values: list[Value] = []
        self.read: set[int] = set()
        self.feeds: list[T | Array] = []
        self.kinds: list[str] = []
        self.stretched = stretched
        for step in steps:
            self.rng = np.random.default_rng([seed, step])
            self.graft(step)
        self.graph.outputs = [v.index for v in self.values if v.index not in self.read]

    def graft(self, step: int) -> None:
        """Enter a random case."""
        kind, make = MAKERS[int(self.rng.integers(len(MAKERS)))]
        case = make(self.rng)
        codes = any(spec is not None and spec.dtype in CODES for spec in case.inputs)
        if case.kind in LEFT_OUT or case.custom_code or case.kernels != "BUILTIN_REF" or (case.kind == "DIV" and codes):
            return
        if self.stretched and self.rng.random() < 0.5:
            case = stretched(case, self.rng)
        inputs = [self.given(case, i, spec) for i, spec in enumerate(case.inputs)]
        self.enter(case, inputs, f"{kind}_{step}")

    def given(self, case: Case, number: int, spec: T | None) -> int:
        """The tensor for an input: a constant, an input of the graph, or what was made before."""
        if spec is None:
            return -1
        if isinstance(spec.value, np.ndarray) or spec.variable:
            return self.tensor(spec)
        fresh = number in case.custom_inputs or case.values.get("asymmetricQuantizeInputs", False)
        found = None if fresh else self.adapted(spec)
        if found is not None:
            self.read.add(found.index)
            return found.index
        index = self.tensor(spec)
        self.graph.inputs.append(index)
        self.feeds.append(case.custom_inputs.get(number, spec))
        return index

    def adapted(self, spec: T) -> Value | None:
        """A value made before, as such a tensor; None where there is none that can be."""
        size = int(np.prod(list(spec.value)))
        if spec.dtype not in (*CODES, "float32") or not 0 < size <= MOST or self.rng.random() < 0.15:
            return None
        fitting = [v for v in self.values if v.exact and is_readable(v.spec)]
        if not fitting:
            return None
        value = fitting[-1 - int(self.rng.integers(min(len(fitting), 4)))]
        if (value.spec.dtype, value.spec.scale, value.spec.zero_point) != (spec.dtype, spec.scale, spec.zero_point):
            if value.spec.dtype != "float32":
                value = self.one("DEQUANTIZE", [value], T(value.spec.value, "float32"), version=3)
            if spec.dtype != "float32":
                value = self.one("QUANTIZE", [value], replace(spec, value=value.spec.value), "QuantizeOptions")
        if list(value.spec.value) == list(spec.value):
            return value
        value = self.reshaped(value, [count(value.spec)])
        if count(value.spec) < size:
            times = -(-size // count(value.spec))
            whole = replace(value.spec, value=[times * count(value.spec)])
            value = self.one("CONCATENATION", [value] * times, whole, "ConcatenationOptions", {"axis": 0}, 3)
        if count(value.spec) > size:
            bounds = [T(np.array([n], np.int32), "int32") for n in (0, size, 1)]
            cut = replace(value.spec, value=[size])
            value = self.one("STRIDED_SLICE", [value, *bounds], cut, "StridedSliceOptions", {}, 4)
        return self.reshaped(value, list(spec.value))

    def reshaped(self, value: Value, dims: list[int]) -> Value:
        if list(value.spec.value) == dims:
            return value
        shape = T(np.array(dims, np.int32).reshape(-1), "int32")
        return self.one("RESHAPE", [value, shape], replace(value.spec, value=dims))

    def one(
        self, kind: str, inputs: Sequence[Value | T], out: T, options: str = "", values: dict[str, Any] | None = None,
        version: int = 1,
    ) -> Value:  # fmt: skip
        """An operator of one result."""
        case = Case(kind, [each.spec if isinstance(each, Value) else each for each in inputs], [out], options)
        case = replace(case, values=values or {}, version=version)
        slots = [each.index if isinstance(each, Value) else self.tensor(each) for each in inputs]
        self.read |= {each.index for each in inputs if isinstance(each, Value)}
        self.enter(case, slots, kind)
        return self.values[-1]

    def tensor(self, spec: T) -> int:
        return Case.add(self.model, self.graph, spec, f"t{len(self.graph.tensors)}")

    def enter(self, case: Case, slots: list[int], name: str) -> None:
        """Add the operator; its results can be read by later ones."""
        tensors, inputs, outputs = len(self.graph.tensors), list(self.graph.inputs), list(self.graph.outputs)
        placeholder = replace(case, inputs=[None] * len(slots))
        placeholder.enter(self.model, self.graph)
        operator = self.graph.operators[-1]
        operator.inputs = slots
        self.graph.inputs, self.graph.outputs = inputs, outputs
        for tensor in self.graph.tensors[tensors:]:
            tensor.name += f"_{tensors}".encode()
        exact = case.kind in EXACT
        made = zip(operator.outputs, case.outputs, strict=True)
        self.values += [Value(i, spec, exact or spec.dtype in CODES) for i, spec in made]
        self.kinds.append(case.kind)

    def file(self) -> bytes:
        """The model."""
        return pack(self.model)

    def numbers(self, rng: np.random.Generator) -> list[Array]:
        """Numbers for the inputs."""
        return [
            f if isinstance(f, np.ndarray) else random_numbers(rng, [int(d) for d in f.value], f.dtype)
            for f in self.feeds
        ]


def is_readable(spec: T) -> bool:
    """Whether others can read it: floats, or codes of one scale; not empty."""
    return count(spec) > 0 and (spec.dtype == "float32" or spec.dtype in CODES and isinstance(spec.scale, float))


def count(spec: T) -> int:
    return int(np.prod([int(d) for d in spec.value]))


def stretched(case: Case, rng: np.random.Generator) -> Case:
    """The case with another scale of its first result, and zero points at the ends."""
    first = case.outputs[0]
    fixed = ("SUB", "SOFTMAX", "LOGISTIC", "TANH", "L2_NORMALIZATION", "LOG_SOFTMAX")
    if first.dtype not in CODES or case.kind in fixed or not isinstance(first.scale, float):
        return case
    if any(spec is not None and spec.scale == first.scale for spec in case.inputs):
        return case  # an operator that keeps the scale
    return replace(case, outputs=[replace(first, scale=first.scale * float(rng.choice(STRETCH))), *case.outputs[1:]])


def guarded(work: Callable[[], Any]) -> Any:
    """What a function returns, called in a child: LiteRT aborts the process for some parameters. None if it does."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            result = work()
        except (RuntimeError, ValueError):
            result = None
        with open(write, "wb") as out:
            pickle.dump(result, out)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as held:
        data = held.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def wanted_of(model: bytes, feeds: Sequence[Sequence[Array]]) -> list[list[Array]] | None:
    """What LiteRT's reference kernels give, run by run; None where they do not take the model."""

    def work() -> list[list[Array]]:
        reference = Reference(model)
        return [reference.run(given) for given in feeds]

    return guarded(work)


def same(result: Array, wanted: Array, *, tolerance: float) -> bool:
    """Equal integers; floats within a part of the largest, and what is not finite at the same places."""
    if (result.dtype, result.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(result, wanted)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6)
    with np.errstate(all="ignore"):
        return np.allclose(result, wanted, rtol=tolerance, atol=tolerance * float(largest), equal_nan=True)


def differing(
    model: bytes, feeds: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]], ways: Sequence[dict[str, Any]]
) -> str:
    """Which way gives other numbers than LiteRT; empty if none. The interpreter always, then one build for each of
    `ways`: arguments of `build`, `saved` to run what was saved and loaded."""
    module = from_tflite(model)
    inputs, outputs = signature.read(module["main"])
    states: Sequence[Array] = [np.array(info.initial) for info in inputs if info.kind == "state"]
    amount = sum(info.kind == "output" for info in outputs)
    results: list[Sequence[Array]] = []
    held = states
    for given in feeds:
        results.append(run(module, [*given, *held]))
        held = results[-1][amount:]
    for turn, given in enumerate(wanted):
        for number, (result, want) in enumerate(zip(results[turn], given, strict=False)):
            if not same(result, want, tolerance=1e-5):
                return f"interpreted, run {turn}, output {number}: {said(result, want)}"
    for way in ways:
        options = dict(way)
        saved = options.pop("saved", False)
        executable = build(model, **options)
        if saved:
            path = f"/tmp/graph-{os.getpid()}.relay"
            executable.save(path)
            executable = load(path)
            os.unlink(path)
        held = states
        for turn, given in enumerate(feeds):
            found = executable.run(*given, *held)
            every = [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]
            held = every[amount:]
            for number, (result, want) in enumerate(zip(every, wanted[turn], strict=False)):
                if not same(result, want, tolerance=1e-5):
                    return f"{way}, run {turn}, output {number}: {said(result, want)}"
    return ""


def said(result: Array, wanted: Array) -> str:
    """Where the first of the numbers that differ is."""
    if (result.dtype, result.shape) != (wanted.dtype, wanted.shape):
        return f"{result.dtype}{result.shape} instead of {wanted.dtype}{wanted.shape}"
    wrong = np.argwhere(result != wanted)
    place = tuple(int(i) for i in wrong[0])
    return f"{len(wrong)} of {wanted.size} differ, first {place}: {result[place]} instead of {wanted[place]}"
