"""Recognises convolutions and matrix products among `linalg.generic`s on memrefs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Float32Type, IntegerType, i8, i16, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from relay.dialects.attributes import Array, to_numpy
from relay.lowering.builder import contiguous
from relay.lowering.scheduling.affine import coefficients, dims_of, kinds_of
from relay.lowering.scheduling.epilogue import epilogue_of
from relay.lowering.shaped import at_most, buffer_of, shape_of


@dataclass(frozen=True)
class Operand:
    """One operand of a convolution or product: its buffer, whether its elements are extended as unsigned integers, and
    its zero point. `given`: the zero point as a scalar, if each call of the kernel passes one, which only happens for
    products of two computed matrices; `zero_point` is then 0."""

    value: SSAValue
    unsigned: bool
    zero_point: int
    given: SSAValue | None = None

    @property
    def element(self) -> Attribute:
        return buffer_of(self.value).element_type


@dataclass(frozen=True)
class Convolution:
    """`out[n, y, x, o] += (data[n, y*sy+i*dy, x*sx+j*dx, c] - zp) * (kernel[o, i, j, c] - zp)`, all NHWC.

    A matrix product is a convolution of M images of one pixel. `depthwise`: the kernel is [i, j, c] and o = c.
    `others`: the channels of a pixel that are not read, in a convolution that is one group of several.
    """

    data: Operand
    kernel: Operand
    out: SSAValue
    images: int
    rows: int
    columns: int
    channels: int
    out_rows: int
    out_columns: int
    outputs: int
    kernel_rows: int
    kernel_columns: int
    strides: tuple[int, int]
    dilation: tuple[int, int]
    depthwise: bool
    accumulator: Attribute
    others: int = 0

    @property
    def pitch(self) -> int:
        """The distance in memory between neighbouring pixels of the data, in elements."""
        return at_most(self.channels) + self.others

    @property
    def is_float(self) -> bool:
        return isinstance(self.accumulator, Float32Type)

    @property
    def halves(self) -> bool:
        """Whether data and kernel are bf16, stored as i16."""
        return self.is_float and self.data.element == i16

    @property
    def pointwise(self) -> bool:
        """Whether the convolution is 1x1 without strides, so that its pixels can form one long row."""
        return (
            self.kernel_rows == self.kernel_columns == 1
            and self.strides == (1, 1)
            and (self.rows, self.columns) == (self.out_rows, self.out_columns)
        )


def recognise(op: linalg.GenericOp) -> Convolution | None:
    """Return the convolution or product that the operation computes; None if it computes another function or has an
    unsupported form."""
    found = operands_of(op)
    if found is None:
        return None
    data, kernel, out, accumulator = found
    kinds, maps = kinds_of(op), [m.data for m in op.indexing_maps]
    shape, kshape, oshape = shape_of(data.value), shape_of(kernel.value), shape_of(out)
    if kinds == "ppr" and [dims_of(m) for m in maps] == [[0, 2], [1, 2], [0, 1]]:
        image, result, taps = (shape[0], 1, 1, shape[1]), (1, 1, kshape[0]), (1, 1)
        return Convolution(data, kernel, out, *image, *result, *taps, (1, 1), (1, 1), False, accumulator)
    if kinds == "pppprrr":
        kernel_dims, channel = [3, 4, 5, 6], [6]
    elif kinds == "pppprr":
        kernel_dims, channel = [4, 5, 3], [3]
    else:
        return None
    if dims_of(maps[1]) != kernel_dims or dims_of(maps[2]) != [0, 1, 2, 3]:
        return None
    window = window_of(maps[0], (4, 5), channel)
    if window is None:
        return None
    depthwise = len(kinds) == 6
    image, result = (shape[0], shape[1], shape[2], shape[3]), (oshape[1], oshape[2], oshape[3])
    taps = (kshape[0], kshape[1]) if depthwise else (kshape[1], kshape[2])
    return Convolution(data, kernel, out, *image, *result, *taps, *window, depthwise, accumulator)


def operands_of(op: linalg.GenericOp) -> tuple[Operand, Operand, SSAValue, Attribute] | None:
    """Return data, kernel, result and accumulator type of an operation that sums products of contiguous buffers, else
    None."""
    if len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    if not all(contiguous(v.type) and 0 not in shape_of(v) for v in op.operands):
        return None
    product = match_product(op.body.block)
    if product is None or any(given is not None for _, _, given in product):
        return None
    data, kernel, out = op.inputs[0], op.inputs[1], op.outputs[0]
    accumulator = buffer_of(out).element_type
    floats = isinstance(accumulator, Float32Type)
    if not floats and accumulator != i32 or floats and buffer_of(data).element_type != buffer_of(kernel).element_type:
        return None
    return Operand(data, *product[0]), Operand(kernel, *product[1]), out, accumulator


def window_of(
    map: AffineMap, taps: tuple[int, int], channels: Sequence[int]
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Match an affine map to the index of a convolution's data, (n, y * stride + i * dilation, x * stride + j *
    dilation, *channels). n, y and x are the map's dimensions 0, 1 and 2; `taps` says which dimensions are i and j, and
    `channels` which ones index the channels. Return the two strides and the two dilations; None if the map has another
    form."""
    linear = [coefficients(r) for r in map.results]
    if len(linear) != 3 + len(channels) or any(entry is None or entry[1] != 0 for entry in linear):
        return None
    factors = [entry[0] for entry in linear if entry is not None]
    i, j = taps
    if factors[0] != {0: 1} or factors[3:] != [{channel: 1} for channel in channels]:
        return None
    if (
        factors[1].keys() != {1, i}
        or factors[2].keys() != {2, j}
        or min(*factors[1].values(), *factors[2].values()) < 1
    ):
        return None
    return (factors[1][1], factors[2][2]), (factors[1][i], factors[2][j])


