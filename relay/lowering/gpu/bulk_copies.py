"""Pipeline stages whose tiles the device's copy engine (TMA) copies, if both factors are matrices in memory.

One thread requests both tiles of a stage; a barrier in shared memory counts their bytes, and all threads wait for it.
The engine writes shared memory through the same proxy through which `wgmma` reads it, so that no fence is needed
between a copy and the product that reads it.

Sources: PTX ISA, "cp.async.bulk.tensor", "mbarrier", "fence.proxy.tensormap"; CUDA C++ Programming Guide, "Using TMA to
transfer multi-dimensional arrays", on maps in global memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from relay.dialects.gpu import BarrierOp
from relay.lowering.builder import Index, LoopBuilder
from relay.lowering.gpu.matrix import BARRIER_BYTES, Matrix
from relay.lowering.gpu.matrix_thread import MatrixThread
from relay.lowering.gpu.tensor_maps import TensorMap
from relay.lowering.gpu.warpgroup_products import VISIBLE, instruction
from relay.lowering.indices import both, when

INIT = "mbarrier.init.shared::cta.b64 [$0], {count};"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {bytes};"
ACQUIRE = "{ .reg .b64 map; cvta.global.u64 map, $0; fence.proxy.tensormap::generic.acquire.sys [map], 128; }"
"""The fence that makes a tensor map, which the host has written, visible to the copy engine."""
COPY = (
    "{ .reg .b64 map; cvta.global.u64 map, $1; "
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [map, {$2, $3}], [$4]; }"
)
WINDOWS = (
    "{ .reg .b64 map; .reg .b16 across, down; cvta.global.u64 map, $1; cvt.u16.u32 across, $6; cvt.u16.u32 down, $7; "
    "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
    "[$0], [map, {$2, $3, $4, $5}], [$8], {across, down}; }"
)
"""The PTX of an im2col copy, which copies one pixel of each of several consecutive windows to shared memory. Operands:
$0 destination, $1 tensor map, $2 first channel, $3 to $5 column, row and image at which the first window starts, $6 and
$7 column and row of the pixel in the window, $8 barrier."""
ARRIVED = "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra again; }"


class BulkCopies:
    """Emits one thread's work for copies of tiles. `sources`: tensor maps of the data and of the packed weights;
    `ahead`: steps whose copies are in flight while one is multiplied."""

    rolled = True
    """Whether the assembler must not unroll the loop over steps: True, because one thread requests tiles, whose
    coordinates take few instructions to compute from the step."""

    def __init__(self, thread: MatrixThread, sources: Sequence[SSAValue], ahead: int, fenced: bool):
        self.t, self.b, self.m = thread, thread.b, thread.m
        self.maps, self.ahead = sources, ahead

    @staticmethod
    def sources(b: LoopBuilder, matrix: Matrix, factors: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Return the launch's arguments for both factors: tensor maps of their buffers."""
        tile, depth, packed = matrix.tile, matrix.depth, matrix.packed_depth
        data = TensorMap((depth, matrix.rows), (depth,), (tile.depth, tile.rows))
        if matrix.windows:
            _, (images, rows, columns, channels), _ = matrix.image
            assert (corners := matrix.corners) is not None
            strides = channels, columns * channels, rows * columns * channels
            dims, box = (channels, columns, rows, images), (matrix.piece_bytes, tile.rows)
            data = TensorMap(dims, strides, box, corners)
        weights = TensorMap((packed, matrix.packed_columns), (packed,), (tile.depth, tile.columns))
        return [map.of(b, factor) for map, factor in zip((data, weights), factors, strict=True)]

    def prepare(self) -> None:
        """Do nothing: no address has to be computed before the first copies."""

    def start(self) -> None:
        """Emit the preparation of the barriers and of the tensor maps, then the copies of the tiles of the first
        steps."""
        self.connect()
        when(self.b, self.first, self.issue_first)

    def connect(self) -> None:
        """Emit the initialisation of the barriers in shared memory and the fence for tensor maps, and set `first`, the
        condition that the current thread is the one that requests copies."""
        b, t = self.b, self.t
        self.memory = t.pointer(t.shared)
        self.addresses = [t.pointer(map) for map in self.maps]
        self.first = t.below(self.from_requester(), 1)
        when(b, self.first, self.begin)
        instruction(b, VISIBLE)
        b.add(BarrierOp.create())

    def from_requester(self) -> Index:
        """Return the thread's number, counted from the thread that requests copies."""
        return self.t.number

    def begin(self) -> None:
        """Initialise the barriers, and make the tensor maps visible to the copy engine by a fence."""
        for stage in range(self.m.tile.stages):
            self.emit(INIT.format(count=1), [self.barrier(stage)])
        for source in self.addresses:
            self.emit(ACQUIRE, [source])

    def issue_first(self) -> None:
        """Request the copies of the tiles of the first `ahead` steps of the reduction to shared memory."""
        for step in range(min(self.ahead, self.m.steps)):
            self.issue(step, step)

    def arrive(self, step: Index) -> None:
        """Wait until the tiles of a step have arrived, and until all threads have finished with the stage that is
        filled next."""
        t = self.t
        self.emit(ARRIVED, [self.barrier(t.rem(step, self.m.tile.stages))], [t.rem(t.div(step, self.m.tile.stages), 2)])
        self.b.add(BarrierOp.create())

    def refill(self, step: Index) -> None:
        """Request the tiles of the step that is `ahead` steps later, if there is one."""
        later = self.b.plus(step, self.ahead)
        if not isinstance(later, int):
            due = both(self.b, [self.first, self.t.below(later, self.m.steps)])
            when(self.b, due, lambda: self.issue(later, self.t.rem(later, self.m.tile.stages)))

    def issue(self, step: Index, stage: Index) -> None:
        """Request the copies of both factors' tiles for a step."""
        b, t, tile, barrier = self.b, self.t, self.t.tile, self.barrier(stage)
        left = b.plus(self.memory, b.times(stage, tile.stage_bytes))
        step = b.plus(t.first_step, step)
        column = b.times(step, tile.depth)
        self.emit(EXPECT.format(bytes=tile.stage_bytes), [barrier])
        if self.m.windows:
            self.issue_windows(left, step, barrier)
        else:
            self.emit(COPY, [left, self.addresses[0]], [column, t.first_row], barrier)
        right = b.plus(left, tile.rows * tile.depth)
        self.emit(COPY, [right, self.addresses[1]], [column, t.first_column], barrier)

    def issue_windows(self, start: Index, step: Index, barrier: Index) -> None:
        """Request the pixels of a step: those of one tap, or of several taps if there are few channels."""
        b, t, conv, piece = self.b, self.t, self.m.conv, self.m.piece_bytes
        assert (corners := self.m.corners) is not None
        pixels, (first, _, stride) = conv.out_rows * conv.out_columns, corners
        image, pixel = t.div(t.first_row, pixels), t.rem(t.first_row, pixels)
        row, column = (
            b.plus(b.times(place, stride), first)
            for place in (t.div(pixel, conv.out_columns), t.rem(pixel, conv.out_columns))
        )
        count, each = t.tile.depth // piece, conv.channels // piece
        for number in range(count):
            place = b.plus(b.times(step, count), number)
            tap, channel = t.div(place, each), b.times(t.rem(place, each), piece)
            down = b.times(t.div(tap, conv.kernel_columns), conv.dilation[0])
            across = b.times(t.rem(tap, conv.kernel_columns), conv.dilation[1])
            to = b.plus(start, number * t.tile.rows * piece)
            self.emit(WINDOWS, [to, self.addresses[0]], [channel, column, row, image, across, down], barrier)

    def barrier(self, stage: Index) -> Index:
        """Return the address of a stage's barrier; the barriers follow all stages."""
        b = self.b
        start = b.plus(self.memory, self.m.tile.stages * self.t.tile.stage_bytes)
        return b.plus(start, b.times(stage, BARRIER_BYTES))

    def emit(
        self, text: str, addresses: Sequence[Index], numbers: Sequence[Index] = (), last: Index | None = None
    ) -> None:
        """Emit the PTX instruction `text` as inline assembly. Its operands are `addresses` as 64-bit integers, then
        `numbers` as 32-bit ones, then the address `last`, if it is given."""
        b = self.b
        values = [(place, i64) for place in addresses] + [(number, i32) for number in numbers]
        values += [] if last is None else [(last, i64)]
        operands = [b.add(arith.IndexCastOp(b.index(value), type)).result for value, type in values]
        kinds = ",".join("l" if type is i64 else "r" for _, type in values)
        b.add(llvm.InlineAsmOp(text, f"{kinds},~{{memory}}", operands, [], 0, has_side_effects=True))
