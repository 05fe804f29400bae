"""Neural-network ops that move elements without computing: blocks of an image to batches or channels, mirror
padding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.ir import TypedAttribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.attributes import int_values
from relay.dialects.layout import Layout
from relay.dialects.op import DYNAMIC, TENSOR, AxisOp, OneResultOp, Origin, Type, rank, require, shape, tensor
from relay.dialects.relay.convolution import plain_layout

NHWC = StringAttr("NHWC")
MIRRORS = ("SYMMETRIC", "REFLECT", "EDGE")
MODES = ("DCR", "CRD")


def product(*sizes: int) -> int:
    """The product of sizes; unknown (`?`) if one of them is unknown."""
    return DYNAMIC if DYNAMIC in sizes else prod(sizes)


def pairs(attr: DenseArrayBase[IntegerType], count: int, what: str) -> list[tuple[int, int]]:
    """(before, after) for each of `count` axes, from a flat list of these amounts, axis by axis."""
    flat = int_values(attr)
    require(len(flat) == 2 * count, f"{what} needs two numbers for each of {count} axes, has {len(flat)}")
    require(min(flat, default=0) >= 0, f"{what} must not be negative")
    return list(zip(flat[::2], flat[1::2], strict=True))


class RearrangeOp(OneResultOp, ABC):
    """The elements of one operand, rearranged into another shape."""

    ORIGIN: ClassVar[Origin] = Origin.MOVED
    data = operand_def(TENSOR)

    @abstractmethod
    def result_shape(self) -> Sequence[int]:
        """The sizes of the result's axes."""

    def infer(self) -> Sequence[Type]:
        return [TensorType(tensor(self.data).element_type, self.result_shape())]


@irdl_op_definition
class BatchFlattenOp(RearrangeOp):
    """All axes but the first as one: [n, a, b, ...] as [n, a * b * ...]."""

    name = "relay.nn.batch_flatten"
    INDEPENDENT: ClassVar[slice] = slice(1)

    def result_shape(self) -> Sequence[int]:
        require(rank(self.data) >= 1, f"{self.name}: takes rank 1 or more")
        first, *rest = shape(self.data)
        return [first, product(*rest)]


@irdl_op_definition
class MirrorPadOp(RearrangeOp):
    """Surround a tensor with its own elements: `pad_width` lists the amounts before and after each axis, axis by axis.

    `SYMMETRIC` mirrors at the border (`c b a | a b c`), `REFLECT` at the outermost element (`c b | a b c`), `EDGE`
    repeats the outermost element (`a a | a b c`; Relay's `nn.pad` with `pad_mode="edge"`).
    """

    name = "relay.nn.mirror_pad"
    SAME_AXES: ClassVar[bool] = True
    pad_width = prop_def(DenseArrayBase[IntegerType])
    mode = prop_def(StringAttr, default_value=StringAttr("SYMMETRIC"))

    def widths(self) -> list[tuple[int, int]]:
        """The padding (before, after) of each axis."""
        return pairs(self.pad_width, rank(self.data), f"{self.name}: pad_width")

    def result_shape(self) -> Sequence[int]:
        require(self.mode.data in MIRRORS, f"{self.name}: mode must be one of {MIRRORS}")
        result: list[int] = []
        for size, (before, after) in zip(shape(self.data), self.widths(), strict=True):
            require(size != DYNAMIC or not before + after, f"{self.name}: mirrors an axis of unknown size")
            most = {"SYMMETRIC": size, "REFLECT": size - 1, "EDGE": before + after if size > 0 else 0}[self.mode.data]
            wide = max(before, after)
            require(wide == 0 or wide <= most, f"{self.name}: {wide} elements more than an axis of {size} can give")
            result.append(size if size == DYNAMIC else size + before + after)
        return result

    def independent_along(self, axis: int) -> bool:
        return self.widths()[axis] == (0, 0)


