"""Simulates the accelerator: executes its instructions (`isa`) in numpy and counts cycles. Imports nothing of the
compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relay.byoc.systolic.fixed_point import reciprocal, rescale, rescale_once, rounding_shift, srdhm
from relay.byoc.systolic.isa import (
    ACCUMULATOR,
    DOUBLE,
    LANES,
    SCRATCHPAD,
    Add,
    Average,
    Bias,
    Fill,
    Instruction,
    Load,
    Multiply,
    Requantize,
    Softmax,
    Store,
    Transfer,
    Weights,
    cycles,
    place,
)

Bytes = npt.NDArray[np.int8]
Int64 = npt.NDArray[np.int64]


class Simulator:
    """A simulated machine. `segments` are byte arrays that loads read and stores write in place.

    `cycles` counts cycles by kind of instruction. Raises ValueError for an access outside a memory.
    """

    def __init__(self, segments: Sequence[Bytes]):
        self.segments = segments
        self.scratchpad = np.zeros((SCRATCHPAD, LANES), np.int8)
        self.accumulator = np.zeros((ACCUMULATOR, LANES), np.int32)
        self.matrix = np.zeros((LANES, LANES), np.int32)
        self.cycles: dict[str, int] = {}

    def run(self, program: Sequence[Instruction]) -> int:
        """Execute every instruction in order. Returns the number of cycles."""
        total = 0
        for step in program:
            taken = cycles(step)
            self.step(step)
            name = type(step).__name__.lower()
            self.cycles[name] = self.cycles.get(name, 0) + taken
            total += taken
        return total

    def step(self, step: Instruction) -> None:
        """Execute one instruction."""
        match step:
            case Load():
                self.load(step)
            case Store():
                self.store(step)
            case Fill():
                self.rows(step.row, step.rows)[...] = step.value
            case Weights():
                self.matrix = self.rows(step.row, LANES).astype(np.int32)
            case Bias():
                self.sums(step.target, step.rows)[...] = self.numbers(step.row, 4)
            case Multiply():
                self.multiply(step)
            case Requantize():
                self.requantize(step)
            case Add():
                self.add(step)
            case Average():
                total = self.rows(step.row, (step.rows - 1) * step.stride + 1)[:: step.stride].sum(0, np.int64)
                size = (np.abs(total) + step.rows // 2) // step.rows
                self.rows(step.target, 1)[0] = np.sign(total) * size
            case Softmax():
                self.softmax(step)
            case _:
                raise ValueError(f"{type(step).__name__} is no instruction")

    # Memories

    def rows(self, first: int, count: int) -> Bytes:
        """The rows of the scratchpad from `first` on."""
        if not 0 <= first <= first + count <= SCRATCHPAD:
            raise ValueError(f"rows {first} to {first + count - 1} are outside the scratchpad")
        return self.scratchpad[first : first + count]

    def sums(self, first: int, count: int) -> npt.NDArray[np.int32]:
        """The rows of the accumulator from `first` on."""
        if not 0 <= first <= first + count <= ACCUMULATOR:
            raise ValueError(f"rows {first} to {first + count - 1} are outside the accumulator")
        return self.accumulator[first : first + count]

    def numbers(self, row: int, rows: int) -> npt.NDArray[np.int32]:
        """The rows of the scratchpad from `row` on, as int32."""
        return self.rows(row, rows).reshape(-1).view(np.int32)

    def pieces(self, step: Transfer) -> tuple[Bytes, Bytes]:
        """The pieces of a transfer in memory and in the scratchpad: views of the same shape, [outer, inner, bytes]."""
        segment, byte = place(step.address)
        if not 0 <= segment < len(self.segments) or not 1 <= step.bytes <= LANES or min(step.inner, step.outer) < 1:
            raise ValueError(f"{step} is malformed")
        counts = (step.outer, step.inner, step.bytes)
        memory = window(self.segments[segment], byte, counts, (step.outer_bytes, step.inner_bytes, 1))
        return memory, self.lanes(step, step.bytes)

    def lanes(self, step: Transfer | Multiply, count: int) -> Bytes:
        """The first `count` bytes of the scratchpad's rows that an instruction names, [outer, inner, bytes]."""
        strides = (step.outer_rows * LANES, step.inner_rows * LANES, 1)
        return window(self.scratchpad.reshape(-1), step.row * LANES, (step.outer, step.inner, count), strides)

    def load(self, step: Load) -> None:
        memory, rows = self.pieces(step)
        if step.bytes < LANES:
            self.lanes(step, LANES)[...] = 0
        rows[...] = memory

    def store(self, step: Store) -> None:
        memory, rows = self.pieces(step)
        memory[...] = rows

    # Arithmetic

    def multiply(self, step: Multiply) -> None:
        rows = self.lanes(step, LANES).reshape(-1, LANES)
        target = self.sums(step.target, step.inner * step.outer)
        # 16 products of int8 are exact in float32, which numpy multiplies much faster than integers
        product = rows.astype(np.float32) @ self.matrix.astype(np.float32)
        np.add(target, product.astype(np.int32), out=target)

    def requantize(self, step: Requantize) -> None:
        sums = self.sums(step.source, step.rows).astype(np.int64)
        multiplier = self.numbers(step.parameters, 4).astype(np.int64)
        shift = self.numbers(step.parameters + 4, 4).astype(np.int64)
        codes = rescaled_codes(step.flag, sums, multiplier, shift, step.zero_point, step.low, step.high)
        self.rows(step.row, step.rows)[...] = codes

    def add(self, step: Add) -> None:
        n: list[int] = self.numbers(step.parameters, 3).tolist()
        lhs = (self.rows(step.lhs, step.rows).astype(np.int64) - n[1]) << n[0]
        rhs = (self.rows(step.rhs, step.rows).astype(np.int64) - n[4]) << n[0]
        total = rescale(lhs, n[2], n[3]) + rescale(rhs, n[5], n[6])
        self.rows(step.row, step.rows)[...] = np.clip(rescale(total, n[7], n[8]) + n[9], n[10], n[11])

    def softmax(self, step: Softmax) -> None:
        rows = -(-step.count // LANES)
        codes = self.rows(step.row, rows).reshape(-1)[: step.count].astype(np.int64)
        power: Int64 = self.numbers(step.table, 64)[codes - codes.max() + 255].astype(np.int64)
        mantissa, headroom = reciprocal(int(rounding_shift(power, 12).sum()))
        scaled = rounding_shift(srdhm(power, mantissa), 12 - headroom + 31 - 8)
        self.rows(step.target, rows).reshape(-1)[: step.count] = np.clip(scaled - 128, -128, 127)


def rescaled_codes(
    rounding: int, sums: Int64, multiplier: Int64, shift: Int64, zero_point: int, low: int, high: int
) -> Int64:
    """The int8 results that REQUANTIZE computes from sums."""
    scaled = (rescale if rounding == DOUBLE else rescale_once)(sums, multiplier, shift)
    return np.clip(scaled + zero_point, low, high)


def window(memory: Bytes, first: int, counts: Sequence[int], strides: Sequence[int]) -> npt.NDArray[Any]:
    """A view of bytes in which element (i, j, k) is byte `first + i * strides[0] + j * strides[1] + k * strides[2]`."""
    last = first + sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True))
    if min(strides) < 0 or first < 0 or last >= memory.size:
        raise ValueError(f"bytes {first} to {last} are outside a memory of {memory.size}")
    return np.lib.stride_tricks.as_strided(memory[first:], tuple(counts), tuple(strides))
