"""Pools, and sums over rows and columns: results of neighbouring channels are in registers, and each window is read
once.

Where a window overlaps the border, only the elements inside are read: rows and columns of results are divided into
spans, within which all windows have the same taps inside the image. So no padded copy is written, and the order of sums
is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Self

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Float32Type, i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects.attributes import to_numpy
from relay.dialects.op import created
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import dims_of, kinds_of
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.contraction import window_of
from relay.lowering.scheduling.epilogue import Epilogue, epilogue_of
from relay.lowering.scheduling.loops import in_vectors
from relay.lowering.scheduling.padding import Padding, Point, Span, spans
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.reduction import IDEMPOTENT, before_widening, recognise_reduction, widening
from relay.lowering.scheduling.saturate import EXTENDS
from relay.lowering.scheduling.sharing import itemsize
from relay.lowering.scheduling.strategy import Emission, Kernel, Started, estimate, started_by
from relay.lowering.shaped import buffer_of, is_buffer, shape_of, vector_of
from relay.target import LANES

CHUNK = 64
"""The most channels that are computed at once."""
KINDS = 5
"""The largest number of spans of result rows, or of columns, for which separate code is emitted; in a span, the same
cells of the window are inside the image."""
ROWS = {"ppr": [0, 2, 1], "pppr": [0, 1, 3, 2]}
"""For a sum along the last axis but one: the iterator types of its loops (p for parallel, r for reduction), and the
numbers of the loops that index the axes of its input. Such a sum is treated as a window sum, with one window for each
column, only if its elements are 8-bit codes that the kernel widens itself."""


@dataclass(frozen=True)
class Windows:
    """A pool or sum over windows: `out[n, y, x, c] = join over i, j of extend(data[n, y * stride + i * dilation, x *
    stride + j * dilation, c])`. `join`: the op that combines two elements, such as a maximum or addition; `extend`: the
    op that widens an element first, None for none."""

    op: linalg.GenericOp
    data: SSAValue
    out: SSAValue
    initial: float | int
    join: type[Operation]
    extend: type[Operation] | None
    shape: tuple[int, ...]
    results: tuple[int, ...]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    epilogue: linalg.GenericOp | None = None
    sums: SSAValue | None = None
    """The operand through which the epilogue reads the pooled results: `out`, or a reshaped view of it."""

    @property
    def element(self) -> Attribute:
        return buffer_of(self.out).element_type


def recognise_windows(op: linalg.GenericOp, initial: float | int) -> Windows | None:
    """Return the pool or sum that the operation computes, whose results are initialised with `initial`; None for any
    other operation."""
    if not op.inputs or len(op.outputs) != 1 or any(argument.uses for argument in op.body.block.args[1:-1]):
        return None
    if not all(contiguous(v.type) and 0 not in shape_of(v) for v in (op.inputs[0], op.outputs[0])):
        return None
    joined = match_join(op)
    data, out = op.inputs[0], op.outputs[0]
    if joined is None or buffer_of(out).element_type not in (i8, i32, Float32Type()):
        return None
    kinds, maps = kinds_of(op), [m.data for m in op.indexing_maps]
    shape, results = shape_of(data), shape_of(out)
    if kinds == "pppprr" and dims_of(maps[-1]) == [0, 1, 2, 3]:
        found = window_of(maps[0], (4, 5), [3])
        if found is None or len(op.inputs) != 2:
            return None
        window = shape_of(op.inputs[1])
    elif kinds == "pprr" and dims_of(maps[-1]) == [0, 1] and dims_of(maps[0]) == [0, 2, 3, 1]:
        found, window, results = ((1, 1), (1, 1)), shape[1:3], (results[0], 1, 1, results[1])
    elif dims_of(maps[0]) == ROWS.get(kinds) and dims_of(maps[-1]) == [*range(len(results))]:
        *outer, rows, channels = shape
        shape, results = (prod(outer), rows, 1, channels), (prod(outer), 1, 1, channels)
        found, window = ((1, 1), (1, 1)), (rows, 1)
    else:
        return None
    join, extend = joined
    if extend is None and join is arith.AddiOp:
        data, extend = before_widening(op, data)
    if kinds in ROWS and extend is None:
        return None
    if results[3] < LANES or (buffer_of(data).element_type == i8) < (extend is not None):
        return None
    return Windows(op, data, out, initial, join, extend, shape, results, (window[0], window[1]), *found)


def windows_of(fill: linalg.FillOp) -> Windows | None:
    """Return the pooling or window sum whose accumulators the fill initializes, else None. It includes the elementwise
    operation that follows as its epilogue, if nothing else reads the sums."""
    started = started_by(fill)
    found = None if started is None else recognise_windows(*started)
    if found is None or found.element == i8:
        return found
    sums, writers = found.out, (fill, found.op)
    views = [use.operation for use in sums.uses if isinstance(use.operation, memref.ExpandShapeOp)]
    if len(views) == 1 and shape_of(views[0].result) == found.results:
        if {use.operation for use in sums.uses} != {*writers, views[0]}:
            return found
        sums, writers = views[0].result, ()
    epilogue = epilogue_of(sums, *writers)
    if epilogue is None or len(shape_of(sums)) == 3 or (found.results[3] % LANES and reads_pixels(epilogue, sums)):
        return found
    return replace(found, epilogue=epilogue, sums=sums)


def reads_pixels(epilogue: linalg.GenericOp, sums: SSAValue) -> bool:
    """Whether the epilogue reads another tensor of the result's size. Such a tensor may share memory with the result.
    If the number of channels is not a multiple of a vector, the last vector overlaps the one before, and its epilogue
    would read elements that are overwritten already."""
    sizes = [prod(shape_of(value)) for value in epilogue.inputs if value is not sums and is_buffer(value.type)]
    return prod(shape_of(sums)) in sizes


def widens(op: linalg.GenericOp) -> bool:
    """Whether the operation only widens 8-bit codes, and its only reader is a reduction that can read the codes
    themselves and widen them, so that the operation need not be emitted."""
    if widening(op) is None:
        return False
    users = [use.operation for use in op.outputs[0].uses if use.operation is not op]
    if len(users) != 1 or not isinstance(user := users[0], linalg.GenericOp) or len(user.outputs) != 1:
        return False
    row = recognise_reduction(user)
    if row is not None:
        return row.data is op.inputs[0]
    fills = [use.operation for use in user.outputs[0].uses if isinstance(use.operation, linalg.FillOp)]
    found = windows_of(fills[0]) if len(fills) == 1 else None
    return found is not None and found.op is user and found.data is op.inputs[0]


def match_join(op: linalg.GenericOp) -> tuple[type[Operation], type[Operation] | None] | None:
    """Match the body of a reduction that combines its accumulator with an element of the data. Return the class of the
    combining op (a maximum or an addition, for example), and that of the op by which the element is extended first, or
    None. Return None if the body has another form."""
    block = op.body.block
    end = block.last_op
    join = None if end is None else end.operands[0].owner
    if not isinstance(join, (*IDEMPOTENT, arith.AddiOp, arith.AddfOp)) or block.args[-1] not in join.operands:
        return None
    given = next((value for value in join.operands if value is not block.args[-1]), None)
    if given is block.args[0]:
        return join.__class__, None
    if given is None or not isinstance(owner := given.owner, Operation) or owner.name not in EXTENDS:
        return None
    return (join.__class__, EXTENDS[owner.name]) if owner.operands[0] is block.args[0] else None


def runs_of(found: Windows, padding: Padding | None) -> tuple[Sequence[Span], ...]:
    """Return the spans of rows and the spans of columns of the result; all windows of a span have the same taps inside
    the image. Return an empty tuple if there are too many spans, or if the padding is not neutral for the op."""
    (rows, columns), low = found.shape[1:3], (0, 0)
    if padding is not None:
        constant = padding.value.owner
        neutral = found.initial if found.join in IDEMPOTENT else 0
        if not padding.of_image or not isinstance(constant, arith.ConstantOp):
            return ()
        if to_numpy(constant.value).item() != neutral:
            return ()
        low, (rows, columns) = padding.low[1:3], shape_of(padding.source)[1:3]
    across = zip((rows, columns), found.window, found.strides, found.dilation, low, found.results[1:3], strict=True)
    runs = tuple(spans(*numbers) for numbers in across)
    return runs if max(len(run) for run in runs) <= KINDS else ()


@dataclass(frozen=True, kw_only=True)
class WindowsSchedule(OpSchedule):
    """The decision about a pool or sum. `channels`: channels computed at a time, in vectors of `lanes`."""

    strategy = "windows"
    channels: int
    lanes: int


@dataclass(frozen=True)
class WindowsInRegisters(Started[WindowsSchedule]):
    """Computes a pooling or window sum, and the elementwise operation after it (the epilogue), if any, in one loop
    nest, which is emitted where the last of these operations was."""

    record = WindowsSchedule
    op: linalg.GenericOp
    found: Windows

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = windows_of(op) if isinstance(op, linalg.FillOp) else None
        if found is None or not isinstance(op, linalg.FillOp) or not runs_of(found, kernel.waiting.get(found.data)):
            return None
        return cls(found.op, op, found.epilogue, found)

    def decide(self, kernel: Kernel, pick: Picks) -> WindowsSchedule:
        found = self.found
        count = found.results[3]
        best = max(size for size in (16, 32, 64) if size <= count)
        channels = pick("channels", [size for size in (64, 32, 16) if size <= count], best)
        most = min(CHUNK if found.element == i8 else LANES, channels)
        lanes = pick("lanes", [n for n in (64, 32, 16) if n <= most], most)
        elements = prod(found.results) * prod(found.window)
        why = f"{channels} channels at a time, each window read once"
        cycles = estimate(kernel, self.op, elements, lanes, itemsize(found.op.outputs[0]))
        return pick.schedule(WindowsSchedule, cycles, why)

    def pads(self, schedule: WindowsSchedule) -> Sequence[SSAValue]:
        return (self.found.data,)

    def emit(self, emission: Emission, schedule: WindowsSchedule) -> None:
        padding = emission.paddings.get(self.found.data)
        WindowsEmitter(emission.builder, self.found, padding, schedule).emit()


class WindowsEmitter:
    """Emits one pool or sum with the elementwise operation after it."""

    def __init__(self, b: LoopBuilder, found: Windows, padding: Padding | None, schedule: WindowsSchedule):
        self.b, self.found, self.runs, self.schedule = b, found, runs_of(found, padding), schedule
        data = found.data if padding is None else padding.source
        _, self.rows, self.columns, self.channels = found.shape if padding is None else shape_of(data)
        self.top, self.left = (0, 0) if padding is None else padding.low[1:3]
        self.data, self.lanes = b.flatten(data), schedule.lanes
        self.epilogue = None
        if found.epilogue is not None and found.sums is not None:
            self.epilogue = Epilogue(b, found.sums, found.epilogue, self.channels, masks=False)
        self.target = b.flatten(found.out)

    def emit(self) -> None:
        """Emit loops over all pixels of the results."""
        b, found, chunk = self.b, self.found, self.schedule.channels
        with b.loop(0, found.results[0], independent=True) as (n, _):
            for top, bottom, *down in self.runs[0]:
                with b.loop(top, bottom, independent=True) as (y, _):
                    for left, right, *across in self.runs[1]:
                        with b.loop(left, right) as (x, _):
                            self.pixel((n, y, x), chunk, range(*down), range(*across))

    def pixel(self, point: Point, chunk: int, rows: range, columns: range) -> None:
        """Emit all channels of a pixel; the last ones may be computed twice."""

        def body(channel: Index, lanes: int) -> None:
            self.chunk(point, channel, lanes, rows, columns)

        in_vectors(self.b, self.channels, [chunk], body, overlap=chunk)

    def chunk(self, point: Point, channel: Index, chunk: int, rows: range, columns: range) -> None:
        """Emit the computation of `chunk` channels of a pixel, from `channel` on, over the given rows and columns of
        its window."""
        b, found = self.b, self.found
        n, y, x = point
        start = vector_constant(b, found.initial, found.element, self.lanes)
        row = b.plus(b.plus(b.times(n, self.rows), b.times(y, found.strides[0])), -self.top)
        column = b.plus(b.times(x, found.strides[1]), -self.left)
        totals = [start] * (chunk // self.lanes)
        if not rows or not columns:
            self.finish(totals, point, channel)
            return
        with b.loop(rows.start, rows.stop, carried=totals) as (i, down):
            line = b.times(b.plus(row, b.times(i, found.dilation[0])), self.columns)
            with b.loop(columns.start, columns.stop, carried=down.args) as (j, across):
                pixel = b.plus(line, b.plus(column, b.times(j, found.dilation[1])))
                at = b.plus(b.times(pixel, self.channels), channel)
                across.next = [self.joined(total, b.plus(at, v * self.lanes)) for v, total in enumerate(across.args)]
            down.next = across.results
        self.finish(down.results, point, channel)

    def joined(self, total: SSAValue, at: Index) -> SSAValue:
        """Load a vector of the data at offset `at`, and return its combination with the vector `total` by the op of the
        reduction, such as an addition or a maximum."""
        b, value = self.b, self.b.vector_load(self.data, [at], self.lanes)
        if self.found.extend is not None:
            wide = vector_of(self.found.element, self.lanes)
            value = b.add(created(self.found.extend, [value], [wide])).results[0]
        return b.add(created(self.found.join, [total, value], [total.type])).results[0]

    def finish(self, totals: Sequence[SSAValue], point: Point, channel: Index) -> None:
        """Apply the epilogue to the results, if there is one, and store them."""
        b, found = self.b, self.found
        n, y, x = point
        at = b.plus(b.times(b.plus(b.times(n, found.results[1]), y), found.results[2]), x)
        base = b.plus(b.times(at, self.channels), channel)
        for v, total in enumerate(totals):
            if self.epilogue is None:
                b.vector_store(total, self.target, [b.plus(base, v * self.lanes)])
                continue
            outer = [n] if self.epilogue.rank == 2 else [n, y, x]
            self.epilogue.apply(total, outer, b.plus(channel, v * self.lanes), LANES)
