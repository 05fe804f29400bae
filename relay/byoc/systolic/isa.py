"""The instruction set of the machine: memories, instructions, their encoding. Imports nothing but the standard library.

- Memory is provided by the host: segment 0 has the program's constants, segment 1 its workspace, the others the
  tensors of the function, inputs before outputs. An address is `segment << 40 | byte`.
- The scratchpad has `SCRATCHPAD` rows of `LANES` bytes, the accumulator `ACCUMULATOR` rows of `LANES` int32.
- The array multiplies rows of the scratchpad by one stationary `LANES` x `LANES` matrix of int8.
- Instructions run one after another, in order; none overlap. One clock is 1 / `CLOCK` microseconds.

An instruction is `SIZE` bytes, little-endian: opcode (u16), flag (u16), ten i32 fields, one u64 address.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

KIND = "systolic 2"
"""The format of the artifacts, which have the arrays `code` and `constants`."""
LANES = 16
SCRATCHPAD = 1 << 14
ACCUMULATOR = 1 << 12
CLOCK = 500
"""The clock rate, in cycles per microsecond."""
CODE = struct.Struct("<HH10iQ")
SIZE = CODE.size
CONSTANTS, WORKSPACE, TENSORS = 0, 1, 2
"""The segments of memory; tensor k of the function is segment `TENSORS + k`."""
SEGMENT_BITS = 40
DOUBLE, SINGLE = 0, 1
"""The roundings of REQUANTIZE: twice, as `tflite`, or once, with halves away from zero."""


def address(segment: int, byte: int = 0) -> int:
    """The address of a byte of a memory segment: `segment << 40 | byte`. Segment 0 holds the program's constants, 1 its
    workspace, and each further one a tensor."""
    return segment << SEGMENT_BITS | byte


def place(where: int) -> tuple[int, int]:
    """Split an address `segment << 40 | byte` into the segment (constants, workspace, or a tensor of the function) and
    the byte in it."""
    return where >> SEGMENT_BITS, where & ((1 << SEGMENT_BITS) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """An instruction. The fields of a subclass are encoded in their order, except `address` and `flag`, which have
    fixed positions."""

    opcode: ClassVar[int]

    def encode(self) -> bytes:
        """The instruction's bytes."""
        named: dict[str, int] = {f.name: getattr(self, f.name) for f in fields(self)}
        where, flag = named.pop("address", 0), named.pop("flag", 0)
        return CODE.pack(self.opcode, flag, *named.values(), *[0] * (10 - len(named)), where)

    def __str__(self) -> str:
        parts = [f"{f.name}={_spelled(f.name, getattr(self, f.name))}" for f in fields(self)]
        return f"{type(self).__name__.lower():12s} {' '.join(parts)}".rstrip()


