"""IF and WHILE of random subgraphs against LiteRT's reference kernels: the same numbers, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from relay.compile.entry import build
from relay.errors import Malformed, Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.conftest import Cases
from tests.numeric.litert_cases import Rng, pick, scale, zero_point
from tests.numeric.litert_comparison import compare
from tests.numeric.litert_models import Array, Case, Reference, T, pack, random_numbers, schema


@dataclass
class Op:
    """An operator on tensors of its graph, by number."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Graph:
    tensors: Sequence[T]
    inputs: Sequence[int]
    outputs: Sequence[int]
    ops: Sequence[Op]


def model(graphs: Sequence[Graph]) -> bytes:
    """The file."""
    s = schema()
    whole = s.ModelT()
    whole.version, whole.description, whole.buffers = 3, b"control", [s.BufferT()]
    whole.metadata, whole.signatureDefs, whole.operatorCodes, whole.subgraphs = [], [], [], []
    for number, graph in enumerate(graphs):
        enter(whole, graph, f"graph{number}")
    return pack(whole)


def enter(whole: Any, graph: Graph, name: str, first: int = 0) -> None:
    """Add a subgraph; those that it calls are counted from the `first` on."""
    made = schema().SubGraphT()
    made.name, made.tensors = name.encode(), []
    made.inputs, made.outputs = list(graph.inputs), list(graph.outputs)
    for place, spec in enumerate(graph.tensors):
        Case.add(whole, made, spec, f"t{place}")
    made.operators = [operator(whole, op, first) for op in graph.ops]
    whole.subgraphs.append(made)


def operator(whole: Any, op: Op, first: int = 0, suffix: str = "", inputs: Sequence[int] | None = None) -> Any:
    """The operator, with subgraphs counted from the `first` on and variables of names that end in `suffix`."""
    s = schema()
    made, code = s.OperatorT(), s.OperatorCodeT()
    code.builtinCode, code.version = getattr(s.BuiltinOperator, op.kind), 1
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    whole.operatorCodes.append(code)
    made.opcodeIndex, made.outputs = len(whole.operatorCodes) - 1, list(op.outputs)
    made.inputs = list(op.inputs if inputs is None else inputs)
    if op.options:
        made.builtinOptionsType = getattr(s.BuiltinOptions, op.options)
        made.builtinOptions = getattr(s, f"{op.options}T")()
        for name, value in op.values.items():
            more = first if name.endswith("SubgraphIndex") else suffix if name == "sharedName" else None
            setattr(made.builtinOptions, name, value if more is None else value + more)
    return made


SHAPE = [2, 3]
BINARY: dict[str, tuple[str, dict[str, Any]]] = {
    "ADD": ("AddOptions", {"potScaleInt16": False}),
    "SUB": ("SubOptions", {"potScaleInt16": False}),
    "MUL": ("MulOptions", {}),
    "MINIMUM": ("MaximumMinimumOptions", {}),
    "MAXIMUM": ("MaximumMinimumOptions", {}),
}


