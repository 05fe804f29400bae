"""Every optimisation of the graph keeps the interpreter's numbers: integers exactly, floats within a few ulp."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

import relay
from relay import IRModule
from relay.dialects import relay as ops
from relay.dialects.attributes import Array, ints
from relay.errors import InvalidArgument, Unsupported
from relay.interpreters import compute, run
from relay.transform import (
    AttachTarget,
    CanonicalizeCast,
    CombineParallelConv2D,
    CombineParallelDense,
    CommonSubexpressionElimination,
    DeadCodeElimination,
    DynamicToStatic,
    FastMath,
    FoldConstant,
    FoldExplicitPadding,
    FoldScaleAxis,
    Legalize,
    RemoveUnusedFunctions,
    Simplify,
    SimplifyInference,
    ToMixedPrecision,
)
from relay.transforms import algebra, fast_math
from tests.numeric.compiled_modules import Net
from tests.numeric.random_graphs import RandomGraph

EXACT: list[ModulePass] = [
    CanonicalizeCast(), CombineParallelConv2D(2), CombineParallelDense(2), CommonSubexpressionElimination(),
    DeadCodeElimination(), FoldConstant(), FoldExplicitPadding(), Simplify(), SimplifyInference(),
    RemoveUnusedFunctions(),
]  # fmt: skip
CLOSE: list[ModulePass] = [*EXACT, FoldScaleAxis()]
SEEDS = st.integers(0, 2**32 - 1)


def close(found: Sequence[Array], wanted: Sequence[Array], ulps: int = 64) -> None:
    """Equal integers; floats within some units in the last place of the largest."""
    for got, want in zip(found, wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            continue
        limit = ulps * np.finfo(want.dtype).eps * np.abs(want).max(initial=0)
        assert np.abs(got - want).max(initial=0) <= limit


def optimized(mod: IRModule, *steps: ModulePass) -> IRModule:
    """The module after these passes, at the level at which all run."""
    with relay.transform.PassContext(opt_level=4):
        return relay.transform.Sequential(list(steps))(mod)


def check(seed: int, floats: bool) -> None:
    """Every optimisation by itself, then all in a row; codes legalised, too."""
    net = RandomGraph(seed, floats=floats, size=9)
    mod = net.module()
    wanted = run(mod, net.inputs)
    for step in CLOSE if floats else [*EXACT, Legalize()]:
        new = optimized(mod, step)
        new.verify()
        close(run(new, net.inputs), wanted)
    new = optimized(mod, *([] if floats else [Legalize()]), *CLOSE, *CLOSE)
    new.verify()
    close(run(new, net.inputs), wanted)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(SEEDS, st.booleans())
def test_optimisations_keep_the_numbers(seed: int, floats: bool):
    check(seed, floats)


@pytest.mark.fuzz
@given(SEEDS, st.booleans())
def test_optimisations_keep_the_numbers_of_many(seed: int, floats: bool):
    check(seed, floats)


def norms(seed: int) -> Net:
    """All normalizations of one image, along the last axis and along the first channel axis."""
    net = Net(seed)
    for axis in (1, 3):
        x = net.argument(net.numbers("float32", 2, 4, 5, 4))
        gamma, beta, mean = (net.constant(net.numbers("float32", 4)) for _ in range(3))
        var = net.constant(np.abs(net.numbers("float32", 4)))
        common = {"axis": IntegerAttr(axis, i64), "epsilon": FloatAttr(1e-3, f32)}
        for flag in (True, False):
            more = common | {"center": BoolAttr.from_bool(flag), "scale": BoolAttr.from_bool(flag)}
            net.result(f"batch {axis} {flag}", net.add(ops.BatchNormOp, [x, gamma, beta, mean, var], more))
            for kind in (ops.LayerNormOp, ops.InstanceNormOp):
                net.result(f"{kind.name} {axis} {flag}", net.add(kind, [x, gamma, beta], more))
        groups = common | {"num_groups": IntegerAttr(2, i64)}
        net.result(f"group {axis}", net.add(ops.GroupNormOp, [x, gamma, beta], groups))
        l2 = {"axis": ints([axis]), "eps": FloatAttr(1e-3, f32)}
        net.result(f"l2 {axis}", net.add(ops.L2NormalizeOp, [x], l2))
        net.result(f"dropout {axis}", net.add(ops.DropoutOp, [x], {"rate": FloatAttr(0.5, f32)}))
    return net


def test_normalizations_written_out_are_the_same_to_the_bit():
    net = norms(5)
    mod = net.module()
    for got, want in zip(run(SimplifyInference()(mod), net.inputs), run(mod, net.inputs), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.slow
def test_normalizations_are_compiled():
    norms(6).check()


@pytest.mark.parametrize(("kind", "axes"), [(ops.LayerNormOp, (3,)), (ops.InstanceNormOp, (1, 2))])
def test_normalizations_against_their_definition(kind: type[ops.NormOp], axes: tuple[int, ...]):
    rng = np.random.default_rng(1)
    data = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    gamma, beta = rng.standard_normal((2, 5)).astype(np.float32)
    (got,) = compute(kind, [data, gamma, beta], {"epsilon": FloatAttr(1e-5, f32)})
    wide = data.astype(np.float64)
    root = np.sqrt(wide.var(axis=axes, keepdims=True) + 1e-5)
    want = (wide - wide.mean(axis=axes, keepdims=True)) / root * gamma + beta
    np.testing.assert_allclose(got, want, atol=1e-5)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(SEEDS)
def test_scales_of_powers_of_two_fold_exactly(seed: int):
    rng = np.random.default_rng(seed)
    net = Net(seed)
    x = net.argument(net.numbers("float32", 3, 6))
    factors = [(2.0 ** rng.integers(-3, 4, n)).astype(np.float32) for n in (6, 4)]
    before = net.add(ops.MultiplyOp, [x, net.constant(factors[0])], {})
    product = net.dense(before, net.constant(net.numbers("float32", 4, 6)))
    biased = net.add(ops.AddOp, [product, net.constant(net.numbers("float32", 4))], {})
    net.result("y", net.add(ops.MultiplyOp, [net.constant(factors[1]), biased], {}))
    mod = net.module()
    new = FoldScaleAxis()(mod)
    assert "relay.multiply" not in str(new)
    np.testing.assert_array_equal(run(new, net.inputs)[0], run(mod, net.inputs)[0])


def test_fast_math_keeps_its_error():
    net = Net(0)
    x = net.argument(np.linspace(-30, 30, 200001, dtype=np.float32))
    net.result("tanh", net.add(ops.TanhOp, [x], {}))
    net.result("sigmoid", net.add(ops.SigmoidOp, [x], {}))
    mod = net.module()
    fast = FastMath()(mod)
    assert not any(name in str(fast) for name in ("relay.tanh", "relay.sigmoid", "relay.exp"))
    wide = net.inputs[0].astype(np.float64)
    tanh, sigmoid = run(fast, net.inputs)
    assert np.abs(tanh - np.tanh(wide)).max() < fast_math.ERROR
    assert np.abs(sigmoid - 1 / (1 + np.exp(-wide))).max() < fast_math.ERROR


def test_half_precision_is_near():
    net = RandomGraph(11, floats=True, size=5)
    mod = net.module()
    half = ToMixedPrecision()(AttachTarget("x86_64 -mattr=+avx512fp16")(mod))
    half.verify()
    for got, want in zip(run(half, net.inputs), run(mod, net.inputs), strict=True):
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


def test_what_cannot_be_done_is_said():
    mod = IRModule()
    for step, error, words in [
        (ToMixedPrecision(), Unsupported, "the target has no arithmetic of f16"),
        (ToMixedPrecision(dtype="bf16"), Unsupported, "the target has no arithmetic of bf16"),
        (ToMixedPrecision(dtype="f8"), InvalidArgument, "dtype is 'f8'"),
        (RemoveUnusedFunctions(), InvalidArgument, "there is no function main"),
        (DynamicToStatic((1, 2)), InvalidArgument, "for 0 unknown ones"),
        (CombineParallelConv2D(1), InvalidArgument, "it is at least 2"),
    ]:
        with pytest.raises(error, match=words):
            step(mod)


NUMBERS: dict[str, Array] = {
    "int8": np.array([-128, -127, -3, -1, 0, 1, 2, 100, 127], np.int8),
    "int32": np.array([-(2**31), -7, -1, 0, 1, 9, 2**31 - 1], np.int32),
    "uint8": np.array([0, 1, 2, 127, 128, 255], np.uint8),
    "float32": np.array([-np.inf, -1e30, -2.5, -0.5, -0.0, 0.0, 0.5, 1.5, 3e38, np.inf, np.nan], np.float32),
}


@pytest.mark.parametrize("rule", algebra.RULES, ids=lambda rule: f"{rule.before} = {rule.after}")
def test_every_rule_holds_for_every_pair_of_numbers(rule: algebra.Rule):
    """Before and after are computed for all pairs of what is special, and of random numbers; the pass applies it."""
    for dtype, special in NUMBERS.items():
        if special.dtype.kind not in rule.kinds:
            continue
        net = Net(3)
        row = np.concatenate([special, net.numbers(dtype, 20)])
        x, y = (net.argument(grid.copy()) for grid in np.meshgrid(row, row))
        c = net.argument(net.rng.random((row.size, row.size)) < 0.5)
        values = {"x": x, "y": y, "c": c}

        def term(tree: ast.expr, net: Net = net, values: dict[str, SSAValue] = values) -> SSAValue:
            if isinstance(tree, ast.Name):
                return values[tree.id]
            assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
            return net.add(algebra.OPS[tree.func.id], [term(part) for part in tree.args], {})

        before, after = (term(tree) for tree in rule.terms)
        net.result("before", before)
        net.result("after", after)
        mod = net.module()
        count = sum(op.name.startswith("relay.") for op in mod.op.walk())
        new = Simplify()(mod)
        assert sum(op.name.startswith("relay.") for op in new.op.walk()) < count
        for results in (run(mod, net.inputs), run(new, net.inputs)):
            np.testing.assert_array_equal(results[0], results[1])
            if special.dtype.kind == "f":
                number = ~np.isnan(results[0])
                np.testing.assert_array_equal(np.signbit(results[0][number]), np.signbit(results[1][number]))
