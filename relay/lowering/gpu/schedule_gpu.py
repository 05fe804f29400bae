"""`schedule-gpu`: `linalg` on memrefs becomes parallel loops over blocks and threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.builder import INDEPENDENT, Index, LoopBuilder
from relay.lowering.call_graph import CallGraph
from relay.lowering.gpu import matrix
from relay.lowering.gpu.dots import FEATURE, DotEmitter, dot_of
from relay.lowering.gpu.formats import FLOATS
from relay.lowering.gpu.grids import grid, teams, threads
from relay.lowering.gpu.matrix_kernel import MatrixKernel
from relay.lowering.gpu.points import PointEmitter, Producer
from relay.lowering.gpu.producers import Nest, Padded, computed, framed, nest_of, padded, starts
from relay.lowering.gpu.shared_memory import align
from relay.lowering.gpu.teams import ALONE, Team, reductions, team_of
from relay.lowering.gpu.teams import FEATURE as TEAMS
from relay.lowering.gpu.widths import lanes_of, lanes_of_copy
from relay.lowering.indices import binary, unravelled, when
from relay.lowering.scheduling import loops
from relay.lowering.scheduling.arguments import argument_of
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.shaped import buffer_of, is_buffer, shape_of
from relay.passes import Pass
from relay.target import features_in
from relay.transforms.dead_ops import erase_dead
from relay.transforms.location import place

VIEWS = memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp


@dataclass(frozen=True)
class ScheduleGpu(Pass):
    """Turn `linalg.fill`, `linalg.generic` and `memref.copy` into `scf.parallel` over blocks with one over threads
    inside, mapped as `gpu-map-parallel-loops` does it: one turn for each element of a result, or for several neighbours
    that are read and written at once.

    What one reader reads once needs no memory: padding becomes a comparison, a sum and what follows it one nest. An
    operation that is no such nest runs as a single thread. `features`: the target's, separated by commas; with `dot`,
    sums of products of codes are four products at a time; with `shuffle`, threads share long sums and the like; with
    `mma` and `async-copy`, matrix units multiply what is large enough, and has constant weights: those are packed
    now; with `wgmma`, by groups of four warps where that should be faster. Where there are fewer blocks than the
    device's `processors`, each may sum a part of the depth; another launch adds the parts. With `matmul`, which is
    `tf32`, `f16` or `bf16`, factors of products of floats are rounded to that, and matrix units multiply them. The
    functions' attribute `relay.schedule` says which products matrix units compute, and what their results are off by
    at most, besides what underflows (`print-choices` prints a table).
    """

    name = "schedule-gpu"
    requires = ("bufferized", "expanded")
    establishes = ("loops",)
    invalidates = ("functions",)
    why = "gives each thread of a GPU its elements"
    features: str = ""
    processors: int = 108
    matmul: str = ""

    def __post_init__(self) -> None:
        if self.matmul and self.matmul not in FLOATS:
            raise InvalidArgument(self.name, f"has matmul={self.matmul!r}", f"there are {', '.join(FLOATS)}")

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(inner.name.startswith("linalg.") for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        features = features_in(self.features)
        calls = CallGraph(op.walk())
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                FunctionScheduler(function, features, calls.of(function), self.processors, self.matmul).run()


class FunctionScheduler:
    """Rewrites the body of one function."""

    def __init__(
        self,
        function: func.FuncOp,
        features: frozenset[str],
        calls: Sequence[func.CallOp],
        processors: int,
        matmul: str,
    ):
        self.function = function
        self.processors = processors
        self.floats = FLOATS.get(matmul)
        self.choices: list[str] = []
        self.special = self.dot if FEATURE in features else None
        self.matrices = matrix.FEATURES <= features
        self.groups = matrix.GROUPS in features
        self.teamwork = TEAMS in features
        self.block = function.body.block
        self.given = GivenConstants(self.block, calls)
        self.order = list(self.block.ops)
        self.builder = LoopBuilder(self.block)
        self.producers: dict[SSAValue, Producer] = {}
        self.pending: dict[Operation, list[linalg.FillOp]] = {}
        self.done: list[Operation] = []
        self.frames: dict[Operation, tuple[SSAValue, Padded]] = {}

    def run(self) -> None:
        self.find()
        inlined = set(self.done)
        for op in self.order:
            op.detach()
        for op in self.order:
            self.builder.location = op.location
            if op not in inlined:
                self.emit(op)
        for op in self.done:
            op.erase(safe_erase=False)
        for op in self.block.walk():
            op.attributes.pop(INDEPENDENT, None)
        erase_dead(self.block.ops, memref.AllocOp | VIEWS)
        self.given.erase_retired()
        if self.choices:
            self.function.attributes["relay.schedule"] = StringAttr("; ".join(self.choices))
        self.function.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in self.block.args], list(self.function.function_type.outputs)
        )

    def find(self) -> None:
        """Which buffers need no memory, and which fills only start what follows."""
        for op in self.order:
            if not isinstance(op, memref.AllocOp) or not self.here(op.memref):
                continue
            if (copy := padded(op)) is not None:
                self.producers[op.memref] = copy
                self.done += copy.ops
            elif (found := computed(op, self.order)) is not None:
                self.producers[op.memref], ops = found
                self.done += ops
        for argument in self.block.args:
            found = framed(argument) if is_buffer(argument.type) and self.here(argument) else None
            if found is not None and found.source not in self.producers and len(list(argument.uses)) == 2:
                fill, view, copy = found.ops
                between = self.order[self.order.index(fill) + 1 : self.order.index(copy)]
                if all(isinstance(op, memref.SubviewOp) for op in between):
                    self.frames[copy] = argument, found
                    self.done += (fill, view)
        for op in self.order:
            if isinstance(op, linalg.FillOp) and op not in self.done and (user := starts(op, self.order)) is not None:
                self.pending.setdefault(user, []).append(op)

    def here(self, buffer: SSAValue) -> bool:
        """Whether all that uses a buffer stands in the function's block: nothing does in a branch or a loop."""
        users = [use.operation for use in buffer.uses]
        views = [user.results[0] for user in users if isinstance(user, VIEWS)]
        return all(user.parent is self.block for user in users) and all(map(self.here, views))

    def emit(self, op: Operation) -> None:
        match op:
            case linalg.FillOp():
                if not any(op in fills for fills in self.pending.values()):
                    with threads(self.builder, shape_of(op.outputs[0])) as at:
                        self.builder.store(op.inputs[0], op.outputs[0], at)
            case memref.CopyOp() if op in self.frames:
                self.pad(*self.frames[op])
            case memref.CopyOp():
                with threads(self.builder, shape_of(op.destination)) as at:
                    self.builder.store(self.builder.load(op.source, at), op.destination, at)
            case linalg.GenericOp():
                self.launch(op)
            case scf.ForOp() if not op.results:
                with threads(self.builder, [1]):
                    self.builder.block.add_op(op)
                return
            case scf.ForOp():
                raise Unsupported(place(op), "gives what a loop of the host computes", 'target="llvm" does')
            case scf.IfOp() | scf.WhileOp():
                self.builder.block.add_op(op)
                outer = self.builder.block
                for block in [block for region in op.regions for block in region.blocks]:
                    self.nested(block)
                self.builder.block = outer
                return
            case _:
                self.builder.block.add_op(op)
                return
        self.done.append(op)

    def pad(self, buffer: SSAValue, found: Padded) -> None:
        """A copy and what is around it, at once."""
        lanes = lanes_of_copy(buffer_of(buffer), buffer_of(found.source), found.offsets)
        shape = list(found.shape)
        shape[-1] //= lanes
        with threads(self.builder, shape) as at:
            points = PointEmitter(self.builder, self.producers, lanes)
            if lanes > 1:
                at[-1] = self.builder.index(self.builder.times(at[-1], lanes))
                points.wide.add(at[-1])
            points.store(points.padded(found, at), buffer, at)

    def nested(self, block: Block) -> None:
        """What the host decides about: each operation by itself."""
        self.builder.block = block
        ops = list(block.ops)
        for op in ops:
            op.detach()
        for op in ops:
            self.builder.location = op.location
            self.emit(op)

    def launch(self, op: linalg.GenericOp) -> None:
        """One nest: a thread for each point of its results, or for a few neighbours."""
        nest = nest_of(op, self.pending.get(op, ()))
        order = nest.output_dims
        if order is None:
            self.alone(op)
            return
        if (
            self.matrices
            and (found := matrix.matrix_of(nest, self.producers, self.processors, self.floats, self.groups)) is not None
            and self.multiply(found)
        ):
            return
        lanes = lanes_of(nest, self.producers)
        shape = [nest.sizes[d] for d in order]
        if lanes > 1:
            shape[-1] //= lanes
        with teams(self.builder, shape, self.team_of(nest, lanes)) as (at, members, first):
            points = PointEmitter(self.builder, self.producers, lanes, self.special, members)
            if lanes > 1:
                at[-1] = self.builder.index(self.builder.times(at[-1], lanes))
                points.wide.add(at[-1])
            dims: list[Index] = [0] * len(nest.sizes)
            for dim, index in zip(order, at, strict=True):
                dims[dim] = index
            values = points.nest(nest, dims)
            when(self.builder, first, lambda: self.results(nest, points, dims, values))

    def results(self, nest: Nest, points: PointEmitter, dims: Sequence[Index], values: Sequence[SSAValue]) -> None:
        """The values of a point to memory."""
        op = nest.op
        for value, output, map in zip(values, op.outputs, nest.maps[len(op.inputs) :], strict=True):
            points.store(value, output, [self.builder.apply(r, dims) for r in map.results])

    def multiply(self, found: matrix.Matrix) -> bool:
        """A product by matrix units, a block of threads for each tile; False if its weights are no constants."""
        weights = self.weights(found)
        if weights is None:
            return False
        b, tile = self.builder, found.tile
        if found.gathered is not None:
            data = self.gather(found.gathered)
        else:
            data = found.conv.data.value if found.padding is None else found.padding.source
        points = PointEmitter(b, self.producers, found.lanes)
        emitter = MatrixKernel(b, found, points, (b.flatten(data), *weights))
        self.choices.append(found.reason)
        order = found.nest.output_dims
        assert order is not None
        shape = [found.nest.sizes[dim] for dim in order[:-1]]
        blocks = -(-found.rows // tile.rows) * (found.packed_columns // tile.columns) * found.splits
        if found.splits > 1:
            parts = MemRefType(emitter.kind, [found.splits, found.rows, found.packed_columns])
            emitter.parts = b.add(memref.AllocOp([], [], parts)).memref
        with grid(b, blocks, tile.threads) as (block, thread):
            emitter.emit(block, thread, lambda row: unravelled(b, row, shape))
        if found.splits > 1:
            lanes = min(found.lanes, matrix.PARTS_LANES)
            emitter.points = PointEmitter(b, self.producers, lanes, emitter.special)
            with threads(b, [found.rows, found.columns // lanes]) as (row, column):
                emitter.add_parts(row, b.index(b.times(column, lanes)), unravelled(b, row, shape))
        return True

    def weights(self, found: matrix.Matrix) -> list[SSAValue] | None:
        """Arguments with a product's weights, packed, and what sums of codes start from, in the place of the weights;
        None if not all calls have constants for them, or one is too large."""
        kernel = argument_of(found.conv.kernel.value)
        if kernel is None or not self.given.calls or not self.given.constant(kernel):
            return None
        weights = self.given.constants_of(kernel)
        packs = [pack for weight in weights if (pack := found.pack(self.numbers(weight, found))) is not None]
        if len(packs) < len(weights):
            return None
        return self.given.replace(kernel, weights, [[part.reshape(-1) for part in pack] for pack in packs])

    def numbers(self, weight: arith.ConstantOp, found: matrix.Matrix) -> Array:
        """A constant's codes by their sign, or its floats."""
        numbers = to_numpy(weight.value)
        return numbers.view(np.uint8 if found.conv.kernel.unsigned else np.int8) if found.format.data == 1 else numbers

    def gather(self, found: matrix.Gathered) -> SSAValue:
        """A copy of images of few channels, with their borders; what is beyond them is never summed, or as 0."""
        b, conv, shape = self.builder, found.conv, found.shape
        element, size = conv.data.element, found.format.data
        copy = b.add(memref.AllocOp([], [], MemRefType(element, shape))).memref
        points = PointEmitter(b, self.producers)
        with threads(self.builder, shape[:3]) as (image, row, column):
            inside = binary(b, arith.MinUIOp, column, conv.columns - 1) if shape[2] > conv.columns else column
            at = [image, row, inside]
            codes = [points.element(conv.data.value, [*at, channel]) for channel in range(conv.channels)]
            codes += [b.constant(0, element)] * (matrix.PIXEL - conv.channels)
            b.vector_store(b.packed(codes), copy, [image, row, column, 0])
            align(b.block.last_op, matrix.PIXEL * size)
        return copy

    def dot(self, points: PointEmitter, nest: Nest, dims: list[Index]) -> SSAValue | None:
        """The nest's result by dot products, if it is such a sum."""
        found = dot_of(nest, self.producers)
        if found is None:
            return None
        emitter = DotEmitter(self.builder, self.producers, nest, found, points.members)
        return emitter.emit(dims, points.starting(nest, dims)[0])

    def team_of(self, nest: Nest, lanes: int) -> Team:
        """The threads that share the sums that the nest reads."""
        if not self.teamwork:
            return ALONE
        summed = [each for each in reductions(nest, self.producers) if each is not None]
        dots = [dot_of(each, self.producers) if self.special else None for each in summed]
        return team_of(nest, self.producers, lanes, max((dot.lanes for dot in dots if dot), default=1))

    def alone(self, op: linalg.GenericOp) -> None:
        """The operation as loops of one thread."""
        if any(operand in self.producers for operand in op.operands):
            raise Unsupported(place(op), "reads what is computed in place, and has no result to compute it for")
        with threads(self.builder, [1]):
            for fill in self.pending.get(op, ()):
                loops.emit_fill(self.builder, fill)
            loops.emit_nest(self.builder, op)
