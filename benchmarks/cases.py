"""Kernels to count instructions of: one convolution or product each, with constant weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import Float32Type, IntegerAttr, StringAttr, i8, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import elements, ints, scalar_attr, tensor_type
from relay.dialects.op import TensorOp, shape
from relay.module import IRModule


@dataclass(frozen=True)
class Case:
    """A convolution of data [h, w, c] with a kernel, or a product of a row; int8 codes, or float32 with a clip.
    `codes`: the sums of codes are rescaled per channel and become codes."""

    dtype: str
    data: Sequence[int]
    kernel: Sequence[int]
    stride: int = 1
    depthwise: bool = False
    codes: bool = False


CASES = {
    "int8 1x1 16->96": Case("int8", (56, 56, 16), (96, 1, 1, 16)),
    "int8 1x1 96->24": Case("int8", (56, 56, 96), (24, 1, 1, 96)),
    "int8 1x1 384->64": Case("int8", (14, 14, 384), (64, 1, 1, 384)),
    "int8 3x3 64->64": Case("int8", (18, 18, 64), (64, 3, 3, 64)),
    "int8 3x3/2 3->32": Case("int8", (225, 225, 3), (32, 3, 3, 3), 2),
    "int8 dense 640->128": Case("int8", (640,), (128, 640)),
    "int8 depthwise 3x3 96": Case("int8", (58, 58, 96), (3, 3, 96, 1), depthwise=True),
    "int8 1x1 16->96 to codes": Case("int8", (56, 56, 16), (96, 1, 1, 16), codes=True),
    "int8 1x1 64->64 to codes": Case("int8", (14, 14, 64), (64, 1, 1, 64), codes=True),
    "int8 3x3/2 3->8 to codes": Case("int8", (97, 97, 3), (8, 3, 3, 3), 2, codes=True),
    "int8 depthwise 3x3 96 to codes": Case("int8", (58, 58, 96), (3, 3, 96, 1), depthwise=True, codes=True),
    "float32 1x1 96->24": Case("float32", (56, 56, 96), (24, 1, 1, 96)),
    "float32 1x1 384->64": Case("float32", (14, 14, 384), (64, 1, 1, 384)),
    "float32 3x3 64->64": Case("float32", (18, 18, 64), (64, 3, 3, 64)),
    "float32 3x3/2 3->32": Case("float32", (225, 225, 3), (32, 3, 3, 3), 2),
    "float32 dense 640->128": Case("float32", (640,), (128, 640)),
    "float32 depthwise 3x3 96": Case("float32", (58, 58, 96), (3, 3, 96, 1), depthwise=True),
}


def module_of(case: Case) -> IRModule:
    """`@main` with the one operation, and a clip behind it in float32."""
    dtype = np.dtype(case.dtype)
    codes = np.random.default_rng(0).integers(-100, 100, case.kernel).astype(dtype)
    block = Block(arg_types=[tensor_type(np.zeros((1, *case.data), dtype))])
    kernel = relay.ConstantOp.make([], {"value": elements(codes)})
    out: Attribute = Float32Type() if dtype.kind == "f" else i32
    operands: list[SSAValue] = [block.args[0], kernel.results[0]]
    if len(case.data) == 1:
        op = relay.DenseOp.make(operands, {"out_dtype": out})
    else:
        options: dict[str, Attribute] = {"out_dtype": out, "strides": ints([case.stride] * 2)}
        if case.depthwise:
            options |= {"kernel_layout": StringAttr("HWOI"), "groups": IntegerAttr(case.data[-1], i64)}
        op = relay.Conv2dOp.make(operands, options)
    block.add_ops([kernel, op])
    result = op.results[0]
    if dtype.kind == "f":
        clip = relay.ClipOp.make(
            operands=[result], properties={"a_min": scalar_attr(0.0, out), "a_max": scalar_attr(6.0, out)}
        )
        block.add_op(clip)
        result = clip.result
    if case.codes:
        result = to_codes(block, result)
    block.add_op(ReturnOp(result))
    function = FuncOp("main", ([block.args[0].type], [result.type]), Region(block))
    module = IRModule()
    module.op.body.block.add_op(function)
    return module


def to_codes(block: Block, sums: SSAValue) -> SSAValue:
    """Sums as codes: bias, rescaling per channel, clip, cast."""
    random, channels = np.random.default_rng(1), shape(sums)[-1]

    def add(op: type[TensorOp], operands: Sequence[SSAValue], properties: dict[str, Attribute]) -> SSAValue:
        new = op.make(operands, properties)
        block.add_op(new)
        return new.results[0]

    def constant(low: int, high: int) -> SSAValue:
        numbers = random.integers(low, high, channels).astype(np.int32)
        return add(relay.ConstantOp, [], {"value": elements(numbers)})

    biased = add(relay.BiasAddOp, [sums, constant(-1000, 1000)], {})
    scaled = add(relay.FixedPointMultiplyOp, [biased, constant(1 << 30, (1 << 31) - 1), constant(-8, -6)], {})
    clipped = add(relay.ClipOp, [scaled], {"a_min": scalar_attr(-128, i32), "a_max": scalar_attr(127, i32)})
    return add(relay.CastOp, [clipped], {"dtype": i8})
