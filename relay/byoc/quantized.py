"""Facts about matched ops that external compilers need: windows, scales, bounds, constants.

`read_product` reads conv2d and dense with their bias, requantization or clamp, quantized and float alike; `Codes` has
the parameters of a quantized tensor. Numbers are those of the ops, without rounding or rescaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from relay.byoc.compiler import Refusal
from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, int_values, to_numpy
from relay.dialects.op import rank, tensor
from relay.interpreters.arithmetic import code_range

CODE_TYPES = (np.dtype(np.int8), np.dtype(np.uint8))
FLOAT = np.dtype(np.float32)


def dtype(value: SSAValue) -> np.dtype[Any]:
    """The numpy type of a tensor's elements."""
    return dtype_of(tensor(value).element_type)


@dataclass(frozen=True, slots=True)
class Codes:
    """Quantization parameters: the value q stands for the real `scale * (q - zero_point)`; the scale is exactly a
    float32."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a convolution or pool; `padding` is top, left, bottom, right."""

    size: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """The quantization of a product: `output code = clamp(rescale(sum + bias) + output.zero_point, low, high)`."""

    input: Codes
    kernel_scale: Array
    """The kernel's scales in float32: a single one, or one per output channel."""
    kernel_zero_point: int
    output: Codes
    requantize: qnn.RequantizeOp
    """The op whose `multiplier`, `shift`, `real_multiplier` and `rounding` define the rescaling exactly."""

    @property
    def per_channel(self) -> bool:
        return self.kernel_scale.size > 1

    @property
    def real_multipliers(self) -> Array:
        """`input scale * kernel scale / output scale` in float64: a single factor, or one per output channel."""
        return np.float64(self.input.scale) * self.kernel_scale.astype(np.float64) / np.float64(self.output.scale)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A convolution (NHWC) or matrix product, with its bias and its requantization or float clamp."""

    anchor: relay.Conv2dBase | relay.DenseBase
    data: SSAValue
    kernel: Array
    """The kernel as in the IR: [out, h, w, in / groups], [h, w, in, multiplier] if depthwise, [units, inputs] for
    dense."""
    bias: Array | None
    """The bias in int32 or float32, one element per output channel."""
    result: SSAValue
    low: float | None
    """The smallest integer or float that the clamp lets through; None if that is the type's own lowest."""
    high: float | None
    window: Window | None
    """The window of a convolution; None for dense."""
    groups: int
    depthwise: bool
    """Whether the kernel is [h, w, in, multiplier]."""
    quantization: Quantization | None
    """The quantization of the data, the kernel and the result; None for float products."""

    @property
    def channels(self) -> int:
        """The number of output channels or units."""
        if self.depthwise:
            return self.kernel.shape[2] * self.kernel.shape[3]
        return self.kernel.shape[0]


PRODUCTS = (qnn.Conv2dOp, qnn.DenseOp, relay.Conv2dOp, relay.DenseOp)


def read_product(ops: Sequence[Operation]) -> Product | Refusal:
    """The product that these ops form: a convolution or dense, an optional bias, then a requantization if quantized, or
    an optional clamp for floats.

    A Refusal says why they form none: a kernel or bias that is computed, 16-bit values, sums without requantization.
    """
    anchor, bias, last = None, None, None
    for op in ops:
        match op:
            case qnn.Conv2dOp() | qnn.DenseOp() | relay.Conv2dOp() | relay.DenseOp() if anchor is None:
                anchor = op
            case relay.BiasAddOp() if anchor is not None and bias is None and last is None:
                bias = op
            case qnn.RequantizeOp() | relay.ClipOp() | relay.MaximumOp() if anchor is not None and last is None:
                last = op
            case _:
                return Refusal(f"{op.name} is no part of a product")
    if anchor is None:
        return Refusal("there is no convolution or product with a matrix")
    kernel = constant_of(anchor.kernel)
    if kernel is None:
        return Refusal("its kernel is computed at run time")
    vector = None
    if bias is not None:
        vector = constant_of(bias.bias)
        if vector is None:
            return Refusal("its bias is computed at run time")
        if bias.axis.value.data not in (-1, rank(bias.data) - 1):
            return Refusal("its bias does not lie along the channels")
    kind = dtype(anchor.data)
    if kind == FLOAT:
        quantization, bounds = None, _float_bounds(last)
    elif kind in CODE_TYPES and kernel.dtype in CODE_TYPES:
        quantization = _quantization(anchor, last)
        if isinstance(quantization, Refusal):
            return quantization
        bounds = code_bounds(quantization.requantize)
    else:
        return Refusal(f"it multiplies {kind} with {kernel.dtype}")
    if isinstance(bounds, Refusal):
        return bounds
    conv = anchor if isinstance(anchor, relay.Conv2dBase) else None
    depthwise = conv is not None and conv.depthwise
    return Product(
        anchor=anchor,
        data=anchor.data,
        kernel=kernel,
        bias=vector,
        result=ops[-1].results[0],
        low=bounds[0],
        high=bounds[1],
        window=None if conv is None else conv_window(conv, kernel),
        groups=1 if conv is None else conv.groups.value.data,
        depthwise=depthwise,
        quantization=quantization,
    )


