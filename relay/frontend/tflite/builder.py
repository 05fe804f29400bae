"""`Importer`: the state of a subgraph under construction, and methods that build ops.

The functions that import operators get it as their first argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Block, SSAValue

from relay.dialects.attributes import element_type
from relay.frontend.importing.builder import value_name
from relay.frontend.importing.tensors import TensorBuilder
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.profile import LITERT, Profile
from relay.frontend.tflite.scales import Codes, real_bounds
from relay.frontend.tflite.schema import TENSOR_TYPES
from relay.interpreters.arithmetic import code_range

_COMPUTED = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT16", "BOOL")
_DTYPES = {row.name: np.dtype(row.dtype) for row in TENSOR_TYPES if row.name in _COMPUTED}


def tensor_type(tensor: Tensor) -> TensorType[Attribute] | None:
    """The tensor's type in the module; None if relay does not compute with its element type."""
    dtype = _DTYPES.get(tensor.type)
    return None if dtype is None or tensor.is_sparse else TensorType(element_type(dtype), tensor.shape)


def _stored_type(tensor: Tensor) -> TensorType[Attribute]:
    """The tensor's type in the module; if relay does not compute with its element type, the same shape with a
    substitute, for a module that is only checked and then discarded."""
    return tensor_type(tensor) or TensorType(f32, tensor.shape)


def numpy_type(tensor: Tensor) -> np.dtype[Any]:
    return _DTYPES[tensor.type]


Inline = Callable[[Node, int, Block, Sequence[SSAValue]], list[SSAValue]]
"""Builds a subgraph of the file, given by index, at the end of a block; returns the values of its outputs."""


class Importer(TensorBuilder):
    """The block under construction, and the value of each tensor of the file."""

    def __init__(self, names: Mapping[int, str], numerics: Profile = LITERT) -> None:
        """`names` has a unique name for every tensor of the file; `numerics` is the runtime whose integers are
        wanted."""
        super().__init__(names.values())
        self.numerics = numerics
        self._names = names
        self._values: dict[int, SSAValue] = {}
        self._weights: dict[tuple[int, tuple[int, ...]], SSAValue] = {}
        self.inline: Inline

    def argument(self, tensor: Tensor) -> None:
        """Make this tensor the next argument of the function."""
        self.define(tensor, self.block.insert_arg(_stored_type(tensor), len(self.block.args)))

    def placeholder(self, tensor: Tensor) -> None:
        """Define a placeholder for the result of an operator that cannot be imported, so that later ones can be
        checked."""
        self.define(tensor, Block(arg_types=[_stored_type(tensor)]).args[0])

    def define(self, tensor: Tensor, value: SSAValue) -> None:
        """Set the value of a tensor; that of a state may be set again."""
        self._values[tensor.index] = value
        if value.name_hint is None:
            value.name_hint = value_name(self._names[tensor.index])

    def value(self, tensor: Tensor) -> SSAValue:
        """The tensor's value; a constant is created when it is first used."""
        return self._values.get(tensor.index) or self.weight(tensor, tensor.shape)

    def weight(self, tensor: Tensor, shape: Sequence[int]) -> SSAValue:
        """The tensor's value in the given shape. A constant shares the file's memory, and has the tensor's name as its
        label unless another constant has it; a computed value is reshaped."""
        if tensor.index in self._values:
            return self.reshape(self._values[tensor.index], shape)
        key = (tensor.index, tuple(shape))
        if key not in self._weights:
            if tensor.data is None and 0 not in tensor.shape:
                raise self.at.unsupported(f"{tensor} is computed at run time", "it must be a constant")
            if math.prod(shape) != math.prod(tensor.shape):
                raise self.at.malformed(f"{tensor} of shape {tensor.shape} has not the elements of {tuple(shape)}")
            self._weights[key] = self.constant(tensor.to_numpy().reshape(shape), self._names[tensor.index])
        return self._weights[key]

    def element(self, value: SSAValue | Tensor) -> Attribute:
        """The element type of a value, or of a tensor's values in the module; the tensor must have a type with which
        relay computes."""
        return element_type(_DTYPES[value.type]) if isinstance(value, Tensor) else super().element(value)

    def layers(self, values: Sequence[SSAValue], axis: int) -> list[SSAValue]:
        """The values, which have one shape, with a new axis of size 1. Reshapes add it: more external compilers take
        them than `relay.expand_dims`, and so does the option `batch`."""
        dims = self.shape(values[0])
        return [self.reshape(each, [*dims[:axis], 1, *dims[axis:]]) for each in values]

    def unstack(self, value: SSAValue, axis: int) -> list[SSAValue]:
        """The slices of a value along an axis, which is removed."""
        dims = self.shape(value)
        parts = self.parts(value, [1] * dims[axis], axis)
        return [self.reshape(part, [*dims[:axis], *dims[axis + 1 :]]) for part in parts]

    def clip_reals(self, value: SSAValue, activation: str) -> SSAValue:
        """The value with a fused activation of floats applied."""
        if activation == "NONE":
            return value
        return self.clip(value, *real_bounds(activation))

    def clip_integers(self, value: SSAValue, activation: str) -> SSAValue:
        """The value with a fused activation of plain integers applied."""
        if activation == "NONE":
            return value
        least, most = code_range(self.dtype(value))
        low, high = (max(min(bound, most), least) for bound in real_bounds(activation))
        return self.clip(value, int(low), int(high))

    def clip_codes(self, value: SSAValue, codes: Codes, bounds: tuple[int, int]) -> SSAValue:
        """Clamp quantized values to `bounds`, the range that a fused activation lets through, in the scale of `codes`,
        so that nothing is rescaled. Returns the value itself if `bounds` is the whole range of `codes`."""
        if bounds == (codes.low, codes.high):
            return value
        return self.clip(value, *bounds)
