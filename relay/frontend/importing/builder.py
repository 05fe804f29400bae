"""`Builder`: ops with locations, unique labels and constants that share the file's bytes, for importers of any format.

A format's importer derives from it, and keeps the value of each tensor of its file; its operators get it as their first
argument.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeGuard, TypeVar

import numpy as np
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    TensorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from relay.arguments import shown
from relay.dialects.attributes import Array, dtype_of, element_type, elements, ints
from relay.dialects.op import DYNAMIC, TensorOp, is_tensor
from relay.dialects.op import tensor as type_of
from relay.dialects.relay import ConstantOp, ReshapeOp
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.interpreters.arithmetic import quantize_multiplier
from relay.mapping import spilled
from relay.signature import TensorInfo

T = TypeVar("T", bound=TensorOp)


def is_value(value: object) -> TypeGuard[SSAValue]:
    return isinstance(value, SSAValue)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


class Scaled(Protocol):
    """The quantization parameters of a tensor."""

    @property
    def scale(self) -> float | np.float32: ...
    @property
    def zero_point(self) -> int: ...


def own_parameters(codes: Scaled) -> dict[str, Attribute]:
    """The properties `scale` and `zero_point`."""
    return {"scale": real(codes.scale), "zero_point": number(codes.zero_point)}


def parameters(**sides: Scaled) -> dict[str, Attribute]:
    """The properties with the scales and zero points of operands and results: `input=codes` gives `input_scale` and
    `input_zero_point`."""
    rows = ((side, own_parameters(codes)) for side, codes in sides.items())
    return {f"{side}_{name}": each for side, own in rows for name, each in own.items()}


def product_parameters(data: Scaled, kernel: Array, zero_point: int = 0, sums: Attribute = i32) -> dict[str, Attribute]:
    """The properties with the quantization of the operands of a product, and the type of its sums. `kernel` has one
    scale, or one for each output channel; `zero_point` is that of the kernel."""
    own: dict[str, Attribute] = {"kernel_scale": scale_attr(kernel), "kernel_zero_point": number(zero_point)}
    return parameters(input=data) | own | {"out_dtype": sums}


class Place(ABC):
    """A node of a model file, for the texts of errors and locations."""

    __slots__ = ()
    SCALAR_AXES: ClassVar[int] = 0
    """The number of axes that nodes may name for a tensor of rank 0: 1 if the format allows axis 0 (or -1) of a scalar,
    else 0."""
    file: str

    @property
    @abstractmethod
    def number(self) -> int:
        """The node's index in its graph."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The index, kind and name of the node: `operator 17 CONV_2D 'conv1'`."""

    @property
    def where(self) -> str:
        return f"{self.file}: {self.title}"

    def malformed(self, what: str, hint: str = "") -> Malformed:
        return Malformed(self.where, what, hint)

    def unsupported(self, what: str, hint: str = "") -> Unsupported:
        return Unsupported(self.where, what, hint)

    def axis(self, axis: int, rank: int) -> int:
        """The axis, which may be negative, as an index in 0..rank-1. Raises Malformed if it is out of range."""
        count = max(rank, self.SCALAR_AXES)
        if not -count <= axis < count:
            raise self.malformed(f"axis {axis} is outside a tensor of rank {rank}")
        return axis % count

    def axes_of(self, axes: Sequence[int], rank: int) -> list[int]:
        """The axes, which may be negative, as distinct indices in 0..rank-1, in the given order. Raises Malformed."""
        found = [self.axis(axis, rank) for axis in axes]
        if len(set(found)) != len(found):
            raise self.malformed(f"the axes {list(axes)} name one twice")
        return found

    def sizes_of(self, value: SSAValue, what: str, rank: int | None, known: bool) -> tuple[int, ...]:
        """The sizes of a value, which must be a tensor, and of this rank if one is given; if `known`, all must be
        known."""
        if not is_tensor(value.type):
            raise self.malformed(f"{what} is {value.type}, no tensor")
        dims = value.type.get_shape()
        if rank is not None and len(dims) != rank:
            raise self.malformed(f"{what} has rank {len(dims)}, not {rank}")
        if known and DYNAMIC in dims:
            raise self.unsupported(f"{what} is of unknown size {value.type}", "give its shapes")
        return dims


def real(value: float | np.float32) -> FloatAttr:
    return FloatAttr(float(value), f32)


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def scale_attr(scale: Array) -> Attribute:
    """An attribute with one scale as a number or several as a vector."""
    return real(scale[0]) if len(scale) == 1 else elements(scale, np.float32, label="scale")


def linear_parameters(scale: Array, zero_point: Array, axis: int | None) -> dict[str, Attribute]:
    """The properties `scale` and `zero_point` of `qnn.quantize` and `qnn.dequantize`: numbers if `axis` is None, else
    vectors along that axis; equal zero points become one number."""
    equal = bool((zero_point == zero_point.reshape(-1)[0]).all())
    point = number(int(zero_point.reshape(-1)[0])) if equal else elements(zero_point, np.int32, label="zero_point")
    if axis is None:
        return {"scale": real(scale.item()), "zero_point": point}
    scales = elements(scale, np.float32, label="scale")
    return {"scale": scales, "zero_point": point, "axis": IntegerAttr(axis, i64)}


def multiplier_attrs(found: tuple[int, int], prefix: str = "") -> dict[str, Attribute]:
    """The properties `multiplier` and `shift`, with `prefix` before their names and the two numbers of `found` as
    values."""
    return {f"{prefix}multiplier": number(found[0]), f"{prefix}shift": number(found[1])}


