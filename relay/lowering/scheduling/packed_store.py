"""The epilogue of a tile of a contraction that ends in codes: four vectors of accumulators become 64 bytes in memory
order.

The epilogue is emitted vector by vector up to the value that is clamped; `saturate` then narrows four vectors at a
time, and one shuffle of words puts the codes in memory order. Vectors that are contiguous in memory are stored
together: the channels of a pixel, and neighbouring pixels if the tile has all their channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i8, i32
from xdsl.ir import SSAValue

from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.scheduling.affine import strides
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.saturate import saturate
from relay.lowering.shaped import shape_of
from relay.target import LANES

GROUP = 4
"""The number of vectors that are narrowed at once, which is also the number of codes in a word."""
WORDS = LANES // GROUP
"""The number of words that hold one vector's codes."""


class PackedStore:
    """Stores the results of an epilogue with one output, which ends in clamped 8-bit codes: accumulators are narrowed
    to codes 64 at a time."""

    def __init__(self, builder: LoopBuilder, epilogue: Epilogue):
        self.b, self.epilogue = builder, epilogue
        self.shape = shape_of(epilogue.outputs[0].value)
        self.target = builder.flatten(epilogue.outputs[0].value)

    def tile(self, values: Sequence[SSAValue], point: Sequence[Index], channel: Index, vectors: int, last: int) -> None:
        """Store a tile of accumulators [pixel][vector], of pixels from `point` and channels from `channel` on; the last
        vector of a pixel has `last` channels, a multiple of 4."""
        *outer, x = point
        start = self.place([*outer, x, channel])
        for first in range(0, len(values), GROUP):
            numbers = range(first, min(first + GROUP, len(values)))
            results: list[SSAValue] = []
            words: list[int] = []
            places: list[int] = []
            for number in numbers:
                pixel, v = divmod(number, vectors)
                lanes = last if v == vectors - 1 else LANES
                at = [*outer, self.b.plus(x, pixel)]
                results.append(self.result(values[number], at, self.b.plus(channel, v * LANES), lanes))
                for word in range(lanes // GROUP):
                    words.append(WORDS * word + number - first)
                    places.append(pixel * self.shape[-1] + v * LANES + word * GROUP)
            results += results[-1:] * (GROUP - len(results))
            assert self.epilogue.clamp is not None
            self.store(saturate(self.b, self.epilogue.clamp, results), words, places, start)

    def result(self, accumulators: SSAValue, point: Sequence[Index], channel: Index, lanes: int) -> SSAValue:
        """Emit the epilogue for one vector of accumulators, except for the final clamp to 8-bit codes. Returns the
        value to clamp."""
        epilogue = self.epilogue
        assert epilogue.op is not None and epilogue.clamp is not None
        dims = [*point, channel]
        values = [epilogue.operand(access, accumulators, dims, lanes) for access in epilogue.accesses]
        return epilogue.lifter.emit(epilogue.op.body.block, values, [epilogue.clamp.value])[0]

    def place(self, dims: Sequence[Index]) -> Index:
        """Return the offset of the element of the result with the indices `dims`."""
        b = self.b
        total: Index = 0
        for dim, stride in zip(dims, strides(self.shape), strict=True):
            total = b.plus(total, b.times(dim, stride))
        return total

    def store(self, codes: SSAValue, words: Sequence[int], places: Sequence[int], start: Index) -> None:
        """Store some 32-bit words of a vector of codes: word number `words[i]` at offset `start + places[i]`. Words
        that are contiguous in memory are stored together."""
        b = self.b
        count = 0
        while count < len(words):
            run = 1
            while count + run < len(words) and places[count + run] == places[count] + run * GROUP:
                run += 1
            size = 1 << run.bit_length() - 1
            every = b.bitcast(codes, i32, LANES)
            chosen = b.bitcast(b.shuffle(every, every, words[count : count + size]), i8, size * GROUP)
            b.vector_store(chosen, self.target, [b.plus(start, places[count])])
            count += size
