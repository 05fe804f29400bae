"""`OnnxBackend`: compiled models with the interface of `onnx.backend`, for ONNX's own tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from relay.arguments import is_mapping
from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, RelayError
from relay.frontend import from_onnx
from relay.module import IRModule
from relay.runtime import Executable

SMALL = 16
"""The largest number of elements of an input of rank 0 or 1 that may decide shapes."""
MOST_PREPARED = 64
"""The largest number of executables that a prepared model keeps."""


class PreparedModel(BackendRep):
    """A model whose executables are built when inputs of their shapes are first seen, and kept."""

    def __init__(self, model: onnx.ModelProto, options: Mapping[str, Any]) -> None:
        self.model, self.options = model, options
        held = {each.name for each in model.graph.initializer}
        self.names = [each.name for each in model.graph.input if each.name not in held]
        self._built: dict[object, tuple[Executable, list[str]]] = {}

    def run(self, inputs: object, **kwargs: object) -> tuple[Array, ...]:
        """The outputs in the model's order. `inputs`: a sequence of arrays in the model's order, a mapping from names
        to arrays, or the only array. Raises RelayError, also if the model cannot be imported."""
        given = self._given(inputs)
        key = tuple((array.shape, array.tobytes() if _is_small(array) else None) for array in given.values())
        if key not in self._built:
            module, taken = imported(self.model, given)
            if len(self._built) >= MOST_PREPARED:
                self._built.pop(next(iter(self._built)))
            self._built[key] = build(module, **self.options), [*taken]
        executable, names = self._built[key]
        found = executable.run(*(given[name] for name in names))
        return (found,) if isinstance(found, np.ndarray) else tuple(found or ())

    def _given(self, inputs: object) -> dict[str, Array]:
        if is_mapping(inputs):
            values: list[object] = [inputs.get(name) for name in self.names]
        else:
            values = list(cast(Sequence[object], inputs)) if isinstance(inputs, list | tuple) else [inputs]
        if len(values) != len(self.names) or not all(_is_numeric(each) for each in values):
            what = f"are not {len(self.names)} arrays of numbers"
            raise InvalidArgument("inputs", what, f"give {', '.join(self.names) or 'none'}")
        return dict(zip(self.names, cast(list[Array], values), strict=True))


class OnnxBackend(Backend):
    """`OnnxBackend.prepare(model).run([x])`; `onnx.backend.test.BackendTest(OnnxBackend, __name__)` are ONNX's tests.

    Source: onnx/backend/base.py.
    """

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """The model, ready to run; further arguments are those of `relay.build`. Sizes may be open until the
        first `run`, so that call imports the model and raises the importer's errors. Raises InvalidArgument for a
        device other than "CPU"."""
        if not cls.supports_device(device):
            raise InvalidArgument("device", f"{device!r} is none of this backend", "give 'CPU'")
        return PreparedModel(model, kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.partition(":")[0] == "CPU"


def imported(model: onnx.ModelProto, given: Mapping[str, object]) -> tuple[IRModule, dict[str, Array]]:
    """Import the model for inputs with the shapes of those in `given`, and return the module and the inputs that remain
    arguments of it.

    Open sizes become those of the data. If the import fails because an input decides a shape, the model is imported
    again with its small inputs as constants.
    """
    numeric: dict[str, Array] = {name: array for name, array in given.items() if _is_numeric(array)}
    shapes = {
        each.name: numeric[each.name].shape
        for each in model.graph.input
        if each.name in numeric and any(not dim.HasField("dim_value") for dim in each.type.tensor_type.shape.dim)
    }
    try:
        return from_onnx(model, shapes=shapes), numeric
    except RelayError:
        fixed = {name: array for name, array in numeric.items() if _is_small(array)}
        if not fixed:
            raise
    shapes = {name: dims for name, dims in shapes.items() if name not in fixed}
    left = {name: array for name, array in numeric.items() if name not in fixed}
    return from_onnx(model, shapes=shapes, constants=fixed), left


def _is_numeric(value: object) -> TypeGuard[Array]:
    """Whether the value is an array of numbers, not of strings."""
    return isinstance(value, np.ndarray) and cast(Array, value).dtype.kind not in "OUS"


def _is_small(array: Array) -> bool:
    return array.ndim <= 1 and array.size <= SMALL
