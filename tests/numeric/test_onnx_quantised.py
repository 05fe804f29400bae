"""Quantised operators of ONNX and of ONNX Runtime against ONNX Runtime: equal in every bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.errors import Unsupported
from relay.interpreters import run

pytest.importorskip("onnx", reason="needs the package onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import ModelProto  # noqa: E402

from relay.quantize import QdqToInteger, integer_share, stayed  # noqa: E402
from relay.transforms.dynamic_to_static import DynamicToStatic  # noqa: E402
from tests.conftest import Cases  # noqa: E402
from tests.numeric.onnx_qdq import GROUPS, STAYS, TO_REALS, kernel  # noqa: E402
from tests.numeric.onnx_qdq_graphs import random_graph  # noqa: E402
from tests.numeric.onnx_quantised import CASES, MICROSOFT, NEAR, SATURATES, Array, Graph, many  # noqa: E402

SUPPORT = Path(__file__).parents[2] / "docs/support.md"
OPEN = [kind for kind in CASES if kind.startswith(("QG", "QL")) and not kind.startswith(("QLinearConv", "QLinearMat"))]
"""Operators whose scales must be constants."""


DEFINED = [kind for kind in GROUPS if "NaN" not in kind]
"""Groups whose codes `onnx.reference` defines: it casts NaN as C does."""


def reference(graph: Graph, optimised: bool = True, model: ModelProto | None = None, **sizes: int) -> list[Array]:
    """With all optimisations, those of signed codes included; or with none. `sizes` of a `model` in place of the
    graph's are known before it is optimised."""
    options = onnxruntime.SessionOptions()
    for name, size in sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    text = (graph.model() if model is None else model).SerializeToString()
    session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    return session.run(None, graph.inputs)


def differing(found: Sequence[Array], wanted: Sequence[Array]) -> int:
    assert [each.shape for each in found] == [each.shape for each in wanted]
    return sum(int((a != b).sum()) for a, b in zip(found, wanted, strict=True))


