"""`Importer`: the ops of a model, and Keras's rules of element types.

The functions of the table get it as their first argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, element_type
from relay.dialects.op import DYNAMIC, tensor
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.tensors import TensorBuilder
from relay.frontend.keras.node import Argument, Layer, is_array, is_value


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

    def scalar_of(self, value: SSAValue) -> Scalar:
        return Scalar(self, value)

    def promoted(self, *given: Argument) -> list[SSAValue]:
        """Operands in the element type that Keras computes in: floats go before integers before booleans; Python's
        numbers have no width."""
        types = [_dtype(each) for each in given]
        tensors = [type for type, each in zip(types, given, strict=True) if not isinstance(each, int | float)]
        ranks = {"b": 0, "u": 1, "i": 1, "f": 2}
        most = max((ranks[type.kind] for type in types), default=2)
        strong = [type for type in tensors if ranks[type.kind] == most]
        weak = {0: np.dtype(np.bool_), 1: np.dtype(np.int32), 2: np.dtype(np.float32)}[most]
        dtype: np.dtype[Any] = np.result_type(*strong) if strong else weak
        element = element_type(dtype)
        anything = Block(arg_types=[TensorType(element, [])]).args[0]
        found: list[SSAValue] = []
        for each in given:
            if is_value(each):
                found.append(self.cast(each, element))
            elif is_array(each):
                found.append(self.unnamed(each.astype(dtype)))
            elif isinstance(each, int | float):
                found.append(self.like(each, anything))
            else:
                raise self.at.malformed(f"has the operand {str(each)[:80]!r}")
        return found

    def real(self, value: SSAValue) -> SSAValue:
        """The value as floats: float32 where it has integers."""
        return value if self.is_float(value) else self.cast(value, f32)

    def rows(self, value: SSAValue, rest: int = 1) -> SSAValue:
        """A matrix whose columns are the last `rest` axes."""
        dims = self.shape(value)
        count = len(dims) - rest
        if DYNAMIC in dims[count:]:
            raise self.at.unsupported(f"takes {value.type}, of unknown size", "give its shapes")
        first = DYNAMIC if DYNAMIC in dims[:count] else prod(dims[:count])
        return self.reshape(value, [first, prod(dims[count:])])

    def add(self, a: SSAValue, b: SSAValue | None) -> SSAValue:
        return a if b is None else self.call(relay.AddOp, a, b)


def _dtype(given: Argument) -> np.dtype[Any]:
    match given:
        case SSAValue():
            return dtype_of(tensor(given).element_type)
        case np.ndarray():
            return given.dtype
        case bool():
            return np.dtype(np.bool_)
        case int():
            return np.dtype(np.int32)
        case _:
            return np.dtype(np.float32)
