"""Tensors made from scalars and indices: constants, ranges, masks, one-hot vectors, diagonals, cumulative sums."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from math import ceil
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, IntegerType, StringAttr, TensorType, i1, i64
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from relay.dialects.attributes import dtype_of, int_values, to_numpy
from relay.dialects.op import (
    TENSOR,
    AxisOp,
    OneResultOp,
    Origin,
    Type,
    axis_of,
    is_integer,
    rank,
    require,
    shape,
    tensor,
)

FALSE, TRUE = BoolAttr.from_bool(False), BoolAttr.from_bool(True)
ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


class InitOp(OneResultOp, ABC):
    """A tensor filled with one value, of a given shape and element type."""

    shape = prop_def(DenseArrayBase[IntegerType])
    dtype = prop_def(Attribute)
    assembly_format = "attr-dict `:` type($result)"

    def infer(self) -> Sequence[Type]:
        dtype_of(self.dtype)
        dims = int_values(self.shape)
        require(min(dims, default=0) >= 0, f"{self.name}: the shape must be known")
        return [TensorType(self.dtype, dims)]


@irdl_op_definition
class ZerosOp(InitOp):
    """Zeros."""

    name = "relay.zeros"


@irdl_op_definition
class OnesOp(InitOp):
    """A tensor with all elements 1."""

    name = "relay.ones"


@irdl_op_definition
class FullOp(OneResultOp):
    """`result[i] = fill_value`, everywhere in a tensor of this shape."""

    name = "relay.full"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    fill_value = operand_def(TENSOR)
    shape = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        require(rank(self.fill_value) == 0, f"{self.name}: the fill value must be a scalar")
        dims = int_values(self.shape)
        require(min(dims, default=0) >= 0, f"{self.name}: the shape must be known")
        return [TensorType(tensor(self.fill_value).element_type, dims)]


@irdl_op_definition
class FullLikeOp(OneResultOp):
    """`result[i] = fill_value`, everywhere in a tensor of the input's type."""

    name = "relay.full_like"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("input",)
    input = operand_def(TENSOR)
    fill_value = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        type, filler = tensor(self.input), tensor(self.fill_value)
        require(rank(self.fill_value) == 0, f"{self.name}: the fill value must be a scalar")
        same = type.element_type == filler.element_type
        require(same, f"{self.name}: element types differ: {type.element_type} and {filler.element_type}")
        return [type]


@irdl_op_definition
class ArangeOp(OneResultOp):
    """`start + i * step` for all i >= 0 for which that is before `stop`; start, stop and step have one type."""

    name = "relay.arange"
    start = prop_def(TypedAttribute)
    stop = prop_def(TypedAttribute)
    step = prop_def(TypedAttribute)
    assembly_format = "attr-dict `:` type($result)"

    def infer(self) -> Sequence[Type]:
        type = self.start.get_type()
        same = type == self.stop.get_type() == self.step.get_type()
        require(same, f"{self.name}: start, stop and step must be of one type")
        start, stop, step = (to_numpy(attr).item() for attr in (self.start, self.stop, self.step))
        require(step != 0, f"{self.name}: the step is zero")
        return [TensorType(type, [max(ceil((stop - start) / step), 0)])]


@irdl_op_definition
class OneHotOp(OneResultOp):
    """A new axis of size `depth`: `on_value` at the position that the index gives, else `off_value`."""

    name = "relay.one_hot"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("indices",)
    indices = operand_def(TENSOR)
    on_value = operand_def(TENSOR)
    off_value = operand_def(TENSOR)
    depth = prop_def(IntegerAttr)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))

    def infer(self) -> Sequence[Type]:
        on, off = tensor(self.on_value), tensor(self.off_value)
        require(is_integer(tensor(self.indices).element_type), f"{self.name}: indices must be integers")
        require(
            on == off and rank(self.on_value) == 0, f"{self.name}: on_value and off_value must be scalars of one type"
        )
        require(self.depth.value.data >= 0, f"{self.name}: the depth must not be negative")
        dims = list(shape(self.indices))
        dims.insert(axis_of(self.axis.value.data, len(dims) + 1, self.name), self.depth.value.data)
        return [TensorType(on.element_type, dims)]


