"""The common part of strategies for matrix units: the products that they compute, their tiles, and their launches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.attributes import Array
from relay.lowering.builder import Index, LoopBuilder, contiguous
from relay.lowering.gpu.channel_tables import ChannelTables, interleave
from relay.lowering.gpu.formats import FLOATS, Format
from relay.lowering.gpu.grids import grid, threads
from relay.lowering.gpu.matrix import BARRIER_BYTES, PIXEL, Gathered, Matrix, Product, product_of
from relay.lowering.gpu.matrix_kernel import QUAD, MatrixKernel
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest
from relay.lowering.gpu.strategies.strategy import Emission, Kernel, Strategy, block_of, count, powers
from relay.lowering.gpu.tiles import Tile, cheapest, choices, layouts, shapes, usual
from relay.lowering.indices import binary, unravelled
from relay.lowering.scheduling.affine import dims_of
from relay.lowering.scheduling.given_constants import GivenConstants, argument_of
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.shaped import is_buffer, shape_of
from relay.target.record import WARP

PARTS_LANES = 4
"""For a product whose depth is split among blocks: the most neighbouring results for which one thread adds the partial
sums at once."""


@dataclass(frozen=True, kw_only=True)
class ProductSchedule(OpSchedule):
    """The decisions about a product by matrix units. `tile`: rows and columns of sums that a block computes; `warps`:
    how many warps divide its rows, and its columns; `stages` of its shared memory, one of which is multiplied while the
    others are filled; `splits`: parts of the depth that are computed by separate blocks, and whose partial sums a
    second launch adds; `slices`: parts of a block's depth that are computed by separate warps; `lanes`: neighbouring
    channels that a thread completes at once, `part_lanes` in the launch that adds partial sums; `block`: threads of a
    block; `other_blocks`: threads of a block in each further launch: the one that first copies data with few channels
    into another order, and the one that adds partial sums; `shared`: bytes of a block's shared memory."""

    tile: tuple[int, int]
    warps: tuple[int, int]
    stages: int
    splits: int
    slices: int
    lanes: int
    part_lanes: int
    block: int
    other_blocks: tuple[int, ...]
    shared: int