SCALARS = (memref.LoadOp.name, "arith.extsi", "arith.extui")
"""Ops that may compute a scalar zero point from an argument that calls of a kernel pass."""
Side = tuple[bool, int, SSAValue | None]
"""Whether the codes of an `Operand` are unsigned, their constant zero point, and the zero point that calls pass
(`given`)."""


def match_product(block: Block) -> tuple[Side, Side] | None:
    """Match `yield(add(out, mul(side(a), side(b))))`; return both sides, or None."""
    end = block.last_op
    if not isinstance(end, linalg.YieldOp) or len(end.operands) != 1 or len(block.args) != 3:
        return None
    total = end.operands[0].owner
    if not isinstance(total, arith.AddiOp | arith.AddfOp) or block.args[2] not in (total.lhs, total.rhs):
        return None
    other = total.rhs if total.lhs is block.args[2] else total.lhs
    product = other.owner
    if not isinstance(product, arith.MuliOp | arith.MulfOp):
        return None
    lhs, rhs = match_side(product.lhs, block.args[0]), match_side(product.rhs, block.args[1])
    return None if lhs is None or rhs is None else (lhs, rhs)


def match_side(value: SSAValue, argument: BlockArgument) -> Side | None:
    """Match `[subi](ext(argument), zero point)`, the float argument itself, or `bitcast(ext(argument) << 16)`, which
    converts bf16 to f32."""
    if value is argument:
        return (False, 0, None) if not isinstance(argument.type, IntegerType) else None
    if isinstance(value.owner, arith.BitcastOp):
        return (False, 0, None) if argument.type == i16 and is_half(value.owner.input, argument) else None
    zero_point, given = 0, None
    op = value.owner
    if isinstance(op, arith.SubiOp):
        number = op.rhs.owner
        if isinstance(number, arith.ConstantOp):
            zero_point = int(to_numpy(number.value))
        elif isinstance(number, Operation) and number.name in SCALARS and number.parent is not argument.owner:
            given = op.rhs
        else:
            return None
        op = op.lhs.owner
    if not isinstance(op, Operation) or op.name not in ("arith.extsi", "arith.extui"):
        return None
    if op.operands[0] is not argument or argument.type not in (i8, i16):
        return None
    if argument.type == i16 and (zero_point or given is not None or op.name == "arith.extui"):
        return None
    return op.name == "arith.extui", zero_point, given


