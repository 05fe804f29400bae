"""Comparison of a float and a quantized module: which values correspond, and how much they differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.byoc.scales import declared, kept
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.op import is_code, is_tensor, tensor
from relay.quantize import marks
from relay.quantize.layers import is_float
from relay.quantize.observing import places
from relay.quantize.parameters import Parameters
from relay.runtime import Executable
from relay.signature import TensorInfo
from relay.transforms.location import words


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A value of the float module, and the quantized value that corresponds to it in the other module."""

    value: str
    """The position of the value: `a` and the argument's index, or `v` and the op's index in the function."""
    name: str
    real: SSAValue
    codes: SSAValue
    parameters: Parameters


def pairs_of(source: FuncOp, target: FuncOp) -> list[Pair]:
    """Pairs of a value of the float function `source` and the corresponding quantized value of `target`, in program
    order."""
    by_place = dict(places(source))
    by_name = {name: place for place, value in by_place.items() for name in names_of(value)}
    found: dict[str, SSAValue] = {}
    for op in target.body.block.ops:
        for result in op.results[:1]:
            if not is_tensor(result.type) or not is_code(result.type.element_type):
                continue
            place = marks.text(op.attributes, marks.VALUE)
            if place is None:
                place = next((by_name[name] for name in names_of(result) if name in by_name), None)
            if place is not None and place in by_place:
                found[place] = result
    for argument in target.body.block.args:
        if is_tensor(argument.type) and is_code(argument.type.element_type) and f"a{argument.index}" in by_place:
            found.setdefault(f"a{argument.index}", argument)
    pairs: list[Pair] = []
    for place, real in by_place.items():
        if place in found and is_float(real) and (parameters := parameters_of(found[place])) is not None:
            name = next(iter(names_of(real)), real.name_hint or place)
            pairs.append(Pair(place, name, real, found[place], parameters))
    return pairs


def names_of(value: SSAValue) -> list[str]:
    """The names that the op computing the value has in the model's file: the quoted names in the op's location."""
    owner = value.owner
    return re.findall(r"'([^']*)'", words(owner.location)) if isinstance(owner, Operation) else []


def parameters_of(value: SSAValue) -> Parameters | None:
    """The scale and zero point of a quantized value, as declared by the op that computes or reads it, or by earlier ops
    whose scale it keeps; None if unknown."""
    dtype = str(dtype_of(tensor(value).element_type))
    seen: SSAValue = value
    while isinstance(op := seen.owner, Operation):
        if (codes := declared(op).get(seen)) is not None:
            return Parameters(codes.scale, codes.zero_point, dtype)
        if not (before := [operand for operand, result in kept(op) if result is seen]):
            return None
        seen = before[0]
    for use in seen.uses:
        if (codes := declared(use.operation).get(seen)) is not None:
            return Parameters(codes.scale, codes.zero_point, dtype)
    return None


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of one run of a module: `values` are those that are compared with the other module's, `outputs` those
    that the function returns."""

    values: list[Array]
    outputs: list[Array]


class Side:
    """One of the two compared modules, float or quantized: its `@main`, the values to compute, and the inputs."""

    def __init__(self, function: FuncOp, values: Sequence[SSAValue], inputs: Sequence[TensorInfo]):
        last = function.body.block.last_op
        assert isinstance(last, ReturnOp)
        self.function, self.values, self.inputs = function, list(values), list(inputs)
        self.outputs: list[SSAValue] = list(last.operands)

    def wanted(self) -> list[SSAValue]:
        """The values that the compiled function has to return: those that are compared with the other module's, and the
        outputs, without arguments and duplicates."""
        every = dict.fromkeys([*self.values, *self.outputs])
        return [value for value in every if not isinstance(value, BlockArgument)]

    def run(self, executable: Executable, arrays: Sequence[Array]) -> Ran:
        """Run the compiled module on the arrays that the float module takes, which are quantized for inputs that take
        codes. Return the compared values and the outputs."""
        given = [
            codes_of(array, info) if info.dtype != array.dtype else array
            for array, info in zip(arrays, self.inputs, strict=True)
        ]
        result = executable.run(*given)
        results = result if isinstance(result, tuple) else (np.asarray(result),)
        known: dict[SSAValue, Array] = dict(zip(self.wanted(), results, strict=True))
        known |= {argument: given[argument.index] for argument in self.function.body.block.args}
        return Ran([known[value] for value in self.values], [known[value] for value in self.outputs])


def codes_of(array: Array, info: TensorInfo) -> Array:
    """Quantize an array for an input that takes quantized values."""
    return Parameters(info.scale or 1.0, info.zero_point, str(info.dtype)).codes(array)


def returned(array: Array, info: TensorInfo) -> Array:
    """An output as real numbers, dequantized if necessary."""
    if array.dtype.kind == "f" or info.scale is None:
        return array
    return Parameters(info.scale, info.zero_point, str(info.dtype)).reals(array)


class Comparison:
    """Sums for the signal-to-noise ratio of one value, over all samples."""

    def __init__(self) -> None:
        self.signal = self.noise = 0.0
        self.outside = self.count = 0

    def add(self, wanted: Array, found: Array, codes: Parameters | None) -> None:
        """Add one sample's values: `wanted` of the float module, `found` of the quantized one. `codes` are the
        quantization parameters of `found` if it was dequantized."""
        real = wanted.astype(np.float64).reshape(-1)
        difference = found.astype(np.float64).reshape(-1) - real
        self.signal += float(real @ real)
        self.noise += float(difference @ difference)
        self.count += real.size
        if codes is not None:
            low, high = codes.range
            margin = codes.scale * 0.501
            self.outside += int(((real < low - margin) | (real > high + margin)).sum())

    @property
    def snr(self) -> float:
        """The signal-to-noise ratio in decibels; 200, the maximum, stands for equality."""
        if self.noise <= self.signal * 1e-20:
            return 200.0
        return 10 * float(np.log10(max(self.signal, 1e-300) / self.noise))

    @property
    def saturated(self) -> float:
        """The share of the float elements that lie outside the range of the quantized values by more than half a
        scale."""
        return self.outside / self.count if self.count else 0.0
