"""`Importer`: what has been built of `@main` so far, and the means to build more.

The functions of the table get it as their first argument.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

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
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from relay.arguments import shown
from relay.dialects.attributes import Array, dtype_of, element_type, elements, ints, scalar_attr
from relay.dialects.op import TensorOp
from relay.dialects.op import tensor as type_of
from relay.dialects.relay import ClipOp, ConstantOp, ReshapeOp
from relay.errors import InvalidArgument
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.profile import LITERT, Profile
from relay.frontend.tflite.scales import Codes, real_bounds

T = TypeVar("T", bound=TensorOp)

_DTYPES = {
    "FLOAT32": np.float32,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FLOAT16": np.float16,
    "BOOL": np.bool_,
}


def tensor_type(tensor: Tensor) -> TensorType[Attribute] | None:
    """The tensor's type in the module; None where relay does not compute with it."""
    dtype = _DTYPES.get(tensor.type)
    return None if dtype is None or tensor.is_sparse else TensorType(element_type(dtype), tensor.shape)


def _stored_type(tensor: Tensor) -> TensorType[Attribute]:
    """The same, or another type of that shape where there is none: such a module is never finished."""
    return tensor_type(tensor) or TensorType(f32, tensor.shape)


def numpy_type(tensor: Tensor) -> np.dtype[Any]:
    return np.dtype(_DTYPES[tensor.type])


def real(value: float | np.float32) -> FloatAttr:
    return FloatAttr(float(value), f32)


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def scale_attr(scale: Array) -> Attribute:
    """One scale as a number, several as a vector."""
    return real(scale[0]) if len(scale) == 1 else elements(scale, np.float32, label="scale")


def multiplier_attrs(found: tuple[int, int]) -> dict[str, Attribute]:
    """The properties `multiplier` and `shift`."""
    return {"multiplier": number(found[0]), "shift": number(found[1])}


def multiplier_vectors(found: tuple[Array, Array]) -> dict[str, Attribute]:
    """The same of vectors; numbers where they have one element."""
    if found[0].size == 1:
        return multiplier_attrs((int(found[0][0]), int(found[1][0])))
    labels = ("multiplier", "shift")
    return {label: elements(array, np.int32, label=label) for label, array in zip(labels, found, strict=True)}


def _hint(name: str) -> str | None:
    """A tensor's name as the name of a value in text: without what MLIR's syntax does not allow there."""
    hint = re.sub(r"[^A-Za-z0-9_$.]", "_", name)[:60]
    return SSAValue.extract_valid_name(hint if hint[:1].isalpha() else f"t{hint}") if hint else None


Inline = Callable[[Node, int, Block, Sequence[SSAValue]], list[SSAValue]]
"""Builds a subgraph of the file, by number, at the end of a block; the values of its outputs."""


