"""Estimates the cycles of an op from shapes, without generating its program.

Partitioning uses the estimates. They count whole blocks of rows of equal size and ignore remainders at the edges.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.systolic.assembler import WEIGHT_ROWS
from relay.byoc.systolic.isa import LANES
from relay.byoc.systolic.products import Geometry, geometry_of
from relay.byoc.systolic.vectors import CHUNK
from relay.dialects import qnn, relay
from relay.dialects.op import shape

TRANSFER = 32
"""The fixed number of clock cycles of a transfer between memory and the scratchpad, before its first row is copied."""


def line(size: float) -> float:
    """The cycles of transferring `size` contiguous bytes: full rows, and the remainder separately."""
    full, rest = divmod(size, LANES)
    return (TRANSFER + full if full else 0) + (TRANSFER + 1 if rest else 0)


def picture(lines: float, columns: float, channels: int) -> float:
    """The cycles of loading an image of `lines` x `columns` pixels into the scratchpad, whose rows hold 16 channels: by
    one transfer if `channels` is a multiple of 16, else by one for every 16 channels."""
    blocks = -(-channels // LANES)
    return lines * columns * blocks + TRANSFER * (blocks if channels % LANES else 1)


def op_cycles(op: Operation) -> float | None:
    """The estimated clock cycles of one op on the systolic array; None for an op that the compiler `systolic` does not
    take."""
    match op:
        case relay.ConstantOp() | relay.ReshapeOp():
            return 0.0
        case qnn.Conv2dOp() | qnn.DenseOp():
            product = geometry_of(op)
            return None if isinstance(product, Refusal) else product_cycles(product)
        case relay.BiasAddOp() | qnn.RequantizeOp():
            return 0.0  # included in the product
        case qnn.AddOp():
            size = prod(shape(op.result))
            chunks = size // CHUNK
            whole = 3 * line(CHUNK) + 2 * CHUNK / LANES
            return line(48) + chunks * whole + 3 * line(size % CHUNK) + 2 * (-(-(size % CHUNK) // LANES))
        case relay.AvgPool2dOp():
            images, height, width, channels = shape(op.data)
            blocks = -(-channels // LANES)
            return images * (picture(height, width, channels) + blocks * (height * width + 16) + line(channels))
        case qnn.SoftmaxOp():
            count = shape(op.input)[-1]
            rows = prod(shape(op.input)) // count
            return line(1024) + rows * (4 * count + 64 + 2 * line(count))
        case _:
            return None


def product_cycles(product: Geometry) -> float:
    """The estimated cycles of a convolution or dense layer."""
    images, lines, width, _ = product.result
    count = -(-lines // product.height)
    pixels, needed = lines * width / count, product.lines(lines // count)
    padded = product.columns > product.image[2] or product.lines(lines) > product.image[1] or any(product.top_left)
    matrices = product.taps * product.blocks
    tile = line(12 * LANES) + -(-matrices * LANES // WEIGHT_ROWS) * TRANSFER + LANES * matrices  # parameters, weights
    tile += matrices * (LANES + 2 * LANES - 1 + pixels)
    tile += 3 * pixels + TRANSFER  # bias, requantize, store
    held = min(product.columns, product.image[2]), min(needed, product.image[1])
    image = picture(held[1], held[0], product.image[3])
    filled = needed * product.columns * product.blocks if padded else 0
    return images * count * (image + filled + product.tiles * tile)