class CumulativeOp(AxisOp, OneResultOp, ABC):
    """Along `axis`, combine each element with all elements before it; with `exclusive`, combine only those before
    it."""

    SAME_AXES: ClassVar[bool] = True
    input = operand_def(TENSOR)
    exclusive = prop_def(BoolAttr, default_value=FALSE)

    def infer(self) -> Sequence[Type]:
        require(
            self.along >= 0 and tensor(self.input).element_type != i1,
            f"{self.name}: takes numbers, not i1; cast them first",
        )
        return [tensor(self.input)]


@irdl_op_definition
class CumsumOp(CumulativeOp):
    """Cumulative sums; integers wrap."""

    name = "relay.cumsum"


@irdl_op_definition
class CumprodOp(CumulativeOp):
    """Cumulative products; integers wrap."""

    name = "relay.cumprod"


@irdl_op_definition
class SequenceMaskOp(OneResultOp):
    """The input, with `mask_value` at `[t, b, ...]` for all t >= `valid_length[b]` if `axis` is 0, or at `[b, t, ...]`
    if `axis` is 1."""

    name = "relay.sequence_mask"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    FILLS: ClassVar[tuple[str, ...]] = ("mask_value",)
    PARAMETERS: ClassVar[tuple[str, ...]] = ("valid_length",)
    SAME_AXES: ClassVar[bool] = True
    INDEPENDENT: ClassVar[slice] = slice(None)
    input = operand_def(TENSOR)
    valid_length = operand_def(TENSOR)
    mask_value = prop_def(TypedAttribute)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))

    def infer(self) -> Sequence[Type]:
        type, lengths = tensor(self.input), tensor(self.valid_length)
        axis = self.axis.value.data
        require(rank(self.input) >= 2 and axis in (0, 1), f"{self.name}: the axis must be 0 or 1, of at least two")
        require(is_integer(lengths.element_type), f"{self.name}: lengths must be integers")
        fits = lengths.get_shape() == (type.get_shape()[1 - axis],)
        require(fits, f"{self.name}: one length per index of axis {1 - axis} is needed")
        require(self.mask_value.get_type() == type.element_type, f"{self.name}: mask_value is not {type.element_type}")
        return [type]


@irdl_op_definition
class MatrixSetDiagOp(OneResultOp):
    """Replace diagonals `k[0]` to `k[1]` of the matrices that the last two axes form.

    Diagonal 0 is the main one, positive ones are above it. One diagonal is given as the last axis; several are given as
    rows along the second to last axis, the uppermost first, each padded to the longest and aligned left or right as
    `align` says (first for the diagonals above the main one, then for those below). Source: TensorFlow's
    MatrixSetDiagV3.
    """

    name = "relay.matrix_set_diag"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    INDEPENDENT: ClassVar[slice] = slice(-2)
    input = operand_def(TENSOR)
    diagonal = operand_def(TENSOR)
    k = opt_prop_def(DenseArrayBase[IntegerType])
    align = prop_def(StringAttr, default_value=StringAttr("RIGHT_LEFT"))

    def diagonals(self) -> tuple[int, int]:
        """The numbers of the lowest and the highest diagonal."""
        given = (0,) if self.k is None else int_values(self.k)
        require(1 <= len(given) <= 2, f"{self.name}: k is one number or two")
        return given[0], given[-1]

    def infer(self) -> Sequence[Type]:
        type, diagonal = tensor(self.input), tensor(self.diagonal)
        require(rank(self.input) >= 2, f"{self.name}: takes matrices")
        require(self.align.data in ALIGNMENTS, f"{self.name}: align must be one of {', '.join(ALIGNMENTS)}")
        require(type.element_type == diagonal.element_type, f"{self.name}: element types differ")
        *outer, rows, columns = type.get_shape()
        low, high = self.diagonals()
        require(-rows < low <= high < columns, f"{self.name}: diagonals {low} to {high} are not in the matrix")
        longest = min(rows + min(high, 0), columns + min(-low, 0))
        wanted = [*outer, *([high - low + 1] if low != high else []), longest]
        require(list(diagonal.get_shape()) == wanted, f"{self.name}: the diagonals must have shape {wanted}")
        return [type]