def conv_window(op: relay.Conv2dBase, kernel: Array) -> Window:
    height, width = kernel.shape[:2] if op.depthwise else kernel.shape[1:3]
    return Window((height, width), _two(op.strides), _four(op.padding), _two(op.dilation))


def form_refusal(op: Operation) -> str | None:
    """The reason why a compiler that only supports TFLite's variants of ops refuses an op; None if it does not. Such
    variants are pools without dilation or counted padding, resizing by TFLite's rules, softmax along the last axis."""
    if isinstance(op, relay.SoftmaxOp) and not op.along_last:
        return "it is along another axis than the last"
    if isinstance(op, relay.Pool2dOp) and not op.plain:
        return "its windows have gaps, reach over the padding, or count the padding"
    if isinstance(op, relay.Resize2dOp) and op.coordinate_transformation_mode is not None:
        return "it is resized by Relay's rules"
    return None


def pool_window(op: relay.Pool2dOp) -> Window:
    return Window(_two(op.pool_size), _two(op.strides), _four(op.padding))


def _two(attr: Any) -> tuple[int, int]:
    a, b = int_values(attr)
    return a, b


def _four(attr: Any) -> tuple[int, int, int, int]:
    a, b, c, d = int_values(attr)
    return a, b, c, d


def _quantization(anchor: Operation, last: Operation | None) -> Quantization | Refusal:
    if not isinstance(anchor, qnn.Conv2dOp | qnn.DenseOp):
        return Refusal("its codes have no scales")
    if not isinstance(last, qnn.RequantizeOp):
        return Refusal("its sums are used as such, without a requantisation")
    if dtype_of(last.out_dtype) not in CODE_TYPES:
        return Refusal(f"it is requantised to {last.out_dtype}")
    if dtype(anchor.result) != np.int32 or last.input_zero_point.value.data != 0:
        return Refusal("it does not accumulate in int32 around 0")
    if to_numpy(last.multiplier).ndim and last.axis.value.data not in (-1, rank(last.input) - 1):
        return Refusal("its scales do not lie along the channels")
    if not to_numpy(anchor.kernel_scale).all():
        return Refusal("a scale of its weights is 0")
    return Quantization(
        input=codes(anchor.input_scale, anchor.input_zero_point),
        kernel_scale=np.atleast_1d(to_numpy(anchor.kernel_scale)).astype(np.float32),
        kernel_zero_point=anchor.kernel_zero_point.value.data,
        output=codes(last.output_scale, last.output_zero_point),
        requantize=last,
    )


def codes(scale: Attribute, zero_point: Attribute) -> Codes:
    """The quantization parameters of a scalar scale and zero point."""
    return Codes(float(to_numpy(scale).astype(np.float32).reshape(())), int(to_numpy(zero_point).reshape(())))


def codes_of(op: Operation, *names: str) -> tuple[Codes, ...]:
    """The quantization parameters that the op's properties `NAME_scale` and `NAME_zero_point` give, for each name."""
    return tuple(codes(getattr(op, f"{name}_scale"), getattr(op, f"{name}_zero_point")) for name in names)


def parts_of(op: qnn.ConcatenateOp) -> list[tuple[SSAValue, Codes]]:
    """The concatenated values, each with its quantization parameters."""
    rows = zip(op.inputs, to_numpy(op.input_scales), to_numpy(op.input_zero_points), strict=True)
    return [(value, Codes(float(scale), int(zero_point))) for value, scale, zero_point in rows]


Bounds = tuple[float | None, float | None]


def code_limits(op: qnn.RequantizeOp | qnn.QnnBinaryOp) -> tuple[int, int]:
    """The least and the largest code that a requantization gives."""
    low, high = code_range(dtype(op.result))
    least, most = (None if bound is None else bound.value.data for bound in (op.min, op.max))
    return low if least is None else max(low, least), high if most is None else min(high, most)


def code_bounds(op: qnn.RequantizeOp | qnn.QnnBinaryOp) -> Bounds:
    """The bounds to which a requantization clamps its result; None for a bound that is the type's own."""
    (low, high), (least, most) = code_limits(op), code_range(dtype(op.result))
    return (None if low == least else low), (None if high == most else high)


def clip_bounds(op: relay.ClipOp) -> Bounds:
    """The bounds of a clip; None for a bound that no value of the type exceeds (for floats, no finite one)."""
    type = dtype(op.input)
    low, high = (float(np.finfo(type).min), float(np.finfo(type).max)) if type.kind == "f" else code_range(type)
    least, most = (_scalar(bound) for bound in (op.a_min, op.a_max))
    return (None if least <= low else least), (None if most >= high else most)


def _scalar(attr: Attribute) -> float:
    assert isinstance(attr, IntegerAttr | FloatAttr)
    return attr.value.data


def _float_bounds(last: Operation | None) -> Bounds | Refusal:
    match last:
        case None:
            return None, None
        case relay.ClipOp():
            return clip_bounds(last)
        case relay.MaximumOp():
            floor = next((found for side in (last.rhs, last.lhs) if (found := constant_of(side)) is not None), None)
            if floor is None or floor.size != 1:
                return Refusal("its result is compared with a tensor")
            return float(floor.reshape(())), None
        case _:
            return Refusal(f"{last.name} is no part of a product of floats")
