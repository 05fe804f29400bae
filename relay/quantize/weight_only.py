"""The pass `weight-only`, and `narrow_weights`, which lists its results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, ReducedPrecisionFloatType, f32, f64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import Rewriter

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.element_types import bits_of, converted, largest, signed_floats
from relay.dialects.op import DYNAMIC, rank, shape, tensor
from relay.dialects.source import words
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pass
from relay.passes.info import as_module
from relay.quantize import marks
from relay.quantize.comparison import Comparison
from relay.transforms.expansion import Expansion

SNR = "relay.snr"
"""The attribute with the signal-to-noise ratio of the stored weights, in decibels."""
STEPS = (0.0, -1.0, -0.5, 0.5, 1.0)
"""Determines the scales that are tried for a block of weights: for each number, the scale with which the element of the
largest magnitude lies this many steps above the lowest code. With a negative number it lies below, and is clamped. For
normally distributed weights in 4 bits, the best of these scales gives a signal-to-noise ratio of 21.7 dB, that of 0
alone 21.3 dB."""
Product = relay.DenseOp | relay.MatmulOp | relay.BatchMatmulOp


@dataclass(frozen=True)
class WeightOnly(Pass):
    """Store the weights of float matrix products in 2, 4 or 8 bits; activations stay float. `bits` is the width; each
    block of `block` inputs has a scale.

    Products by one constant matrix become `relay.nn.weight_only_dense`, except those whose inputs are not a multiple of
    `block` and those with fewer than `least` weights. The zero point is the middle code, and a block's scale maps its
    largest element to about the lowest code: the best of five candidates by squared error. With `dtype`, weights are
    floats of 4 to 8 bits instead of `bits` (`f8E4M3FN`, `f8E5M2`, `f4E2M1FN` ...), and a block's largest element
    becomes the largest float. `relay.quantize.narrow_weights` lists the results.
    """

    name: ClassVar[str] = "weight-only"
    invalidates = None
    why = "stores weights of products in few bits"
    bits: int = 4
    block: int = 32
    least: int = 4096
    dtype: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.bits not in (choices := relay.WeightOnlyDenseOp.CODE_BITS):
            raise InvalidArgument(self.name, f"bits may be {', '.join(map(str, choices))}, not {self.bits}")
        floats = {str(type): type for type in signed_floats()}
        if self.dtype and self.dtype not in floats:
            raise InvalidArgument(self.name, f"dtype may be {', '.join(floats)}, not {self.dtype}")
        if self.block < 1:
            raise InvalidArgument(self.name, f"a block has 1 input or more, not {self.block}")
        for product, data, weights in products(op, self.name):
            if self.refusal(weights) is None:
                blocks = weights.reshape(len(weights), -1, self.block)
                replace(product, data, blocks, *narrowed(blocks, floats.get(self.dtype, self.bits)))

    def refusal(self, weights: Array) -> str | None:
        """The reason why a product's weights [units, inputs] stay floats; None if they are stored in few bits."""
        if weights.size < self.least:
            return f"has {weights.size} weights, fewer than {self.least}"
        if weights.shape[1] % self.block:
            return f"{weights.shape[1]} inputs are no whole blocks of {self.block}"
        return None if np.isfinite(weights).all() else "has weights that are no numbers"


def products(module: ModuleOp, where: str) -> Iterator[tuple[Product, SSAValue, Array]]:
    """The float products by one constant matrix, with their data and weights [units, inputs]."""
    for op in list(marks.main_of(module, where).walk()):
        if isinstance(op, relay.DenseOp):
            data, kernel, turned = op.data, op.kernel, False
        elif isinstance(op, relay.MatmulOp | relay.BatchMatmulOp) and not op.transpose_a.value.data:
            data, kernel, turned = op.tensor_a, op.tensor_b, not op.transpose_b.value.data
        else:
            continue
        constant, sizes = kernel.owner, shape(kernel)
        types = {tensor(value).element_type for value in (data, kernel, op.result)}
        if types != {f32} or not isinstance(constant, relay.ConstantOp) or prod(sizes[:-2]) != 1:
            continue
        if rank(op.result) == rank(data) and DYNAMIC not in sizes:
            weights = to_numpy(constant.value).reshape(sizes[-2:])
            yield op, data, weights.T if turned else weights


def replace(op: Product, data: SSAValue, weights: Array, codes: Array, scales: Array, zero: int) -> None:
    """Replace a product by one with weights in few bits."""
    new = Expansion(op)
    arrays = codes, scales, np.full(scales.shape, zero, np.uint8)
    made = new.add(relay.WeightOnlyDenseOp, [data, *(new.constant(array, array.dtype) for array in arrays)])
    found = (codes.astype(np.float32) - zero) * scales[..., None]
    comparison = Comparison()
    comparison.add(weights, found, None)
    made.attributes[SNR] = FloatAttr(comparison.snr, f64)
    constant = op.operands[1].owner
    new.replace(PatternRewriter(op), made.result)
    if isinstance(constant, relay.ConstantOp) and not any(constant.result.uses):
        Rewriter.erase_op(constant)