def compiled(graph: Graph, module: relay.IRModule) -> list[Array]:
    found = relay.build(module)(*graph.inputs.values())
    return [np.asarray(each) for each in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.parametrize("kind", CASES)
def test_kind_interpreted(kind: str) -> None:
    graph = many(CASES, [kind], 6, 1)
    wanted = reference(graph)
    assert len(np.unique(np.concatenate([each.reshape(-1) for each in wanted]))) >= 50
    assert differing(run(relay.frontend.from_onnx(graph.model()), graph.inputs), wanted) == 0


HALVES = (
    [35, 6, 15, 7, 22, 21, 12, 25, 39, 5, 18, 23, 16, 26, 26, 17],
    [39, 34, 39, 6, 6, 11, 29, 37, 6, 10, 31, 10, 14, 21, 32, 17],
    [16, 32, 32, 17, 17, 22, 37, 3, 8, 35, 2, 20, 14, 34, 36, 31],
)
"""Rows with a result half way between two codes, in the last bit: it is the other code where the sum is made in
another order, or the quotient of float32 numbers."""


def test_softmax_next_to_halves() -> None:
    graph = Graph(np.random.default_rng(0))
    scales = [graph.constant(np.float32(0.085)), graph.constant(np.uint8(3))]
    given = [graph.input(np.array(HALVES, np.uint8)), *scales, graph.constant(np.float32(1 / 256))]
    graph.node("QLinearSoftmax", [*given, graph.constant(np.uint8(0))], np.uint8, MICROSOFT, axis=-1, opset=13)
    module, wanted = relay.frontend.from_onnx(graph.model()), reference(graph)
    assert differing(run(module, graph.inputs), wanted) == differing(compiled(graph, module), wanted) == 0


def test_kinds_compiled() -> None:
    """All are in the slow test below."""
    graph = many(CASES, ["QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul"], 1, 2)
    assert differing(compiled(graph, relay.frontend.from_onnx(graph.model())), reference(graph)) == 0


@pytest.mark.parametrize("kind", GROUPS)
def test_group_interpreted(kind: str) -> None:
    """DequantizeLinear, operator, QuantizeLinear: the integers of ONNX Runtime's fused kernels."""
    graph = many(GROUPS, [kind], 6, 1)
    module = QdqToInteger()(relay.frontend.from_onnx(graph.model()))
    wanted = reference(graph)
    assert len(np.unique(np.concatenate([each.reshape(-1) for each in wanted]))) >= 50
    assert differing(run(module, graph.inputs), wanted) == 0
    assert stayed(module) == []


@pytest.mark.parametrize("kind", TO_REALS)
def test_product_to_reals(kind: str) -> None:
    """The exact sums of codes, scaled: what ONNX Runtime sums in floats, to its rounding."""
    graph = many(TO_REALS, [kind], 6, 1)
    module = QdqToInteger()(relay.frontend.from_onnx(graph.model()))
    assert stayed(module) == [] and integer_share(module["main"]) == 1
    for found, wanted in zip(run(module, graph.inputs), reference(graph, optimised=False), strict=True):
        apart = np.abs(found.astype(np.float64) - wanted)
        if found.dtype == np.float32:
            assert apart.max() <= 2e-6 * np.abs(wanted).max()
        else:
            assert (apart > 0).mean() < 0.01 and apart.max() <= 1


def test_groups_compiled() -> None:
    """The importer asks for the pass itself."""
    graph = many(GROUPS, ["Conv", "Add"], 1, 2)
    assert differing(compiled(graph, relay.frontend.from_onnx(graph.model())), reference(graph)) == 0


@pytest.mark.parametrize("kind", STAYS)
def test_group_that_stays(kind: str) -> None:
    """In floats, as in ONNX Runtime: sums in another order may make one code in a thousand the next."""
    case, why = STAYS[kind]
    graph = many({kind: case}, [kind], 6, 1)
    module = QdqToInteger()(relay.frontend.from_onnx(graph.model()))
    assert why in {reason for _, reason in stayed(module)}
    assert f"| {kind} | {why} |" in SUPPORT.read_text()
    found, wanted = run(module, graph.inputs), reference(graph)
    assert differing(found, wanted) <= sum(each.size for each in wanted) / 1000
    assert max(np.abs(a.astype(int) - b).max() for a, b in zip(found, wanted, strict=True)) <= 1


@pytest.mark.parametrize("kind", NEAR)
def test_kind_of_float_sums(kind: str) -> None:
    graph = many(NEAR, [kind], 3, 1)
    found = run(relay.frontend.from_onnx(graph.model()), graph.inputs)
    for ours, theirs in zip(found, reference(graph, optimised=False), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("kind", OPEN)
def test_scales_that_must_be_constant(kind: str) -> None:
    """Operators whose scales may not be known only at run time say so."""
    graph = many(CASES, [kind], 1, 1)
    (node,) = graph.nodes
    scale = next(number for number, name in enumerate(node.input) if name in graph.constants)
    node.input[scale] = graph.open(node.input[scale])[0]
    with pytest.raises(Unsupported, match=f"{kind}.*is computed at run time; it must be a constant"):
        relay.frontend.from_onnx(graph.model())
    assert kind in SUPPORT.read_text().partition("must be constants")[0].rpartition("\n- ")[2]


def of_definition(kind: str, count: int) -> tuple[Graph, relay.IRModule, list[Array]]:
    """Groups, imported to be computed as ONNX defines them, and what `onnx.reference` gives."""
    from onnx.reference import ReferenceEvaluator

    graph = many(GROUPS, [kind], count, 3)
    module = relay.frontend.from_onnx(graph.model(), numerics="qdq")
    assert "relay.requests" not in module.op.attributes
    evaluator: Any = ReferenceEvaluator(graph.model())
    with np.errstate(all="ignore"):
        return graph, module, evaluator.run(None, graph.inputs)


@pytest.mark.parametrize("kind", DEFINED)
def test_group_by_definition(kind: str) -> None:
    graph, module, wanted = of_definition(kind, 6)
    assert differing(run(module, graph.inputs), wanted) == 0


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.ci if kind in ("Add", "Mul") else pytest.mark.slow) for kind in DEFINED],
)
def test_group_by_definition_compiled(kind: str) -> None:
    """25 groups in one module, whose kernels share code. Sums of floats have another order: one code in a thousand may
    be the next."""
    graph, module, wanted = of_definition(kind, 25)
    found = compiled(graph, module)
    assert differing(found, wanted) <= sum(each.size for each in wanted) / 1000
    assert max(np.abs(a.astype(int) - b).max() for a, b in zip(found, wanted, strict=True)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*CASES, *GROUPS])
