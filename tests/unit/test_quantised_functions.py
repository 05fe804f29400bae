"""Quantised functions of one and two codes: near the real functions they stand for, and unchanged by `legalize`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, FloatAttr, FunctionType, IntegerAttr, ModuleOp, StringAttr, f32, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from relay.dialects import qnn
from relay.dialects.attributes import Array, tensor_type
from relay.dialects.op import TensorOp, tensor
from relay.errors import InvalidArgument
from relay.interpreters import compute, run
from relay.interpreters.arithmetic import quantize_multiplier
from relay.interpreters.qnn_functions import inverse_square_root
from relay.module import IRModule
from relay.transforms.legalize import Legalize

EVERY_CODE = np.arange(-128, 128).astype(np.int8)
Properties = dict[str, Attribute | None]
SOURCE, TARGET, SOURCE_ZERO, TARGET_ZERO = 0.04, 0.05, -20, -30


def real(value: float) -> FloatAttr:
    return FloatAttr(value, f32)


def whole(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def factor(value: float, prefix: str = "") -> Properties:
    multiplier, shift = quantize_multiplier(value)
    return {f"{prefix}multiplier": whole(multiplier), f"{prefix}shift": whole(shift)}


UNARY: Properties = {
    "input_scale": real(SOURCE), "input_zero_point": whole(SOURCE_ZERO), "output_scale": real(TARGET),
    "output_zero_point": whole(TARGET_ZERO),
}  # fmt: skip
SIDES: Properties = {
    "lhs_scale": real(SOURCE), "lhs_zero_point": whole(SOURCE_ZERO), "rhs_scale": real(TARGET),
    "rhs_zero_point": whole(TARGET_ZERO),
}  # fmt: skip
ALPHA: Properties = {
    "alpha_scale": real(0.01), "alpha_zero_point": whole(5), **factor(SOURCE / TARGET),
    **factor(SOURCE * 0.01 / TARGET, "alpha_"),
}  # fmt: skip
COMMON: Properties = {"left_shift": whole(8), **factor(SOURCE, "lhs_"), **factor(TARGET, "rhs_")}
TWICE = 2 * TARGET
SQUARED: Properties = {
    "left_shift": whole(7), "output_scale": real(0.5), "output_zero_point": whole(-100),
    **factor(SOURCE / TWICE, "lhs_"), **factor(TARGET / TWICE, "rhs_"), **factor(TWICE**2 / (2**14 * 0.5)),
}  # fmt: skip
DIVIDE: Properties = {"output_scale": real(0.02), "output_zero_point": whole(0), **factor(SOURCE / (TARGET * 0.02))}
NARROW_OUT, NARROW_RELU = (quantize_multiplier(SOURCE / 128 / unit) for unit in (TARGET, 3 / 2**15))
HARD_SWISH: Properties = {
    "output_multiplier": whole((NARROW_OUT[0] + (1 << 15)) >> 16), "output_shift": whole(NARROW_OUT[1]),
    "relu_multiplier": whole((NARROW_RELU[0] + (1 << 15)) >> 16), "relu_shift": whole(NARROW_RELU[1]),
}  # fmt: skip

FUNCTIONS: list[tuple[type[TensorOp], Properties, Callable[[float], float], float]] = [
    (qnn.GeluOp, {}, lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), 0.5),
    (qnn.GeluOp, {"approximate": BoolAttr.from_bool(True)}, lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), 0.6),
    (qnn.EluOp, {}, lambda x: x if x >= 0 else math.expm1(x), 0.5),
    (qnn.ExpOp, {}, math.exp, 0.5),
    (qnn.LogOp, {}, lambda x: math.log(x) if x > 0 else -99, 0.5),
    (qnn.SqrtOp, {}, lambda x: math.sqrt(max(x, 0)) - TARGET / 2, 0.5),
    (qnn.RsqrtOp, factor(1 / (math.sqrt(SOURCE) * TARGET)), lambda x: 1 / math.sqrt(x) if x > 0 else 99, 0.5),
    (qnn.AbsOp, factor(SOURCE / TARGET), abs, 0.5),
    (
        qnn.LeakyReluOp,
        {"alpha": real(-0.25), **factor(SOURCE / TARGET), **factor(0.25 * SOURCE / TARGET, "alpha_")},
        lambda x: x if x >= 0 else -0.25 * x,
        0.75,
    ),
    (qnn.HardSwishOp, HARD_SWISH, lambda x: x * min(max(x + 3, 0), 6) / 6, 1.0),
]
"""Op, its own properties, the function, and how many codes the result may be away from it."""


@pytest.mark.parametrize(("op", "own", "function", "allowed"), FUNCTIONS, ids=lambda x: getattr(x, "name", ""))
def test_functions_are_near_their_reals(
    op: type[TensorOp], own: Properties, function: Callable[[float], float], allowed: float
) -> None:
    (result,) = compute(op, [EVERY_CODE], UNARY | own)
    reals = [function(SOURCE * (int(code) - SOURCE_ZERO)) / TARGET + TARGET_ZERO for code in EVERY_CODE]
    assert result.dtype == np.int8
    assert np.abs(result - np.clip(reals, -128, 127)).max() <= allowed + 1e-3


@pytest.mark.parametrize("op", [qnn.GeluOp, qnn.ExpOp, qnn.LogOp, qnn.SqrtOp])
def test_functions_of_16_bits_are_near_their_reals(op: type[TensorOp]) -> None:
    function = next(row[2] for row in FUNCTIONS if row[0] is op)
    x = np.arange(1, 1 << 15, 37).astype(np.int16)
    fine = {name: whole(0) for name in ("input_zero_point", "output_zero_point")}
    (result,) = compute(op, [x], fine | {"input_scale": real(2**-12), "output_scale": real(2**-3)})
    reals = np.array([function(int(code) * 2.0**-12) for code in x]) * 8
    inside = x > 2048  # the logarithm's lines miss it near 0
    assert (np.abs(result - reals)[inside] <= 1.5 + np.abs(reals)[inside] / 2048).all()


def test_a_line_too_steep_for_16_bits_wraps() -> None:
    """From code 0 to 128 log goes from -32768 to above 0: the slope is 2^16 less than what it should be."""
    own = UNARY | {"input_zero_point": whole(0), "output_zero_point": whole(0), "output_scale": real(1e-4)}
    codes = np.array([0, 64, 127, 128], np.int16)
    (result,) = compute(qnn.LogOp, [codes], own | {"input_scale": real(1)})
    start, end = int(result[0]), int(result[3])
    slope = end - start - (1 << 16)
    assert -(1 << 15) <= slope < 0 < end - start - (1 << 15) + 1
    assert result[1:3].tolist() == [np.int64(start + ((slope * code + 64) >> 7)).astype(np.int16) for code in (64, 127)]


def test_inverse_square_root() -> None:
    x = np.concatenate([np.arange(0, 4096), 1 << np.arange(12, 31), [(1 << 31) - 1]]).astype(np.int64)
    mantissa, exponent = inverse_square_root(x)
    assert (exponent <= 0).all() and (mantissa >= 0).all()
    found = mantissa * 2.0 ** (exponent - 31)
    np.testing.assert_allclose(found, 1 / np.sqrt(np.maximum(x, 1)), rtol=2e-6)


def test_l2_normalize() -> None:
    x = np.random.default_rng(1).integers(-128, 128, (5, 33)).astype(np.int8)
    (result,) = compute(qnn.L2NormalizeOp, [x], {"input_zero_point": whole(4)})
    steps = x - 4.0
    assert np.abs(result - 128 * steps / np.linalg.norm(steps, axis=-1, keepdims=True)).max() < 0.51
    (unsigned,) = compute(qnn.L2NormalizeOp, [(x.astype(int) + 128).astype(np.uint8)], {"input_zero_point": whole(132)})
    assert np.abs(unsigned.astype(int) - 128 - result).max() <= 1


PAIRS = np.meshgrid(EVERY_CODE, EVERY_CODE)
BINARY: list[tuple[type[TensorOp], Properties, Callable[[Array, Array], Array]]] = [
    (qnn.SquaredDifferenceOp, SIDES | SQUARED, lambda a, b: (a - b) ** 2 / 0.5 - 100),
    (qnn.DivideOp, SIDES | DIVIDE, lambda a, b: np.where(b == 0, 0, a / np.where(b == 0, 1, b)) / 0.02),
]


@pytest.mark.parametrize(("op", "given", "function"), BINARY, ids=lambda x: getattr(x, "name", ""))
def test_two_codes(op: type[TensorOp], given: Properties, function: Callable[[Array, Array], Array]) -> None:
    (result,) = compute(op, PAIRS, given)
    a, b = SOURCE * (PAIRS[0] - float(SOURCE_ZERO)), TARGET * (PAIRS[1] - float(TARGET_ZERO))
    assert np.abs(result - np.clip(function(a, b), -128, 127)).max() <= 1


def test_prelu_has_a_slope_per_channel() -> None:
    alpha = np.array([-100, 5, 70], np.int8)
    (result,) = compute(qnn.PreluOp, [np.tile(EVERY_CODE[:, None], (1, 3)), alpha], UNARY | ALPHA)
    x = SOURCE * (EVERY_CODE[:, None] - float(SOURCE_ZERO))
    reals = np.where(x >= 0, x, x * 0.01 * (alpha - 5.0)) / TARGET + TARGET_ZERO
    assert np.abs(result - np.clip(reals, -128, 127)).max() <= 0.51


COMPARISONS: Mapping[type[qnn.QnnCompareOp], Callable[[Array, Array], Array]] = {
    qnn.EqualOp: np.equal,
    qnn.NotEqualOp: np.not_equal,
    qnn.LessOp: np.less,
    qnn.LessEqualOp: np.less_equal,
    qnn.GreaterOp: np.greater,
    qnn.GreaterEqualOp: np.greater_equal,
}


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_of_one_scale_are_those_of_the_steps(op: type[qnn.QnnCompareOp]) -> None:
    given = SIDES | COMMON | {"rhs_scale": real(SOURCE), **factor(SOURCE, "rhs_")}
    (result,) = compute(op, PAIRS, given)
    wanted = COMPARISONS[op](PAIRS[0].astype(int) - SOURCE_ZERO, PAIRS[1].astype(int) - TARGET_ZERO)
    assert result.dtype == np.bool_ and np.array_equal(result, wanted)


def module(op: type[TensorOp], inputs: list[Array], given: Properties) -> IRModule:
    """`@main` of one op."""
    types = [tensor_type(array) for array in inputs]
    block = Block(arg_types=types)
    made = op.make(block.args, given)
    block.add_ops([made, ReturnOp(*made.results)])
    outputs = [tensor(result) for result in made.results]
    return IRModule(ModuleOp([FuncOp("main", FunctionType.from_lists(types, outputs), Region(block))]))


CASES: list[tuple[type[TensorOp], list[Array], Properties]] = [
    *((op, [EVERY_CODE], UNARY | own) for op, own, _, _ in FUNCTIONS),
    *((op, list(PAIRS), given) for op, given, _ in BINARY),
    *((op, list(PAIRS), SIDES | COMMON) for op in COMPARISONS),
    (qnn.PreluOp, list(PAIRS), UNARY | ALPHA),
    (qnn.AbsOp, [EVERY_CODE], UNARY),
    (qnn.L2NormalizeOp, [PAIRS[0][:, :50] + PAIRS[1][:, 100:150]], {"input_zero_point": whole(0)}),
    (qnn.L2NormalizeOp, [np.arange(8, dtype=np.uint8).reshape(8, 1)], {"input_zero_point": whole(3)}),
]


@pytest.mark.parametrize(("op", "inputs", "given"), CASES, ids=lambda x: getattr(x, "name", ""))
def test_legalize_changes_no_number(op: type[TensorOp], inputs: list[Array], given: Properties) -> None:
    before = module(op, inputs, given)
    after = Legalize()(before)
    assert not any(inner.name.startswith("qnn.") for inner in after.op.walk())
    assert np.array_equal(run(before, inputs)[0], run(after, inputs)[0])


@pytest.mark.parametrize(
    ("op", "given", "message"),
    [
        (qnn.AbsOp, UNARY | {"shift": whole(3)}, "belong together"),
        (qnn.HardSwishOp, UNARY | HARD_SWISH | {"output_shift": whole(1)}, "output_shift is positive"),
        (qnn.ExpOp, UNARY | {"input_scale": real(-1)}, "must be positive"),
        (
            qnn.LeakyReluOp,
            UNARY | {"alpha": real(1), **factor(1), **factor(1, "alpha_"), "shift": whole(40)},
            "-31..30",
        ),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_wrong_properties_are_told(op: type[TensorOp], given: Properties, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        compute(op, [EVERY_CODE], given)


def test_wrong_operands_are_told() -> None:
    with pytest.raises(InvalidArgument, match="8-bit codes"):
        compute(qnn.HardSwishOp, [EVERY_CODE.astype(np.int16)], UNARY | HARD_SWISH)
    with pytest.raises(InvalidArgument, match="element types differ"):
        compute(qnn.EqualOp, [EVERY_CODE, EVERY_CODE.view(np.uint8)], SIDES | COMMON)
    with pytest.raises(InvalidArgument, match="rounding"):
        compute(qnn.LessOp, [EVERY_CODE, EVERY_CODE], SIDES | COMMON | {"rounding": StringAttr("odd")})