def is_half(bits: SSAValue, argument: BlockArgument) -> bool:
    """Whether the value is the argument's 16 bits shifted into the upper half of 32 bits."""
    shift = bits.owner
    if not isinstance(shift, arith.ShLIOp) or not isinstance(shift.rhs.owner, arith.ConstantOp):
        return False
    wide, count = shift.lhs.owner, int(to_numpy(shift.rhs.owner.value))
    return isinstance(wide, Operation) and wide.name == "arith.extui" and wide.operands[0] is argument and count == 16


# Groups of channels


@dataclass(frozen=True)
class Groups:
    """A grouped convolution: `count` convolutions, each of neighbouring channels of the data. `conv`: one of these
    convolutions, on the image and the result that all of them share. `view`: the reshape of the result in which
    channels are one dimension; None if the result's own buffer has that shape. Kernels are [g, o, i, j, c], or, if
    `by_taps`, [i, j, g, o] of one channel each."""

    conv: Convolution
    count: int
    view: memref.CollapseShapeOp | None
    by_taps: bool

    @property
    def epilogue(self) -> linalg.GenericOp | None:
        """The elementwise op that reads the result, if it is the only reader; else None."""
        return None if self.view is None else epilogue_of(self.view.result)

    def kernel_of(self, array: Array) -> Array:
        """Return the kernel as [g, o, i, j, c]."""
        return array.transpose(2, 3, 0, 1)[..., None] if self.by_taps else array


def recognise_groups(op: linalg.GenericOp) -> Groups | None:
    """Return the grouped convolution that the operation computes, if its result is used with all channels as one
    dimension; else None."""
    found = operands_of(op)
    if found is None:
        return None
    data, kernel, out, accumulator = found
    kinds, maps = kinds_of(op), [m.data for m in op.indexing_maps]
    views = [use.operation for use in out.uses if isinstance(use.operation, memref.CollapseShapeOp)]
    held = out.owner.src if isinstance(out.owner, memref.ExpandShapeOp) else None
    if len(views) != (held is None) or len({use.operation for use in out.uses}) != 2 + len(views):
        return None
    if kinds not in ("ppppprrr", "ppppprr") or dims_of(maps[2]) != [0, 1, 2, 3, 4]:
        return None
    by_taps, view = kinds == "ppppprr", views[0] if views else None
    whole = held if view is None else view.result
    assert whole is not None
    window = window_of(maps[0], (5, 6), [3] if by_taps else [3, 7])
    if window is None or dims_of(maps[1]) != ([5, 6, 3, 4] if by_taps else [3, 4, 5, 6, 7]):
        return None
    if not by_taps:
        split = data.value.owner
        if not isinstance(split, memref.ExpandShapeOp) or not split.result.has_one_use():
            return None
        data = Operand(split.src, data.unsigned, data.zero_point)
    shape, results = shape_of(data.value), shape_of(out)
    if len(shape) != 4 or shape_of(whole) != (*results[:3], results[3] * results[4]):
        return None
    count, outputs = results[3:]
    channels, kshape = shape[3] // count, shape_of(kernel.value)
    image, result = (shape[0], shape[1], shape[2], channels), (results[1], results[2], outputs)
    taps = (kshape[0], kshape[1]) if by_taps else (kshape[2], kshape[3])
    others = shape[3] - channels
    conv = Convolution(data, kernel, whole, *image, *result, *taps, *window, False, accumulator, others)
    return Groups(conv, count, view, by_taps)