def test_kind_in_many_sets(kind: str) -> None:
    """At least 20,000 values of 100 sets of parameters, as the interpreter and compiled code have them."""
    values = 0
    for seed in range(4):
        graph = many(CASES | GROUPS, [kind], 25, 100 + seed)
        module, wanted = QdqToInteger()(relay.frontend.from_onnx(graph.model())), reference(graph)
        values += sum(each.size for each in wanted)
        assert differing(run(module, graph.inputs), wanted) == 0
        assert differing(compiled(graph, module), wanted) == 0
    assert values >= 20_000


@pytest.mark.parametrize("axes", [pytest.param(2, marks=pytest.mark.ci), 3])
def test_bias_of_floats_and_sizes_that_are_not_known(axes: int) -> None:
    """MatMul, Add of a constant of floats, QuantizeLinear. ONNX Runtime makes a Gemm of it, whose bias has codes, where
    the data is a matrix or its sizes are known; otherwise it adds floats. So does what is imported with and without
    sizes, and the codes of the two are not the same."""
    graph = Graph(np.random.default_rng(5))
    for _ in range(2):
        data = graph.coded(np.uint8, *(2, 70, 30)[-axes:], scale=graph.scale(-6, -2))
        filters, scale = kernel(graph, np.uint8, 30, 9, channels=9, axis=1)
        bias = graph.random.standard_normal(9) * 99 * scale * graph.constants[data[1]]
        target = graph.target(np.uint8, -2, 3)
        for step in (1, -1):
            result = graph.inner("MatMul", [graph.inner("DequantizeLinear", data), filters])
            result = graph.inner("Add", [result, graph.constant(bias.astype(np.float32))][::step])
            graph.node("QuantizeLinear", [result, *target], np.uint8)
    model = graph.model()
    for each in model.graph.input:
        each.type.tensor_type.shape.dim[axes - 2].dim_param = "n"
    named = relay.frontend.from_onnx(model)
    fixed = relay.frontend.from_onnx(model, shapes={name: array.shape for name, array in graph.inputs.items()})
    theirs = reference(graph, model=model), reference(graph, model=model, n=70)
    for module, wanted in ((named, theirs[0]), (fixed, theirs[1])):
        assert differing(compiled(graph, module), wanted) == 0
        static = QdqToInteger()(DynamicToStatic(sizes=70)(module))
        assert stayed(static) == [] and differing(run(static, graph.inputs), wanted) == 0
    assert (differing(*theirs) > 0) == (axes == 3), "a row of docs/support.md is of the past"