def aligned(
    left_shift: int, lhs: tuple[int, int], rhs: tuple[int, int], out: tuple[int, int] | None = None
) -> dict[str, Attribute]:
    """The properties that bring two operands to a common scale, and the result from there to its own; a multiplier is
    `(multiplier, shift)`."""
    sides = multiplier_attrs(lhs, "lhs_") | multiplier_attrs(rhs, "rhs_")
    return {"left_shift": number(left_shift), **sides, **(multiplier_attrs(out) if out else {})}


def aligned_sum(lhs: Scaled, rhs: Scaled, out: Scaled, left_shift: int) -> dict[str, Attribute]:
    """The properties of a sum whose operands are shifted left and rescaled to a common scale, twice the larger of their
    scales, and whose result is rescaled to that of `out`; the multipliers are computed in double."""
    twice = 2 * max(float(lhs.scale), float(rhs.scale))
    left, right = (quantize_multiplier(float(each.scale) / twice) for each in (lhs, rhs))
    return aligned(left_shift, left, right, quantize_multiplier(twice / (float(out.scale) * (1 << left_shift))))


def multiplier_vectors(found: tuple[Array, Array]) -> dict[str, Attribute]:
    """The properties `multiplier` and `shift`, whose values are the two vectors of `found`; a vector of one element
    becomes a number."""
    if found[0].size == 1:
        return multiplier_attrs((int(found[0][0]), int(found[1][0])))
    labels = ("multiplier", "shift")
    return {label: elements(array, np.int32, label=label) for label, array in zip(labels, found, strict=True)}


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with a number appended if it is taken."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def value_name(name: str) -> str | None:
    """A tensor's name as an SSA name, without the characters that MLIR's syntax does not allow; None if none are
    left."""
    hint = re.sub(r"[^A-Za-z0-9_$.]", "_", name)[:60]
    return SSAValue.extract_valid_name(hint if hint[:1].isalpha() else f"t{hint}") if hint else None


def _is_ours(op: object) -> bool:
    return isinstance(op, type) and issubclass(op, TensorOp)


class Builder:
    """Builds a function op by op."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names` are those of the file's tensors, which are unique."""
        self.block: Block = Block()
        self._taken = set(names)
        self._labels: set[str] = set()
        self._location: LocationAttr = UNKNOWN_LOC
        self._place: Place | None = None

    def begin(self, block: Block, outer: Builder) -> None:
        """Append further ops to `block`, which is nested in the block that `outer` builds; labels are unique across
        both."""
        self.block, self._labels = block, outer._labels
        self._taken |= outer._taken

    @property
    def at(self) -> Place:
        """The node whose ops are being built."""
        assert self._place is not None, "nothing is built outside an operator"
        return self._place

    def enter(self, node: Place) -> None:
        """Start building the ops of this node."""
        self._place = node
        place = FileLineColLoc(StringAttr(node.file), IntAttr(node.number), IntAttr(0))
        self._location = NameLoc(StringAttr(node.title), place)

    def leave(self) -> None:
        """Stop building the ops of the current node."""
        self._location = UNKNOWN_LOC

    def emit(
        self, op: type[T], operands: Sequence[SSAValue], properties: Mapping[str, Attribute | None] | None = None
    ) -> T:
        """Append an op and return it; an error of its verifier is raised as an error in the file."""
        if not _is_ours(op):
            name = getattr(op, "name", shown(op))
            hint = "give a class of relay.dialects.relay, relay.dialects.qnn, or one like theirs"
            raise InvalidArgument("importer.emit", f"{name} is no op of relay or qnn", hint)
        try:
            built = op.make(operands, properties)
        except VerifyException as error:
            raise self.at.malformed(str(error)) from None
        built.location = self._location
        self.block.add_op(built)
        return built

    def entry_argument(self, info: TensorInfo) -> SSAValue:
        """Add an argument to the function; sizes of -1 are unknown."""
        dims = [DYNAMIC if size < 0 else size for size in info.shape]
        return self.block.insert_arg(TensorType(element_type(info.dtype), dims), len(self.block.args))

    def append(self, op: Operation) -> Sequence[SSAValue]:
        """Append an op of another dialect, and return its results."""
        op.location = self._location
        self.block.add_op(op)
        return op.results

    def _unique(self, label: str) -> str:
        """The label, with a number appended if another constant or tensor has it."""
        found, count = label, 0
        while found in self._labels or (count and found in self._taken):
            count += 1
            found = f"{label}_{count}"
        self._labels.add(found)
        return found

    def constant(self, array: Array, label: str) -> SSAValue:
        """A `relay.constant` that shares the array's memory; during a build, large arrays are moved to a file
        (`spilled`)."""
        label = self._unique(label)
        op = self.emit(ConstantOp, [], {"value": elements(spilled(array), label=label), "label": StringAttr(label)})
        op.result.name_hint = value_name(label)
        return op.result

    def unnamed(self, array: Array) -> SSAValue:
        """A constant without a label, for an array that is not in the file."""
        return self.emit(ConstantOp, [], {"value": elements(spilled(array))}).result

    def scalar(self, value: float | int, like: SSAValue) -> SSAValue:
        """A rank-0 constant of the value's element type, without a label."""
        return self.unnamed(np.asarray(value, dtype_of(type_of(like).element_type)))

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        return type_of(value).get_shape()

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value reshaped; the value itself if it already has the shape."""
        if self.shape(value) == tuple(shape):
            return value
        return self.emit(ReshapeOp, [value], {"newshape": ints(shape)}).result
