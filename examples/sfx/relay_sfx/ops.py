"""Numbers as codes of few bits: a code stands for `code * 2^-exponent`, with one exponent, or one per channel."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, f32, i8, i16, i32, i64
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from relay.dialects.attributes import int_values
from relay.dialects.op import TensorOp, axis_of, broadcast, rank, require, shape, tensor

LARGEST = 30
"""Of an exponent or a shift, either way."""


def per_channel(op: TensorOp, numbers: DenseArrayBase, data, axis: int, what: str) -> None:
    """Check that there is one number, or one for each index of the axis, and none is too large."""
    given = int_values(numbers)
    size = shape(data)[axis_of(axis, rank(data), op.name)] if rank(data) else 1
    require(len(given) == 1 or size in (-1, len(given)), f"{op.name}: {len(given)} {what} for {size} channels")
    require(all(abs(each) <= LARGEST for each in given), f"{op.name}: {what} are outside -{LARGEST}..{LARGEST}")


def of_bits(op: TensorOp, bits: IntegerAttr) -> Attribute:
    """The type that holds codes of so many bits."""
    count = bits.value.data
    require(2 <= count <= 16, f"{op.name}: bits {count} is outside 2..16")
    return i8 if count <= 8 else i16


@irdl_op_definition
class QuantizeOp(TensorOp):
    """`saturate(round(input * 2^exponents[channel]))` to `bits` bits, halves away from zero; finite f32."""

    name = "sfx.quantize"
    ELEMENTWISE: ClassVar[bool] = True
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ("exponents",)
    input = operand_def(TensorType[Attribute])
    exponents = prop_def(DenseArrayBase)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))
    bits = prop_def(IntegerAttr, default_value=IntegerAttr(8, i32))
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self):
        require(tensor(self.input).element_type == f32, f"{self.name}: takes f32")
        per_channel(self, self.exponents, self.input, self.axis.value.data, "exponents")
        return [TensorType(of_bits(self, self.bits), shape(self.input))]


@irdl_op_definition
class DequantizeOp(TensorOp):
    """`input * 2^-exponents[channel]`, i8 or i16 to f32."""

    name = "sfx.dequantize"
    ELEMENTWISE: ClassVar[bool] = True
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ("exponents",)
    input = operand_def(TensorType[Attribute])
    exponents = prop_def(DenseArrayBase)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self):
        require(tensor(self.input).element_type in (i8, i16), f"{self.name}: takes i8 or i16")
        per_channel(self, self.exponents, self.input, self.axis.value.data, "exponents")
        return [TensorType(f32, shape(self.input))]


@irdl_op_definition
class RescaleOp(TensorOp):
    """`saturate(floor(input * 2^-shifts[channel] + 1/2))` to `bits` bits, halves up; i32 to i8 or i16.

    The sum does not overflow, and a negative shift, to the left, saturates.
    """

    name = "sfx.rescale"
    ELEMENTWISE: ClassVar[bool] = True
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ("shifts",)
    input = operand_def(TensorType[Attribute])
    shifts = prop_def(DenseArrayBase)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))
    bits = prop_def(IntegerAttr, default_value=IntegerAttr(8, i32))
    result = result_def(TensorType[Attribute])
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self):
        require(tensor(self.input).element_type == i32, f"{self.name}: takes i32")
        per_channel(self, self.shifts, self.input, self.axis.value.data, "shifts")
        return [TensorType(of_bits(self, self.bits), shape(self.input))]


@irdl_op_definition
class AddOp(TensorOp):
    """`saturate(lhs + rhs)` to `bits` bits: codes of one exponent, i8 or i16; broadcasts as numpy does."""

    name = "sfx.add"
    ELEMENTWISE: ClassVar[bool] = True
    lhs = operand_def(TensorType[Attribute])
    rhs = operand_def(TensorType[Attribute])
    bits = prop_def(IntegerAttr, default_value=IntegerAttr(8, i32))
    result = result_def(TensorType[Attribute])
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def infer(self):
        type = of_bits(self, self.bits)
        for value in (self.lhs, self.rhs):
            require(tensor(value).element_type == type, f"{self.name}: codes of so many bits are {type}")
        return [TensorType(type, broadcast(self.name, shape(self.lhs), shape(self.rhs)))]


@irdl_op_definition
class DenseOp(TensorOp):
    """`saturate32(bias[u] + sum over k of data[n, k] * kernel[u, k])`: a signal processor's, i8 to i32.

    The sum is exact, and saturates at its end.
    """

    name = "sfx.dense"
    data = operand_def(TensorType[Attribute])
    kernel = operand_def(TensorType[Attribute])
    bias = operand_def(TensorType[Attribute])
    PARAMETERS: ClassVar[tuple[str, ...]] = ("kernel", "bias")
    result = result_def(TensorType[Attribute])
    assembly_format = "$data `,` $kernel `,` $bias attr-dict `:` functional-type(operands, results)"

    def infer(self):
        for value in (self.data, self.kernel):
            require(tensor(value).element_type == i8 and rank(value) == 2, f"{self.name}: takes matrices of i8")
        units, depth = shape(self.kernel)
        require(shape(self.data)[1] == depth, f"{self.name}: data has {shape(self.data)[1]} columns, kernel {depth}")
        require(depth <= 1 << 16, f"{self.name}: more than 65536 products do not fit into 32 bits")
        require(self.bias.type == TensorType(i32, [units]), f"{self.name}: bias must be {units} numbers of i32")
        return [TensorType(i32, [shape(self.data)[0], units])]


Sfx = Dialect("sfx", [QuantizeOp, DequantizeOp, RescaleOp, AddOp, DenseOp])
