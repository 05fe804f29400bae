"""Rows of quantized tables, which are dequantized after they were taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing.tensors import TensorBuilder


@dataclass(frozen=True)
class Rows:
    """A quantized table [row, column] with one value per byte, and scales and zero points [row, block]."""

    name: str
    codes: Array
    scales: Array
    zeros: Array
    bits: int


def rows_of(importer: TensorBuilder, table: Rows, indices: SSAValue, mode: str) -> SSAValue:
    """`(code - zero point) * scale` of the rows at these indices; the table is packed to as many bytes as its values
    need. `mode` is that of `relay.take` for indices out of range."""
    low = 1 << (table.bits - 1) if table.codes.dtype.name.startswith("int") else 0
    codes, zeros = (array.astype(np.int16) + low for array in (table.codes, table.zeros))
    per = 8 // table.bits
    shifts = np.arange(per, dtype=np.uint8) * np.uint8(table.bits)
    ends = np.pad(codes.astype(np.uint8), ((0, 0), (0, -codes.shape[1] % per)))
    packed = np.bitwise_or.reduce(ends.reshape(len(codes), -1, per) << shifts, axis=2)

    def taken(array: Array, kind: str) -> SSAValue:
        return importer.call(relay.TakeOp, importer.constant(array, table.name + kind), indices, axis=0, mode=mode)

    found = taken(packed, "")
    outer, blocks = importer.shape(found)[:-1], table.scales.shape[1]
    if per > 1:
        found = importer.reshape(found, [*outer, packed.shape[1], 1])
        found = importer.call(relay.RightShiftOp, found, importer.unnamed(shifts))
        mask = importer.unnamed(np.array([(1 << table.bits) - 1], np.uint8))
        found = importer.call(relay.BitwiseAndOp, found, mask)
    if ends.shape != codes.shape:
        found = importer.reshape(found, [*outer, ends.shape[1]])
        found = importer.slice(found, {len(outer): (0, codes.shape[1])})
    found = importer.reshape(found, [*outer, blocks, codes.shape[1] // blocks])
    steps = importer.cast(found, f32)

    def along(array: Array, kind: str) -> SSAValue:
        if array.min() == array.max():
            return importer.unnamed(array.reshape(-1)[0])
        return importer.reshape(taken(array, kind), [*outer, blocks, 1])

    if zeros.any():
        steps = importer.call(relay.SubtractOp, steps, along(zeros.astype(np.float32), "_zero_points"))
    steps = importer.call(relay.MultiplyOp, steps, along(table.scales, "_scales"))
    return importer.reshape(steps, [*outer, codes.shape[1]])
