"""`legalize` changes no number: modules of one qnn op, random, run before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    BoolAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    f32,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from relay.compile.pipeline import optimize
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, element_type, elements, ints, tensor_type
from relay.dialects.op import TensorOp
from relay.errors import RelayError, Unsupported
from relay.interpreters import run
from relay.interpreters.arithmetic import quantize_multiplier
from relay.module import IRModule
from relay.passes import Sequential
from relay.transforms import legalization
from relay.transforms.attach_target import AttachTarget
from relay.transforms.legalization import Legalization
from relay.transforms.legalize import Legalize
from relay.transforms.qnn_legalize import QnnLegalize

CODES = [np.int8, np.uint8]
SHIFTS = [-9, -1, 0, 3]
Properties = dict[str, Attribute | None]


def integer(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def real(value: float) -> FloatAttr:
    return FloatAttr(value, f32)


def module(inputs: Sequence[Array], body: Callable[..., Sequence[SSAValue]]) -> IRModule:
    """`@main` of the inputs' types; `body` builds the ops and gives the results."""
    block = Block(arg_types=[tensor_type(array) for array in inputs])
    results = body(*block.args)
    pending: list[Any] = [value.owner for value in results]
    ops: list[Any] = []
    while pending:
        op = pending.pop()
        if isinstance(op, Block):
            continue
        if op in ops:
            ops.remove(op)
        ops.insert(0, op)
        pending.extend(operand.owner for operand in op.operands)
    block.add_ops([*ops, ReturnOp(*results)])
    types = ([arg.type for arg in block.args], [value.type for value in results])
    op = ModuleOp([FuncOp("main", types, Region(block))])
    op.verify()
    return IRModule(op)


def one(kind: type[TensorOp], inputs: Sequence[Array], properties: Properties) -> IRModule:
    """A module of one op on its inputs."""
    return module(inputs, lambda *args: kind.make(args, properties).results)


