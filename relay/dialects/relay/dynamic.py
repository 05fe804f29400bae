"""Ops with properties that are given by run-time values, because they depend on an unknown size (`?`) of the model's
inputs.

They are legal until sizes are known: `dynamic-to-static` replaces each by its op without `dyn`. An operand that gives a
property has that property's name; values that are not known yet give result sizes of `?`. Source: Relay's `dyn` ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    OptPropertyDef,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_result_def,
)

from relay.dialects.attributes import Array, ints, scalar_attr
from relay.dialects.op import (
    DYNAMIC,
    TENSOR,
    TensorOp,
    Type,
    axis_of,
    broadcast,
    is_integer,
    rank,
    require,
    shape,
    tensor,
)
from relay.dialects.relay.creation import ArangeOp, FullOp, OneHotOp
from relay.dialects.relay.image import Resize2dOp
from relay.dialects.relay.partial import known_value, partial_value
from relay.dialects.relay.resizing import Resize1dOp, Resize3dOp
from relay.dialects.relay.shape import BroadcastToOp, PadOp, ReshapeOp, StridedSliceOp
from relay.dialects.relay.sort import TopkOp
from relay.dialects.relay.transform import TileOp

FALSE = BoolAttr.from_bool(False)


class DynamicOp(TensorOp, ABC):
    """The op `STATIC`, but with the properties `GIVEN` as further operands after its own operands."""

    STATIC: ClassVar[type[TensorOp]]
    GIVEN: ClassVar[tuple[str, ...]]

    def sizes(self) -> Sequence[int]:
        """The shape of the result, as far as it follows from shapes and known operands; unknown sizes are `DYNAMIC`."""
        raise NotImplementedError(self.name)

    def types(self) -> Sequence[Type]:
        """The types of the results, with unknown sizes, for an op that cannot be replaced by `STATIC` yet because an
        operand's value or the data's shape is unknown."""
        return [TensorType(self.element(), self.sizes())]

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        """The properties of the static op for these values of the operands; the data's shape must be known."""
        return {name: ints(array.reshape(-1).tolist()) for name, array in given.items()}

    def check(self) -> None:
        """Raise VerifyException unless the operands that give properties are integer vectors of known length, or
        scalars."""
        for name, value in self.given().items():
            type = tensor(value)
            require(is_integer(type.element_type), f"{self.name}: {name} must be integers")
            dims = type.get_shape()
            require(len(dims) <= 1 and DYNAMIC not in dims, f"{self.name}: {name} must be a vector of known length")

    def given(self) -> dict[str, SSAValue]:
        """The operands that give properties, by name."""
        own = len(self.STATIC.get_irdl_definition().operands)
        return dict(zip(self.GIVEN, self.operands[own:], strict=False))

    def static(self) -> TensorOp | None:
        """A new op of class `STATIC` with the values of the operands `GIVEN` as its properties, not inserted in any
        block; None if one of these values, or a shape of the data, is not known. Raises VerifyException if the new op
        rejects the values."""
        given = {name: known_value(value) for name, value in self.given().items()}
        data = self.operands[: len(self.operands) - len(given)]
        if any(DYNAMIC in shape(value) for value in data):
            return None
        known = {name: array for name, array in given.items() if array is not None}
        if len(known) != len(given):
            return None
        taken = self.STATIC.get_irdl_definition().properties
        kept = {name: value for name, value in self.properties.items() if name in taken}
        return self.STATIC.make(data, kept | self.properties_of(**known), like=self)

    def infer(self) -> Sequence[Type]:
        self.check()
        found = self.static()
        if found is not None:
            types = [tensor(result) for result in found.results]
            found.erase()
            return types
        return self.types()

    def element(self) -> Attribute:
        """The element type of the result."""
        return tensor(self.operands[0]).element_type

    def numbers(self, name: str) -> list[int]:
        """The elements of the operand that replaces the property `name`: their values where they are known at compile
        time, and `DYNAMIC`, which is printed as `?`, in place of the others."""
        value = self.given()[name]
        found = partial_value(value)
        if found is None:
            return [DYNAMIC] * int(np.prod(shape(value), dtype=int))
        return [DYNAMIC if number is None else int(number) for number in found.flat]


Op = TypeVar("Op", bound=type[DynamicOp])