@pytest.mark.parametrize("shape", [(1, 9), (1, 1, 9), (1,), (), (70, 1), (70, 9)], ids=str)
def test_floats_that_are_no_bias(shape: tuple[int, ...]) -> None:
    """A constant of floats that is added to a product and is no vector of its columns is not quantized."""
    graph = Graph(np.random.default_rng(1))
    for step in (1, -1) * 4:
        data = graph.coded(np.uint8, 70, 30, scale=graph.scale(-6, -2))
        filters, scales = kernel(graph, np.uint8, 30, 9, channels=9, axis=1)
        added = graph.random.standard_normal(shape) * 99 * scales[0] * graph.constants[data[1]]
        result = graph.inner("MatMul", [graph.inner("DequantizeLinear", data), filters])
        result = graph.inner("Add", [result, graph.constant(added.astype(np.float32))][::step])
        graph.node("QuantizeLinear", [result, *graph.target(np.uint8, -2, 3)], np.uint8)
    module = QdqToInteger()(relay.frontend.from_onnx(graph.model()))
    assert integer_share(module["main"]) == 1
    assert differing(run(module, graph.inputs), reference(graph)) == 0


@pytest.mark.parametrize("step", [1, -1])
def test_row_that_is_added_to_a_convolution(step: int) -> None:
    """As wide as there are channels, it is still no bias of them."""
    graph = Graph(np.random.default_rng(2))
    data = graph.coded(np.uint8, 1, 4, 9, 4, scale=graph.scale(-6, -2))
    filters, scale = kernel(graph, np.uint8, 4, 4, 3, 3)
    row = graph.random.standard_normal(4) * 9999 * scale * graph.constants[data[1]]
    result = graph.inner("Conv", [graph.inner("DequantizeLinear", data), filters], pads=[1] * 4)
    result = graph.inner("Add", [result, graph.constant(row.astype(np.float32))][::step])
    graph.node("QuantizeLinear", [result, *graph.target(np.uint8, -2, 3)], np.uint8)
    found = run(QdqToInteger()(relay.frontend.from_onnx(graph.model())), graph.inputs)
    assert differing(found, reference(graph)) == 0


def test_changes_of_scale_in_a_row() -> None:
    """ONNX Runtime makes two one, unless it does not optimise; here each is made."""
    graph = Graph(np.random.default_rng(1))
    first, second = graph.target(np.uint8, -3, -1), graph.target(np.uint8, -3, -1)
    value = graph.input(np.asarray(graph.random.standard_normal((40, 40)) * 9, np.float32))
    for target in (first, second):
        value = graph.inner("DequantizeLinear", [graph.inner("QuantizeLinear", [value, *target]), *target])
    graph.node("Identity", [value], np.float32)
    found = run(QdqToInteger()(relay.frontend.from_onnx(graph.model())), graph.inputs)
    assert differing(found, reference(graph, optimised=False)) == 0
    assert differing(found, reference(graph)) > 0, "a row of docs/support.md is of the past"


@pytest.mark.skipif(not SATURATES, reason="ONNX Runtime's sums are exact on this processor")
def test_sums_that_saturate_without_vnni() -> None:
    graph = Graph(np.random.default_rng(3))
    ends = np.full((8, 4), 127, np.int8)
    given = [graph.input(np.full((1, 8), 255, np.uint8)), graph.constant(ends)]
    graph.node("MatMulInteger", given, np.int32)
    found = run(relay.frontend.from_onnx(graph.model()), graph.inputs)
    np.testing.assert_array_equal(found[0], np.full((1, 4), 8 * 255 * 127))
    assert differing(found, reference(graph)) > 0, "a row of docs/support.md is of the past"


