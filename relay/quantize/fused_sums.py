"""Replaces float convolutions and matrix products of dequantized values, in models whose numerics round to even (ONNX
Runtime), by exact integer sums of the quantized values and the scales of these sums."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr, f32, i32
from xdsl.ir import Operation, SSAValue

from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, int_values, to_numpy
from relay.dialects.op import is_code, rank, tensor
from relay.frontend.importing import fused
from relay.frontend.importing.builder import number, product_parameters
from relay.frontend.importing.fused import Codes, Kernel, Properties
from relay.transforms.expansion import Expansion

BITS = "ONNX Runtime has integer kernels of 8-bit codes only"


class Stays(Exception):
    """Raised with the reason why an op stays in float."""

    def __init__(self, op: Operation, why: str):
        super().__init__(why)
        self.op, self.why = op, why


def codes_of(op: qnn.QuantizeOp | qnn.DequantizeOp, codes: SSAValue) -> Codes | None:
    """The parameters of quantized values with a single scale; None for others."""
    scale, zero_point = to_numpy(op.scale), to_numpy(op.zero_point)
    element = tensor(codes).element_type
    if scale.size != 1 or zero_point.size != 1 or not is_code(element, 4, 8, 16):
        return None
    inverse = isinstance(op, qnn.QuantizeOp) and op.rounding.data == "even_inverse"
    return Codes(np.float32(scale.reshape(())), int(zero_point.reshape(())), dtype_of(element), inverse)


def source(value: SSAValue) -> tuple[SSAValue, Codes] | None:
    """If a `qnn.dequantize` computes the float value: the quantized value that it reads, and its parameters. None for
    other values."""
    if isinstance(op := value.owner, qnn.DequantizeOp) and (found := codes_of(op, op.input)) is not None:
        return op.input, found
    return None


Convolution = relay.Conv1dOp | relay.Conv2dOp | relay.Conv3dOp
Product = relay.MatmulOp | relay.BatchMatmulOp | relay.DenseOp
WINDOW = ("strides", "padding", "dilation", "groups", "data_layout", "out_layout")
"""The properties that a quantized convolution takes over from a float one."""


def constant_codes(value: SSAValue) -> Kernel | None:
    """The quantized values of a kernel that is a dequantized constant, possibly transposed; None for other kernels."""
    op = value.owner
    if isinstance(op, relay.TransposeOp) and (inner := constant_codes(op.input)) is not None:
        order = int_values(op.axes)
        axis = None if inner.axis is None else order.index(inner.axis)
        return Kernel(inner.codes.transpose(order), inner.scales, inner.zeros, axis)
    if not isinstance(op, qnn.DequantizeOp) or (codes := constant_of(op.input)) is None:
        return None
    if codes.dtype.itemsize != 1:
        return None
    if codes.dtype.isbuiltin == 2:
        codes = codes.astype(np.int8)
    scales, zeros = (np.atleast_1d(to_numpy(attr)) for attr in (op.scale, op.zero_point))
    if scales.ndim > 1 or zeros.ndim > 1:
        return None
    axis = op.axis.value.data % max(codes.ndim, 1) if max(scales.size, zeros.size) > 1 else None
    return Kernel(codes, scales.astype(np.float32), zeros.astype(np.int64), axis)


class Sums:
    """Builds integer ops that compute sums of products of quantized values, and appends them to the expansion `new`."""

    def __init__(self, new: Expansion):
        self.new = new

    def read(self, op: Operation, value: SSAValue) -> tuple[SSAValue, Codes]:
        """The 8-bit quantized value that is dequantized to the operand `value`, and its parameters. Raises Stays if the
        operand is anything else, so that the op stays in float."""
        found = source(value)
        if found is None:
            raise Stays(op, "an operand is no dequantised code of one scale")
        if found[1].dtype.itemsize != 1:
            raise Stays(op, BITS)
        return found

    def of(self, anchor: Convolution | Product) -> tuple[SSAValue, int, Array]:
        """Integer ops for the sums of an op: returns the sums (i32), the axis of the output channels, and the scale of
        the sums, of one element or one per channel. Raises Stays."""
        left, right = anchor.operands
        codes, found = self.read(anchor, left)
        kernel = constant_codes(right)
        if kernel is None:
            if not isinstance(anchor, relay.MatmulOp | relay.BatchMatmulOp):
                raise Stays(anchor, "its kernel is no constant of codes")
            sums, axis, scales = self.activations(anchor, codes, found)
        elif isinstance(anchor, Convolution):
            sums, axis, scales = self.convolution(anchor, codes, found, kernel)
        else:
            sums, axis, scales = self.dense(anchor, codes, found, kernel)
        return sums, axis, found.scale * scales

    def convolution(
        self, anchor: Convolution, codes: SSAValue, found: Codes, kernel: Kernel
    ) -> tuple[SSAValue, int, Array]:
        layout, data = anchor.kernel_layout.data, anchor.data_layout.data
        turned = anchor.out_layout.data not in ("", data)
        if not layout.startswith("OI") or turned or kernel.axis not in (None, 0):
            raise Stays(anchor, f"its kernel is {layout}, or its scales do not lie along the output channels")
        kernel = kernel.of_output_channels()
        if not isinstance(anchor, relay.Conv2dOp):
            points: Properties = {"out_dtype": i32, "input_zero_point": number(found.zero_point)}
            points = dict(anchor.properties) | points | {"kernel_zero_point": number(int(kernel.zeros[0]))}
            weights = self.new.constant(kernel.codes, kernel.codes.dtype)
            return self.new.value(type(anchor), codes, weights, properties=points), data.index("C"), kernel.scales
        packed_layout, packed = fused.packed_kernel(kernel.codes, anchor.groups.value.data)
        properties: Properties = {name: value for name, value in anchor.properties.items() if name in WINDOW}
        properties |= product_parameters(found, kernel.scales, int(kernel.zeros[0]))
        properties |= {"kernel_layout": StringAttr(packed_layout)}
        sums = self.new.value(qnn.Conv2dOp, codes, self.new.constant(packed, packed.dtype), properties=properties)
        return sums, data.index("C"), kernel.scales

    def dense(
        self,
        anchor: Product,
        codes: SSAValue,
        found: Codes,
        kernel: Kernel,
    ) -> tuple[SSAValue, int, Array]:
        turned = isinstance(anchor, relay.DenseOp) or bool(anchor.transpose_b.value.data)
        if kernel.codes.ndim != 2:
            raise Stays(anchor, "its kernel is no matrix")
        if not isinstance(anchor, relay.DenseOp) and anchor.transpose_a.value.data:
            order = [*range(rank(codes) - 2), rank(codes) - 1, rank(codes) - 2]
            codes = self.new.transpose(codes, order)
        if kernel.axis not in (None, 0 if turned else 1):
            raise Stays(anchor, "its scales do not lie along the columns")
        if not turned:
            kernel = Kernel(np.ascontiguousarray(kernel.codes.T), kernel.scales, kernel.zeros, 0)
        kernel = kernel.of_output_channels()
        weights = self.new.constant(kernel.codes, kernel.codes.dtype)
        scales = product_parameters(found, kernel.scales, int(kernel.zeros[0]))
        sums = self.new.value(qnn.DenseOp, codes, weights, properties=scales)
        return sums, rank(sums) - 1, kernel.scales

    def activations(
        self, anchor: relay.MatmulOp | relay.BatchMatmulOp, codes: SSAValue, found: Codes
    ) -> tuple[SSAValue, int, Array]:
        other, codes_of_other = self.read(anchor, anchor.operands[1])
        turned = {name: anchor.properties[name] for name in ("transpose_a", "transpose_b") if name in anchor.properties}
        scales = product_parameters(found, np.array([codes_of_other.scale]), codes_of_other.zero_point)
        sums = self.new.value(qnn.BatchMatmulOp, codes, other, properties=turned | scales)
        return sums, rank(sums) - 1, np.asarray(codes_of_other.scale)


def to_reals(anchor: Product) -> Expansion | None:
    """product (dequantize %x), (dequantize %w) => cast (sums of %x, %w) * scale; None if the operands are not quantized
    that way. Source: ONNX Runtime's MatMulIntegerToFloat."""
    new = Expansion(anchor)
    try:
        sums, _, scale = Sums(new).of(anchor)
    except Stays:
        return None
    new.value(relay.MultiplyOp, new.cast(sums, f32), new.constant(np.squeeze(scale), np.float32))
    return new
