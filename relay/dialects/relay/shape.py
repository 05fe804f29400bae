"""Constants, and ops that move data without computing."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from math import prod
from typing import ClassVar, TypeGuard

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from relay.dialects.attributes import WeightAttr, int_values
from relay.dialects.element_types import ranked_type
from relay.dialects.op import (
    DYNAMIC,
    TENSOR,
    AxisOp,
    OneResultOp,
    Origin,
    Type,
    axis_of,
    broadcast,
    is_tensor,
    rank,
    require,
    shape,
    tensor,
)


@irdl_op_definition
class ConstantOp(OneResultOp):
    """A tensor known at compile time; `label` is its name in the model's file."""

    name = "relay.constant"
    value = prop_def(WeightAttr | DenseIntOrFPElementsAttr | DenseResourceAttr)
    label = opt_prop_def(StringAttr)
    traits = traits_def(Pure(), ConstantLike())

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        properties: dict[str, Attribute] = {"value": value}
        if (label := attributes.pop("label", None)) is not None:
            properties["label"] = label
        if not isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
            parser.raise_error("relay.constant holds dense<...> or dense_resource<...>")
        return cls.create(result_types=[value.get_type()], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        shown = self.attributes if self.label is None else {"label": self.label, **self.attributes}
        if shown:
            printer.print_string(" ")
            printer.print_attr_dict(shown)
        printer.print_string(" ")
        printer.print_attribute(self.value)

    def infer(self) -> Sequence[Type]:
        type = self.value.get_type()
        if not is_tensor(type):
            raise VerifyException(f"relay.constant: holds a tensor, not {type}")
        return [type]


def is_constant(op: object) -> TypeGuard[ConstantOp]:
    """Whether the op is a `relay.constant` whose elements are available. They are not if its attribute is a
    `dense_resource` that was parsed from text without the elements."""
    return isinstance(op, ConstantOp) and (not isinstance(op.value, DenseResourceAttr) or hasattr(op.value, "array"))


class TransformOp(OneResultOp, ABC):
    """An op with one tensor operand, whose elements it moves unless a subclass says otherwise."""

    ORIGIN: ClassVar[Origin] = Origin.MOVED
    input = operand_def(TENSOR)

    def like(self, dims: Sequence[int]) -> Sequence[Type]:
        return [ranked_type(tensor(self.input).element_type, tuple(dims))]


@irdl_op_definition
class ReshapeOp(TransformOp):
    """The same elements in row-major order under the shape `newshape`; it may contain one -1, which stands for the size
    that follows from the others."""

    name = "relay.reshape"
    newshape = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        wanted, given = list(int_values(self.newshape)), shape(self.input)
        require(wanted.count(-1) <= 1 and min(wanted, default=0) >= -1, f"relay.reshape: bad newshape {wanted}")
        if DYNAMIC not in given:
            size, known = prod(given), prod(d for d in wanted if d != -1)
            if -1 in wanted:
                require(known > 0 and size % known == 0, f"relay.reshape: {list(given)} does not fill {wanted}")
                wanted[wanted.index(-1)] = size // known
            require(prod(wanted) == size, f"relay.reshape: {list(given)} has not the elements of {wanted}")
        dims = [DYNAMIC if size == -1 else size for size in wanted]
        return self.like(dims)

    def independent_along(self, axis: int) -> bool:
        upto = axis + 1
        return shape(self.input)[:upto] == shape(self.result)[:upto] and upto <= rank(self.input)


@irdl_op_definition
class TransposeOp(TransformOp):
    """`result.shape[i] = input.shape[axes[i]]`."""

    name = "relay.transpose"
    axes = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        axes, dims = int_values(self.axes), shape(self.input)
        require(sorted(axes) == list(range(len(dims))), f"relay.transpose: {list(axes)} is no permutation of the axes")
        return self.like([dims[a] for a in axes])

    def independent_along(self, axis: int) -> bool:
        return int_values(self.axes)[axis] == axis


@irdl_op_definition
class BroadcastToOp(TransformOp):
    """`numpy.broadcast_to(input, shape)`: axes of size 1 are repeated, missing axes are added in front."""

    name = "relay.broadcast_to"
    shape = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        wanted = int_values(self.shape)
        require(broadcast(self.name, shape(self.input), wanted) == wanted, f"{self.name}: cannot reach {list(wanted)}")
        return self.like(wanted)


@irdl_op_definition
class ConcatenateOp(AxisOp, OneResultOp):
    """`result[.., o + i, ..] = inputs[k][.., i, ..]` along `axis`, where o is the sum of the sizes of the inputs before
    k; all inputs have one element type."""

    name = "relay.concatenate"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    SAME_AXES: ClassVar[bool] = True
    inputs = var_operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        require(len(self.inputs) > 0, "relay.concatenate: takes at least one operand")
        first, axis = tensor(self.inputs[0]), self.along
        result = list(first.get_shape())
        for value in self.inputs[1:]:
            type = tensor(value)
            require(type.element_type == first.element_type, "relay.concatenate: element types differ")
            require(rank(value) == len(result), "relay.concatenate: ranks differ")
            for i, d in enumerate(type.get_shape()):
                if i == axis:
                    result[i] = DYNAMIC if DYNAMIC in (d, result[i]) else result[i] + d
                else:
                    require(d == result[i] or DYNAMIC in (d, result[i]), f"relay.concatenate: axis {i} differs")
        return [ranked_type(first.element_type, tuple(result))]


@irdl_op_definition
class StridedSliceOp(TransformOp):
    """`input[begin:end:strides]`, with one begin, one end and one stride for each axis of the input.

    Negative bounds do not count from the end: 0 <= begin <= size, and `end` may be -1 only for a negative stride, where
    it means up to and including the first element. Strides are not zero.
    """

    name = "relay.strided_slice"
    SAME_AXES: ClassVar[bool] = True
    begin = prop_def(DenseArrayBase[IntegerType])
    end = prop_def(DenseArrayBase[IntegerType])
    strides = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        dims = shape(self.input)
        begin, end, strides = int_values(self.begin), int_values(self.end), int_values(self.strides)
        require(len(begin) == len(end) == len(strides) == len(dims), f"{self.name}: one number per axis is needed")
        result: list[int] = []
        for b, e, s, d in zip(begin, end, strides, dims, strict=True):
            require(s != 0, f"{self.name}: a stride is zero")
            require(
                (0 <= b <= d and 0 <= e <= d) if s > 0 else (0 <= b < d and -1 <= e < d),
                f"{self.name}: {b}:{e}:{s} is outside an axis of {d}",
            )
            result.append(len(range(b, e, s)))
        return self.like(result)

    def independent_along(self, axis: int) -> bool:
        begin, end, strides = (int_values(numbers)[axis] for numbers in (self.begin, self.end, self.strides))
        return (begin, end, strides) == (0, shape(self.input)[axis], 1)


def check_filled(what: str, indexed: Sequence[int], result: Sequence[int]) -> None:
    """Raise VerifyException if elements are taken along an axis of size 0, which has no valid index. `indexed`: the
    sizes of the indexed axes; `result`: the shape of the result, which may be empty."""
    require(0 not in indexed or 0 in result, f"{what}: there is nothing to take along an axis of 0 elements")


@irdl_op_definition
class TakeOp(OneResultOp):
    """`input.take(indices, axis)`: the axis is replaced by the indices' shape; without an axis, elements are taken from
    the flattened input.

    Indices out of range are clamped if `mode` is `clip` (or `fast`), taken modulo the axis's size if it is `wrap`.
    """

    name = "relay.take"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("indices",)
    input = operand_def(TENSOR)
    indices = operand_def(TENSOR)
    axis = opt_prop_def(IntegerAttr)
    mode = prop_def(StringAttr, default_value=StringAttr("clip"))

    def infer(self) -> Sequence[Type]:
        require(self.mode.data in ("clip", "fast", "wrap"), f"{self.name}: mode must be clip, fast or wrap")
        dims, axis = self.lines()
        require(isinstance(tensor(self.indices).element_type, IntegerType), f"{self.name}: indices must be integers")
        result = [*dims[:axis], *shape(self.indices), *dims[axis + 1 :]]
        check_filled(self.name, dims[axis : axis + 1], result)
        return [ranked_type(tensor(self.input).element_type, tuple(result))]

    def lines(self) -> tuple[tuple[int, ...], int]:
        """The shape that is indexed (flattened if no axis is given), and the indexed axis in it."""
        dims = shape(self.input)
        if self.axis is None:
            return (DYNAMIC if DYNAMIC in dims else prod(dims),), 0
        return dims, axis_of(self.axis.value.data, len(dims), self.name)

    def independent_along(self, axis: int) -> bool:
        return self.axis is not None and axis < axis_of(self.axis.value.data, rank(self.input), self.name)


@irdl_op_definition
class GatherNdOp(OneResultOp):
    """`result[i..., j...] = input[indices[i..., :], j...]` (TensorFlow's gather_nd). Indices are clamped."""

    name = "relay.gather_nd"
    ORIGIN: ClassVar[Origin] = Origin.MOVED
    PARAMETERS: ClassVar[tuple[str, ...]] = ("indices",)
    input = operand_def(TENSOR)
    indices = operand_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        dims, index = shape(self.input), shape(self.indices)
        require(isinstance(tensor(self.indices).element_type, IntegerType), f"{self.name}: indices must be integers")
        require(1 <= len(index) and index[-1] <= len(dims), f"{self.name}: indices have too many coordinates")
        require(index[-1] != DYNAMIC, f"{self.name}: the number of coordinates must be known")
        result = [*index[:-1], *dims[index[-1] :]]
        check_filled(self.name, dims[: index[-1]], result)
        return [ranked_type(tensor(self.input).element_type, tuple(result))]


@irdl_op_definition
class PadOp(TransformOp):
    """Surround a tensor with `pad_value` (of the element type): `pad_width` lists the amounts before and after each
    axis, axis by axis."""

    name = "relay.nn.pad"
    FILLS: ClassVar[tuple[str, ...]] = ("pad_value",)
    SAME_AXES: ClassVar[bool] = True
    pad_width = prop_def(DenseArrayBase[IntegerType])
    pad_value = prop_def(TypedAttribute)

    def widths(self) -> list[tuple[int, int]]:
        """The padding (before, after) of each axis."""
        flat = int_values(self.pad_width)
        return list(zip(flat[::2], flat[1::2], strict=True))

    def infer(self) -> Sequence[Type]:
        type, flat = tensor(self.input), int_values(self.pad_width)
        require(len(flat) == 2 * rank(self.input), f"{self.name}: pad_width needs two numbers per axis")
        require(min(flat, default=0) >= 0, f"{self.name}: pad_width must not be negative")
        require(self.pad_value.get_type() == type.element_type, f"{self.name}: pad_value is not {type.element_type}")
        dims = [d if d == DYNAMIC else d + b + a for d, (b, a) in zip(type.get_shape(), self.widths(), strict=True)]
        return self.like(dims)

    def independent_along(self, axis: int) -> bool:
        return self.widths()[axis] == (0, 0)