def test_sigmoid_of_low_numbers() -> None:
    """ONNX Runtime's is off by as much for low numbers as for others, and 0 below -18."""
    graph = Graph(np.random.default_rng(4))
    x = np.linspace(-40, -17, 64, dtype=np.float32)
    graph.node("Sigmoid", [graph.input(x)], np.float32)
    (found,), (wanted,) = run(relay.frontend.from_onnx(graph.model()), graph.inputs), reference(graph)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-x.astype(np.float64))), rtol=1e-5)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7)
    assert found.all() and not wanted[x < -18.1].any(), "a row of docs/support.md is of the past"


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_activation_whose_bound_is_no_end_of_the_type(kind: str) -> None:
    """ONNX Runtime computes such a group in floats; here it is the kernel for codes, clamped."""
    random = np.random.default_rng(2)
    ours, theirs = Graph(random), Graph(random)
    for _ in range(20):
        sides, target = [ours.coded(np.uint8, 8, 25) for _ in range(2)], ours.target(np.uint8, -2, 4)
        result = ours.inner(kind, [ours.inner("DequantizeLinear", side) for side in sides])
        ours.node("QuantizeLinear", [ours.inner("Relu", [result]), *target], np.uint8)
        theirs.node(f"QLinear{kind}", [*sides[0], *sides[1], *target], np.uint8, MICROSOFT)
    theirs.inputs, theirs.constants = ours.inputs, ours.constants
    zeros = [int(ours.constants[node.input[2]]) for node in ours.nodes if node.op_type == "QuantizeLinear"]
    found = run(QdqToInteger()(relay.frontend.from_onnx(ours.model())), ours.inputs)
    wanted = [np.maximum(codes, zero) for codes, zero in zip(reference(theirs), zeros, strict=True)]
    assert differing(found, wanted) == 0
    assert differing(found, reference(ours)) < sum(each.size for each in found) / 20


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_clamped_sum_with_itself(kind: str) -> None:
    """ONNX Runtime's kernel for two operands, no table of the function of one."""
    graph = Graph(np.random.default_rng(3))
    for _ in range(20):
        side = graph.inner("DequantizeLinear", graph.coded(np.int8, 8, 25))
        target = [graph.constant(graph.scale(-2, 4)), graph.constant(np.int8(-128))]
        result = graph.inner("Relu", [graph.inner(kind, [side, side])])
        graph.node("QuantizeLinear", [result, *target], np.int8)
    found = run(QdqToInteger()(relay.frontend.from_onnx(graph.model())), graph.inputs)
    assert differing(found, reference(graph)) == 0


def compare_random(seed: int, run: Callable[[Graph, relay.IRModule], list[Array]]) -> None:
    graph = random_graph(seed)
    module = QdqToInteger()(relay.frontend.from_onnx(graph.model()))
    assert differing(run(graph, module), reference(graph)) == 0, f"graph {seed}"


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed: int) -> None:
    compare_random(seed, lambda graph, module: [*run(module, graph.inputs)])


@pytest.mark.fuzz
def test_many_random_graphs(cases: Cases) -> None:
    for seed in cases(400):
        compare_random(seed, compiled if seed % 8 == 0 else lambda graph, module: [*run(module, graph.inputs)])


@pytest.mark.parametrize("directions", [1, 2])
def test_lstm_of_codes(directions: int) -> None:
    """The products are exact, the functions of gates are not. On one thread ONNX Runtime has one scale for all rows."""
    graph = Graph(np.random.default_rng(directions))
    size, hidden = 5, 6
    kernels = [graph.factors(np.int8, directions, inner, 4 * hidden) for inner in (size, hidden)]
    scales = [np.asarray(graph.random.random((directions, 4 * hidden)) * 0.02, np.float32) for _ in kernels]
    zero = np.zeros((directions, 4 * hidden), np.int8)
    bias = np.asarray(graph.random.standard_normal((directions, 8 * hidden)), np.float32)
    x = graph.input(np.asarray(graph.random.standard_normal((4, 3, size)), np.float32))
    given = [x, *map(graph.constant, (*kernels, bias)), "", "", "", ""]
    given += map(graph.constant, (scales[0], zero, scales[1], zero))
    direction = "forward" if directions == 1 else "bidirectional"
    graph.node("DynamicQuantizeLSTM", given, np.float32, "com.microsoft", hidden_size=hidden, direction=direction)
    (found,), (wanted,) = run(relay.frontend.from_onnx(graph.model()), graph.inputs), reference(graph)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
