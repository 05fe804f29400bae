"""Random `.tflite` graphs of every operator that single models are drawn of: each reads what others made, brought to
the type, scale and shape that it wants by QUANTIZE, DEQUANTIZE, CONCATENATION, STRIDED_SLICE and RESHAPE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.numeric import test_control_flow_against_litert as control
from tests.numeric import test_variables_against_litert as variables
from tests.numeric.litert_cases import pick
from tests.numeric.litert_models import Array, Case, T, pack, random_numbers, schema
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
"""No models by themselves: `SUBGRAPHS` has them. DIV of codes is left out too: see the table of docs/support.md."""
SUBGRAPHS: list[Callable[[np.random.Generator], Sequence[control.Graph]]] = [
    *(
        lambda rng, kind=kind: getattr(control.Maker(rng, pick(rng, "float32", "int8")), kind)()
        for kind in control.KINDS
    ),
    lambda rng: variables.random_graphs(rng, pick(rng, "float32", "int8")),
]
"""A main graph of few operators, and the subgraphs that it calls."""
STRETCH = (0.25, 4.0, 2.0**-7, 2.0**7, 2.0**-13, 2.0**13)
"""What scales of results are multiplied by where parameters are drawn beyond the usual."""

CAST = {"FULLY_CONNECTED", "SQRT", "RELU6", "GELU", "QUANTIZE"}
"""Kinds in which LiteRT casts numbers of 2^31 steps, undefined in C++."""


@dataclass
class Value:
    """A tensor of the graph."""

    index: int
    spec: T
    exact: bool
    largest: float = 100.0
    """About; of inputs, too."""


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
        self.stretched, self.seed, self.quantizes_states = stretched, seed, False
        for step in steps:
            self.rng = np.random.default_rng([seed, step])
            self.graft(step)
        self.graph.outputs = [v.index for v in self.values if v.index not in self.read or v.index % 11 == seed % 11]

    def graft(self, step: int) -> None:
        """Enter a random case, or graphs that call others."""
        if self.rng.random() < 0.12:
            return self.call(SUBGRAPHS[int(self.rng.integers(len(SUBGRAPHS)))](self.rng), f"_{step}")
        _, make = MAKERS[int(self.rng.integers(len(MAKERS)))]
        case = make(self.rng)
        codes = any(spec is not None and spec.dtype in CODES for spec in case.inputs)
        if case.kind in LEFT_OUT or case.custom_code or case.kernels != "BUILTIN_REF" or (case.kind == "DIV" and codes):
            return
        if widens(case):
            return
        if self.stretched and self.rng.random() < 0.5:
            case = stretched(case, self.rng)
        inputs = [self.given(case, i, spec) for i, spec in enumerate(case.inputs)]
        return self.enter(case, inputs)

    def call(self, graphs: Sequence[control.Graph], suffix: str) -> None:
        """The operators of the first graph, on tensors of this one; the others are further subgraphs."""
        main, *others = graphs
        first = len(self.model.subgraphs) - 1
        for number, graph in enumerate(others):
            control.enter(self.model, graph, f"graph{suffix}_{number}", first)
        places = dict[int, int]()
        for number, spec in enumerate(main.tensors):
            case = Case("", [spec], [])
            if spec.dtype == "int32" and number in main.inputs:
                case.custom_inputs = {0: self.rng.integers(0, 3, spec.value).astype(np.int32)}
            places[number] = self.given(case, 0, spec) if number in main.inputs else self.tensor(spec)
        for op in main.ops:
            operator = control.operator(self.model, op, first, suffix, [places[i] for i in op.inputs])
            operator.outputs = [places[i] for i in op.outputs]
            self.graph.operators.insert(0 if op.kind == "CALL_ONCE" else len(self.graph.operators), operator)
            self.kinds.append(op.kind)
            specs = [main.tensors[i] for i in op.outputs]
            made = zip(operator.outputs, specs, strict=True)
            self.values += [Value(i, spec, spec.dtype in CODES) for i, spec in made if spec.dtype != "resource"]

    def given(self, case: Case, number: int, spec: T | None) -> int:
        """The tensor for an input: a constant, an input of the graph, or what was made before."""
        if spec is None:
            return -1
        if isinstance(spec.value, np.ndarray) or spec.variable:
            return self.tensor(spec)
        found = None if number in case.custom_inputs else self.adapted(spec)
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
        unscaled = spec.dtype in CODES and not isinstance(spec.scale, float)
        if spec.dtype not in (*CODES, "float32") or unscaled or not 0 < size <= MOST or self.rng.random() < 0.15:
            return None
        fitting = [v for v in self.values if v.exact and is_readable(v.spec)]
        if not fitting:
            return None
        value = fitting[-1 - int(self.rng.integers(min(len(fitting), 4)))]
        if isinstance(spec.scale, float) and value.largest / spec.scale > 2.0**30:
            return None  # LiteRT's cast to int32 would be undefined
        if spec.dtype == "float32" and value.largest > 2000:
            return None  # sums may cancel
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
        self, kind: str, inputs: Sequence[Value | T | None], out: T, options: str = "",
        values: dict[str, Any] | None = None, version: int = 1,
    ) -> Value:  # fmt: skip
        """An operator of one result."""
        return self.several(kind, inputs, [out], options, values, version)[0]

    def several(
        self, kind: str, inputs: Sequence[Value | T | None], outputs: Sequence[T], options: str = "",
        values: dict[str, Any] | None = None, version: int = 1,
    ) -> list[Value]:  # fmt: skip
        """An operator and its results."""
        case = Case(kind, [each.spec if isinstance(each, Value) else each for each in inputs], outputs, options)
        case = replace(case, values=values or {}, version=version)
        slots = [
            each.index if isinstance(each, Value) else -1 if each is None else self.tensor(each) for each in inputs
        ]
        self.read |= {each.index for each in inputs if isinstance(each, Value)}
        self.enter(case, slots)
        return self.values[-len(outputs) :]

    def tensor(self, spec: T) -> int:
        return Case.add(self.model, self.graph, spec, f"t{len(self.graph.tensors)}")

    def enter(self, case: Case, slots: list[int]) -> None:
        """Add the operator; its results can be read by later ones."""
        types = [(spec.dtype, spec.variable) for spec in case.inputs if spec is not None]
        self.quantizes_states |= ("float32", True) in types and ("int8", False) in types
        tensors, inputs, outputs = len(self.graph.tensors), list(self.graph.inputs), list(self.graph.outputs)
        placeholder = replace(case, inputs=[None] * len(slots))
        placeholder.enter(self.model, self.graph)
        operator = self.graph.operators[-1]
        operator.inputs = slots
        self.graph.inputs, self.graph.outputs = inputs, outputs
        for tensor in self.graph.tensors[tensors:]:
            tensor.name += f"_{tensors}".encode()
        read = [value for value in self.values if value.index in slots]
        exact = case.kind in EXACT and all(value.exact for value in read)
        largest = max([100.0, *(reach(spec) for spec in case.inputs if spec is not None)])
        largest = max([largest, *(value.largest for value in read)])
        for index, spec in zip(operator.outputs, case.outputs, strict=True):
            self.values.append(Value(index, spec, exact or spec.dtype in CODES, max(largest, reach(spec))))
        self.kinds.append(case.kind)

    def file(self) -> bytes:
        """The model."""
        return pack(self.model)

    def numbers(self, rng: np.random.Generator) -> list[Array]:
        """Numbers for the inputs: of codes at times those at the ends only."""
        return [
            f if isinstance(f, np.ndarray) else at_ends(random_numbers(rng, [int(d) for d in f.value], f.dtype), rng)
            for f in self.feeds
        ]


def at_ends(numbers: Array, rng: np.random.Generator) -> Array:
    """The numbers; of codes, once in eight, the lowest, the highest, or both of them."""
    if numbers.dtype.name not in CODES or rng.random() < 0.875:
        return numbers
    info = np.iinfo(numbers.dtype)
    return rng.choice([[info.min], [info.max], [info.min, info.max]][int(rng.integers(3))], numbers.shape).astype(
        numbers.dtype
    )


def widens(case: Case) -> bool:
    """Whether it is an LSTM whose projection has more results than units; LiteRT's may write where others have
    theirs: see docs/support.md."""
    found = [
        spec.value.shape for spec in case.inputs[16:34:17] if spec is not None and isinstance(spec.value, np.ndarray)
    ]
    return case.kind.endswith("LSTM") and any(len(shape) == 2 and shape[0] > shape[1] for shape in found)


def reach(spec: T) -> float:
    """The real number that the last code stands for; 0 without codes of one scale."""
    if spec.dtype not in CODES or not isinstance(spec.scale, float):
        return 0.0
    return spec.scale * (1 << 15 if spec.dtype == "int16" else 255)


def is_readable(spec: T) -> bool:
    """Whether others can read it: floats, or codes of one scale; not empty."""
    return count(spec) > 0 and (spec.dtype == "float32" or spec.dtype in CODES and isinstance(spec.scale, float))


def count(spec: T) -> int:
    return int(np.prod([int(d) for d in spec.value]))


def stretched(case: Case, rng: np.random.Generator) -> Case:
    """The case with another scale of its first result, and its zero point perhaps at an end."""
    first = case.outputs[0]
    fixed = ("SUB", "SOFTMAX", "LOGISTIC", "TANH", "L2_NORMALIZATION", "LOG_SOFTMAX")
    if first.dtype not in CODES or case.kind in fixed or not isinstance(first.scale, float):
        return case
    if any(spec is not None and spec.scale == first.scale for spec in case.inputs):
        return case  # an operator that keeps the scale
    return replace(case, outputs=[stretched_scale(first, rng, case.kind), *case.outputs[1:]])


def stretched_scale(spec: T, rng: np.random.Generator, kind: str) -> T:
    """Codes with another scale, and the zero point perhaps at an end."""
    assert isinstance(spec.scale, float)
    factors = [each for each in STRETCH if each > 1 or kind not in CAST]
    spec, info = replace(spec, scale=spec.scale * float(rng.choice(factors))), np.iinfo(spec.dtype)
    if spec.dtype != "int16" and rng.random() < 0.3:
        spec.zero_point = int(rng.choice([info.min, info.max]))
    return spec
