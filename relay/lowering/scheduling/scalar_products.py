"""Convolutions and products on targets without vectors: a tile of pixels x outputs in scalar registers.

Quantized weights are stored with the zero point subtracted, in 8 bits if all differences fit, in the order in which the
kernel reads them; channels are not padded. The epilogue of a tile is a loop over its accumulators, to keep the code
small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from xdsl.dialects import arith, math, memref, vector
from xdsl.dialects.builtin import i1, i8, i32
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.indices import below, when
from relay.lowering.scheduling.bias import concatenated
from relay.lowering.scheduling.body import dense_vector, vector_constant
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.contractions import OfWeights, weighted_of
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.loops import over
from relay.lowering.scheduling.packed import Packed
from relay.lowering.scheduling.packing import initial_accumulator, padded, run_length
from relay.lowering.scheduling.padding import Padding
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.plan import extension_of
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.strategy import Emission, Kernel
from relay.lowering.shaped import shape_of, vector_of

LARGEST = 8
"""The most pixels of a tile, and the most outputs."""
REST = 0.2
"""The number of loads per product by which a tile must be better to justify extra code for the pixels or outputs that
it leaves over."""
WHOLE = 16
"""The number of codes in a vector register (MVE)."""
SHORTEST = 6
"""The fewest codes of a contiguous run for which vector registers are used."""
TURNED = 128
"""The number by which unsigned codes are reduced, by inverting their highest bit, to make them signed like their
weights."""
MOST_STEPS = 16
"""The most products of a contiguous run in one iteration of the loop over it."""

Tile = tuple[int, int]
"""The number of pixels and the number of outputs of a tile."""


@dataclass(frozen=True, kw_only=True)
class ScalarProductsSchedule(OpSchedule):
    """The decisions about a contraction whose accumulators are in scalar registers. `tile`: pixels and outputs whose
    accumulators are in registers at once; `steps`: products of a contiguous run in one iteration of the loop over it;
    `flat`: all pixels form one row; `fused`: float products are added by fused multiply-adds; `band`: of a padded
    image, only the rows under a window are copied, once for each row of results; `pairs`: an instruction (Arm's SMLAD)
    adds two products of codes extended to 16 bits to an accumulator; `sums`: an instruction (Arm's VMLADAVA) adds the
    products of two registers of 16 codes to an accumulator."""

    strategy = "scalar_products"
    tile: Tile
    steps: int
    flat: bool
    fused: bool
    band: bool
    pairs: bool
    sums: bool


@dataclass(frozen=True)
class ScalarProducts(OfWeights[ScalarProductsSchedule]):
    """A convolution or product on a target whose registers hold a single number."""

    record = ScalarProductsSchedule
    vectors = False

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = None if kernel.target.has_vectors else weighted_of(op, kernel)
        return None if found is None else cls(found.op, found)

    @property
    def count(self) -> int:
        """The number of convolutions: one for each group of channels."""
        return 1 if self.found.groups is None else self.found.groups.count

    def decide(self, kernel: Kernel, pick: Picks) -> ScalarProductsSchedule:
        conv = self.found.conv
        flat = pick("flat", options := self.found.flat(conv), options[0])
        width = conv.images * conv.out_rows * conv.out_columns if flat else conv.out_columns
        run = run_of(conv)
        sums = pick.may("sums", kernel.target.adds_products and run >= SHORTEST and self.takes_codes)
        # four codes are loaded at once as a 32-bit word
        pairs = pick.may("pairs", kernel.target.has("dsp") and run % 4 == 0 and self.takes_codes and not sums)
        pixels, outputs = pick(
            "tile",
            Tuples(range(1, LARGEST + 1), range(1, 2 if conv.depthwise else LARGEST + 1)),
            best_tile(conv, width, pairs or sums),
        )
        every = range(min(run, 1 if kernel.target.compiled_again else MOST_STEPS), 0, -1)
        divisors = [count for count in every if run % count == 0 and (not pairs or count % 4 == 0)]
        steps = WHOLE if sums else pick("steps", divisors, divisors[0])
        taps = conv.kernel_rows * conv.kernel_columns * (1 if conv.depthwise else conv.channels)
        products = self.count * conv.images * conv.out_rows * conv.out_columns * conv.outputs * taps
        loads = (pixels + outputs) * (0.75 if pairs else 1) + 2 / steps
        cycles = round(products * ((0.5 if pairs else 1) + loads / (pixels * outputs)))
        cycles = cycles * 4 // WHOLE if sums else cycles
        how = f", {WHOLE} codes at once" if sums else ", by pairs of codes" if pairs else ""
        why = f"{pixels} pixels and {outputs} outputs in scalar registers{how}"
        pick.only("fused", conv.is_float and kernel.target.fuses)
        padding = kernel.waiting.get(conv.data.value)
        pick.may("band", not flat and padding is not None and padding.of_image)
        return pick.schedule(ScalarProductsSchedule, cycles, why, steps=steps)

    @property
    def takes_codes(self) -> bool:
        """Whether data and weights are contiguous 8-bit codes."""
        conv = self.found.conv
        if conv.depthwise or conv.is_float or conv.data.element != i8:
            return False
        return all(fits(kernel.astype(np.int16) - conv.kernel.zero_point) for kernel in self.found.kernels)

    def emit(self, emission: Emission, schedule: ScalarProductsSchedule) -> None:
        found = self.found
        epilogue = found.start(emission, masks=False)
        if schedule.flat:
            epilogue.flatten_points()
        padding = emission.prepare_padding(found.conv.data.value, pads=schedule.band)
        packed = [self.packed(schedule, *each) for each in zip(found.kernels, found.biases, strict=True)]
        if all(map(fits, (one.weights for one in packed))):
            packed = [replace(one, weights=one.weights.astype(np.int8)) for one in packed]
        arguments = found.give(emission, packed)
        ScalarProductsEmitter(emission.builder, found.conv, self.count, arguments, epilogue, schedule, padding).emit()

    def packed(self, schedule: ScalarProductsSchedule, kernel: Array, bias: Array | None) -> Packed:
        """Return the packed constants of a call, those of all groups concatenated."""
        groups = self.found.groups
        kernels = [kernel] if groups is None else [*groups.kernel_of(kernel)]
        every = [pack(self.found.conv, each, schedule) for each in kernels]
        return concatenated(every, None if bias is None else [*bias.reshape(self.count, -1)])


def fits(numbers: Array) -> bool:
    """Whether all numbers fit 8 bits."""
    return np.array_equal(numbers.astype(np.int8), numbers)


def best_tile(conv: Convolution, width: int, pairs: bool) -> tuple[int, int]:
    """Return the pixels and outputs of the tile with the fewest loads per product, among those whose accumulators,
    factors and addresses fit 13 registers: a weight is loaded once for the pixels of a tile, a code once for its
    outputs. Leftover pixels or outputs need extra code, which counts as `REST` loads."""
    if conv.depthwise:
        return next((pixels for pixels in (4, 5, 3) if width % pixels == 0), min(width, 4)), 1
    every = ((2, 2), (1, 3), (1, 2), (1, 1)) if pairs else ((3, 2), (2, 2), (1, 4), (1, 3), (1, 2), (1, 1))

    def loads(tile: tuple[int, int]) -> float:
        sizes = list(zip((width, conv.outputs), tile, strict=True))
        return sum(-(-size // part) / size + REST * bool(size % part) for size, part in sizes)

    return min((tile for tile in every if tile[0] <= width and tile[1] <= conv.outputs), key=loads)


def run_of(conv: Convolution) -> int:
    """Return the number of steps of the innermost loop: products of contiguous data, or, for depthwise convolutions,
    the columns of a window."""
    return conv.kernel_columns if conv.depthwise else run_length(conv)


def pack(conv: Convolution, kernel: Array, schedule: ScalarProductsSchedule) -> Packed:
    """Pack a kernel [output, row, column, channel], or [row, column, output] of a depthwise convolution, as
    [block of outputs][step][output]; the last block may be smaller. For `pairs`, four steps of an output are
    contiguous, for `sums` all steps. The zero point is subtracted from codes. The differences have up to 9 bits and are
    returned as 16-bit numbers, which the caller narrows if all fit 8 bits."""
    outputs, group = (1, 1) if schedule.sums else (schedule.tile[1], 4 if schedule.pairs else 1)
    codes = kernel if conv.is_float else kernel.astype(np.int16) - np.int16(conv.kernel.zero_point)
    matrix = codes.reshape(-1, conv.outputs).T if conv.depthwise else codes.reshape(conv.outputs, -1)
    words = matrix.reshape(conv.outputs, -1, group).swapaxes(0, 1)
    weights = np.concatenate([words[:, o : o + outputs].reshape(-1) for o in range(0, conv.outputs, outputs)])
    if conv.is_float:
        return Packed(weights, padded(np.zeros(conv.outputs, np.float32)))
    turned = TURNED if schedule.sums and conv.data.unsigned else 0
    return Packed(weights, initial_accumulator(conv, kernel, conv.data.zero_point - turned))


class ScalarProductsEmitter:
    """Emits one convolution with its epilogue. `padding`: a padded copy of the data that the emitter writes itself, one
    band of rows at a time (see `ScalarProductsSchedule`); None if the data is read as it is."""

    def __init__(
        self,
        builder: LoopBuilder,
        conv: Convolution,
        count: int,
        constants: Sequence[SSAValue],
        epilogue: Epilogue,
        schedule: ScalarProductsSchedule,
        padding: Padding | None,
    ):
        self.b, self.conv, self.epilogue, self.schedule = builder, conv, epilogue, schedule
        self.padding = padding
        if padding is None:
            self.data = builder.flatten(conv.data.value)
        else:
            rows = (conv.kernel_rows - 1) * conv.dilation[0] + 1
            size = rows * conv.columns * conv.pitch
            self.data = builder.add(memref.AllocOp.get(conv.data.element, 8, [size])).memref
        self.weights, self.initial = constants
        self.count = count
        self.pixels, self.outputs = schedule.tile
        self.run = run_of(conv)
        self.depth = conv.kernel_rows * conv.kernel_columns * (1 if conv.depthwise else conv.channels)
        self.extend = extension_of(conv)

    def emit(self) -> None:
        b, conv = self.b, self.conv
        if self.schedule.flat:
            self.row([], 0, conv.images * conv.out_rows * conv.out_columns)
            return
        if self.padding is not None:
            self.fill(self.padding, 0, shape_of(self.data)[0])
        with b.loop(0, conv.images) as (n, _), b.loop(0, conv.out_rows) as (y, _):
            if self.padding is None:
                line = b.plus(b.times(n, conv.rows), b.times(y, conv.strides[0]))
                self.row([n, y], b.times(line, conv.columns), conv.out_columns)
            else:
                self.copy_band(self.padding, n, y)
                self.row([n, y], 0, conv.out_columns)

    def copy_band(self, padding: Padding, image: Index, y: Index) -> None:
        """Copy the image rows under the windows of result row `y`; the borders left and right of them are filled
        already."""
        b, conv = self.b, self.conv
        _, height, width, channels = shape_of(padding.source)
        source, top, left = b.flatten(padding.source), padding.low[1], padding.low[2]
        line, inside = conv.columns * conv.pitch, width * channels
        first = b.plus(b.times(y, conv.strides[0]), -top)
        with b.loop(0, conv.kernel_rows) as (i, _):
            row = b.plus(first, b.times(i, conv.dilation[0]))
            start = b.plus(b.times(i, conv.dilation[0] * line), left * channels)

            def copy() -> None:
                read = b.times(b.plus(b.times(image, height), row), inside)
                with b.loop(0, inside) as (k, _):
                    b.store(b.load(source, [b.plus(read, k)]), self.data, [b.plus(start, k)])

            when(b, below(b, row, height), copy, lambda: self.fill(padding, start, inside))

    def fill(self, padding: Padding, start: Index, count: int) -> None:
        """Emit stores of `count` padding values from element `start` on."""
        with self.b.loop(0, count) as (k, _):
            self.b.store(padding.value, self.data, [self.b.plus(start, k)])

    def row(self, point: Sequence[Index], first: Index, width: int) -> None:
        """Emit all pixels of a row, whose first window starts at pixel `first`."""
        with self.b.loop(0, self.count) as (group, _):
            over(self.b, width, self.pixels, lambda x, pixels: self.all_outputs(group, point, first, x, pixels))

    def all_outputs(self, group: Index, point: Sequence[Index], first: Index, x: Index, pixels: int) -> None:
        """Emit all output channels of one group for the `pixels` neighbouring pixels from index `x` of a row on.
        `point`: the row's indices in the result; `first`: the input pixel at which the row's first window starts."""
        b, conv = self.b, self.conv
        pixel = b.times(b.plus(first, b.times(x, conv.strides[1])), conv.pitch)
        at = b.plus(pixel, b.times(group, conv.channels))
        over(b, conv.outputs, self.outputs, lambda o, outputs: self.tile(group, [*point, x], at, o, (pixels, outputs)))

    def tile(self, group: Index, point: Sequence[Index], at: Index, output: Index, tile: Tile) -> None:
        """Emit a tile: its sums, then its epilogue."""
        b, conv, (pixels, outputs) = self.b, self.conv, tile
        first = b.plus(b.times(group, padded(np.empty(conv.outputs)).size), output)
        start = [b.load(self.initial, [b.plus(first, o)]) for o in range(outputs)]
        totals = [start[o] for _ in range(pixels) for o in range(outputs)]
        weights = b.times(b.plus(b.times(group, conv.outputs), output), self.depth)
        taps = conv.kernel_columns * (1 if conv.depthwise else conv.channels) // self.run
        with b.loop(0, conv.kernel_rows, carried=totals) as (i, rows):
            line = b.plus(at, b.times(i, conv.dilation[0] * conv.columns * conv.pitch))
            with b.loop(0, taps, carried=rows.args) as (j, columns):
                data = b.plus(line, b.times(j, conv.dilation[1] * conv.pitch))
                step = b.times(b.plus(b.times(i, taps), j), self.run)
                if self.schedule.sums:
                    columns.next = self.sums(columns.args, data, b.plus(weights, step), tile)
                else:
                    data = b.plus(data, output if conv.depthwise else 0)
                    columns.next = self.steps(columns.args, data, weights, step, tile)
            rows.next = columns.results
        self.finish(rows.results, point, b.plus(b.times(group, conv.outputs), output), tile)

    def steps(self, totals: Sequence[SSAValue], data: Index, weights: Index, step: Index, tile: Tile) -> list[SSAValue]:
        """Emit the products of one contiguous run of data, `steps` of them per iteration of a loop; return the sums,
        which start from `totals`."""
        b, conv = self.b, self.conv
        apart = conv.dilation[1] * conv.pitch if conv.depthwise else 1
        with b.loop(0, self.run, self.schedule.steps, carried=totals) as (k, loop):
            here = b.plus(weights, b.times(b.plus(step, k), tile[1]))
            loop.next = self.products(loop.args, b.plus(data, b.times(k, apart)), apart, here, tile)
        return loop.results

    def sums(self, totals: Sequence[SSAValue], data: Index, weights: Index, tile: Tile) -> list[SSAValue]:
        """Emit the products of one contiguous run of codes, a vector register at a time, the last one partial; return
        the sums, which start from `totals`."""
        b, rest = self.b, self.run % WHOLE
        whole = self.run - rest
        if whole:
            with b.loop(0, whole, WHOLE, carried=totals) as (k, loop):
                loop.next = self.registers(loop.args, b.plus(data, k), b.plus(weights, k), tile, WHOLE)
            totals = loop.results
        if rest:
            totals = self.registers(totals, b.plus(data, whole), b.plus(weights, whole), tile, rest)
        return list(totals)

    def registers(
        self, totals: Sequence[SSAValue], data: Index, weights: Index, tile: Tile, lanes: int
    ) -> list[SSAValue]:
        """Add, for each pixel and output of the tile, the products of the first `lanes` codes of one vector register to
        `totals`; return the sums."""
        b, stride, (pixels, outputs) = self.b, self.conv.strides[1] * self.conv.pitch, tile
        codes = [self.register(self.data, b.plus(data, p * stride), lanes) for p in range(pixels)]
        if self.conv.data.unsigned:
            codes = [b.add(arith.XOrIOp(code, vector_constant(b, -TURNED, i8, WHOLE))).result for code in codes]
        factors = [self.register(self.weights, b.plus(weights, o * self.depth), lanes) for o in range(outputs)]
        signed, plain = b.constant(0, i32), b.constant(0, i32)
        pairs = [(code, factor) for code in codes for factor in factors]
        return [
            b.intrinsic("llvm.arm.mve.vmldava.v16i8", [signed, plain, plain, total, *pair], i32)
            for total, pair in zip(totals, pairs, strict=True)
        ]

    def register(self, buffer: SSAValue, at: Index, lanes: int) -> SSAValue:
        """Load 16 codes, or the first `lanes` of them and zeros."""
        b = self.b
        if lanes == WHOLE:
            return b.vector_load(buffer, [at], WHOLE)
        first = [lane < lanes for lane in range(WHOLE)]
        mask = b.constant_attr(dense_vector(first, i1), vector_of(i1, WHOLE))
        zeros = vector_constant(b, 0, i8, WHOLE)
        return b.add(vector.MaskedLoadOp(buffer, [b.index(at)], mask, zeros)).result

    def products(
        self, totals: Sequence[SSAValue], data: Index, apart: int, weights: Index, tile: Tile
    ) -> list[SSAValue]:
        """Add the products of `schedule.steps` steps for each pixel and output of the tile to `totals`; return the
        sums. The data of neighbouring steps are `apart` elements from each other."""
        b, stride, totals = self.b, self.conv.strides[1] * self.conv.pitch, list(totals)
        pixels, outputs = tile
        if self.schedule.pairs:
            for step in range(0, self.schedule.steps, 4):
                words = [self.halves(self.data, b.plus(data, step + p * stride), self.extend) for p in range(pixels)]
                for o in range(outputs):
                    factors = self.halves(self.weights, b.plus(weights, step * outputs + 4 * o), ExtSIOp)
                    for p, word in enumerate(words):
                        for pair in zip(word, factors, strict=True):
                            total = totals[p * outputs + o]
                            totals[p * outputs + o] = b.intrinsic("llvm.arm.smlad", [*pair, total], i32)
            return totals
        codes: dict[int, SSAValue] = {}
        for step in range(self.schedule.steps):
            factors = [self.wide(self.weights, b.plus(weights, step * outputs + o), ExtSIOp) for o in range(outputs)]
            for p in range(pixels):
                place = step * apart + p * stride
                if place not in codes:
                    codes[place] = self.wide(self.data, b.plus(data, place), self.extend)
                for o, factor in enumerate(factors):
                    totals[p * outputs + o] = self.added(totals[p * outputs + o], codes[place], factor)
        return totals

    def added(self, total: SSAValue, code: SSAValue, factor: SSAValue) -> SSAValue:
        """Add one product to the sum."""
        b = self.b
        if self.schedule.fused:
            return b.add(math.FmaOp(code, factor, total)).result
        if self.conv.is_float:
            return b.add(arith.AddfOp(total, b.add(arith.MulfOp(code, factor)).result)).result
        return b.add(arith.AddiOp(total, b.add(arith.MuliOp(code, factor)).result)).result

    def halves(self, buffer: SSAValue, at: Index, extend: type[ExtSIOp] | type[ExtUIOp]) -> list[SSAValue]:
        """Load four codes and extend them to 16 bits. Return two 32-bit words of two codes each: the first word has the
        first and the third code, the second word the second and the fourth."""
        b, name = self.b, "llvm.arm.sxtb16" if extend is ExtSIOp else "llvm.arm.uxtb16"
        word = b.lane(b.bitcast(b.vector_load(buffer, [at], 4), i32, 1), 0)
        turned = b.intrinsic("llvm.fshr.i32", [word, word, b.constant(8, i32)], i32)
        return [b.intrinsic(name, [each], i32) for each in (word, turned)]

    def wide(self, buffer: SSAValue, at: Index, extend: type[ExtSIOp] | type[ExtUIOp]) -> SSAValue:
        """Load an element, extended to 32 bits."""
        value = self.b.load(buffer, [at])
        return value if self.conv.is_float else self.b.add(extend(value, i32)).result

    def finish(self, totals: Sequence[SSAValue], point: Sequence[Index], output: Index, tile: Tile) -> None:
        """Emit the epilogue of a tile."""
        b, (pixels, outputs) = self.b, tile
        *outer, x = point
        if len(totals) == 1:
            self.epilogue.apply_to_one(totals[0], point, output)
            return
        scratch = b.add(memref.AllocaOp.get(self.conv.accumulator, 4, [self.pixels * self.outputs])).memref
        for number, total in enumerate(totals):
            b.store(total, scratch, [number])
        with b.loop(0, pixels) as (p, _), b.loop(0, outputs) as (o, _):
            total = b.load(scratch, [b.plus(b.times(p, outputs), o)])
            self.epilogue.apply_to_one(total, [*outer, b.plus(x, p)], b.plus(output, o))