class Maker:
    """Random subgraphs on two images of one type, of codes of one scale."""

    def __init__(self, rng: Rng, dtype: str) -> None:
        self.rng = rng
        self.dtype = dtype
        self.scale = scale(rng, 0.01, 0.2) if dtype == "int8" else None
        self.zero_point = zero_point(rng, "int8") if dtype == "int8" else 0

    def image(self, value: Array | list[int] | None = None) -> T:
        return T(SHAPE if value is None else value, self.dtype, self.scale, self.zero_point)

    def op(self, first: int, second: int, out: int) -> Op:
        kind = pick(self.rng, *BINARY)
        options, values = BINARY[kind]
        return Op(kind, [first, second], [out], options, values)

    def branch(self) -> Graph:
        """Two images of two; sometimes one as it came, or a constant. Of one tensor twice LiteRT writes one."""
        rng = self.rng
        constant = self.image(random_numbers(rng, SHAPE, self.dtype))
        tensors = [self.image(), self.image(), self.image(), self.image(), constant]
        ops = [self.op(0, 1, 2), self.op(int(rng.integers(3)), int(rng.choice([0, 1, 4])), 3)]
        outputs = [int(rng.choice([0, 2, 4])), 3]
        return Graph(tensors, [0, 1], outputs, ops)

    def conditional(self) -> list[Graph]:
        """An IF on a given boolean."""
        condition = T([] if self.rng.integers(2) else [1], "bool")
        images = [self.image() for _ in range(5)]
        calls = Op("IF", [0, 6, 2], [3, 4], "IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2})
        main = Graph([condition, *images, self.image()], [0, 1, 2], [5, 4], [self.op(1, 2, 6), calls, self.op(3, 1, 5)])
        return [main, self.branch(), self.branch()]

    def test(self, limit: int) -> Graph:
        """Whether the count is below a limit."""
        tensors = [self.count(), self.image(), self.image(), self.count(limit), T(self.count().value, "bool")]
        return Graph(tensors, [0, 1, 2], [4], [Op("LESS", [0, 3], [4], "LessOptions")])

    def count(self, value: int | None = None) -> T:
        return T([1] if value is None else np.array([value], np.int32), "int32")

    def loop(self) -> list[Graph]:
        """A WHILE whose body counts and works on two images; it may give the second as the first. LiteRT gets it wrong
        where the first is given as the second: it has been written by then."""
        rng = self.rng
        images = [self.image() for _ in range(5)]
        calls = Op("WHILE", [0, 1, 2], [6, 3, 4], "WhileOptions", {"condSubgraphIndex": 1, "bodySubgraphIndex": 2})
        main = Graph([self.count(), *images, self.count()], [0, 1, 2], [6, 5, 4], [calls, self.op(3, 1, 5)])
        tensors = [self.count(), self.image(), self.image(), self.count(1), self.count(), self.image(), self.image()]
        ops = [Op("ADD", [0, 3], [4], "AddOptions", {"potScaleInt16": False}), self.op(1, 2, 5), self.op(5, 1, 6)]
        first = int(rng.choice([1, 2, 5, 6]))
        outputs = [4, first, int(rng.choice([n for n in (2, 5, 6) if n != first]))]
        return [main, self.test(int(rng.integers(0, 5))), Graph(tensors, [0, 1, 2], outputs, ops)]

    def branching_loop(self) -> list[Graph]:
        """An IF in the body of a WHILE, on the count."""
        main, test, _ = self.loop()
        flag = T([1], "bool")
        tensors = [
            self.count(), self.image(), self.image(), self.count(1), self.count(), self.image(), self.image(),
            self.count(int(self.rng.integers(0, 3))), flag,
        ]  # fmt: skip
        ops = [
            Op("ADD", [0, 3], [4], "AddOptions", {"potScaleInt16": False}),
            Op("LESS", [0, 7], [8], "LessOptions"),
            Op("IF", [8, 1, 2], [5, 6], "IfOptions", {"thenSubgraphIndex": 3, "elseSubgraphIndex": 4}),
        ]
        return [main, test, Graph(tensors, [0, 1, 2], [4, 6, 5], ops), self.branch(), self.branch()]


def check(graphs: Sequence[Graph], rng: Rng, compiled: bool) -> None:
    """Each of a few runs gives what LiteRT gives."""
    file = model(graphs)
    reference = Reference(file)
    module = from_tflite(file)
    module.verify()
    executable = build(module) if compiled else None
    main = graphs[0]
    for turn in range(3):
        feeds: list[Array] = []
        for index in main.inputs:
            spec = main.tensors[index]
            dims = [int(d) for d in spec.value]
            if spec.dtype == "int32":
                feeds.append(np.array([turn], np.int32))
            else:
                feeds.append(random_numbers(rng, dims, spec.dtype))
        expected = reference.run(feeds)
        found: object = run(module, feeds) if executable is None else executable.run(*feeds)
        results = found if isinstance(found, tuple) else (found,)
        for result, wanted in zip(results, expected, strict=True):
            assert isinstance(result, np.ndarray)
            compare(result, wanted, f"{graphs}")


KINDS = ("conditional", "loop", "branching_loop")


def compare_many(kind: str, dtype: str, numbers: Iterable[int], seed: int, compiled: bool) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    rng = np.random.default_rng([seed, KINDS.index(kind), dtype == "int8"])
    for _ in numbers:
        check(getattr(Maker(rng, dtype), kind)(), rng, compiled)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_control_flow_equals_litert(kind: str, dtype: str) -> None:
    compare_many(kind, dtype, range(4), 0, False)
    compare_many(kind, dtype, range(1), 1, True)


@pytest.mark.fuzz
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_much_control_flow_equals_litert(kind: str, dtype: str, cases: Cases) -> None:
    compare_many(kind, dtype, cases(100), 2, False)
    compare_many(kind, dtype, cases(100), 3, True)


def test_litert_loses_what_a_body_exchanges() -> None:
    """A row of docs/support.md. The loop runs twice: each image is where it was."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    rng = np.random.default_rng(0)
    main, _, body = Maker(rng, "float32").loop()
    graphs = [replace(main, outputs=[3, 4]), Maker(rng, "float32").test(2), replace(body, outputs=[4, 2, 1])]
    images = [random_numbers(rng, SHAPE, "float32") for _ in range(2)]
    given = [np.array([0], np.int32), *images]
    for found in (run(from_tflite(model(graphs)), given), build(model(graphs)).run(*given)):
        assert isinstance(found, tuple)
        assert all(np.array_equal(np.asarray(a), b) for a, b in zip(found, images, strict=True))
    wrong = Reference(model(graphs)).run(given)
    assert np.array_equal(wrong[0], wrong[1]), "LiteRT is right: take the sentence out of docs/support.md"


def test_wrong_control_flow_is_told() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")
    maker = Maker(np.random.default_rng(1), "float32")
    main, then, otherwise = maker.conditional()
    with pytest.raises(Malformed, match="calls subgraph 2 of 2"):
        from_tflite(model([main, then]))
    with pytest.raises(Malformed, match="inputs that are not of its types"):
        narrow = [T([2, 3], "int32"), *otherwise.tensors[1:]]
        from_tflite(model([main, then, Graph(narrow, [0, 1], otherwise.outputs, otherwise.ops)]))
    with pytest.raises(Malformed, match="gives subgraph 2 2 inputs, and it takes 3"):
        from_tflite(model([main, then, Graph(otherwise.tensors, [0, 1, 4], otherwise.outputs, otherwise.ops)]))
    with pytest.raises(Malformed, match="its else branch gives other types"):
        from_tflite(model([main, then, Graph(otherwise.tensors, [0, 1], [3], otherwise.ops)]))
    known = [T(np.array([True]), "bool"), *(maker.image() for _ in range(4))]
    itself = Op("IF", [0, 1, 2], [3, 4], "IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2})
    with pytest.raises(Malformed, match="calls subgraph 1, in which it is"):
        from_tflite(model([main, Graph(known, [1, 2], [3, 4], [itself]), otherwise]))
    with pytest.raises(Unsupported, match="has 1 subgraphs beside the main one: 'graph3'"):
        from_tflite(model([main, then, otherwise, then]))
    with pytest.raises(Unsupported, match="batch"):
        from_tflite(model([main, then, otherwise]), batch=2)
    wide = [T([2], "bool"), *main.tensors[1:]]
    with pytest.raises(Malformed, match="not one boolean"):
        from_tflite(model([Graph(wide, main.inputs, main.outputs, main.ops), then, otherwise]))
