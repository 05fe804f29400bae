"""`Writer`: builds a .tflite file from a region's values and ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from relay.byoc.quantized import Bounds, Codes, dtype
from relay.byoc.regions import Kernel, Region, constant_of
from relay.byoc.scales import find_scales
from relay.byoc.xnnpack.model import Model, OptionValue
from relay.dialects.attributes import Array
from relay.dialects.op import shape
from relay.frontend.tflite import scales as tflite
from relay.interpreters.arithmetic import code_range

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


class Writer:
    """Builds the .tflite file of one region, which LiteRT runs. A quantized tensor has the scale that `find_scales`
    infers for its value."""

    def __init__(self, region: Region, description: str) -> None:
        self.region = region
        self.model = Model(region.name, description)
        self.scales = find_scales(region)
        self._numbers: dict[tuple[SSAValue, Codes | None], int] = {}

    def run(self, write: Callable[[Writer, Kernel], None]) -> bytes:
        """Call `write` for each kernel, which adds the kernel's nodes to the file, and return the bytes of the file."""
        inputs = [self.define(value) for value in self.region.inputs]
        for kernel in self.region.kernels:
            write(self, kernel)
        outputs: list[int] = []
        for value in self.region.outputs:
            number = self.read(value)
            if number in (*inputs, *outputs) or constant_of(value) is not None:
                number = self.copy(number, value, self.scales.get(value))
            outputs.append(number)
        return self.model.finish(inputs, outputs)

    def read(self, value: SSAValue, wanted: Codes | None = None) -> int:
        """The tensor of an operand; if the reader wants another scale, a tensor with the same elements and that
        scale."""
        value = self.region.of(value)
        scale = self.scales.get(value)
        wanted = scale if wanted is None else wanted
        key = value, wanted
        if key in self._numbers:
            return self._numbers[key]
        array = constant_of(value)
        if array is not None:
            self._numbers[key] = self.constant(array, wanted)
        else:
            self._numbers[key] = self.copy(self._numbers[value, scale], value, wanted)
        return self._numbers[key]

    def define(self, value: SSAValue) -> int:
        """Add a tensor to the .tflite model for a value, the result of an op or an argument of the function; return the
        tensor's number."""
        value = self.region.of(value)
        scale = self.scales.get(value)
        number = self.model.tensor(shape(value), dtype(value), scale, value.name_hint or "")
        self._numbers[value, scale] = number
        return number

    def constant(self, array: Array, codes: Codes | None = None) -> int:
        if codes is None:
            return self.model.constant(array)
        return self.model.constant(array, np.array([codes.scale], np.float32), codes.zero_point)

    def integers(self, values: Sequence[int]) -> int:
        """Add a constant of int32 elements, such as axes or a shape, to the TFLite model; returns its tensor's
        number."""
        return self.model.constant(np.array(values, np.int32))

    def copy(self, number: int, value: SSAValue, codes: Codes | None) -> int:
        """Copy a tensor's elements to another tensor, by a RESHAPE to the same shape."""
        result = self.model.tensor(shape(value), dtype(value), codes)
        sizes = np.array(shape(value), np.int32)
        self.model.operator("RESHAPE", [number, self.model.constant(sizes)], [result], {"new_shape": sizes})
        return result

    def emit(
        self,
        kind: str,
        inputs: Sequence[SSAValue | int],
        result: SSAValue,
        options: Mapping[str, OptionValue | Array] | None = None,
    ) -> None:
        """Append an operator of class `kind` that computes `result` from `inputs`. An input is a value of the region,
        or the number of a tensor of the written model."""
        numbers = [value if isinstance(value, int) else self.read(value) for value in inputs]
        self.model.operator(kind, numbers, [self.define(result)], options)


def code_activation(bounds: Bounds, output: Codes, type: np.dtype[Any]) -> str | None:
    """The activation that clamps quantized values to these bounds; None if there is none."""
    lowest, highest = code_range(type)
    wanted = lowest if bounds[0] is None else bounds[0], highest if bounds[1] is None else bounds[1]
    source = tflite.Codes(np.float32(output.scale), output.zero_point, lowest, highest)
    return next((name for name in ACTIVATIONS if tflite.code_bounds(name, source) == wanted), None)


def float_activation(bounds: Bounds) -> str | None:
    """The activation that clamps floats to these bounds; None if there is none."""
    for name in ACTIVATIONS:
        low, high = tflite.real_bounds(name)
        if bounds == (None if low == -tflite.FLOAT_LIMIT else low, None if high == tflite.FLOAT_LIMIT else high):
            return name
    return None


def activation_refusal(name: str | None) -> str | None:
    return "TFLite has no activation of its clamp" if name is None else None
