"""How many cycles an op will take: estimated from shapes, without writing its program.

Partitioning asks for it. It counts whole blocks of rows of equal size and ignores what is left over at the edges.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.systolic.codegen import product_in
from relay.byoc.systolic.isa import LANES
from relay.byoc.systolic.products import Product
from relay.byoc.systolic.vectors import CHUNK
from relay.dialects import byoc, qnn, relay
from relay.dialects.op import shape

TRANSFER = 32
"""Cycles before the first piece of a transfer."""


def op_cycles(op: Operation) -> float | None:
    """The estimate for one op that `systolic` takes; None for any other."""
    match op:
        case relay.ConstantOp() | relay.ReshapeOp():
            return 0.0
        case byoc.CompositeOp():
            product = product_in(op)
            return None if isinstance(product, Refusal) else product_cycles(product)
        case qnn.AddOp():
            rows = prod(shape(op.result)) / LANES
            return TRANSFER + 3 + 5 * rows + 3 * TRANSFER * max(1.0, rows * LANES / CHUNK)
        case relay.AvgPool2dOp():
            images, height, width, channels = shape(op.data)
            blocks = -(-channels // LANES)
            return images * (2 * height * width * blocks + 17 * blocks + 2 * TRANSFER)
        case qnn.SoftmaxOp():
            count = shape(op.input)[-1]
            rows = prod(shape(op.input)) // count
            return TRANSFER + 64 + rows * (4 * count + 64 + 2 * TRANSFER + 2 * -(-count // LANES))
        case _:
            return None


def product_cycles(product: Product) -> float:
    """A convolution or dense layer."""
    images, lines, width, _ = product.result
    count = -(-lines // product.height)
    pixels = lines * width / count
    rows = product.lines(lines // count) * product.columns * product.blocks
    padded = product.columns > product.image[2] or product.lines(lines) > product.image[1]
    matrices = product.kernel.shape[1] * product.kernel.shape[2] * product.blocks
    tile = 2 * TRANSFER + 12 + LANES * matrices  # parameters and weights
    tile += matrices * (LANES + 2 * LANES - 1 + pixels)
    tile += 3 * pixels + TRANSFER  # bias, requantize, store
    return images * count * (TRANSFER + rows * (2 if padded else 1) + product.tiles * tile)