def narrowed(blocks: Array, form: int | ReducedPrecisionFloatType) -> tuple[Array, Array, int]:
    """Blocks of weights as integer codes of `form` bits or as floats of the type `form`; a scale for each block along
    the last axis; and the zero point."""
    return (*in_steps(blocks, form), 1 << (form - 1)) if isinstance(form, int) else (*in_floats(blocks, form), 0)


def in_floats(blocks: Array, type: ReducedPrecisionFloatType) -> tuple[Array, Array]:
    """Blocks as the nearest floats of the type after division by each block's scale, which maps its largest element to
    the largest float; and the scales."""
    dtype = dtype_of(type)
    highest = np.float32(largest(dtype))
    scales = (np.abs(blocks).max(axis=-1, keepdims=True) / highest).astype(np.float32)
    numbers = np.divide(blocks, scales, out=np.zeros_like(blocks), where=scales != 0)
    return np.asarray(converted(np.clip(numbers, -highest, highest), dtype)), scales[..., 0]


def in_steps(blocks: Array, bits: int) -> tuple[Array, Array]:
    """Blocks as unsigned codes of `bits` bits, and a scale for each block along the last axis."""
    half, blocks = 1 << (bits - 1), blocks.astype(np.float64)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1)[..., None], axis=-1)
    best, codes, scales = np.full(largest.shape, inf), np.full(blocks.shape, half, np.uint8), np.zeros(largest.shape)
    for step in STEPS:
        scale = (-largest / (half - step)).astype(np.float32).astype(np.float64)
        steps = np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale != 0)
        steps = np.clip(np.rint(steps), -half, half - 1)
        error = np.square(steps * scale - blocks).sum(axis=-1, keepdims=True)
        better = error < best
        best, scales = np.where(better, error, best), np.where(better, scale, scales)
        codes = np.where(better, (steps + half).astype(np.uint8), codes)
    return codes, scales[..., 0].astype(np.float32) + np.float32(0)  # no negative zeros


@dataclass(frozen=True, slots=True)
class NarrowWeights:
    """How the weights of one product are stored."""

    name: str
    """The name of the operator in the model's file, or of the op."""
    units: int
    inputs: int
    bits: int
    """The width of a weight; 32 if the weights are float32."""
    block: int
    """The number of inputs per scale; 0 if the weights are float32."""
    bytes: int
    """The size of the codes and scales in bytes; of the float weights if they stay float32."""
    snr: float
    """The signal-to-noise ratio of the weights in decibels; infinite if they stay float32."""
    dtype: str = ""
    """The element type, if weights are stored as floats of few bits; otherwise empty."""

    def __str__(self) -> str:
        kind = f"{self.dtype or f'{self.bits} bits'} in blocks of {self.block}" if self.block else "floats"
        return f"{self.snr:6.1f} dB {self.bytes / 1e6:9.3f} MB  {self.units} x {self.inputs}, {kind}: {self.name}"


def narrow_weights(mod: IRModule | ModuleOp) -> list[NarrowWeights]:
    """How the weights of each product by a constant matrix are stored: in few bits, if `WeightOnly` quantized them, or
    as float32. The list is in program order; an element prints as one line."""
    module, found = as_module(mod).op, list[NarrowWeights]()
    floats: dict[Operation, Array] = {op: weights for op, _, weights in products(module, WeightOnly.name)}
    for op in marks.main_of(module, WeightOnly.name).walk():
        if (weights := floats.get(op)) is not None:
            units, inputs = weights.shape
            found.append(NarrowWeights(name_of(op), units, inputs, 32, 0, weights.nbytes, inf))
        elif isinstance(op, relay.WeightOnlyDenseOp) and isinstance(op.codes.owner, relay.ConstantOp):
            units, count, block = shape(op.codes)
            codes, type = to_numpy(op.codes.owner.value), tensor(op.codes).element_type
            dtype = str(type) if isinstance(type, ReducedPrecisionFloatType) else ""
            bits = op.bits_of(int(codes.max(initial=0))) if not dtype else 4 if bits_of(type) == 4 else 8
            snr = op.attributes.get(SNR)
            decibels = snr.value.data if isinstance(snr, FloatAttr) else inf
            size = units * count * (block * bits // 8 + 4)
            found.append(NarrowWeights(name_of(op), units, count * block, bits, block, size, decibels, dtype))
    return found


def name_of(op: Operation) -> str:
    return words(op.location) or op.name
