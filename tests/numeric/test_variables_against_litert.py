"""Resource variables against LiteRT's reference kernels: what several runs give, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from relay import signature
from relay.compile.entry import build
from relay.errors import Malformed, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.litert_comparison import compare
from tests.numeric.litert_models import Array, Reference, T, random_numbers
from tests.numeric.test_control_flow_against_litert import Graph, Op, model

F32, HANDLE = T([2, 3], "float32"), T([], "resource")
ONCE = Op("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 1})
NAMES = ("a", "b", "c")


@pytest.fixture(autouse=True)
def schema() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")


def handle(name: str, tensor: int) -> Op:
    return Op("VAR_HANDLE", [], [tensor], "VarHandleOptions", {"sharedName": name, "container": ""})


def assign(handle: int, value: int) -> Op:
    return Op("ASSIGN_VARIABLE", [handle, value], [])


def first_values(*arrays: Array) -> Graph:
    """What CALL_ONCE calls: a constant for each variable."""
    tensors = [*(HANDLE for _ in arrays), *(T(array, array.dtype.name) for array in arrays)]
    ops = [op for i in range(len(arrays)) for op in (handle(NAMES[i], i), assign(i, len(arrays) + i))]
    return Graph(tensors, [], [], ops)


def random_graphs(rng: np.random.Generator, dtype: str) -> list[Graph]:
    """Variables that are read, changed and assigned in a random order."""
    count = int(rng.integers(1, 4))
    image = T([2, 3], dtype)
    tensors, values = [image, *(HANDLE for _ in range(count))], [0]
    ops = [ONCE, *(handle(NAMES[i], 1 + i) for i in range(count))]

    def add(kind: str, inputs: list[int], options: str = "") -> None:
        tensors.append(image)
        values.append(len(tensors) - 1)
        ops.append(Op(kind, inputs, [values[-1]], options))

    for _ in range(int(rng.integers(4, 12))):
        which = 1 + int(rng.integers(count))
        match int(rng.integers(3)):
            case 0:
                add("READ_VARIABLE", [which])
            case 1:
                ops.append(assign(which, int(rng.choice(values))))
            case _:
                add("MAXIMUM", [int(n) for n in rng.choice(values, 2)], "MaximumMinimumOptions")
    add("READ_VARIABLE", [1])
    add("MINIMUM", [values[-1], int(rng.choice(values))], "MaximumMinimumOptions")
    start = first_values(*(random_numbers(rng, [2, 3], dtype) for _ in range(count)))
    return [Graph(tensors, [0], [values[-1]], ops), start]


def check(graphs: Sequence[Graph], rng: np.random.Generator, dtype: str, compiled: bool) -> None:
    """Each of a few runs gives what LiteRT gives."""
    file = model(graphs)
    module, reference = from_tflite(file), Reference(file)
    module.verify()
    executable = build(module) if compiled else None
    states: Sequence[Array] = [np.array(i.initial) for i in signature.read(module["main"])[0] if i.kind == "state"]
    assert states
    for _ in range(4):
        given = random_numbers(rng, [2, 3], dtype)
        (wanted,) = reference.run([given])
        results = run(module, [given, *states])
        compare(results[0], wanted, f"{graphs}")
        if executable is not None:
            found = executable.run(given, *states)
            assert isinstance(found, tuple)
            for got, want in zip(found, results, strict=True):
                assert got is not None
                compare(got, want, f"compiled: {graphs}")
        states = results[1:]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_variables_equal_litert(dtype: str) -> None:
    rng = np.random.default_rng(dtype == "int8")
    for number in range(20):
        check(random_graphs(rng, dtype), rng, dtype, number < 1)


def counter(*ops: Op, start: Graph | None = None) -> bytes:
    """Tensors: the input, a handle, what is read, the sum of both; by default the sum is assigned."""
    steps = ops or (ONCE, handle("a", 1), *SUM, assign(1, 3))
    row = T([1, 3], "float32")
    return model([Graph([row, HANDLE, row, row], [0], [3], steps), start or first_values(np.ones((1, 3), np.float32))])


SUM = (Op("READ_VARIABLE", [1], [2]), Op("ADD", [0, 2], [3], "AddOptions"))
INTEGERS, COMPUTED = (
    first_values(np.ones((1, 3), np.int32)),
    Graph([HANDLE, F32], [1], [], [handle("a", 0), assign(0, 1)]),
)
RENAMED = Graph(first_values(np.ones(1, np.float32)).tensors, [], [], [handle("b", 0), assign(0, 1)])

WRITES = handle("a", 1), assign(1, 0), Op("ADD", [0, 0], [3], "AddOptions")
GIVEN = Graph([F32, HANDLE, F32, HANDLE], [0, 1], [2], [handle("a", 3), SUM[0]])


def test_states_have_the_names_of_variables() -> None:
    inputs, outputs = signature.read(from_tflite(counter())["main"])
    assert [(info.name, info.kind) for info in inputs] == [("t0", "input"), ("a", "state")]
    assert [(info.name, info.kind) for info in outputs] == [("t3", "output"), ("a", "state")]
    assert inputs[1].initial is not None and inputs[1].initial.min() == 1


def test_other_outputs_keep_what_changes_their_variables() -> None:
    module = from_tflite(counter(), outputs=["t2"])
    given, start = np.full((1, 3), 5, np.float32), np.ones((1, 3), np.float32)
    read, kept = run(module, [given, start])
    assert np.array_equal(read, start) and np.array_equal(kept, given + 1)


def test_a_batch_has_a_state_for_each_image() -> None:
    module = from_tflite(counter(), batch=4)
    inputs = signature.read(module["main"])[0]
    assert [info.shape for info in inputs] == [(4, 3)] * 2


def test_what_nothing_assigns_starts_at_zero() -> None:
    inputs = signature.read(from_tflite(counter(start=RENAMED))["main"])[0]
    assert inputs[1].initial is not None and not inputs[1].initial.any() and inputs[1].shape == (1, 3)


REFUSED: dict[str, tuple[type[RelayError], Callable[[], bytes]]] = {
    "its variable is not named by VAR_HANDLE": (Unsupported, lambda: model([GIVEN])),
    "starts as INT32, and is FLOAT32 later": (Unsupported, lambda: counter(start=INTEGERS)),
    "variables are used before it": (Unsupported, lambda: counter(handle("a", 1), *SUM, ONCE)),
    "CALL_ONCE '': calls subgraph 7 of 2": (
        Malformed,
        lambda: counter(Op("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 7}), ONCE, *WRITES),
    ),
    "only assignments of constants are known": (
        Unsupported,
        lambda: counter(start=Graph([F32, F32], [0], [1], [Op("ABS", [0], [1])])),
    ),
    "which is no constant": (Unsupported, lambda: counter(start=COMPUTED)),
    "assigns tensor<1x3xf32> to a variable of tensor<3xf32>": (
        Unsupported,
        lambda: counter(ONCE, *WRITES, start=first_values(np.ones(3, np.float32))),
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str) -> None:
    error, file = REFUSED[words]
    with pytest.raises(error, match=words):
        from_tflite(file())