def nowhere(node: Node, number: int, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Where there are no subgraphs."""
    raise node.unsupported("calls a subgraph")


def _is_ours(op: object) -> bool:
    return isinstance(op, type) and issubclass(op, TensorOp)


class Importer:
    """The function under construction: a block, and the value of each tensor of the file that has one."""

    def __init__(self, names: Mapping[int, str], numerics: Profile = LITERT) -> None:
        """`names`: a unique name for every tensor of the file; `numerics`: whose integers are wanted."""
        self.numerics = numerics
        self.block = Block()
        self._names = names
        self._taken = set(names.values())
        self._labels: set[str] = set()
        self._values: dict[int, SSAValue] = {}
        self._weights: dict[tuple[int, tuple[int, ...]], SSAValue] = {}
        self._location: LocationAttr = UNKNOWN_LOC
        self._node: Node | None = None
        self.inline: Inline = nowhere

    def begin(self, block: Block, outer: Importer) -> None:
        """Build into this block, inside what another one builds: labels stay unique."""
        self.block, self._labels = block, outer._labels
        self._taken |= outer._taken

    @property
    def _at(self) -> Node:
        assert self._node is not None, "nothing is built outside an operator"
        return self._node

    def enter(self, node: Node) -> None:
        """From here on, what is built belongs to this operator."""
        self._node = node
        place = FileLineColLoc(StringAttr(node.file), IntAttr(node.operator.index), IntAttr(0))
        self._location = NameLoc(StringAttr(node.title), place)

    def leave(self) -> None:
        """What is built from here on belongs to no operator."""
        self._location = UNKNOWN_LOC

    def argument(self, tensor: Tensor) -> None:
        """The next argument of the function is this tensor."""
        self.define(tensor, self.block.insert_arg(_stored_type(tensor), len(self.block.args)))

    def placeholder(self, tensor: Tensor) -> None:
        """Stands for the result of an operator that cannot be imported, so that later ones can be looked at."""
        self.define(tensor, Block(arg_types=[_stored_type(tensor)]).args[0])

    def define(self, tensor: Tensor, value: SSAValue) -> None:
        """What the tensor is from here on; a state may be defined again."""
        self._values[tensor.index] = value
        if value.name_hint is None:
            value.name_hint = _hint(self._names[tensor.index])

    def value(self, tensor: Tensor) -> SSAValue:
        """The tensor's value; the first use of a constant makes it."""
        return self._values.get(tensor.index) or self.weight(tensor, tensor.shape)

    def weight(self, tensor: Tensor, shape: Sequence[int]) -> SSAValue:
        """A constant of the file, perhaps under another shape: the same bytes, and the same name if it is free. What is
        computed gets that shape."""
        if tensor.index in self._values:
            return self.reshape(self._values[tensor.index], shape)
        key = (tensor.index, tuple(shape))
        if key not in self._weights:
            if tensor.data is None and 0 not in tensor.shape:
                raise self._at.unsupported(f"{tensor} is computed at run time", "it must be a constant")
            if math.prod(shape) != math.prod(tensor.shape):
                raise self._at.malformed(f"{tensor} of shape {tensor.shape} has not the elements of {tuple(shape)}")
            self._weights[key] = self.constant(tensor.to_numpy().reshape(shape), self._names[tensor.index])
        return self._weights[key]

    def _unique(self, label: str) -> str:
        """The label, with a number behind it if another constant or tensor has it."""
        found, count = label, 0
        while found in self._labels or (count and found in self._taken):
            count += 1
            found = f"{label}_{count}"
        self._labels.add(found)
        return found

    def constant(self, array: Array, label: str) -> SSAValue:
        """A `relay.constant` that shares the array's memory."""
        label = self._unique(label)
        op = self.emit(ConstantOp, [], {"value": elements(array, label=label), "label": StringAttr(label)})
        op.result.name_hint = _hint(label)
        return op.result

    def scalar(self, value: float | int, like: SSAValue) -> SSAValue:
        """A rank-0 constant of the value's element type, without a label."""
        array = np.asarray(value, dtype_of(type_of(like).element_type))
        return self.emit(ConstantOp, [], {"value": elements(array)}).result

    def emit(
        self, op: type[T], operands: Sequence[SSAValue], properties: Mapping[str, Attribute | None] | None = None
    ) -> T:
        """Build an op at the end of the function; what its verifier says is the file's fault."""
        if not _is_ours(op):
            name = getattr(op, "name", shown(op))
            hint = "give a class of relay.dialects.relay or relay.dialects.qnn"
            raise InvalidArgument("importer.emit", f"{name} is no op of relay or qnn", hint)
        try:
            built = op.make(operands, properties)
        except VerifyException as error:
            raise self._at.malformed(str(error)) from None
        built.location = self._location
        self.block.add_op(built)
        return built

    def append(self, op: Operation) -> Sequence[SSAValue]:
        """An op of another dialect at the end of the block; its results."""
        op.location = self._location
        self.block.add_op(op)
        return op.results

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        return type_of(value).get_shape()

    def element(self, tensor: Tensor) -> Attribute:
        """The element type of the tensor, which the survey has found to have one."""
        return element_type(_DTYPES[tensor.type])

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value under another shape; itself where it has that shape."""
        if self.shape(value) == tuple(shape):
            return value
        return self.emit(ReshapeOp, [value], {"newshape": ints(shape)}).result

    def clip_reals(self, value: SSAValue, activation: str) -> SSAValue:
        """A fused activation of floats."""
        if activation == "NONE":
            return value
        low, high = real_bounds(activation)
        return self.emit(ClipOp, [value], {"a_min": real(low), "a_max": real(high)}).result

    def clip_integers(self, value: SSAValue, activation: str) -> SSAValue:
        """A fused activation of plain integers."""
        if activation == "NONE":
            return value
        element = type_of(value).element_type
        info = np.iinfo(dtype_of(element))
        low, high = (max(min(bound, info.max), info.min) for bound in real_bounds(activation))
        bounds = {"a_min": scalar_attr(int(low), element), "a_max": scalar_attr(int(high), element)}
        return self.emit(ClipOp, [value], bounds).result

    def clip_codes(self, value: SSAValue, codes: Codes, bounds: tuple[int, int]) -> SSAValue:
        """A fused activation of codes that are not rescaled."""
        if bounds == (codes.low, codes.high):
            return value
        element = type_of(value).element_type
        low, high = (scalar_attr(bound, element) for bound in bounds)
        return self.emit(ClipOp, [value], {"a_min": low, "a_max": high}).result
