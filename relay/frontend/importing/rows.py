"""Rows of quantized tables, which are dequantized after they were taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, ints
from relay.frontend.importing.builder import Builder


@dataclass(frozen=True)
class Rows:
    """A quantized table [row, column] with one value per byte, and scales and zero points [row, block]."""

    name: str
    codes: Array
    scales: Array
    zeros: Array
    bits: int


def rows_of(importer: Builder, table: Rows, indices: SSAValue, mode: str) -> SSAValue:
    """`(code - zero point) * scale` of the rows at these indices; the table is packed to as many bytes as its values
    need. `mode` is that of `relay.take` for indices out of range."""
    low = 1 << (table.bits - 1) if table.codes.dtype.name.startswith("int") else 0
    codes, zeros = (array.astype(np.int16) + low for array in (table.codes, table.zeros))
    per = 8 // table.bits
    shifts = np.arange(per, dtype=np.uint8) * np.uint8(table.bits)
    ends = np.pad(codes.astype(np.uint8), ((0, 0), (0, -codes.shape[1] % per)))
    packed = np.bitwise_or.reduce(ends.reshape(len(codes), -1, per) << shifts, axis=2)

    def taken(array: Array, kind: str) -> SSAValue:
        properties = {"axis": IntegerAttr(0, i64), "mode": StringAttr(mode)}
        return importer.emit(relay.TakeOp, [importer.constant(array, table.name + kind), indices], properties).result

    found = taken(packed, "")
    outer, blocks = importer.shape(found)[:-1], table.scales.shape[1]
    if per > 1:
        found = importer.reshape(found, [*outer, packed.shape[1], 1])
        found = importer.emit(relay.RightShiftOp, [found, importer.unnamed(shifts)]).result
        mask = importer.unnamed(np.array([(1 << table.bits) - 1], np.uint8))
        found = importer.emit(relay.BitwiseAndOp, [found, mask]).result
    if ends.shape != codes.shape:
        found = importer.reshape(found, [*outer, ends.shape[1]])
        zero, one = ([number] * (len(outer) + 1) for number in (0, 1))
        bounds = {"begin": ints(zero), "end": ints([*outer, codes.shape[1]]), "strides": ints(one)}
        found = importer.emit(relay.StridedSliceOp, [found], bounds).result
    found = importer.reshape(found, [*outer, blocks, codes.shape[1] // blocks])
    steps = importer.emit(relay.CastOp, [found], {"dtype": f32}).result

    def along(array: Array, kind: str) -> SSAValue:
        if array.min() == array.max():
            return importer.unnamed(array.reshape(-1)[0])
        return importer.reshape(taken(array, kind), [*outer, blocks, 1])

    if zeros.any():
        steps = importer.emit(relay.SubtractOp, [steps, along(zeros.astype(np.float32), "_zero_points")]).result
    steps = importer.emit(relay.MultiplyOp, [steps, along(table.scales, "_scales")]).result
    return importer.reshape(steps, [*outer, codes.shape[1]])
