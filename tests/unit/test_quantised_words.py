"""Sums of codes; softmax, sigmoid and tanh of 16-bit codes: near the real functions, and unchanged by `legalize`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, FloatAttr, FunctionType, IntegerAttr, ModuleOp, f32, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from relay.dialects import qnn
from relay.dialects.attributes import Array, ints, tensor_type
from relay.dialects.op import TensorOp, tensor
from relay.errors import InvalidArgument
from relay.interpreters import compute, run
from relay.interpreters.arithmetic import quantize_multiplier
from relay.module import IRModule
from relay.transforms.legalize import Legalize

Properties = dict[str, Attribute | None]
EVERY_CODE = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
RANDOM = np.random.default_rng(8)


def real(value: float) -> FloatAttr:
    return FloatAttr(value, f32)


def whole(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def factor(value: float) -> Properties:
    multiplier, shift = quantize_multiplier(value)
    return {"multiplier": whole(multiplier), "shift": whole(shift)}


def curve(scale: float) -> Properties:
    zero = whole(0)
    return {
        "input_scale": real(scale), "input_zero_point": zero, "output_scale": real(2**-15), "output_zero_point": zero,
    }  # fmt: skip


def softmax(scale: float) -> Properties:
    return {"beta": real(1), "input_scale": real(scale), **factor(scale / (10 / 65535))}


def total(scale: float, output: float, zero: int, axes: list[int], keep: bool = False) -> Properties:
    return {
        "axis": ints(axes), "keepdims": BoolAttr.from_bool(keep), "input_scale": real(scale),
        "input_zero_point": whole(zero), "output_scale": real(output), "output_zero_point": whole(-3),
        **factor(scale / output),
    }  # fmt: skip


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("scale", [2**-12, 2**-11, 0.0007, 0.00001])
@pytest.mark.parametrize("op", [qnn.SigmoidOp, qnn.TanhOp])
def test_curves_of_16_bits(op: type[TensorOp], scale: float) -> None:
    function: Callable[[Array], Array] = sigmoid if op is qnn.SigmoidOp else np.tanh
    (result,) = compute(op, [EVERY_CODE], curve(scale))
    assert result.dtype == np.int16
    wanted = np.clip(function(EVERY_CODE * np.float64(np.float32(scale))) * 2**15, -(2**15), 2**15 - 1)
    assert np.abs(result - wanted).max() < (14 if scale < 1e-4 else 6)


@pytest.mark.parametrize("width", [1, 2, 30, 700])
def test_softmax_of_16_bits(width: int) -> None:
    x = RANDOM.integers(-3000, 3000, (4, width)).astype(np.int16)
    (result,) = compute(qnn.SoftmaxOp, [x], softmax(0.001))
    power = np.exp(x * 0.001)
    wanted = np.minimum(power / power.sum(axis=-1, keepdims=True) * 2**15, 2**15 - 1)
    assert result.dtype == np.int16 and np.abs(result - wanted).max() < 4


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_sum(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = RANDOM.integers(info.min, info.max + 1, (3, 4, 5)).astype(dtype)
    (result,) = compute(qnn.SumOp, [x], total(0.01, 0.02 if dtype != "int16" else 0.1, 9, [0, -1]))
    exact = (x.astype(int) - 9).sum(axis=(0, 2)) * (0.5 if dtype != "int16" else 0.1)
    assert result.shape == (4,) and np.abs(result - np.clip(exact - 3, info.min, info.max)).max() <= 0.51


def test_sums_of_int8_are_those_of_uint8() -> None:
    """The one type that LiteRT's reference kernel is right of."""
    x = RANDOM.integers(0, 256, (7, 6)).astype(np.uint8)
    given = total(0.01, 0.05, 100, [1], True)
    (unsigned,) = compute(qnn.SumOp, [x], given | {"output_zero_point": whole(90)})
    moved = given | {"input_zero_point": whole(100 - 128), "output_zero_point": whole(90 - 128)}
    (signed,) = compute(qnn.SumOp, [(x.astype(int) - 128).astype(np.int8)], moved)
    assert np.array_equal(signed.astype(int) + 128, unsigned)


CASES: list[tuple[type[TensorOp], Array, Properties]] = [
    (qnn.SigmoidOp, EVERY_CODE, curve(0.0003)),
    (qnn.TanhOp, EVERY_CODE, curve(2**-11)),
    (qnn.SoftmaxOp, EVERY_CODE.reshape(64, 1024), softmax(0.0002)),
    (qnn.SoftmaxOp, EVERY_CODE[:4], softmax(0.0002)),
    (qnn.SumOp, RANDOM.integers(0, 256, (3, 4, 5)).astype(np.uint8), total(0.01, 0.02, 9, [0, 2], True)),
]


@pytest.mark.parametrize(("op", "x", "given"), CASES, ids=lambda x: getattr(x, "name", ""))
def test_legalize_changes_no_number(op: type[TensorOp], x: Array, given: Properties) -> None:
    block = Block(arg_types=[tensor_type(x)])
    made = op.make(block.args, given)
    block.add_ops([made, ReturnOp(*made.results)])
    outputs = [tensor(result) for result in made.results]
    function = FuncOp("main", FunctionType.from_lists([tensor_type(x)], outputs), Region(block))
    before = IRModule(ModuleOp([function]))
    assert np.array_equal(run(before, [x])[0], run(Legalize()(before), [x])[0])


def test_other_codes_are_told() -> None:
    for op, given in ((qnn.SigmoidOp, curve(0.1)), (qnn.SoftmaxOp, softmax(0.1))):
        with pytest.raises(InvalidArgument, match="8- or 16-bit codes"):
            compute(op, [np.zeros(3, np.uint16)], given)