def deferred(
    static: type[TensorOp], *given: str, more: Sequence[str] = (), computed: Sequence[str] = ()
) -> Callable[[Op], Op]:
    """A class decorator that gives an op the operands, results and properties of the op class `static`, with three
    changes: the properties named in `given` become operands, the names in `more` become optional operands, and the
    properties named in `computed` are left out."""

    def complete(cls: Op) -> Op:
        definition = static.get_irdl_definition()
        fields: dict[str, Any] = {name: operand_def(TENSOR) for name, _ in definition.operands}
        fields |= {name: operand_def(TENSOR) for name in given}
        fields |= {name: opt_operand_def(TENSOR) for name in more}
        for name, found in definition.properties.items():
            if name not in (*given, *computed):
                default = found.default_value
                needed = prop_def(found.constr, default_value=default)
                fields[name] = opt_prop_def(found.constr) if isinstance(found, OptPropertyDef) else needed
        if any(name == "result" for name, _ in definition.results):
            fields["result"] = result_def(TENSOR)
        else:
            fields[definition.results[0][0]] = var_result_def(TENSOR)
        facts = {
            "STATIC": static,
            "GIVEN": (*given, *more),
            "ORIGIN": static.ORIGIN,
            "SAME_AXES": static.SAME_AXES,
            "PARAMETERS": (*static.PARAMETERS, *(name for name in (*given, *more) if name not in static.FILLS)),
        }
        for name, value in {**facts, **fields}.items():
            if name not in cls.__dict__:
                setattr(cls, name, value)
                if name in facts:
                    cls.__annotations__[name] = ClassVar[Any]
        return cls

    return complete


@irdl_op_definition
@deferred(ReshapeOp, "newshape")
class DynReshapeOp(DynamicOp):
    """`relay.reshape`: one -1 in `newshape` stands for the size that follows from the others; 0 copies the input's size
    at the same axis, unless `allowzero`."""

    name = "relay.dyn.reshape"
    allowzero = prop_def(BoolAttr, default_value=FALSE)

    def _copied(self, numbers: Sequence[int]) -> list[int]:
        dims = shape(self.operands[0])
        if self.allowzero.value.data:
            return list(numbers)
        require(all(n or axis < len(dims) for axis, n in enumerate(numbers)), f"{self.name}: 0 copies no axis")
        return [n if n else dims[axis] for axis, n in enumerate(numbers)]

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        return {"newshape": ints(self._copied(given["newshape"].reshape(-1).tolist()))}

    def sizes(self) -> Sequence[int]:
        return [DYNAMIC if number == -1 else number for number in self._copied(self.numbers("newshape"))]


@irdl_op_definition
@deferred(BroadcastToOp, "shape")
class DynBroadcastToOp(DynamicOp):
    """`relay.broadcast_to` the shape that the input's shape and `shape` broadcast to: a 1 in `shape` keeps the input's
    size."""

    name = "relay.dyn.broadcast_to"

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        return {"shape": ints(broadcast(self.name, shape(self.operands[0]), given["shape"].tolist()))}

    def sizes(self) -> Sequence[int]:
        return broadcast(self.name, shape(self.operands[0]), self.numbers("shape"))


@irdl_op_definition
@deferred(StridedSliceOp, "begin", "end", "strides", more=("axes",))
class DynStridedSliceOp(DynamicOp):
    """`relay.strided_slice` with bounds as in Python's slices: negative ones count from the end, those outside are
    clamped. They apply to the `axes`, or, without that operand, to the first axes. Source: ONNX's Slice, Relay's."""

    name = "relay.dyn.strided_slice"

    def bounds(self, numbers: Callable[[str], Sequence[int]]) -> list[tuple[int, int, int, int]]:
        """(axis, begin, end, stride) for each axis that is sliced. `numbers` returns the elements of the operand with a
        given name."""
        begin, end, strides = map(numbers, ("begin", "end", "strides"))
        axes = numbers("axes") if "axes" in self.given() else range(len(begin))
        same = len(begin) == len(end) == len(strides) == len(axes)
        require(same, f"{self.name}: begin, end, strides and axes differ in length")
        return list(zip(axes, begin, end, strides, strict=True))

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        dims = shape(self.operands[0])
        begin, end, strides = [0] * len(dims), list(dims), [1] * len(dims)
        for axis, first, last, stride in self.bounds(lambda name: given[name].reshape(-1).tolist()):
            at = axis_of(axis, len(dims), self.name)
            require(stride != 0, f"{self.name}: a stride is zero")
            begin[at], end[at], strides[at] = slice(first, last, stride).indices(dims[at])
            if stride < 0 and begin[at] <= end[at]:  # empty
                begin[at], end[at], strides[at] = 0, 0, 1
        return {"begin": ints(begin), "end": ints(end), "strides": ints(strides)}

    def sizes(self) -> Sequence[int]:
        found = {name: known_value(value) for name, value in self.given().items()}
        dims = list(shape(self.operands[0]))
        axes = found.get("axes", np.arange(shape(self.given()["begin"])[0]))
        if axes is None:
            return [DYNAMIC] * len(dims)
        known = all(array is not None for array in found.values())
        given = {name: array for name, array in found.items() if array is not None}
        bounds = self.bounds(lambda name: given[name].reshape(-1).tolist()) if known else []
        for axis in axes.reshape(-1).tolist():
            dims[axis_of(axis, len(dims), self.name)] = DYNAMIC
        for axis, first, last, stride in bounds:
            size = shape(self.operands[0])[axis]
            if size != DYNAMIC:
                dims[axis] = len(range(size)[slice(first, last, stride)])
        return dims


