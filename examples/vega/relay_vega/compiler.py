"""What `vega` takes, and what it makes of it: a region is one pointwise convolution."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import (
    Artifact,
    BuildInfo,
    Compiler,
    Entry,
    Match,
    Product,
    Refusal,
    Region,
    is_constant,
    is_op,
    read_product,
    wildcard,
)
from relay.dialects.attributes import dtype_of, to_numpy
from relay.dialects.op import shape, tensor

SCRATCHPAD = 4096
"""Bytes of weights."""
TILE = 8
"""Pixels whose sums are in the workspace at once."""


def check(match: Match) -> bool | Refusal:
    product = read_product(match.ops)
    if isinstance(product, Refusal):
        return product
    found, window = product.quantization, product.window
    if found is None or window is None or product.groups != 1:
        return Refusal("vega computes convolutions of codes, without groups")
    if window.size != (1, 1) or window.strides != (1, 1) or any(window.padding):
        return Refusal("vega computes single pixels: kernels of 1 x 1, strides of 1, no padding")
    types = {dtype_of(tensor(value).element_type).name for value in (product.data, product.result)}
    if types != {"int8"} or product.kernel.dtype != np.int8 or found.kernel_zero_point:
        return Refusal("vega's multipliers are for int8 without a zero point of the kernel")
    if product.kernel.size > SCRATCHPAD:
        return Refusal(f"its {product.kernel.size} weights do not fit vega's scratchpad of {SCRATCHPAD} bytes")
    if found.requantize.rounding.data != "tflite":
        return Refusal(f"vega rounds as tflite, not as {found.requantize.rounding.data}")
    return True


@dataclass(frozen=True)
class VegaCompiler(Compiler):
    """Options: `broken` makes programs that the device refuses to finish."""

    name: ClassVar[str] = "vega"
    hoists: ClassVar[bool] = False
    faults: ClassVar[Sequence[Mapping[str, object]]] = ({"broken": True},)
    broken: bool = False

    def missing(self) -> str | None:
        return None if shutil.which("cc") else "there is no C compiler"

    def patterns(self) -> list[Entry]:
        product = is_op("qnn.conv2d")(wildcard(), is_constant())
        biased = product.optional(lambda x: is_op("relay.nn.bias_add")(x, is_constant()))
        return [Entry("pointwise", is_op("qnn.requantize")(biased), check)]

    def regions(self, ops: Sequence[Operation]) -> list[list[Operation]]:
        """A program is one convolution."""
        return [[op] for op in ops]

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact | Refusal:
        (kernel,) = Region(function).kernels
        product = read_product(kernel.ops)
        if not isinstance(product, Product):
            return product
        inputs, units = shape(product.data)[-1], product.channels
        found = product.quantization
        assert found is not None, "check has seen it"
        low = -128 if product.low is None else int(product.low)
        high = 127 if product.high is None else int(product.high)
        zero_points = found.input.zero_point, found.output.zero_point
        pixels = prod(shape(product.data)[:-1])
        program = struct.pack("<10i", pixels, inputs, units, *zero_points, low, high, self.broken, TILE, SCRATCHPAD)
        constants = {
            "bias": np.zeros(units, np.int32) if product.bias is None else product.bias,
            "kernel": product.kernel,
            "multiplier": np.array(np.broadcast_to(to_numpy(found.requantize.multiplier), units), np.int32),
            "shift": np.array(np.broadcast_to(to_numpy(found.requantize.shift), units), np.int32),
        }
        return Artifact(program, constants, device="vega", workspace=4 * TILE * units)