class BlocksOp(RearrangeOp, ABC):
    """An op on blocks of the axes after the first; `block_shape` has a size for each blocked axis."""

    block_shape = prop_def(DenseArrayBase[IntegerType])

    def blocks(self) -> tuple[int, ...]:
        """The size of a block along each axis."""
        sizes = int_values(self.block_shape)
        require(
            0 < len(sizes) < rank(self.data), f"{self.name}: block_shape must have 1 to {rank(self.data) - 1} numbers"
        )
        require(min(sizes) > 0, f"{self.name}: block_shape must be positive")
        return sizes


@irdl_op_definition
class SpaceToBatchNdOp(BlocksOp):
    """`result[(i..., n), s..., c...] = padded[n, s * block + i ..., c...]`: the position within a block moves to the
    batch axis, as its slower part (the data's batch index varies fastest). Source: TensorFlow's SpaceToBatchND."""

    name = "relay.nn.space_to_batch_nd"
    FILLS: ClassVar[tuple[str, ...]] = ("pad_value",)
    paddings = prop_def(DenseArrayBase[IntegerType])
    pad_value = prop_def(TypedAttribute)

    def widths(self) -> list[tuple[int, int]]:
        """The padding (before, after) of each blocked axis."""
        return pairs(self.paddings, len(self.blocks()), f"{self.name}: paddings")

    def result_shape(self) -> Sequence[int]:
        dims, blocks = shape(self.data), self.blocks()
        element = tensor(self.data).element_type
        require(self.pad_value.get_type() == element, f"{self.name}: pad_value is not {element}")
        result = [product(dims[0], prod(blocks))]
        for size, block, (before, after) in zip(dims[1:], blocks, self.widths(), strict=False):
            padded = size if size == DYNAMIC else size + before + after
            require(padded == DYNAMIC or padded % block == 0, f"{self.name}: {padded} is no whole number of {block}")
            result.append(padded if padded == DYNAMIC else padded // block)
        return [*result, *dims[1 + len(blocks) :]]


@irdl_op_definition
class BatchToSpaceNdOp(BlocksOp):
    """The reverse of `space_to_batch_nd`, then `crops` (before, after for each axis of blocks) are cut off."""

    name = "relay.nn.batch_to_space_nd"
    crops = prop_def(DenseArrayBase[IntegerType])

    def widths(self) -> list[tuple[int, int]]:
        """The elements cropped (before, after) of each blocked axis."""
        return pairs(self.crops, len(self.blocks()), f"{self.name}: crops")

    def result_shape(self) -> Sequence[int]:
        dims, blocks = shape(self.data), self.blocks()
        whole = prod(blocks)
        require(dims[0] == DYNAMIC or dims[0] % whole == 0, f"{self.name}: a batch of {dims[0]} in blocks of {whole}")
        result = [dims[0] if dims[0] == DYNAMIC else dims[0] // whole]
        for size, block, (before, after) in zip(dims[1:], blocks, self.widths(), strict=False):
            left = DYNAMIC if size == DYNAMIC else size * block - before - after
            require(left == DYNAMIC or left >= 0, f"{self.name}: crops {before + after} of {size * block}")
            result.append(left)
        return [*result, *dims[1 + len(blocks) :]]


class SubpixelOp(RearrangeOp, ABC):
    """An op that moves elements from channels to blocks of `block_size` x `block_size` pixels, or back.

    Formulas are for NHWC; b is `block_size`, and i, j the position within a block."""

    block_size = prop_def(IntegerAttr)
    layout = prop_def(StringAttr, default_value=NHWC)

    @property
    def axes(self) -> Layout:
        """The layout of the data."""
        return plain_layout(self.name, self.layout.data, "NHWC")

    def sizes(self) -> dict[str, int]:
        """The sizes of the data's axes by letter."""
        require(rank(self.data) == 4, f"{self.name}: data must have rank 4")
        require(self.block_size.value.data > 0, f"{self.name}: block_size must be positive")
        return self.axes.sizes(shape(self.data))

    def independent_along(self, axis: int) -> bool:
        return self.axes.axes[axis] == "N"


@irdl_op_definition
class DepthToSpaceOp(SubpixelOp):
    """`result[n, y * b + i, x * b + j, c] = data[n, y, x, k]`: k = (i * b + j) * channels + c in the mode `DCR`,
    (c * b + i) * b + j in the mode `CRD`."""

    name = "relay.nn.depth_to_space"
    mode = prop_def(StringAttr, default_value=StringAttr("DCR"))

    def result_shape(self) -> Sequence[int]:
        sizes, block = self.sizes(), self.block_size.value.data
        require(self.mode.data in MODES, f"{self.name}: mode must be one of {MODES}")
        channels = sizes["C"]
        require(
            channels % block**2 == 0 or channels == DYNAMIC, f"{self.name}: {channels} channels in blocks of {block}"
        )
        less = channels if channels == DYNAMIC else channels // block**2
        return self.axes.dims(
            {"N": sizes["N"], "H": product(sizes["H"], block), "W": product(sizes["W"], block), "C": less}
        )


@irdl_op_definition
class SpaceToDepthOp(SubpixelOp):
    """`result[n, y, x, (i * b + j) * channels + c] = data[n, y * b + i, x * b + j, c]`."""

    name = "relay.nn.space_to_depth"

    def result_shape(self) -> Sequence[int]:
        sizes, block = self.sizes(), self.block_size.value.data
        result = {"N": sizes["N"], "C": product(sizes["C"], block**2)}
        for letter in "HW":
            size = sizes[letter]
            require(size == DYNAMIC or size % block == 0, f"{self.name}: {size} is no whole number of {block}")
            result[letter] = size if size == DYNAMIC else size // block
        return self.axes.dims(result)


@irdl_op_definition
class DilateOp(RearrangeOp):
    """Insert `strides - 1` copies of `dilation_value` between neighbouring elements along each axis; none after the
    last element."""

    name = "relay.nn.dilate"
    FILLS: ClassVar[tuple[str, ...]] = ("dilation_value",)
    SAME_AXES: ClassVar[bool] = True
    strides = prop_def(DenseArrayBase[IntegerType])
    dilation_value = prop_def(TypedAttribute)

    def result_shape(self) -> Sequence[int]:
        strides, element = int_values(self.strides), tensor(self.data).element_type
        require(len(strides) == rank(self.data), f"{self.name}: strides needs a number for each axis")
        require(min(strides, default=1) > 0, f"{self.name}: strides must be positive")
        require(self.dilation_value.get_type() == element, f"{self.name}: dilation_value is not {element}")
        return [d if d in (0, DYNAMIC) else (d - 1) * s + 1 for d, s in zip(shape(self.data), strides, strict=True)]

    def independent_along(self, axis: int) -> bool:
        return int_values(self.strides)[axis] == 1


@irdl_op_definition
class FifoBufferOp(AxisOp, OneResultOp):
    """A first-in-first-out buffer: append `data` to `buffer` along an axis, and return the last elements, as many as
    `buffer` has."""

    name = "relay.nn.fifo_buffer"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    SAME_AXES: ClassVar[bool] = True
    data = operand_def(TENSOR)
    buffer = operand_def(TENSOR)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))

    def infer(self) -> Sequence[Type]:
        data, buffer = shape(self.data), shape(self.buffer)
        axis = self.along
        fits = len(data) == len(buffer) and all(
            d == b or DYNAMIC in (d, b) for i, (d, b) in enumerate(zip(data, buffer, strict=True)) if i != axis
        )
        require(fits, f"{self.name}: data {list(data)} and buffer {list(buffer)} differ beside axis {axis}")
        same = tensor(self.data).element_type == tensor(self.buffer).element_type
        require(same, f"{self.name}: element types differ")
        require(data[axis] <= buffer[axis], f"{self.name}: the buffer holds less than the data")
        return [tensor(self.buffer)]
