"""The compiler of a small accelerator for microcontrollers: int8 convolutions, each a program of one instruction.

Its artifact is the instruction, 20 numbers; weights, biases, multipliers and shifts are constants beside it. `npu.c` is
the vendor's library, here with a simulation of the accelerator.
"""

from __future__ import annotations

import struct
from typing import ClassVar

import numpy as np
from xdsl.dialects.func import FuncOp

from relay.byoc import Artifact, BuildInfo, Compiler, Entry, Match, Refusal, is_constant, is_op, wildcard
from relay.byoc.quantized import Product, read_product
from relay.dialects import byoc, relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import shape

LARGEST = 64
"""Channels that the accelerator has sums for."""


def check(match: Match) -> bool | Refusal:
    """Whether the accelerator computes these ops, a convolution with its bias and requantization."""
    product = read_product(match.ops)
    if isinstance(product, Refusal):
        return product
    quantization = product.quantization
    if product.groups != 1 or product.window is None or quantization is None:
        return Refusal("it has products of whole pixels of codes only")
    if product.kernel.dtype != np.int8 or str(product.result.type).endswith("ui8>") or quantization.kernel_zero_point:
        return Refusal("its multipliers are for int8")
    if product.channels > LARGEST:
        return Refusal(f"{product.channels} channels; it has sums for {LARGEST}")
    if quantization.requantize.rounding.data != "tflite":
        return Refusal(f"it does not round as {quantization.requantize.rounding.data}")
    return True


class NpuCompiler(Compiler):
    """Convolutions of int8 whose kernel, bias and scales are constant."""

    name: ClassVar[str] = "npu"
    hoists: ClassVar[bool] = False

    def patterns(self) -> list[Entry]:
        product = is_op("qnn.conv2d")(wildcard(), is_constant())
        biased = product.optional(lambda x: is_op("relay.nn.bias_add")(x, is_constant()))
        return [Entry("conv2d", is_op("qnn.requantize")(biased), check)]

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact | Refusal:
        composites = [op for op in function.body.block.ops if isinstance(op, byoc.CompositeOp)]
        if len(composites) != 1:
            return Refusal(f"a program is one convolution, these are {len(composites)}")
        *ops, _ = [op for op in composites[0].body.block.ops if not isinstance(op, relay.ConstantOp)]
        product = read_product(ops)
        assert isinstance(product, Product)
        return Artifact(program(product), constants(product), device="npu")


def program(product: Product) -> bytes:
    """The instruction: `npu_program` of npu.c, little-endian."""
    window, quantization = product.window, product.quantization
    assert window is not None and quantization is not None
    numbers = (
        *shape(product.data),
        *shape(product.result)[1:],
        *window.size,
        *window.strides,
        *window.dilation,
        *window.padding[:2],
        quantization.input.zero_point,
        quantization.output.zero_point,
        -128 if product.low is None else int(product.low),
        127 if product.high is None else int(product.high),
        1,
    )
    return struct.pack("<20i", *numbers)


def constants(product: Product) -> dict[str, np.ndarray]:
    """In the order of their names, as npu.c gets them."""
    assert product.quantization is not None
    rescale, channels = product.quantization.requantize, product.channels
    bias = np.zeros(channels, np.int32) if product.bias is None else product.bias
    return {
        "bias": bias,
        "kernel": product.kernel,
        "multiplier": np.array(np.broadcast_to(to_numpy(rescale.multiplier), channels), np.int32),
        "shift": np.array(np.broadcast_to(to_numpy(rescale.shift), channels), np.int32),
    }