@irdl_op_definition
@deferred(FullOp, "shape")
class DynFullOp(DynamicOp):
    """`relay.full` with the shape given by an operand."""

    name = "relay.dyn.full"

    def sizes(self) -> Sequence[int]:
        return self.numbers("shape")


@irdl_op_definition
@deferred(ArangeOp, "start", "stop", "step")
class DynArangeOp(DynamicOp):
    """`relay.arange`: `start + i * step` for all i >= 0 for which that is before `stop`; scalars of one type."""

    name = "relay.dyn.arange"

    def check(self) -> None:
        types = {value.type for value in self.operands}
        fits = len(types) == 1 and not any(map(rank, self.operands))
        require(fits, f"{self.name}: start, stop and step must be scalars of one type")

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        return {name: scalar_attr(array.item(), self.element()) for name, array in given.items()}

    def sizes(self) -> Sequence[int]:
        return [DYNAMIC]


@irdl_op_definition
@deferred(PadOp, "pad_width", "pad_value")
class DynPadOp(DynamicOp):
    """`relay.nn.pad` with the amounts before and after each axis given, axis by axis, by an operand; `pad_value` is a
    scalar of the element type."""

    name = "relay.dyn.nn.pad"

    def check(self) -> None:
        width, value = self.given().values()
        fits = is_integer(tensor(width).element_type) and shape(width) == (2 * rank(self.operands[0]),)
        require(fits, f"{self.name}: pad_width must be two integers for each axis")
        scalar = TensorType(self.element(), [])
        require(value.type == scalar, f"{self.name}: pad_value must be {scalar}")

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        width = ints(given["pad_width"].tolist())
        return {"pad_width": width, "pad_value": scalar_attr(given["pad_value"].item(), self.element())}

    def sizes(self) -> Sequence[int]:
        flat = self.numbers("pad_width")
        rows = zip(shape(self.operands[0]), flat[::2], flat[1::2], strict=True)
        return [DYNAMIC if DYNAMIC in row else sum(row) for row in rows]


@irdl_op_definition
@deferred(TileOp, "reps")
class DynTileOp(DynamicOp):
    """`relay.tile` with the repetitions given by an operand."""

    name = "relay.dyn.tile"

    def sizes(self) -> Sequence[int]:
        dims, reps = shape(self.operands[0]), self.numbers("reps")
        width = max(len(dims), len(reps))
        rows = zip((1,) * (width - len(dims)) + dims, [1] * (width - len(reps)) + reps, strict=True)
        return [DYNAMIC if DYNAMIC in row else row[0] * row[1] for row in rows]


class DynNumberOp(DynamicOp, ABC):
    """An op with one integer property given by an operand of one element."""

    def number(self, numbers: Sequence[int]) -> int:
        """The single integer of the operand; raises VerifyException unless there is exactly one."""
        require(len(numbers) == 1, f"{self.name}: {self.GIVEN[0]} must be one number")
        return numbers[0]

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        return {name: IntegerAttr(self.number(array.reshape(-1).tolist()), i64) for name, array in given.items()}


@irdl_op_definition
@deferred(TopkOp, "k")
class DynTopkOp(DynNumberOp):
    """`relay.topk` with `k` given by an operand of one element."""

    name = "relay.dyn.topk"

    def types(self) -> Sequence[Type]:
        axis, dtype, kind = (self.properties[name] for name in ("axis", "dtype", "ret_type"))
        assert isinstance(axis, IntegerAttr) and isinstance(kind, StringAttr)
        dims = list(shape(self.operands[0]))
        dims[axis_of(axis.value.data, len(dims), self.name)] = self.number(self.numbers("k"))
        values, indices = TensorType(self.element(), dims), TensorType(dtype, dims)
        return [*([values] if kind.data != "indices" else []), *([indices] if kind.data != "values" else [])]


