"""`Importer`: builds the ops of a model, with Keras's rules of element types.

The functions that import layers and operations (the rows of the table in `table.py`) get it as their first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array, element_type
from relay.dialects.element_types import is_float
from relay.frontend.importing.archives import Json
from relay.frontend.importing.tensors import TensorBuilder
from relay.frontend.keras.node import Argument, Layer, is_array, is_value

_PYTHONS = {"b": np.dtype(np.bool_), "i": np.dtype(np.int32), "f": np.dtype(np.float32)}
"""The element types of Python numbers, and of lists of them, by numpy's kind."""


def _rank(dtype: np.dtype[Any]) -> int:
    return 0 if dtype == np.bool_ else 2 if is_float(element_type(dtype)) else 1


def narrowed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which Keras computes: 32-bit types instead of 64-bit ones."""
    return np.dtype(f"{dtype.kind}4") if dtype.itemsize == 8 else dtype


class Importer(TensorBuilder):
    """The block under construction, with the methods that layer functions use."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._weights: dict[tuple[str, str], SSAValue] = {}
        self.model: Callable[[Json, str, Sequence[SSAValue], str], list[SSAValue]]
        """Builds a nested model from its configuration, the path of its variables, its inputs, and its name in
        errors."""

    def weight(self, layer: Layer, name: str, array: Array) -> SSAValue:
        """A variable of a layer, possibly with its elements reordered: one constant for all calls of the layer."""
        key = (layer.path, name)
        if key not in self._weights:
            self._weights[key] = self.constant(array, f"{layer.path.replace('layers/', '')}/{name}")
        return self._weights[key]

    def factors(self, *given: Argument) -> list[SSAValue]:
        """Operands of a sum of products, cast to 32 bits if all of them are int8."""
        codes = all(self.dtype_of(each) == np.int8 for each in given)
        return [self.cast(each, i32) if codes else each for each in self.promoted(*given)]

    def promoted(self, *given: Argument) -> list[SSAValue]:
        """Operands cast to the type in which Keras computes: floats take precedence over integers, and these over
        booleans. Among types of the same kind, that of a Python number counts only if there is no tensor or array.
        64-bit types are narrowed to 32. Source: keras/src/backend/common/dtypes.py."""
        types = [self.dtype_of(each) for each in given]
        most = max(map(_rank, types))
        highest = [(type, each) for type, each in zip(types, given, strict=True) if _rank(type) == most]
        wide = {type for type, each in highest if is_value(each) or is_array(each)} or {highest[0][0]}
        halves = len(wide) > 1 and most == 2 and all(each.itemsize == 2 for each in wide)
        dtype: np.dtype[Any] = narrowed(_PYTHONS["f"] if halves else np.result_type(*wide))
        element = element_type(dtype)
        return [
            self.cast(each, element) if is_value(each) else self.unnamed(np.asarray(each).astype(dtype))
            for each in given
        ]

    def numbers(self, value: SSAValue) -> SSAValue:
        """The value with booleans cast to integers."""
        return self.cast(value, i32) if self.element(value) == i1 else value

    def dtype_of(self, given: Argument) -> np.dtype[Any]:
        """The element type of an operand; for a Python number, Keras's default."""
        if is_value(given):
            return self.dtype(given)
        found = given.dtype if is_array(given) else _PYTHONS.get(np.asarray(given).dtype.kind)
        if found is None or found.kind not in "biufV":
            raise self.at.malformed(f"has the operand {str(given)[:80]!r}")
        return found