def check(mod: IRModule, inputs: Sequence[Array]) -> IRModule:
    """Legalize; the same numbers must come out, and only relay ops be left."""
    legal = Legalize()(mod)
    legal.verify()
    assert {op.name.split(".")[0] for op in legal.op.walk()} <= {"builtin", "func", "relay"}
    for before, after in zip(run(mod, inputs), run(legal, inputs), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(after, before)
    return legal


def codes(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def multipliers(rng: np.random.Generator, size: int | tuple[()] = ()) -> Array:
    return rng.integers(1 << 30, (1 << 31) - 1, size, np.int64).astype(np.int32)


def requantization(rng: np.random.Generator, dtype: Any, shift: int, axis: int | None, size: int) -> Properties:
    """Properties of a requantize; per axis, shifts differ about `shift`."""
    dims: int | tuple[()] = () if axis is None else size
    shifts = np.full(dims, shift, np.int32) + rng.integers(-1, 1, dims, np.int32)
    lowest = int(np.iinfo(dtype).min)
    return {
        "input_scale": elements(np.ones(dims, np.float32)),
        "output_scale": real(0.5),
        "output_zero_point": integer(lowest + 100),
        "multiplier": elements(multipliers(rng, dims)),
        "shift": elements(shifts),
        "axis": IntegerAttr(-1 if axis is None else axis, i64),
        "min": integer(lowest + 20),
        "out_dtype": element_type(dtype),
    }


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("axis", [None, -1, 1])
@pytest.mark.parametrize("rounding", ["tflite", "tflite_single", "tonearest"])
def test_requantize(dtype: Any, shift: int, axis: int | None, rounding: str) -> None:
    rng = np.random.default_rng(shift + 50)
    x = rng.integers(-3000, 3000, (2, 3, 4, 5)).astype(np.int32)
    size = 1 if axis is None else x.shape[axis]
    given = requantization(rng, dtype, shift, axis, size) | {"rounding": StringAttr(rounding)}
    check(one(qnn.RequantizeOp, [x], given), [x])


@pytest.mark.parametrize("axis", [None, -1])
@pytest.mark.parametrize("rounding", ["f64_away", "f32_even"])
@pytest.mark.parametrize("scale", [0.0123, 0.5, 3.7, 1e7])
def test_requantize_in_floats(axis: int | None, rounding: str, scale: float) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-(1 << 31), 1 << 31, (7, 64)).astype(np.int32)
    x[:3] //= 1 << 22
    factor = np.float64(scale) if axis is None else rng.uniform(0.1, 1, 64) * scale
    given = requantization(rng, np.int8, 0, axis, 64)
    given |= {"rounding": StringAttr(rounding), "real_multiplier": elements(factor)}
    check(one(qnn.RequantizeOp, [x], given), [x])


def test_requantize_codes_and_sums_of_64_bits() -> None:
    rng = np.random.default_rng(5)
    x = codes(rng, np.uint8, 3, 50)
    given = requantization(rng, np.uint8, 0, None, 1)
    check(one(qnn.RequantizeOp, [x], given | {"input_zero_point": integer(131)}), [x])
    wide = rng.integers(-(1 << 40), 1 << 40, (3, 50))
    given = requantization(rng, np.int16, -24, -1, 50)
    check(one(qnn.RequantizeOp, [wide], given), [wide])
    with pytest.raises(Unsupported, match="rounding upward of 64-bit sums"):
        Legalize()(one(qnn.RequantizeOp, [wide], given | {"rounding": StringAttr("upward")}))


def test_full_bounds_still_clip() -> None:
    """Casts wrap, so codes saturate by a clip even where no activation narrows them."""
    x = np.array([-100000, -129, -128, 0, 127, 128, 100000], np.int32)
    given = requantization(np.random.default_rng(0), np.int8, 1, None, 1)
    given |= {"multiplier": integer(1 << 30), "shift": integer(1), "output_zero_point": integer(0), "min": None}
    legal = check(one(qnn.RequantizeOp, [x], given), [x])
    np.testing.assert_array_equal(run(legal, [x])[0], np.clip(x, -128, 127))


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("layout", ["OHWI", "HWOI"])
def test_conv2d_bias_requantize(dtype: Any, layout: str) -> None:
    rng = np.random.default_rng(6)
    x = codes(rng, dtype, 1, 5, 6, 4)
    kernel = codes(rng, dtype, *((8, 3, 3, 4) if layout == "OHWI" else (3, 3, 4, 2)))
    bias = rng.integers(-1000, 1000, 8).astype(np.int32)
    scales: Properties = {"input_scale": real(0.1), "kernel_scale": real(0.2), "kernel_layout": StringAttr(layout)}
    zero_points = {"input_zero_point": integer(7), "kernel_zero_point": integer(3 if dtype == np.uint8 else 0)}
    groups: Properties = {"groups": IntegerAttr(4 if layout == "HWOI" else 1, i64), "padding": ints([1, 1, 1, 1])}
    rescaling = requantization(rng, dtype, -9, -1, 8)

    def body(data: SSAValue, kernel: SSAValue, bias: SSAValue) -> Sequence[SSAValue]:
        conv = qnn.Conv2dOp.make([data, kernel], scales | zero_points | groups)
        return qnn.RequantizeOp.make([relay.BiasAddOp.make([conv, bias])], rescaling).results

    legal = check(module([x, kernel, bias], body), [x, kernel, bias])
    (conv,) = [op for op in legal.op.walk() if isinstance(op, relay.Conv2dOp)]
    assert (conv.kernel_zero_point is None) == (dtype == np.int8)


def near_middle(dtype: Any, distance: int) -> IntegerAttr[Any]:
    """A zero point so far from the middle code."""
    return integer(distance + (128 if dtype == np.uint8 else 0))


@pytest.mark.parametrize("dtype", CODES)
def test_dense(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    inputs = [codes(rng, dtype, 2, 9), codes(rng, dtype, 3, 9)]
    scales: Properties = {"input_scale": real(0.1), "kernel_scale": real(0.2)}
    check(one(qnn.DenseOp, inputs, scales | {"input_zero_point": near_middle(dtype, -5)}), inputs)


@pytest.mark.parametrize("dtype", [*CODES, np.int16])
@pytest.mark.parametrize("kind", [qnn.AddOp, qnn.SubtractOp, qnn.MulOp])
@pytest.mark.parametrize("shift", [-3, 1])
def test_binary(dtype: Any, kind: type[TensorOp], shift: int) -> None:
    rng = np.random.default_rng(8)
    inputs = [codes(rng, dtype, 4, 5, 3), codes(rng, dtype, 5, 1)]
    left = 15 if dtype == np.int16 else 20
    multiplier, lhs, rhs = (int(m) for m in multipliers(rng, 3))
    given: Properties = {name: real(0.1) for name in ("lhs_scale", "rhs_scale", "output_scale")}
    given |= {"lhs_zero_point": integer(3), "rhs_zero_point": near_middle(dtype, -4), "output_zero_point": integer(9)}
    given |= {"multiplier": integer(multiplier), "shift": integer(shift - (left if kind != qnn.MulOp else 8))}
    if kind != qnn.MulOp:
        given |= {"left_shift": integer(left), "lhs_multiplier": integer(lhs), "lhs_shift": integer(-1)}
        given |= {"rhs_multiplier": integer(rhs), "rhs_shift": integer(shift - 2)}
    check(one(kind, inputs, given | {"max": integer(60)}), inputs)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("keepdims", [True, False])
def test_mean(dtype: Any, keepdims: bool) -> None:
    rng = np.random.default_rng(9)
    x = codes(rng, dtype, 2, 7, 5, 3)
    multiplier, shift = quantize_multiplier(1.3 / 35)
    given: Properties = {"input_scale": real(1), "output_scale": real(1), "input_zero_point": integer(11)}
    given |= {"output_zero_point": integer(4), "multiplier": integer(multiplier), "shift": integer(shift)}
    check(one(qnn.MeanOp, [x], given | {"axis": ints([1, 2]), "keepdims": BoolAttr.from_bool(keepdims)}), [x])


@pytest.mark.parametrize("dtype", [*CODES, np.int16])
@pytest.mark.parametrize("axis", [None, 0])
def test_quantize_and_dequantize(dtype: Any, axis: int | None) -> None:
    rng = np.random.default_rng(10)
    scale = np.float32(0.037) if axis is None else rng.uniform(0.01, 2, 4).astype(np.float32)
    zero_point = np.int32(3) if axis is None else rng.integers(0, 10, 4).astype(np.int32)
    given: Properties = {"scale": elements(scale), "zero_point": elements(zero_point)}
    given["axis"] = IntegerAttr(-1 if axis is None else axis, i64)
    x = rng.normal(0, 3, (4, 50)).astype(np.float32)
    x[:, :6] = [np.inf, -np.inf, 3e38, -1e10, 0.0185, -0.0185]
    check(one(qnn.QuantizeOp, [x], given | {"out_dtype": element_type(dtype)}), [x])
    y = codes(rng, dtype, 4, 50)
    check(one(qnn.DequantizeOp, [y], given), [y])


def test_dequantize_32_bits_in_double() -> None:
    x = np.random.default_rng(11).integers(-(1 << 31), 1 << 31, 1000).astype(np.int32)
    check(one(qnn.DequantizeOp, [x], {"scale": real(0.1), "zero_point": integer(0)}), [x])


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("width", [1, 10, 1001])
@pytest.mark.parametrize("scale", [0.003, 0.06, 1.7])
def test_softmax(dtype: Any, width: int, scale: float) -> None:
    rng = np.random.default_rng(12)
    x = codes(rng, dtype, 6, width)
    x[0] = 5
    x[1] //= 16
    multiplier, shift = quantize_multiplier(min(float(np.float32(scale)) * (1 << 26), (1 << 31) - 1.0))
    given: Properties = {"beta": real(1), "input_scale": real(scale)}
    check(one(qnn.SoftmaxOp, [x], given | {"multiplier": integer(multiplier), "shift": integer(shift)}), [x])


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("kind", [qnn.SigmoidOp, qnn.TanhOp])
def test_tables(dtype: Any, kind: type[TensorOp]) -> None:
    x = codes(np.random.default_rng(13), dtype, 500)
    given: Properties = {"input_scale": real(0.05), "output_scale": real(1 / 128)}
    check(one(kind, [x], given | {"input_zero_point": integer(9), "output_zero_point": near_middle(dtype, -3)}), [x])


@pytest.mark.parametrize("dtype", CODES)
def test_concatenate(dtype: Any) -> None:
    rng = np.random.default_rng(14)
    inputs = [codes(rng, dtype, 2, n) for n in (3, 4, 5)]
    given: Properties = {"axis": IntegerAttr(1, i64), "output_scale": real(0.1), "output_zero_point": integer(2)}
    given["input_scales"] = elements(np.array([0.1, 0.25, 0.1], np.float32))
    given["input_zero_points"] = elements(np.array([2, 2, 7], np.int32))
    legal = check(one(qnn.ConcatenateOp, inputs, given), inputs)
    assert sum(isinstance(op, relay.LookupOp) for op in legal.op.walk()) == 2


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4, 5)])
def test_dynamic_quantize(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(15).normal(0, 5, shape).astype(np.float32)
    x[1] = 0
    check(one(qnn.DynamicQuantizeOp, [x], {}), [x])


@pytest.mark.parametrize("cifg", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
def test_lstm(cifg: bool, time_major: bool) -> None:
    rng = np.random.default_rng(16)
    gates, units, batch, steps, width = 3 if cifg else 4, 5, 2, 4, 6
    inputs = [
        codes(rng, np.int8, *((steps, batch) if time_major else (batch, steps)), width),
        codes(rng, np.int8, gates * units, width),
        codes(rng, np.int8, gates * units, units),
        rng.integers(-3000, 3000, gates * units).astype(np.int32),
        codes(rng, np.int8, batch, units),
        codes(rng, np.int16, batch, units),
    ]
    given: Properties = {"cifg": BoolAttr.from_bool(cifg), "time_major": BoolAttr.from_bool(time_major)}
    given |= {"input_zero_point": integer(3), "hidden_zero_point": integer(-7), "cell_shift": integer(-11)}
    for name in ("input", "recurrent"):
        given[f"{name}_multiplier"] = elements(multipliers(rng, gates))
        given[f"{name}_shift"] = elements(rng.integers(-3, 2, gates).astype(np.int32))
    given |= {"hidden_multiplier": integer(int(multipliers(rng))), "hidden_shift": integer(-21)}
    check(one(qnn.LstmOp, inputs, given | {"cell_clip": integer(20000 if cifg else 0)}), inputs)


@pytest.mark.parametrize("state", [np.int16, np.int8])
@pytest.mark.parametrize("biased", [False, True])
def test_svdf(state: Any, biased: bool) -> None:
    rng = np.random.default_rng(17)
    filters, memory, rank = 6, 5, 2
    inputs = [codes(rng, np.int8, 2, 7), codes(rng, np.int8, filters, 7), codes(rng, state, filters, memory)]
    inputs += [rng.integers(-9000, 9000, filters // rank).astype(np.int32)] if biased else []
    inputs += [codes(rng, state, 2, filters * memory)]
    given: Properties = {
        "input_zero_point": integer(5),
        "rank": IntegerAttr(rank, i64),
        "output_zero_point": integer(-9),
    }
    given |= {"feature_multiplier": integer(int(multipliers(rng))), "feature_shift": integer(-4)}
    given |= {"multiplier": integer(int(multipliers(rng))), "shift": integer(-11)}
    check(one(qnn.SvdfOp, inputs, given), inputs)


def small() -> IRModule:
    x = np.zeros((2, 2), np.int8)
    return one(qnn.DequantizeOp, [x], {"scale": real(0.1), "zero_point": integer(1)})


def test_new_ops_have_the_old_op_s_location() -> None:
    mod = small()
    for op in mod.op.walk():
        if isinstance(op, qnn.DequantizeOp):
            op.location = NameLoc(StringAttr("model.tflite: op 3"), NoneAttr())
    locations = [op.location for op in QnnLegalize()(mod).op.walk() if op.name.startswith("relay.")]
    assert locations and all(isinstance(loc, NameLoc) and loc.desc.data == "model.tflite: op 3" for loc in locations)


def test_what_is_left_over_is_refused_by_name_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legalization, "REGISTRY", [("qnn", f"{__name__}:NO_PATTERNS")])
    with pytest.raises(Unsupported, match="qnn.dequantize in @main: no legalization pattern takes it"):
        Legalize()(small())


def test_patterns_that_chase_each_other_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legalization, "REGISTRY", [("qnn", f"{__name__}:RESTLESS")])
    with pytest.raises(RelayError, match="still changed the module"):
        Legalize()(small())


def on(target: str) -> IRModule:
    """A model, legalised for a target."""
    return Sequential([AttachTarget(target), Legalize()])(small())


def test_features_reach_the_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legalization, "REGISTRY", [("qnn", f"{__name__}:CHOOSY"), *legalization.REGISTRY])
    assert not [op for op in on("x86_64 -mattr=+avx512vnni").op.walk() if isinstance(op, relay.CastOp)]
    assert [op for op in on("x86_64 -mattr=+avx2").op.walk() if isinstance(op, relay.CastOp)]


def test_functions_of_an_external_compiler_stay() -> None:
    mod = small()
    mod["main"].attributes["compiler"] = StringAttr("other")
    assert str(Legalize()(mod)) == str(mod)


class Restless(Legalization):
    """qnn.dequantize  =>  the same"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: qnn.DequantizeOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, op.clone())


class Choosy(Legalization):
    """qnn.dequantize  =>  relay.constant of zeros, on a target with avx512vnni"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: qnn.DequantizeOp, rewriter: PatternRewriter) -> None:
        if "avx512vnni" in self.features:
            rewriter.replace(op, relay.ConstantOp.make([], {"value": elements(np.zeros((2, 2), np.float32))}))


NO_PATTERNS: list[type[Legalization]] = []
RESTLESS: list[type[Legalization]] = [Restless]
CHOOSY: list[type[Legalization]] = [Choosy]


def test_on_a_gpu_an_update_at_a_computed_place_stays_one() -> None:
    """Threads read where it goes: it is two copies there."""
    types = "(tensor<2x8x4xf32>, tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<2x8x4xf32>"
    mod = IRModule.parse(
        f"""func.func @main(%x: tensor<2x8x4xf32>, %u: tensor<2x3x4xf32>, %s: tensor<3xi32>) -> tensor<2x8x4xf32> {{
          %r = relay.dynamic_update_slice %x, %u, %s : {types}
          func.return %r : tensor<2x8x4xf32>
        }}"""
    )
    made, rng = optimize(mod, "cuda"), np.random.default_rng(0)
    assert all("relay.dynamic_update_slice" in each.to_text() for each in (made, optimize(mod, "llvm")))
    for start in ([0, -4, 0], [0, 2, 9], [7, 6, 0]):
        given: list[Array] = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 8, 4), (2, 3, 4))]
        given.append(np.asarray(start, np.int32))
        np.testing.assert_array_equal(run(made, given)[0], run(mod, given)[0])
