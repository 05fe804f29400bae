"""`schedule`: `linalg` on memrefs becomes loops; convolutions and products get micro-kernels and packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from relay.lowering.builder import LoopBuilder
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling import loops
from relay.lowering.scheduling.arguments import argument_of
from relay.lowering.scheduling.contraction import recognise
from relay.lowering.scheduling.contraction_emitter import Contraction, ContractionEmitter
from relay.lowering.scheduling.epilogue import epilogue_of
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.groups import recognise_groups
from relay.lowering.scheduling.padding import Paddings
from relay.lowering.scheduling.plan import Tile
from relay.lowering.scheduling.product import Product, ProductEmitter, recognise_product
from relay.lowering.scheduling.windows import Windows, WindowsEmitter, runs_of, started_by, widens, windows_of
from relay.passes import Pass
from relay.target import features_in
from relay.transforms.dead_ops import erase_dead


@dataclass(frozen=True)
class Schedule(Pass):
    """Turn `linalg.fill`, `linalg.generic` and `memref.copy` into `scf` loops over `vector`, `arith` and `memref`.

    A convolution, depthwise convolution or matrix product whose weights every caller gives as constants becomes a
    register-tiled micro-kernel with the elementwise operation that follows it as epilogue; its weights are packed
    now. `features`: the target's features, as LLVM names them, separated by commas (`avx512f,avx512vnni`). A kernel's
    attribute `relay.schedule` says what was chosen, and why (`print-choices` prints a table). The register tile of a
    contraction is the cheapest of a cost model, unless its kernel's attribute `relay.tile`, or `tile` for all kernels
    without one, asks for another: `8x48` is 8 pixels x 48 channels.
    """

    name = "schedule"
    requires = ("bufferized", "expanded")
    establishes = ("loops",)
    invalidates = ("target-ops", "functions")
    why = "tiles, vectorizes, and packs weights"
    features: str = ""
    tile: str = ""

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(inner.name.startswith("linalg.") for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        features = features_in(self.features)
        calls = CallGraph(op.walk())
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                tile = Tile.of(function, self.tile)
                FunctionScheduler(function, calls.of(function), features, tile).run()


class FunctionScheduler:
    """Rewrites one function's body."""

    def __init__(
        self, function: func.FuncOp, calls: Sequence[func.CallOp], features: frozenset[str], tile: Tile | None
    ):
        self.function, self.tile = function, tile
        self.features = features
        self.old = function.body.block
        self.given = GivenConstants(self.old, calls)
        self.done: set[Operation] = set()
        self.pending: dict[Operation, Contraction | Product | Windows] = {}
        self.choices: list[str] = []

    def run(self) -> None:
        ops = list(self.old.ops)
        if not any(isinstance(op, linalg.GenericOp | linalg.FillOp | memref.CopyOp) for op in self.old.walk()):
            return
        self.builder = LoopBuilder(self.old, masks="avx512f" in self.features)
        self.paddings = paddings = Paddings(self.builder, ops, self.done)
        self.contractions = ContractionEmitter(self.builder, self.given, self.features, self.tile, paddings, self.done)
        for op in ops:
            op.detach()
        for op in ops:
            if op not in self.done:
                self.builder.location = op.location
                self.emit(op)
        for op in self.done:
            op.erase(safe_erase=False)
        erase_dead(self.old.ops, memref.AllocOp | memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp)
        self.given.erase_retired()
        if self.choices:
            self.function.attributes["relay.schedule"] = StringAttr("; ".join(self.choices))
        self.function.properties["function_type"] = FunctionType.from_lists([a.type for a in self.old.args], [])

    def emit(self, op: Operation) -> None:
        if isinstance(op, memref.ExpandShapeOp) and self.splits(op):
            self.done.add(op)
            return
        if op not in self.pending:
            for operand in op.operands:
                self.paddings.write(operand)
        if (contraction := self.pending.pop(op, None)) is not None:
            if isinstance(contraction, Windows):
                padding = self.paddings.take(contraction.data)
                self.choices.append(WindowsEmitter(self.builder, contraction, padding).emit())
            elif isinstance(contraction, Product):
                for side in (contraction.conv.data, contraction.conv.kernel):
                    self.paddings.write(side.value)
                self.choices.append(ProductEmitter(self.builder, contraction, self.features).emit())
            else:
                emitter = ContractionEmitter(
                    self.builder, self.given, self.features, self.tile, self.paddings, self.done
                )
                self.choices.append(emitter.emit(contraction))
            self.done.add(op)
            return
        match op:
            case linalg.FillOp() if self.defer(op) or self.defer_windows(op):
                pass
            case linalg.GenericOp() if op.inputs and op.inputs[0] not in self.paddings.waiting and widens(op):
                pass
            case linalg.FillOp():
                loops.emit_fill(self.builder, op)
            case memref.CopyOp():
                loops.emit_copy(self.builder, op)
            case linalg.GenericOp():
                loops.emit_generic(self.builder, op, self.features)
            case scf.IfOp() | scf.WhileOp():
                self.control(op)
                return
            case _:
                self.builder.block.add_op(op)
                return
        self.done.add(op)

    def control(self, op: scf.IfOp | scf.WhileOp) -> None:
        """Emit branches, or a loop, in their own blocks; padded copies that they read are written before."""
        for inner in op.walk():
            for operand in inner.operands:
                self.paddings.write(operand)
        outer = self.builder.block
        outer.add_op(op)
        for block in [block for region in op.regions for block in region.blocks]:
            self.builder.block, ops = block, list(block.ops)
            for inner in ops:
                inner.detach()
            for inner in ops:
                self.builder.location = inner.location
                self.emit(inner)
        self.builder.block = outer

    # Contractions

    def defer_windows(self, fill: linalg.FillOp) -> bool:
        """Whether the fill starts a pool, or sums over rows and columns, emitted where what follows stands."""
        found = windows_of(fill)
        if found is None or not runs_of(found, self.paddings.of(found.data)):
            return False
        self.pending[found.op if found.epilogue is None else found.epilogue] = found
        if found.epilogue is not None:
            self.done.add(found.op)
        return True

    def defer(self, fill: linalg.FillOp) -> bool:
        """Whether the fill starts a contraction that gets a micro-kernel, emitted where its epilogue stands."""
        started = started_by(fill)
        if started is None or started[1] != 0 or not self.given.calls:
            return False
        op = started[0]
        found, split = None, recognise_groups(op)
        conv = recognise(op) if split is None else split.conv
        kernel = None if conv is None else argument_of(conv.kernel.value)
        epilogue = epilogue_of(op.outputs[0], fill, op) if split is None else split.epilogue
        if conv is not None and kernel is not None and self.given.constant(kernel):
            found = Contraction(conv, kernel, epilogue, split)
        elif (product := recognise_product(op, self.features)) is not None:
            found = replace(product, epilogue=epilogue)
        if found is None:
            return False
        self.pending[op if epilogue is None else epilogue] = found
        if epilogue is not None:
            self.done.add(op)
        return True

    def splits(self, op: memref.ExpandShapeOp) -> bool:
        """Whether this shows an image as groups of channels, for a contraction that reads it as it is."""
        users = [use.operation for use in op.result.uses]
        if len(users) != 1 or not isinstance(users[0], linalg.GenericOp) or not self.given.calls:
            return False
        found = recognise_groups(users[0])
        if found is None or found.conv.data.value is not op.src:
            return False
        kernel = argument_of(found.conv.kernel.value)
        return kernel is not None and self.given.constant(kernel)
