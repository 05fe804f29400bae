"""Products of floats with weights of few bits, in blocks that each have a scale and a zero point: their recognition,
the packing of codes, and the conversion of codes to floats by threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8, i16, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue

from relay.dialects import relay
from relay.dialects.arith import ExtUIOp
from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import contractions, widest_of
from relay.lowering.gpu.points import Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.tiles import CHUNK
from relay.lowering.indices import quotient
from relay.lowering.linalg.contraction import CODES
from relay.lowering.scheduling.given_constants import GivenConstants, argument_of
from relay.lowering.scheduling.weight_only import codes_of
from relay.lowering.shaped import shape_of

MAGIC = 0x4B000000
"""The bits of the float 2^23, whose last bit has the value 1: with a code in its lowest bits, it is 2^23 plus the
code."""
WORD_BITS = 32


@dataclass(frozen=True)
class BlockWeights:
    """A product of `rows` by `channels`, with the operations that follow it, `nest`. Its data is float32[rows, blocks *
    block]; `arguments`: the function's arguments for codes, scales and zero points, constants in all calls; `bits`: the
    bits of a packed code; `zero`: the zero point, if all are equal, else None."""

    nest: Nest
    sums: Nest
    arguments: tuple[BlockArgument, BlockArgument, BlockArgument]
    bits: int
    zero: int | None
    widest: int

    @property
    def op(self) -> linalg.GenericOp:
        return self.sums.op

    @property
    def rows(self) -> int:
        return shape_of(self.op.outputs[0])[0]

    @property
    def channels(self) -> int:
        return shape_of(self.op.outputs[0])[1]

    @property
    def blocks(self) -> int:
        """The number of blocks of a channel."""
        return shape_of(self.op.inputs[1])[1]

    @property
    def block(self) -> int:
        """The number of weights that share a scale."""
        return shape_of(self.op.inputs[1])[2]

    @property
    def depth(self) -> int:
        return self.blocks * self.block

    @property
    def piece(self) -> int:
        """The number of codes of a channel that a thread reads at once."""
        return gcd(8 * CHUNK // self.bits, self.depth)

    def largest(self, given: GivenConstants) -> float:
        """Return an upper bound of the weights' magnitudes."""
        scales = [np.abs(each).max(initial=0) for each in given.arrays_of(self.arguments[1])]
        return float(max(scales)) * ((1 << 8) - 1)

    def pack(self, given: GivenConstants) -> list[SSAValue]:
        """Replace the arguments for codes, scales and zero points by packed ones, and return these. All are flat; codes
        are packed into bytes from the lowest bits on. Zero points that are all equal are omitted."""
        codes, scales, zeros = map(given.arrays_of, self.arguments)
        bytes = [[pack(each.view(np.uint8), self.bits)] for each in codes]
        kept = [[each.reshape(-1).view(np.int8)] if self.zero is None else [] for each in zeros]
        columns = bytes, [[each.reshape(-1)] for each in scales], kept
        found = list[SSAValue]()
        for argument, packs in zip(self.arguments, columns, strict=True):
            found += given.replace(argument, packs)
        return found


def pack(codes: Array, bits: int) -> Array:
    """Pack codes into bytes, from the lowest bits on."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(codes.reshape(-1, len(shifts)) << shifts, axis=1).astype(np.uint8).view(np.int8)


def block_weights_of(nest: Nest, producers: Mapping[SSAValue, Producer], given: GivenConstants) -> BlockWeights | None:
    """Return the nest as a product with weights in blocks and the operations that follow it, if it is one; else
    None."""
    found = list(contractions(nest, producers))
    sums = found[0] if len(found) == 1 else None
    if sums is None or not given.calls or codes_of(sums.op) != CODES or sums.op.inputs[0] in producers:
        return None
    if not sums.starts_at_zero:
        return None
    arguments = [argument_of(value) for value in sums.op.inputs[1:]]
    known = [each for each in arguments if each is not None and given.constant(each)]
    if len(known) < 3:
        return None
    codes, zeros = ([each.view(np.uint8) for each in given.arrays_of(known[n])] for n in (0, 2))
    bits = relay.WeightOnlyDenseOp.bits_of(max(int(each.max(initial=0)) for each in codes))
    every = np.unique(np.concatenate([each.reshape(-1) for each in zeros]))
    widest = widest_of(nest, sums, producers, shape_of(sums.op.outputs[0])[1])
    zero = int(every[0]) if len(every) == 1 else None
    return BlockWeights(nest, sums, (known[0], known[1], known[2]), bits, zero, widest)


class BlockReader:
    """Emits a thread's accesses to the codes of one channel. `buffers`: the packed codes, the scales, and the zero
    points if they differ."""

    def __init__(self, b: LoopBuilder, weights: BlockWeights, buffers: Sequence[SSAValue]):
        self.b, self.w = b, weights
        self.codes, self.scales, *self.zeros = buffers

    def words(self, channel: Index, place: Index, count: int) -> list[SSAValue]:
        """Load `count` codes at a position of the depth that is a multiple of `count`, as words; the last word may be
        partial."""
        b, size = self.b, count * self.w.bits // 8
        first = b.plus(b.times(channel, self.w.depth), place)
        bytes = b.vector_load(self.codes, [quotient(b, first, 8 // self.w.bits)], size)
        if size < WORD_BITS // 8:
            part = b.lane(b.bitcast(bytes, i8 if size == 1 else i16, 1), 0)
            return [b.add(ExtUIOp(part, i32)).result]
        whole = b.bitcast(bytes, i32, size * 8 // WORD_BITS)
        return [b.lane(whole, n) for n in range(size * 8 // WORD_BITS)]

    def steps(self, words: Sequence[SSAValue], count: int, start: SSAValue) -> Iterator[SSAValue]:
        """Yield the first `count` codes of `words` as floats, each minus the zero point. Each is computed exactly, as a
        difference of two floats: 2^23 plus the code, minus `start`, which is 2^23 plus the zero point."""
        b, per, mask = self.b, WORD_BITS // self.w.bits, self.b.constant((1 << self.w.bits) - 1, i32)
        for number in range(count):
            word, shift = words[number // per], number % per * self.w.bits
            low = b.add(arith.ShRUIOp(word, b.constant(shift, i32))).result if shift else word
            code = b.add(arith.AndIOp(low, mask)).result
            yield b.add(arith.SubfOp(self.magic(code), start)).result

    def magic(self, code: SSAValue) -> SSAValue:
        """Return 2^23 plus a code, as a float."""
        b = self.b
        return b.add(arith.BitcastOp(b.add(arith.OrIOp(code, b.constant(MAGIC, i32))).result, f32)).result

    def scale(self, channel: Index, place: Index) -> tuple[SSAValue, SSAValue]:
        """Return the scale of a channel's block of weights that contains position `place` of the depth (the axis that
        is summed), and the float 2^23 plus the block's zero point, from which `steps` computes codes minus zero
        point."""
        b = self.b
        at = b.plus(b.times(channel, self.w.blocks), quotient(b, place, self.w.block))
        scale = b.load(self.scales, [at])
        if self.w.zero is not None:
            return scale, b.constant(float((1 << 23) + self.w.zero), f32)
        return scale, self.magic(b.add(ExtUIOp(b.load(self.zeros[0], [at]), i32)).result)