@dataclass(frozen=True)
class Products(Strategy[ProductSchedule]):
    """Products of matrices by matrix units, with the operations that follow them."""

    tier = 0
    record: ClassVar[type[ProductSchedule]]
    kind: ClassVar[type[Tile]]
    emitter: ClassVar[type[MatrixKernel]] = MatrixKernel
    bulk: ClassVar[bool] = False
    """Whether tiles are copied by the device's bulk copies."""
    product: Product

    @classmethod
    def match_nest(cls, nest: Nest, kernel: Kernel) -> Self | None:
        if not kernel.target.matrix_units:
            return None
        if nest.op not in kernel.products:
            kernel.products[nest.op] = multiplied(nest.op, kernel)
        found = kernel.products[nest.op]
        return None if found is None or not cls.takes(found, kernel) or not cls.tiles(found, kernel) else cls(found)

    @classmethod
    def takes(cls, product: Product, kernel: Kernel) -> bool:
        """Whether this strategy can compute the product."""
        return True

    @classmethod
    @abstractmethod
    def tiles(cls, product: Product, kernel: Kernel) -> Sequence[Tile]:
        """Return the tiles to choose from, the largest first."""

    @classmethod
    def slices(cls, product: Product, kernel: Kernel, tile: Tile) -> Sequence[int]:
        """Return the numbers of slices into which a block may divide the depth (the reduced axis) of its tile; each
        slice is summed by other warps. Here only 1."""
        return (1,)

    def further(self, matrix: Matrix, kernel: Kernel, pick: Picks) -> None:
        """Make the decisions that a subclass adds."""

    def blocks(self, matrix: Matrix, schedule: ProductSchedule) -> int:
        """Return the number of blocks of the launch."""
        return matrix.blocks

    def tiled(self, schedule: ProductSchedule) -> Matrix:
        """Return the product divided into tiles as a schedule says."""
        tile = self.kind(*schedule.tile, *schedule.warps, schedule.stages, schedule.slices)
        return self.product.tiled(tile, schedule.lanes, schedule.splits, schedule.part_lanes, self.bulk)

    def pick_all(self, kernel: Kernel, pick: Picks) -> tuple[float, str]:
        m, costs, fold = self.product, kernel.target.costs, self.product.format.fold
        room = costs.shared_bytes
        usual_room = room if kernel.target.warpgroups else costs.plain_shared_bytes
        found = choices(self.tiles(m, kernel), m.rows, m.columns, m.depth * m.format.data, costs)
        best = cheapest([choice for choice in found if choice.agrees(pick.given)] or found)
        shape, warps, asked = best.tile.shape, best.tile.warps, {"tile", "warps"} & pick.given.keys()
        shape = pick("tile", shapes(self.kind, fold, room, costs) if asked else (shape,), shape)
        possible = layouts(self.kind, shape, fold, room, costs) if asked else (warps,)
        warps = pick("warps", possible, warps if warps in possible else usual(possible, costs))
        most = -(-m.depth * m.format.data // self.kind.depth)
        splits = pick("splits", range(1, most + 1), best.splits)
        fewest, one = self.kind.fewest_stages, self.kind(*shape, *warps, 1)
        possible = self.slices(m, kernel, one)
        slices = pick("slices", possible, best.tile.slices if best.tile.slices in possible else 1)
        steps, stage = (
            -(-most // (splits * slices)),
            slices * (one.stage_bytes + (one.barriers * BARRIER_BYTES if self.bulk else 0)),
        )
        usual_stages = max(fewest, min(best.tile.useful_stages(steps), usual_room // stage))
        stages = pick("stages", range(fewest, room // stage + 1), usual_stages)
        tile = self.kind(*shape, *warps, stages, slices)
        widest = min(m.widest, 2 * tile.run)
        lanes = pick("lanes", powers(widest), widest)
        part_lanes = pick("part_lanes", powers(min(widest, PARTS_LANES)), min(widest, PARTS_LANES))
        launches = [count(m.gathered.shape[:3])] if m.gathered is not None else []
        launches += [count([m.rows, m.columns], part_lanes)] if splits > 1 else []
        blocks = Tuples(*[range(WARP, costs.largest_block + 1, WARP)] * len(launches))
        pick("other_blocks", blocks, tuple(block_of(kernel, total) for total in launches))
        pick.only("block", tile.block)
        matrix = m.tiled(tile, lanes, splits, part_lanes, self.bulk)
        pick.only("shared", matrix.shared_bytes)
        least = (shape, warps, splits, slices) == (best.tile.shape, best.tile.warps, best.splits, best.tile.slices)
        cost = best.cost if least else tile.cost(m.rows, m.columns, m.depth * m.format.data, splits, costs)
        clocks = f"{round(cost)} clocks" + (f", the least of {len(found)} choices" if least and not pick.given else "")
        self.further(matrix, kernel, pick)
        why = f"{m.format.name} {m.rows} x {m.columns} x {m.depth}, {clocks}, {m.format.says(m.depth + splits)}"
        return cost, why

    def emit(self, emission: Emission, schedule: ProductSchedule) -> None:
        b, producers = emission.builder, emission.fused.producers
        m, other = self.tiled(schedule), list(schedule.other_blocks)
        buffers = self.buffers(emission, m, other)
        tables = ChannelTables(b, emission.given, m.lanes, QUAD) if m.lanes == 2 * m.tile.run else None
        shape, matrices = m.nest.shape[:-1], rows_in_order(m.nest, producers, m.sums.op)
        points = PointEmitter(b, producers, m.lanes, tables=tables, matrices=matrices)
        blocks = self.blocks(m, schedule)
        kernel = self.kernel(b, m, points, buffers, blocks)
        if m.splits > 1:
            parts = MemRefType(kernel.kind, [m.splits, m.rows, m.packed_columns])
            kernel.parts = b.add(memref.AllocOp([], [], parts)).memref

        def unravel(row: Index) -> list[Index]:
            return [*[0] * (len(shape) - 1), row] if matrices else unravelled(b, row, shape)

        with grid(b, blocks, schedule.block) as (block, thread):
            kernel.emit(block, thread, unravel)
        if m.splits > 1:
            kernel.points = PointEmitter(b, producers, m.part_lanes, kernel.special)
            with threads(b, [m.rows, m.columns // m.part_lanes], other.pop(0)) as (row, column):
                kernel.add_parts(row, b.index(b.times(column, m.part_lanes)), unravelled(b, row, shape))

    def buffers(self, emission: Emission, m: Matrix, other_blocks: list[int]) -> list[SSAValue]:
        """Return the buffers of the data and the packed constants. If the data must be copied first, emit the launch
        that copies it; the first element of `other_blocks` is then removed, and is the number of threads of its
        blocks."""
        weights = packed(m, emission.given)
        if m.gathered is not None:
            data = gather(emission, m.gathered, other_blocks.pop(0))
        else:
            data = m.conv.data.value if m.padding is None else m.padding.source
        return [emission.builder.flatten(data), *weights]

    def kernel(
        self, b: LoopBuilder, m: Matrix, points: PointEmitter, buffers: Sequence[SSAValue], blocks: int
    ) -> MatrixKernel:
        """Return the emitter of a kernel that computes the tiles of the product `m` with `blocks` blocks of threads."""
        return self.emitter(b, m, points, buffers, blocks)


def rows_in_order(nest: Nest, producers: Mapping[SSAValue, Producer], sums: linalg.GenericOp) -> bool:
    """Whether the ops after the sums read only values per channel, and tensors of the result's shape at the position of
    the sum. Then a row of the product, which is a pixel of a batch of images, is addressed by its number, without
    computing the pixel's indices by divisions."""
    every = list(range(len(nest.shape)))
    if nest.op is sums:
        return True
    if nest.output_dims != every or any(isinstance(op, linalg.IndexOp) for op in nest.op.body.walk()):
        return False
    for value, map in zip(nest.op.operands, nest.maps, strict=True):
        dims, inner = dims_of(map), producers.get(value)
        if not is_buffer(value.type) or dims in ([], every[-1:]):
            continue
        if dims != every or not contiguous(value.type) or list(shape_of(value)) != nest.shape:
            return False
        if inner is not None and not (isinstance(inner, Nest) and rows_in_order(inner, producers, sums)):
            return False
    return True


def multiplied(op: linalg.GenericOp, kernel: Kernel) -> Product | None:
    """Return the product that an operation computes, if its weights are constants that matrix units can take; else
    None."""
    target, nest = kernel.target, kernel.fused.nest(op)
    found = product_of(nest, kernel.fused.producers, FLOATS.get(target.matmul), target.costs)
    if found is None:
        return None
    argument, given = argument_of(found.conv.kernel.value), kernel.given
    if argument is None or not given.calls or not given.constant(argument):
        return None
    return found if holds(found.format, argument, given) else None


def holds(format: Format, value: SSAValue, given: GivenConstants) -> bool:
    """Whether a format can represent the constants that calls pass for an argument; True for other values."""
    argument = argument_of(value)
    if format.exact or argument is None or not given.calls or not given.constant(argument):
        return True
    return all(map(format.holds, given.arrays_of(argument)))


def packed(m: Matrix, given: GivenConstants) -> list[SSAValue]:
    """Replace the weights by arguments with packed weights and, for codes, initial sums; return these."""
    argument = argument_of(m.conv.kernel.value)
    assert argument is not None
    packs = [[part.reshape(-1) for part in m.pack(numbers(weight, m))] for weight in given.arrays_of(argument)]
    if m.format.exact:
        for pack, bias in zip(packs, take_biases(m, given), strict=False):
            more = np.pad(bias, (0, m.packed_columns - m.columns))
            pack[1] = (pack[1].reshape(-1, m.packed_columns) + more).reshape(-1)
        if m.bordered and m.splits == 1:
            for pack in packs:
                pack[1] = interleave(pack[1], 2 * m.tile.run, QUAD)
        elif m.splits == 1:
            for pack in packs:  # a thread's two sums of one row and those of its other row, side by side
                both = np.repeat(pack[1].reshape(-1, 2), 2, axis=0).reshape(-1)
                pack[1] = np.tile(interleave(both, 4 * m.tile.run, QUAD), m.tile.starts)
    return given.replace(argument, packs)


def take_biases(m: Matrix, given: GivenConstants) -> list[Array]:
    """If the first operation on the sums is the addition of a 32-bit bias per channel, and all calls pass a constant
    for it, remove the addition and return the bias of each call, to become the initial sums; else return no biases."""
    uses = [use for use in m.sums.op.outputs[0].uses if isinstance(use.operation, linalg.GenericOp)]
    readers = [(use.operation, use.index) for use in uses if use.operation is not m.sums.op]
    if len(readers) != 1 or not isinstance(reader := readers[0][0], linalg.GenericOp):
        return []
    block, inputs = reader.body.block, len(reader.inputs)
    total = block.args[readers[0][1]]
    added = next(iter(total.uses)).operation if total.has_one_use() else None
    if not isinstance(added, arith.AddiOp) or total.type != i32:
        return []
    bias = added.rhs if added.lhs is total else added.lhs
    if not isinstance(bias, BlockArgument) or bias.owner is not block or not bias.has_one_use() or bias.index >= inputs:
        return []
    map = reader.indexing_maps.data[bias.index].data
    argument = argument_of(reader.inputs[bias.index])
    if argument is None or dims_of(map) != [map.num_dims - 1] or not given.constant(argument):
        return []
    found = [array.reshape(-1) for array in given.arrays_of(argument)]
    if argument.owner is not given.block or any(array.size != m.columns for array in found):
        return []
    Rewriter.replace_op(added, [], [total])
    given.retire(argument)
    return found


def numbers(weights: Array, m: Matrix) -> Array:
    """Return a constant's codes as signed or unsigned integers, or its floats."""
    return weights.view(np.uint8 if m.conv.kernel.unsigned else np.int8) if m.format.data == 1 else weights


def gather(emission: Emission, found: Gathered, block: int) -> SSAValue:
    """Emit a copy of images with few channels, including their borders, with `PIXEL` elements for each pixel, and
    return its buffer. The copy has more channels and columns than the images: the additional channels are 0, and the
    additional columns are only read by products with weights of 0."""
    b, conv, shape = emission.builder, found.conv, found.shape
    element = conv.data.element
    copy = b.add(memref.AllocOp([], [], MemRefType(element, shape))).memref
    points = PointEmitter(b, emission.fused.producers)
    with threads(b, shape[:3], block) as (image, row, column):
        inside = binary(b, arith.MinUIOp, column, conv.columns - 1) if shape[2] > conv.columns else column
        at = [image, row, inside]
        codes = [points.element(conv.data.value, [*at, channel]) for channel in range(conv.channels)]
        codes += [b.constant(0, element)] * (PIXEL - conv.channels)
        b.vector_store(b.packed(codes), copy, [image, row, column, 0])
    return copy
