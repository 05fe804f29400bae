"""Quantised transposed convolutions and matrix products are those of the centred codes; legalized, the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, FloatAttr, FunctionType, IntegerAttr, ModuleOp, f32, i16, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from relay.compile.entry import build
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, elements, ints, tensor_type
from relay.dialects.op import TensorOp, tensor
from relay.errors import InvalidArgument
from relay.interpreters import compute, run
from relay.module import IRModule
from relay.transforms.legalize import Legalize

RANDOM = np.random.default_rng(4)
Properties = dict[str, Attribute | None]
SCALES: Properties = {
    "input_scale": FloatAttr(0.5, f32), "input_zero_point": IntegerAttr(3, i32), "kernel_scale": FloatAttr(0.25, f32),
    "kernel_zero_point": IntegerAttr(-7, i32),
}  # fmt: skip
WIDE: Properties = SCALES | {
    "input_zero_point": IntegerAttr(0, i32),
    "kernel_zero_point": IntegerAttr(0, i32),
    "out_dtype": i64,
}


def numbers(dtype: str, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


def test_batch_matmul() -> None:
    a, b = numbers("int8", 2, 1, 5, 3), numbers("int8", 4, 3, 6)
    (result,) = compute(qnn.BatchMatmulOp, [a, b], SCALES | {"transpose_b": BoolAttr.from_bool(False)})
    assert result.dtype == np.int32
    assert np.array_equal(result, (a.astype(int) - 3) @ (b.astype(int) + 7))


def test_conv2d_transpose() -> None:
    x, kernel = numbers("int8", 1, 3, 4, 2), numbers("int8", 5, 3, 2, 2)
    (result,) = compute(qnn.Conv2dTransposeOp, [x, kernel], SCALES | {"strides": ints([2, 1])})
    wanted = np.zeros((1, 7, 5, 5), int)
    for y, c, i, j in np.ndindex(3, 4, 3, 2):
        wanted[:, 2 * y + i, c + j] += (x[:, y, c].astype(int) - 3) @ (kernel[:, i, j].astype(int) + 7).T
    assert np.array_equal(result, wanted)


def module(op: type[TensorOp], inputs: Sequence[Array], weights: Array, given: Properties) -> IRModule:
    """`@main` of one op whose last operand is a constant."""
    types = [tensor_type(array) for array in inputs]
    block = Block(arg_types=types)
    kernel = relay.ConstantOp.make([], {"value": elements(weights)})
    made = op.make([*block.args, kernel], given)
    block.add_ops([kernel, made, ReturnOp(*made.results)])
    outputs = [tensor(result) for result in made.results]
    return IRModule(ModuleOp([FuncOp("main", FunctionType.from_lists(types, outputs), Region(block))]))


CASES: list[tuple[type[TensorOp], Array, Array, Properties]] = [
    (qnn.BatchMatmulOp, numbers("int8", 2, 5, 3), numbers("int8", 6, 3), SCALES),
    (qnn.BatchMatmulOp, numbers("int16", 2, 5, 3), numbers("int16", 2, 6, 3), WIDE),
    (qnn.BatchMatmulOp, numbers("int16", 2, 5, 3), numbers("int8", 2, 6, 3), WIDE),
    (qnn.Conv2dTransposeOp, numbers("int16", 1, 3, 4, 2), numbers("int8", 5, 3, 2, 2), WIDE),
    (qnn.Conv2dOp, numbers("int16", 1, 3, 4, 2), numbers("int8", 5, 3, 2, 2), WIDE),
    (qnn.Conv2dOp, numbers("int16", 1, 8, 8, 64), np.full((5, 8, 8, 64), 127, np.int8), WIDE),
    (qnn.DenseOp, numbers("int16", 4, 600), numbers("int8", 5, 600), WIDE),
]


@pytest.mark.parametrize(("op", "data", "weights", "given"), CASES, ids=lambda x: getattr(x, "name", ""))
def test_legalize_changes_no_number(op: type[TensorOp], data: Array, weights: Array, given: Properties) -> None:
    before = module(op, [data], weights, given)
    after = Legalize()(before)
    assert np.array_equal(run(before, [data])[0], run(after, [data])[0])


@pytest.mark.parametrize(("largest", "inputs", "parts"), [(16, 600, 1), (127, 600, 2), (127, 4000, 8), (127, 40000, 0)])
def test_sums_that_fit_are_of_32_bits(largest: int, inputs: int, parts: int) -> None:
    weights = np.full((2, inputs), largest, np.int8)
    mod = Legalize()(module(qnn.DenseOp, [numbers("int16", 1, inputs)], weights, WIDE))
    narrow = [op for op in mod.op.walk() if isinstance(op, relay.DenseOp) and op.out_dtype == i32]
    assert len(narrow) == parts
    extreme = np.full((1, inputs), -(1 << 15), np.int16)
    assert run(mod, [extreme])[0].tolist() == [[-(1 << 15) * largest * inputs] * 2]


def test_wrong_operands_are_told() -> None:
    with pytest.raises(InvalidArgument, match="sums over"):
        compute(qnn.BatchMatmulOp, [numbers("int8", 2, 3), numbers("int8", 2, 4)], SCALES)
    with pytest.raises(InvalidArgument, match="channels"):
        compute(qnn.Conv2dTransposeOp, [numbers("int8", 1, 2, 2, 3), numbers("int8", 1, 1, 1, 2)], SCALES)


def test_sums_of_16_bits_reach_further_than_those_of_8() -> None:
    """The float forms of a rescale are proved for all sums that there can be."""
    data, weights = np.full((3, 4), -(1 << 15), np.int16), np.array([[-128] * 4, [127] * 4], np.int8)
    given = WIDE | {"out_dtype": i32}
    block = Block(arg_types=[tensor_type(data)])
    kernel = relay.ConstantOp.make([], {"value": elements(weights)})
    dense = qnn.DenseOp.make([*block.args, kernel], given)
    properties: Properties = {
        "input_scale": FloatAttr(1.0, f32), "output_scale": FloatAttr(1.0, f32),
        "output_zero_point": IntegerAttr(0, i32),
        "multiplier": IntegerAttr(1518500250, i32), "shift": IntegerAttr(-9, i32), "out_dtype": i16,
    }  # fmt: skip
    codes = qnn.RequantizeOp.make([dense.result], properties)
    block.add_ops([kernel, dense, codes, ReturnOp(codes.result)])
    types = FunctionType.from_lists([tensor_type(data)], [tensor(codes.result)])
    mod = IRModule(ModuleOp([FuncOp("main", types, Region(block))]))
    executable = build(mod)
    for numbers_given in (data, numbers("int16", 3, 4), np.full((3, 4), (1 << 15) - 1, np.int16)):
        found = executable.run(numbers_given)
        assert isinstance(found, np.ndarray) and np.array_equal(found, run(mod, [numbers_given])[0])
