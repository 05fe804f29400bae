"""`Importer`: the ops of a model, and Keras's rules of element types.

The functions of the table get it as their first argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array, element_type
from relay.frontend.importing.tensors import TensorBuilder
from relay.frontend.keras.node import Argument, Layer, is_array, is_value

_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2}
_PYTHONS = {"b": np.dtype(np.bool_), "i": np.dtype(np.int32), "f": np.dtype(np.float32)}
"""Element types of Python's numbers, and of lists of them."""


class Importer(TensorBuilder):
    """The block under construction."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._weights: dict[tuple[str, str], SSAValue] = {}

    def weight(self, layer: Layer, name: str, array: Array) -> SSAValue:
        """A variable of a layer, perhaps in another order of its elements: one constant for all its calls."""
        key = (layer.path, name)
        if key not in self._weights:
            self._weights[key] = self.constant(array, f"{layer.path.replace('layers/', '')}/{name}")
        return self._weights[key]

    def promoted(self, *given: Argument) -> list[SSAValue]:
        """Operands in the element type that Keras computes in: floats go before integers before booleans; Python's
        numbers have no width."""
        types = [self._dtype(each) for each in given]
        most = max(_RANKS[type.kind] for type in types)
        highest = [(type, each) for type, each in zip(types, given, strict=True) if _RANKS[type.kind] == most]
        wide = [type for type, each in highest if is_value(each) or is_array(each)]
        dtype: np.dtype[Any] = np.result_type(*wide or (highest[0][0],))
        element = element_type(dtype)
        return [self.cast(each, element) if is_value(each) else self.unnamed(np.asarray(each, dtype)) for each in given]

    def _dtype(self, given: Argument) -> np.dtype[Any]:
        if is_value(given):
            return self.dtype(given)
        found = given.dtype if is_array(given) else _PYTHONS.get(np.asarray(given).dtype.kind)
        if found is None or found.kind not in _RANKS:
            raise self.at.malformed(f"has the operand {str(given)[:80]!r}")
        return found