@irdl_op_definition
@deferred(OneHotOp, "depth")
class DynOneHotOp(DynNumberOp):
    """`relay.one_hot` with `depth` given by an operand of one element."""

    name = "relay.dyn.one_hot"

    def element(self) -> Attribute:
        return tensor(self.operands[1]).element_type

    def sizes(self) -> Sequence[int]:
        dims, axis = list(shape(self.operands[0])), self.properties["axis"]
        assert isinstance(axis, IntegerAttr)
        dims.insert(axis_of(axis.value.data, len(dims) + 1, self.name), self.number(self.numbers("depth")))
        return dims


class DynAxesOp(DynamicOp, ABC):
    """A reshape determined by `axes`, an operand; negative ones count from the end."""

    @abstractmethod
    def reshaped(self, axes: Sequence[int]) -> Sequence[int]:
        """The shape of the result if the operand `axes` has these values."""

    @abstractmethod
    def width(self, count: int) -> int:
        """The rank of the result for `count` axes."""

    def properties_of(self, **given: Array) -> dict[str, Attribute]:
        return {"newshape": ints(self.reshaped(given["axes"].reshape(-1).tolist()))}

    def sizes(self) -> Sequence[int]:
        axes = known_value(self.given()["axes"])
        if axes is None:
            return [DYNAMIC] * self.width(len(self.numbers("axes")))
        return self.reshaped(axes.reshape(-1).tolist())


@irdl_op_definition
@deferred(ReshapeOp, "axes", computed=("newshape",))
class DynExpandDimsOp(DynAxesOp):
    """Insert axes of size 1 at the positions `axes` of the result, as numpy's `expand_dims`."""

    name = "relay.dyn.expand_dims"

    def width(self, count: int) -> int:
        return rank(self.operands[0]) + count

    def reshaped(self, axes: Sequence[int]) -> Sequence[int]:
        width = self.width(len(axes))
        places = {axis_of(axis, width, self.name) for axis in axes}
        require(len(places) == len(axes), f"{self.name}: an axis is named twice")
        left = iter(shape(self.operands[0]))
        return [1 if axis in places else next(left) for axis in range(width)]


@irdl_op_definition
@deferred(ReshapeOp, "axes", computed=("newshape",))
class DynSqueezeOp(DynAxesOp):
    """Remove the `axes`, which have size 1."""

    name = "relay.dyn.squeeze"

    def width(self, count: int) -> int:
        require(count <= rank(self.operands[0]), f"{self.name}: there are more axes than the input has")
        return rank(self.operands[0]) - count

    def reshaped(self, axes: Sequence[int]) -> Sequence[int]:
        dims = shape(self.operands[0])
        places = {axis_of(axis, len(dims), self.name) for axis in axes}
        require(all(dims[a] in (1, DYNAMIC) for a in places), f"{self.name}: an axis is not of size 1")
        return [d for axis, d in enumerate(dims) if axis not in places]


class DynResizeOp(DynamicOp, ABC):
    """A resize to `size`, an operand with one integer for each spatial axis."""

    def sizes(self) -> Sequence[int]:
        layout, numbers = self.properties["layout"], self.numbers("size")
        assert isinstance(layout, StringAttr)
        letters = layout.data or f"N{'DHW'[-len(numbers) :]}C"
        axes = [axis for axis, letter in enumerate(letters) if letter in "DHW"]
        fits = len(axes) == len(numbers) and rank(self.operands[0]) == len(letters)
        require(fits, f"{self.name}: size needs a number for each spatial axis")
        dims = list(shape(self.operands[0]))
        for axis, number in zip(axes, numbers, strict=True):
            dims[axis] = number
        return dims


@irdl_op_definition
@deferred(Resize1dOp, "size")
class DynResize1dOp(DynResizeOp):
    """`relay.image.resize1d` with the size given by an operand."""

    name = "relay.dyn.image.resize1d"


@irdl_op_definition
@deferred(Resize2dOp, "size")
class DynResize2dOp(DynResizeOp):
    """`relay.image.resize2d` with the size given by an operand."""

    name = "relay.dyn.image.resize2d"


@irdl_op_definition
@deferred(Resize3dOp, "size")
class DynResize3dOp(DynResizeOp):
    """`relay.image.resize3d` with the size given by an operand."""

    name = "relay.dyn.image.resize3d"