def _spelled(name: str, value: int) -> str:
    if name != "address":
        return str(value)
    segment, byte = place(value)
    return f"{ {CONSTANTS: 'constants', WORKSPACE: 'workspace'}.get(segment, f'tensor{segment - TENSORS}') }+{byte}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Instruction):
    """`outer` x `inner` pieces of `bytes` bytes (at most one row): piece (i, j) is at memory byte `address + i *
    outer_bytes + j * inner_bytes` and scratchpad row `row + i * outer_rows + j * inner_rows`."""

    address: int
    row: int
    bytes: int = LANES
    inner: int = 1
    inner_bytes: int = LANES
    inner_rows: int = 1
    outer: int = 1
    outer_bytes: int = 0
    outer_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Transfer):
    """Copy pieces of memory (see `Transfer`) to rows of the scratchpad, where lanes from `bytes` on become 0. Takes 32
    cycles, and one for each piece."""

    opcode: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Transfer):
    """Copy rows of the scratchpad to pieces of memory (see `Transfer`). Takes 32 cycles, and one for each piece."""

    opcode: ClassVar[int] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(Instruction):
    """Set scratchpad rows `row` to `row + rows - 1` to the byte `value`. Takes one cycle per row."""

    opcode: ClassVar[int] = 3
    row: int
    rows: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights(Instruction):
    """Load the array's stationary matrix from scratchpad rows `row` to `row + 15`; row `row + k` has the weights by
    which input lane k is multiplied for each output lane. Takes 16 cycles."""

    opcode: ClassVar[int] = 4
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias(Instruction):
    """Set every accumulator row from `target` to `target + rows - 1` to the 16 int32 of rows `row` to `row + 3`. Takes
    one cycle per row."""

    opcode: ClassVar[int] = 5
    row: int
    target: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply(Instruction):
    """Add to accumulator row `target + i * inner + j` the product of scratchpad row `row + i * outer_rows + j *
    inner_rows` (int8) and the matrix, wrapping, for i < outer, j < inner. Takes one cycle per row, and 31 to fill and
    drain the array."""

    opcode: ClassVar[int] = 6
    row: int
    target: int
    inner: int
    inner_rows: int
    outer: int
    outer_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Requantize(Instruction):
    """Set scratchpad row `row + i` to clamp(rescale(accumulator row `source + i`) + zero_point, low, high) as int8.
    Rows `parameters` to `parameters + 3` hold a multiplier (int32) for each lane, the next four a shift; rescale(x) = x
    * multiplier * 2^(shift - 31), rounded as `flag` says: DOUBLE or SINGLE. Takes one cycle per row."""

    opcode: ClassVar[int] = 7
    flag: int
    source: int
    row: int
    rows: int
    parameters: int
    zero_point: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Instruction):
    """Set scratchpad row `row + i` to the sum of the quantized rows `lhs + i` and `rhs + i`. Rows `parameters` to
    `parameters + 2` hold 12 int32: left shift; zero point, multiplier, shift of lhs; the same three of rhs; multiplier
    and shift of the sum; its zero point, low, high. Rescaling rounds twice, as `DOUBLE` of `Requantize`.
    Takes two cycles per row."""

    opcode: ClassVar[int] = 8
    lhs: int
    rhs: int
    row: int
    rows: int
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(Instruction):
    """Set scratchpad row `target` to the sum of `rows` rows `row + i * stride` (int8) divided by `rows`, with halves
    rounded away from zero. Takes one cycle for each row read, and 16 to divide."""

    opcode: ClassVar[int] = 9
    row: int
    stride: int
    rows: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Instruction):
    """Compute the softmax of the `count` int8 values from row `row` on, and write it from row `target` on, in units of
    1/256 with zero point -128. The 64 rows from `table` hold 256 int32: e^d in Q0.31 for the differences d = -255..0
    from the largest value; the arithmetic is gemmlowp's fixed point. Takes four cycles per value, and 64 for the
    reciprocal."""

    opcode: ClassVar[int] = 10
    row: int
    target: int
    count: int
    table: int


OPCODES: dict[int, type[Instruction]] = {
    kind.opcode: kind for kind in (Load, Store, Fill, Weights, Bias, Multiply, Requantize, Add, Average, Softmax)
}


def decode(code: bytes) -> Iterator[Instruction]:
    """Decode the instructions of a program. Raises ValueError for invalid bytes."""
    if len(code) % SIZE:
        raise ValueError(f"a program of {len(code)} bytes is no multiple of {SIZE}")
    for opcode, flag, *numbers, where in CODE.iter_unpack(code):
        kind = OPCODES.get(opcode)
        if kind is None:
            raise ValueError(f"opcode {opcode} is unknown")
        rest = iter(numbers)
        special = {"address": where, "flag": flag}
        yield kind(**{f.name: special[f.name] if f.name in special else next(rest) for f in fields(kind)})


def cycles(step: Instruction) -> int:
    """The number of cycles that an instruction takes."""
    match step:
        case Transfer():
            return 32 + step.inner * step.outer
        case Fill() | Bias() | Requantize():
            return step.rows
        case Weights():
            return LANES
        case Multiply():
            return step.inner * step.outer + 2 * LANES - 1
        case Add():
            return 2 * step.rows
        case Average():
            return step.rows + 16
        case Softmax():
            return 4 * step.count + 64
        case _:
            raise ValueError(f"{type(step).__name__} has no time")


def listing(code: Sequence[Instruction]) -> str:
    """The program as text, with one instruction per line."""
    return "".join(f"{number:5d}  {step}\n" for number, step in enumerate(code))
