"""Generates convolution and dense for the array, with bias and requantization.

A dense layer is a 1 x 1 convolution of an image with one column, whose rows are the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from relay.byoc.compiler import Refusal
from relay.byoc.quantized import code_limits, dtype
from relay.byoc.regions import constant_of
from relay.byoc.systolic.assembler import (
    INPUT_ROWS,
    INPUTS,
    PARAMETERS,
    RESULT_ROWS,
    RESULTS,
    WEIGHT_ROWS,
    WEIGHTS,
    Assembler,
)
from relay.byoc.systolic.isa import DOUBLE, LANES, SINGLE, Bias, Fill, Load, Multiply, Requantize, Store, Weights
from relay.byoc.systolic.simulator import rescaled_codes
from relay.dialects import qnn
from relay.dialects.attributes import Array, int_values, to_numpy
from relay.dialects.op import rank, shape
from relay.dialects.relay import BiasAddOp
from relay.interpreters.qnn import requantize

WIDTH = 1 << 31


@dataclass(frozen=True, eq=False)
class Geometry:
    """The shapes and data movement of a convolution of an NHWC image with a kernel of shape O, H, W, I."""

    image: tuple[int, int, int, int]
    result: tuple[int, int, int, int]
    kernel: Array
    strides: tuple[int, int]
    dilation: tuple[int, int]
    top_left: tuple[int, int]
    zero_point: int
    kernel_zero_point: int

    @cached_property
    def taps(self) -> int:
        """The number of matrices by which each block of 16 input channels is multiplied: one for each tap of the
        kernel; twice this number if the kernel has a zero point, since further matrices filled with minus the zero
        point subtract its contribution."""
        return self.kernel.shape[1] * self.kernel.shape[2] * (2 if self.kernel_zero_point else 1)

    @cached_property
    def blocks(self) -> int:
        """The number of scratchpad rows that a pixel takes."""
        return -(-self.image[3] // LANES)

    @cached_property
    def tiles(self) -> int:
        """The number of tiles of 16 output channels."""
        return -(-self.result[3] // LANES)

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The rows and columns of the image that one result needs."""
        _, height, width, _ = self.kernel.shape
        return (height - 1) * self.dilation[0] + 1, (width - 1) * self.dilation[1] + 1

    @cached_property
    def columns(self) -> int:
        """The columns of the padded image that a row of results needs."""
        return (self.result[2] - 1) * self.strides[1] + self.reach[1]

    def lines(self, count: int) -> int:
        """The rows of the padded image that `count` rows of results need."""
        return (count - 1) * self.strides[0] + self.reach[0]

    @cached_property
    def height(self) -> int:
        """The number of rows of the result that are computed at once, so that their inputs fit into the scratchpad and
        their sums into the accumulator; 0 if not even one row fits."""
        pitch, width = self.columns * self.blocks, self.result[2]
        fits = (INPUT_ROWS // pitch - self.reach[0]) // self.strides[0] + 1
        return max(0, min(self.result[1], fits, RESULT_ROWS // width))


@dataclass(frozen=True, eq=False)
class Product(Geometry):
    """A convolution with bias and requantization per channel."""

    bias: Array
    """The bias per channel in int32, with the input's zero point folded in."""
    multiplier: Array
    shift: Array
    rounding: int
    output_zero_point: int
    low: int
    high: int

    def packed(self) -> Array:
        """The kernel as matrices: [tile of outputs, tap, block of inputs, input lane, output lane]."""
        outputs, height, width, inputs = self.kernel.shape
        full = np.zeros((self.tiles * LANES, self.taps, self.blocks * LANES), np.int8)
        full[:outputs, :, :inputs] = -self.kernel_zero_point
        full[:outputs, : height * width, :inputs] = self.kernel.reshape(outputs, -1, inputs)
        matrices = full.reshape(self.tiles, LANES, self.taps, self.blocks, LANES)
        return matrices.transpose(0, 2, 3, 4, 1)

    def vectors(self) -> Array:
        """The int32 parameters of each tile: 16 biases, 16 multipliers, 16 shifts."""
        rows = np.zeros((3, self.tiles * LANES), np.int32)
        for row, numbers in zip(rows, (self.bias, self.multiplier, self.shift), strict=True):
            row[: self.result[3]] = numbers
        return rows.reshape(3, self.tiles, LANES).transpose(1, 0, 2)


def geometry_of(anchor: qnn.Conv2dOp | qnn.DenseOp) -> Geometry | Refusal:
    """The geometry of `anchor`, an int8 product, on the systolic array; or the reason why it does not fit."""
    kernel = constant_of(anchor.kernel)
    if kernel is None:
        return Refusal("its kernel is not constant")
    if isinstance(anchor, qnn.Conv2dOp):
        if anchor.depthwise or anchor.groups.value.data != 1:
            return Refusal("groups would leave most of the array idle")
        image, result = shape(anchor.data), shape(anchor.result)
        (sy, sx), (dy, dx), (top, left, _, _) = map(int_values, (anchor.strides, anchor.dilation, anchor.padding))
    else:
        kernel = kernel[:, None, None, :]
        image = (1, shape(anchor.data)[0], 1, shape(anchor.data)[-1])
        result = (1, shape(anchor.result)[0], 1, shape(anchor.result)[-1])
        sy = sx = dy = dx = 1
        top = left = 0
        if len(shape(anchor.data)) != 2:
            return Refusal("its input has more than two axes")
    if min(*image, *result) < 1:
        return Refusal("a size is not known, or 0")
    geometry = Geometry(
        image=(image[0], image[1], image[2], image[3]),
        result=(result[0], result[1], result[2], result[3]),
        kernel=kernel,
        strides=(sy, sx),
        dilation=(dy, dx),
        top_left=(top, left),
        zero_point=anchor.input_zero_point.value.data,
        kernel_zero_point=anchor.kernel_zero_point.value.data,
    )
    if geometry.height < 1:
        return Refusal(f"a row of its image takes more than {INPUT_ROWS} rows of the scratchpad")
    return geometry


def product_of(ops: Sequence[Operation]) -> Product | Refusal:
    """The convolution or dense that the ops of a composite form with a bias and a requantization; or why it is not
    supported."""
    rescale = next((op for op in ops if isinstance(op, qnn.RequantizeOp)), None)
    if rescale is None:
        return Refusal("it is not requantized")
    anchor = next(op for op in ops if isinstance(op, qnn.Conv2dOp | qnn.DenseOp))
    added = next((op for op in ops if isinstance(op, BiasAddOp)), None)
    bias = None if added is None else constant_of(added.bias)
    if added is not None and bias is None:
        return Refusal("its bias is not constant")
    if added is not None and not along_channels(added.axis, added.data):
        return Refusal("its bias does not lie along the channels")
    codes = {dtype(value) for value in (anchor.data, anchor.kernel, rescale.result)}
    if codes != {np.dtype(np.int8)}:
        return Refusal(f"the array multiplies int8, not {', '.join(sorted(map(str, codes)))}")
    if not -127 <= anchor.kernel_zero_point.value.data <= 128:
        return Refusal("the zero point of its kernel, negated, is no int8")
    if dtype(anchor.result) != np.int32 or rescale.input_zero_point.value.data != 0:
        return Refusal("it does not accumulate in int32 around 0")
    geometry = geometry_of(anchor)
    if isinstance(geometry, Refusal):
        return geometry
    outputs = geometry.kernel.shape[0]
    sums = (geometry.kernel.astype(np.int64) - geometry.kernel_zero_point).sum((1, 2, 3))
    total = (np.zeros(outputs, np.int64) if bias is None else bias.astype(np.int64)) - geometry.zero_point * sums
    chosen = rounding_of(rescale, outputs)
    if isinstance(chosen, Refusal):
        return chosen
    rounding, multiplier, shift = chosen
    low, high = code_limits(rescale)
    product = Product(
        **{field.name: getattr(geometry, field.name) for field in fields(geometry)},
        bias=total.astype(np.int32),
        multiplier=multiplier,
        shift=shift,
        rounding=rounding,
        output_zero_point=rescale.output_zero_point.value.data,
        low=low,
        high=high,
    )
    return Refusal("its bounds leave no code") if low > high else product


def along_channels(axis: IntegerAttr, value: SSAValue) -> bool:
    """Whether the axis is the last one of the value."""
    return axis.value.data % rank(value) == rank(value) - 1


def rounding_of(rescale: qnn.RequantizeOp, channels: int) -> tuple[int, Array, Array] | Refusal:
    """The machine's rounding, multipliers and shifts that compute this op exactly for every sum; or why there are none.

    Both the op and the machine are monotone in the sum, so they are equal if they agree on both sides of every sum at
    which the result changes.
    """
    factors = [to_numpy(attr).astype(np.int64) for attr in (rescale.multiplier, rescale.shift)]
    if any(factor.ndim for factor in factors) and not along_channels(rescale.axis, rescale.input):
        return Refusal("its scales are not along the channels")
    multiplier, shift = (np.broadcast_to(factor, channels) for factor in factors)
    if rescale.rounding.data == "tflite":
        return DOUBLE, multiplier, shift
    if (shift > 30).any() or (multiplier < 1).any():
        return Refusal("a multiplier is outside what the vector unit rescales exactly")
    if rescale.real_multiplier is not None:
        real = to_numpy(rescale.real_multiplier).astype(np.float64)
        if (np.abs(multiplier * 2.0 ** (shift - 31.0) / real - 1) > 2.0**-30).any():
            return Refusal("its multipliers are not those of its real multipliers")
    steps = np.arange(-129, 129)[:, None] - rescale.output_zero_point.value.data + 0.5
    near = np.floor(steps * 2.0 ** (31 - shift) / multiplier).astype(np.int64)
    sums = np.clip(near[:, None, :] + np.arange(-3, 4)[:, None], -WIDTH, WIDTH - 1).reshape(-1, channels)
    wanted = requantize(rescale, sums.astype(np.int32))
    ends = rescale.output_zero_point.value.data, *code_limits(rescale)
    for rounding in (SINGLE, DOUBLE):
        codes = rescaled_codes(rounding, sums, multiplier, shift, *ends)
        if (codes == wanted).all():
            return rounding, multiplier, shift
    return Refusal(f"its rounding, {rescale.rounding.data}, gives codes that the vector unit does not")


def write(program: Assembler, product: Product, source: int, target: int) -> None:
    """Generate the instructions of a product, from the image at address `source` to the result at `target`."""
    packed = product.packed()
    weights, vectors = program.constant(packed), program.constant(product.vectors())
    for image in range(product.image[0]):
        for first in range(0, product.result[1], product.height):
            count = min(product.height, product.result[1] - first)
            bring(program, product, source, image, first, count)
            for tile in range(product.tiles):
                matrices = weights + tile * packed[0].nbytes
                program.load(vectors + tile * 12 * LANES, PARAMETERS, 12 * LANES)
                multiply(program, product, matrices, count)
                place = (image * product.result[1] + first) * product.result[2] * product.result[3] + tile * LANES
                drain(program, product, target + place, tile, count * product.result[2])


def bring(program: Assembler, product: Product, source: int, image: int, first: int, count: int) -> None:
    """Load the part of an image that result rows `first` to `first + count - 1` need, with padding around it. `image`
    is the image's index in the batch, which starts at address `source`."""
    _, height, width, channels = product.image
    (top, left), lines, blocks = product.top_left, product.lines(count), product.blocks
    start = first * product.strides[0] - top
    above, below = max(0, -start), min(lines, height - start)
    columns, right = product.columns, min(product.columns, left + width)
    if above > 0 or below < lines or left > 0 or right < columns:
        program.emit(Fill(row=INPUTS, rows=lines * columns * blocks, value=product.zero_point))
    if below <= above or right <= left:
        return
    where = source + ((image * height + start + above) * width) * channels
    row = INPUTS + (above * columns + left) * blocks
    lines = {"outer": below - above, "outer_bytes": width * channels, "outer_rows": columns * blocks}
    load_pixels(program, where, row, channels, right - left, **lines)


def load_pixels(program: Assembler, where: int, row: int, channels: int, pixels: int, **lines: int) -> None:
    """Generate the transfers of a line of `pixels` pixels from address `where` to the scratchpad's rows from `row` on:
    one for each block of 16 channels, or one for all channels if these fill their blocks. `lines` are the fields
    `outer`, `outer_bytes` and `outer_rows` of `Transfer`, if there are several such lines."""
    blocks = -(-channels // LANES)
    if channels % LANES == 0:
        program.emit(Load(address=where, row=row, inner=pixels * blocks, **lines))
        return
    for block in range(blocks):
        size, pieces = min(LANES, channels - block * LANES), {"inner_bytes": channels, "inner_rows": blocks}
        place = {"address": where + block * LANES, "row": row + block}
        program.emit(Load(**place, bytes=size, inner=pixels, **pieces, **lines))


def multiply(program: Assembler, product: Product, matrices: int, count: int) -> None:
    """Generate the instructions that compute the sums of one tile of output channels for `count` rows of the result
    image. The tile's weights start at address `matrices` in memory, and are loaded in parts that fit the scratchpad."""
    _, _, width, _ = product.kernel.shape
    blocks, pitch = product.blocks, product.columns * product.blocks
    program.emit(Bias(row=PARAMETERS, target=0, rows=count * product.result[2]))
    total, part = product.taps * blocks, WEIGHT_ROWS // LANES
    for number in range(total):
        if number % part == 0:
            rows = min(part, total - number) * LANES
            program.load(matrices + number * LANES * LANES, WEIGHTS, rows * LANES)
        tap, block = divmod(number, blocks)
        i, j = divmod(tap % (product.kernel.shape[1] * width), width)
        program.emit(Weights(row=WEIGHTS + number % part * LANES))
        program.emit(
            Multiply(
                row=INPUTS + i * product.dilation[0] * pitch + j * product.dilation[1] * blocks + block,
                target=0,
                inner=product.result[2],
                inner_rows=product.strides[1] * blocks,
                outer=count,
                outer_rows=product.strides[0] * pitch,
            )
        )


def drain(program: Assembler, product: Product, target: int, tile: int, pixels: int) -> None:
    """Requantize the sums of one tile of output channels for `pixels` pixels, and store the result at address
    `target`."""
    channels = product.result[3]
    program.emit(
        Requantize(
            flag=product.rounding,
            source=0,
            row=RESULTS,
            rows=pixels,
            parameters=PARAMETERS + 4,
            zero_point=product.output_zero_point,
            low=product.low,
            high=product.high,
        )
    )
    size = min(LANES, channels - tile * LANES)
    program.emit(Store(address=target, row=RESULTS, bytes=size, inner=pixels, inner_bytes=channels))
