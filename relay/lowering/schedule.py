"""`schedule`: `linalg` on memrefs becomes loops; convolutions and products get micro-kernels and packed weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.dialects.machine import features_in
from relay.lowering.builder import LoopBuilder
from relay.lowering.scheduling import depthwise, loops, matmul
from relay.lowering.scheduling.arguments import argument_of, is_border
from relay.lowering.scheduling.bias import add_bias, find_bias
from relay.lowering.scheduling.contraction import Convolution, recognise
from relay.lowering.scheduling.depthwise_dot import DepthwiseDotEmitter
from relay.lowering.scheduling.depthwise_layout import fits, image_of, layout_of, pack_depthwise_dot
from relay.lowering.scheduling.epilogue import Epilogue, epilogue_of
from relay.lowering.scheduling.float_depthwise import FloatDepthwiseEmitter, float_depthwise
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.groups import Groups, join, joined_kernel, pack_groups, recognise_groups
from relay.lowering.scheduling.one_column import as_row, depthwise_of_row, kernel_of_row
from relay.lowering.scheduling.packed import Packed, pack_constants, plan_for
from relay.lowering.scheduling.packed_store import can_pack
from relay.lowering.scheduling.padding import Padding, emit_codes, emit_padding, find_paddings, skipped_rows
from relay.lowering.scheduling.parts import Part, pack_parts, parts_of, places_of, plans_of, together
from relay.lowering.scheduling.plan import FEW_PIXELS, Plan, Tile, dot_of, registers_of, turns_codes, widened_by
from relay.lowering.scheduling.product import Product, ProductEmitter, recognise_product
from relay.lowering.scheduling.windows import Windows, WindowsEmitter, runs_of, started_by, widens, windows_of
from relay.lowering.shaped import shape_of
from relay.passes import Pass


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
        calls: dict[str, list[func.CallOp]] = {}
        for call in op.walk():
            if isinstance(call, func.CallOp):
                calls.setdefault(call.callee.string_value(), []).append(call)
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and function.body.blocks:
                tile = Tile.of(function, self.tile)
                FunctionScheduler(function, calls.get(function.sym_name.data, []), features, tile).run()


@dataclass(frozen=True)
class Contraction:
    """A contraction whose weights are constants, and the elementwise operation after it; one of `groups`, if any."""

    conv: Convolution
    kernel: BlockArgument
    epilogue: linalg.GenericOp | None
    groups: Groups | None = None


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
        self.paddings: dict[SSAValue, Padding] = {}
        self.choices: list[str] = []

    def run(self) -> None:
        ops = list(self.old.ops)
        if not any(isinstance(op, linalg.GenericOp | linalg.FillOp | memref.CopyOp) for op in self.old.walk()):
            return
        self.paddings = find_paddings(ops)
        self.done |= {op for padding in self.paddings.values() for op in padding.ops}
        for op in ops:
            op.detach()
        self.builder = LoopBuilder(self.old, masks="avx512f" in self.features)
        for op in ops:
            if op not in self.done:
                self.builder.location = op.location
                self.emit(op)
        for op in self.done:
            op.erase(safe_erase=False)
        for op in reversed(list(self.old.ops)):
            if isinstance(op, memref.AllocOp | memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp):
                if not any(op.results[0].uses):
                    op.detach()
                    op.erase()
        self.given.erase_retired()
        if self.choices:
            self.function.attributes["relay.schedule"] = StringAttr("; ".join(self.choices))
        self.function.properties["function_type"] = FunctionType.from_lists([a.type for a in self.old.args], [])

    def write_padding(self, value: SSAValue) -> None:
        """Write a padded copy, where it is first read."""
        padding = self.paddings.pop(value, None)
        if padding is None:
            return
        if padding.of_image:
            emit_padding(self.builder, padding)
            return
        fill, view, copy = padding.ops
        assert isinstance(fill, linalg.FillOp) and isinstance(copy, memref.CopyOp)
        loops.emit_fill(self.builder, fill)
        self.done.discard(view)
        self.builder.block.add_op(view)
        loops.emit_copy(self.builder, copy)

    def emit(self, op: Operation) -> None:
        if isinstance(op, memref.ExpandShapeOp) and self.splits(op):
            self.done.add(op)
            return
        if op not in self.pending:
            for operand in op.operands:
                self.write_padding(operand)
        if (contraction := self.pending.pop(op, None)) is not None:
            if isinstance(contraction, Windows):
                padding = self.paddings.pop(contraction.data, None)
                self.choices.append(WindowsEmitter(self.builder, contraction, padding).emit())
            elif isinstance(contraction, Product):
                for side in (contraction.conv.data, contraction.conv.kernel):
                    self.write_padding(side.value)
                self.choices.append(ProductEmitter(self.builder, contraction, self.features).emit())
            else:
                self.contract(contraction)
            self.done.add(op)
            return
        match op:
            case linalg.FillOp() if self.defer(op) or self.defer_windows(op):
                pass
            case linalg.GenericOp() if op.inputs and op.inputs[0] not in self.paddings and widens(op):
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
                self.write_padding(operand)
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
        if found is None or not runs_of(found, self.paddings.get(found.data)):
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

    def contract(self, contraction: Contraction) -> None:
        """Emit a contraction with its epilogue."""
        conv, kernel, split = contraction.conv, contraction.kernel, contraction.groups
        weights, shape = self.given.constants_of(kernel), shape_of(conv.kernel.value)
        arrays = [to_numpy(weight.value) for weight in weights]
        kernels = [(a.view(np.uint8) if conv.kernel.unsigned else a).reshape(shape) for a in arrays]
        biases = self.take_bias(contraction)
        sums = conv.out
        if split is not None and split.view is not None and contraction.epilogue is None:
            sums = self.builder.add(split.view.clone()).result
        epilogue = Epilogue(self.builder, sums, contraction.epilogue, shape_of(sums)[-1])
        biased = partial(self.replace_argument, kernel, conv.kernel.value, weights)

        def constants(packed: Sequence[Packed]) -> list[SSAValue]:
            return biased([add_bias(one, b) for one, b in zip(packed, biases, strict=True)] if biases else packed)

        if split is not None:
            self.multiply_groups(split, [split.kernel_of(k) for k in kernels], epilogue, biases, biased)
            return
        padding = self.paddings.get(conv.data.value)
        runs = skipped_rows(conv, padding)
        if (row := as_row(conv)) is not None and epilogue.turn_points():
            conv, kernels, runs = row, [kernel_of_row(k) for k in kernels], []
        if not conv.depthwise:
            if not runs and (parts := parts_of(conv, kernels)):
                self.multiply_parts(parts, conv, kernels, epilogue, biases, biased)
            else:
                self.multiply(conv, kernels, epilogue, constants, runs)
            return
        data = conv.data.value
        if conv is row:
            conv, padding = depthwise_of_row(self.builder, conv, padding)
        if (floats := float_depthwise(conv, padding)) is None and (floats := float_depthwise(conv, None)) is not None:
            self.write_padding(data)
        if floats is not None:
            arguments = constants([depthwise.pack_depthwise(conv, array) for array in kernels])
            self.choices.append("depthwise: rows of pixels, 16 channels at a time")
            FloatDepthwiseEmitter(self.builder, floats, arguments, epilogue, registers_of(self.features)).emit()
            return
        if padding is None or is_border(padding, conv):
            image = image_of(conv, padding)
            if fits(conv, image, self.features):
                layout = layout_of(conv, image, kernels)
                given = zip(kernels, biases or [None] * len(kernels), strict=True)
                arguments = biased([pack_depthwise_dot(layout, array, bias) for array, bias in given])
                self.choices.append("depthwise: dot products of up to 4 rows of a column, 64 lanes at a time")
                image_data = data if padding is None else padding.source
                DepthwiseDotEmitter(self.builder, layout, image_data, arguments, epilogue).emit()
                return
        self.write_padding(data)
        pairs = depthwise.takes_pairs(conv, self.features)
        pack = depthwise.pack_pairs if pairs else depthwise.pack_depthwise
        arguments = constants([pack(conv, array) for array in kernels])
        self.choices.append(f"depthwise: 16 channels{' of two taps' if pairs else ''} at a time")
        depthwise.DepthwiseEmitter(self.builder, conv, conv.data.value, arguments, epilogue, pairs).emit()

    def multiply(
        self,
        conv: Convolution,
        kernels: Sequence[Array],
        epilogue: Epilogue,
        constants: Callable[[Sequence[Packed]], list[SSAValue]],
        runs: Sequence[tuple[int, int, int, int]],
    ) -> None:
        """A convolution or product that mixes channels; `runs` as in `MatmulEmitter`."""
        flat = conv.pointwise and (epilogue.flatten_points() or epilogue.rank == 2)
        chosen, data, flip = self.prepare(conv, kernels, flat)
        arguments = constants([pack_constants(conv, chosen, array) for array in kernels])
        self.choices.append(chosen.reason)
        packs = chosen.dot is not None and can_pack(epilogue, self.features)
        matmul.MatmulEmitter(self.builder, conv, chosen, data, arguments, epilogue, flip, packs, runs=runs).emit()

    def multiply_parts(
        self,
        parts: Sequence[Part],
        conv: Convolution,
        kernels: Sequence[Array],
        epilogue: Epilogue,
        biases: Sequence[Array],
        constants: Callable[[Sequence[Packed]], list[SSAValue]],
    ) -> None:
        """A convolution by blocks of channels with windows of their own."""
        b, (_, data, flip) = self.builder, self.prepare(conv, kernels, False)
        plans = plans_of(parts, kernels, self.features, flip, self.tile)
        given = zip(kernels, biases or [None] * len(kernels), strict=True)
        packed = [pack_parts(parts, plans, kernel, bias) for kernel, bias in given]
        arguments = constants([together(one) for one in packed])
        self.choices.append(f"{len(parts)} blocks of channels with windows of their own, the first: {plans[0].reason}")
        packs = plans[0].dot is not None and can_pack(epilogue, self.features)
        for part, chosen, place in zip(parts, plans, places_of(parts, packed[0]), strict=True):
            matmul.MatmulEmitter(b, part.conv, chosen, data, arguments, epilogue, flip, packs, place).emit()

    def multiply_groups(
        self,
        split: Groups,
        kernels: Sequence[Array],
        epilogue: Epilogue,
        biases: Sequence[Array],
        constants: Callable[[Sequence[Packed]], list[SSAValue]],
    ) -> None:
        """A convolution whose groups of channels do not mix; `kernels` are [g, o, i, j, c]."""
        flat = split.conv.pointwise and epilogue.flatten_points()
        joined = join(split, self.features, flat)
        conv, size = joined.conv, split.count // joined.count
        arrays = [joined_kernel(kernel, size, conv.kernel.zero_point) for kernel in kernels]
        chosen, data, flip = self.prepare(conv, [one for array in arrays for one in array], flat)
        given = zip(arrays, biases or [None] * len(arrays), strict=True)
        arguments = constants([pack_groups(joined, chosen, array, bias) for array, bias in given])
        self.choices.append(f"{joined.count} groups of channels, each: {chosen.reason}")
        packs = chosen.dot is not None and can_pack(epilogue, self.features)
        with self.builder.loop(0, joined.count, independent=True) as (number, _):
            place = joined.place(self.builder, chosen, number)
            matmul.MatmulEmitter(self.builder, conv, chosen, data, arguments, epilogue, flip, packs, place).emit()

    def prepare(self, conv: Convolution, kernels: Sequence[Array], flat: bool) -> tuple[Plan, SSAValue, bool]:
        """How a contraction runs, its data as one row, and whether the loop turns its codes."""
        dot, padding = dot_of(conv, self.features), self.paddings.get(conv.data.value)
        turns = turns_codes(conv, dot)
        turned = turns and (padding is not None or conv.images * conv.out_rows * conv.out_columns > FEW_PIXELS)
        chosen = plan_for(conv, kernels, self.features, flat=flat, turns=turns and not turned, tile=self.tile)
        extend = widened_by(conv, dot)
        if turned or extend is not None or (dot is not None and matmul.slack(conv, chosen)):
            if padding is not None and padding.of_image:
                del self.paddings[conv.data.value]
            else:
                self.write_padding(conv.data.value)
                padding = None
            data = emit_codes(self.builder, conv.data.value, padding, -128 if turned else 0, extend)
        else:
            self.write_padding(conv.data.value)
            data = self.builder.flatten(conv.data.value)
        return chosen, data, turns and not turned

    def take_bias(self, contraction: Contraction) -> list[Array]:
        """Leave a constant bias out of the epilogue; returns each call's, for the initial accumulators."""
        bias = find_bias(contraction.epilogue, contraction.conv.out)
        argument = None if bias is None else argument_of(bias.value)
        if bias is None or argument is None or not self.given.constant(argument):
            return []
        arrays = [to_numpy(constant.value) for constant in self.given.constants_of(argument)]
        if any(array.size != contraction.conv.outputs for array in arrays):
            return []
        bias.drop()
        return arrays

    def replace_argument(
        self,
        kernel: BlockArgument,
        view: SSAValue,
        weights: Sequence[arith.ConstantOp],
        packed: Sequence[Packed],
    ) -> list[SSAValue]:
        """Pass packed constants in place of the kernel's weights; returns the new arguments."""
        new = self.given.replace(kernel, weights, [one.columns for one in packed])
        while view is not kernel:
            owner = view.owner
            assert isinstance(owner, memref.CollapseShapeOp | memref.ExpandShapeOp)
            owner.detach()
            self.done.add(owner)
            view = owner.src
        return new
