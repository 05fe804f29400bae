"""Contractions whose weights are constants: which micro-kernel each gets, and what its weights become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.lowering.builder import LoopBuilder
from relay.lowering.scheduling import depthwise
from relay.lowering.scheduling.arguments import argument_of, is_border
from relay.lowering.scheduling.bias import add_bias, find_bias
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.depthwise_dot import DepthwiseDotEmitter
from relay.lowering.scheduling.depthwise_layout import fits, image_of, layout_of, pack_depthwise_dot
from relay.lowering.scheduling.epilogue import Epilogue
from relay.lowering.scheduling.float_depthwise import FloatDepthwiseEmitter, float_depthwise
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.lowering.scheduling.groups import Groups, join, joined_kernel, pack_groups
from relay.lowering.scheduling.matmul import MatmulEmitter, Place, slack
from relay.lowering.scheduling.one_column import as_row, depthwise_of_row, kernel_of_row
from relay.lowering.scheduling.packed import Packed, pack_constants, plan_for
from relay.lowering.scheduling.packed_store import can_pack
from relay.lowering.scheduling.padding import Padding, Paddings, Span, emit_codes, skipped_rows
from relay.lowering.scheduling.parts import Part, pack_parts, parts_of, places_of, plans_of, together
from relay.lowering.scheduling.plan import FEW_PIXELS, Plan, Tile, dot_of, registers_of, turns_codes, widened_by
from relay.lowering.shaped import shape_of

Constants = Callable[[Sequence[Packed]], list[SSAValue]]
"""Passes the constants of all calls in place of the weights; returns the new arguments."""


@dataclass(frozen=True)
class Contraction:
    """A contraction whose weights are constants, and the elementwise operation after it; one of `groups`, if any."""

    conv: Convolution
    kernel: BlockArgument
    epilogue: linalg.GenericOp | None
    groups: Groups | None = None


class ContractionEmitter:
    """Emits contractions with their epilogues. `tile`: one that was asked for. What nobody needs any more is `done`."""

    def __init__(
        self,
        builder: LoopBuilder,
        given: GivenConstants,
        features: frozenset[str],
        tile: Tile | None,
        paddings: Paddings,
        done: set[Operation],
    ):
        self.builder, self.given, self.features, self.tile = builder, given, features, tile
        self.paddings, self.done = paddings, done

    def emit(self, contraction: Contraction) -> str:
        """Emit it; what was chosen, in a few words."""
        conv, kernel, split = contraction.conv, contraction.kernel, contraction.groups
        weights, shape = self.given.constants_of(kernel), shape_of(conv.kernel.value)
        arrays = [to_numpy(weight.value) for weight in weights]
        kernels = [(a.view(np.uint8) if conv.kernel.unsigned else a).reshape(shape) for a in arrays]
        biases = self.take_bias(contraction)
        sums = conv.out
        if split is not None and split.view is not None and contraction.epilogue is None:
            sums = self.builder.add(split.view.clone()).result
        epilogue = Epilogue(self.builder, sums, contraction.epilogue, shape_of(sums)[-1])
        constants = partial(self.replace_argument, kernel, conv.kernel.value, weights)
        if split is not None:
            return self.multiply_groups(split, [split.kernel_of(k) for k in kernels], epilogue, biases, constants)
        padding = self.paddings.of(conv.data.value)
        if (row := as_row(conv)) is not None and epilogue.turn_points():
            conv, kernels = row, [kernel_of_row(k) for k in kernels]
        if conv.depthwise:
            if conv is row:
                conv, padding = depthwise_of_row(self.builder, conv, padding)
            return self.multiply_depthwise(conv, kernels, padding, epilogue, biases, constants)
        if parts := parts_of(conv, kernels):
            return self.multiply_parts(parts, conv, kernels, epilogue, biases, constants)
        runs = [] if conv is row else skipped_rows(conv, padding)
        return self.multiply(conv, kernels, epilogue, biases, constants, runs)

    def multiply_depthwise(
        self,
        conv: Convolution,
        kernels: Sequence[Array],
        padding: Padding | None,
        epilogue: Epilogue,
        biases: Sequence[Array | None],
        constants: Constants,
    ) -> str:
        """A convolution of each channel by itself."""
        b, data = self.builder, conv.data.value
        image = data if padding is None else padding.buffer
        if (floats := float_depthwise(conv, padding)) is None and (floats := float_depthwise(conv, None)) is not None:
            self.paddings.write(image)
        if floats is not None:
            arguments = constants(biased([depthwise.pack_depthwise(conv, array) for array in kernels], biases))
            FloatDepthwiseEmitter(b, floats, arguments, epilogue, registers_of(self.features)).emit()
            return "depthwise: rows of pixels, 16 channels at a time"
        if padding is None or is_border(padding, conv):
            read = image_of(conv, padding)
            if fits(conv, read, self.features):
                layout = layout_of(conv, read, kernels)
                packed = [pack_depthwise_dot(layout, *given) for given in zip(kernels, biases, strict=True)]
                arguments = constants(packed)
                DepthwiseDotEmitter(b, layout, data if padding is None else padding.source, arguments, epilogue).emit()
                return "depthwise: dot products of up to 4 rows of a column, 64 lanes at a time"
        self.paddings.write(image)
        pairs = depthwise.takes_pairs(conv, self.features)
        pack = depthwise.pack_pairs if pairs else depthwise.pack_depthwise
        arguments = constants(biased([pack(conv, array) for array in kernels], biases))
        depthwise.DepthwiseEmitter(b, conv, data, arguments, epilogue, pairs).emit()
        return f"depthwise: 16 channels{' of two taps' if pairs else ''} at a time"

    def multiply(
        self,
        conv: Convolution,
        kernels: Sequence[Array],
        epilogue: Epilogue,
        biases: Sequence[Array | None],
        constants: Constants,
        runs: Sequence[Span],
    ) -> str:
        """A convolution or product that mixes channels; `runs` as in `MatmulEmitter`."""
        flat = conv.pointwise and (epilogue.flatten_points() or epilogue.rank == 2)
        chosen, data, flip = self.prepare(conv, kernels, flat)
        if chosen.extra:
            runs = []
        arguments = constants(biased([pack_constants(conv, chosen, array, runs) for array in kernels], biases))
        self.micro_kernel(conv, chosen, data, arguments, epilogue, flip, runs=runs)
        return chosen.reason

    def multiply_parts(
        self,
        parts: Sequence[Part],
        conv: Convolution,
        kernels: Sequence[Array],
        epilogue: Epilogue,
        biases: Sequence[Array | None],
        constants: Constants,
    ) -> str:
        """A convolution by blocks of channels with windows of their own."""
        _, data, flip = self.prepare(conv, kernels, False)
        plans = plans_of(parts, kernels, self.features, flip, self.tile)
        packed = [pack_parts(parts, plans, *given) for given in zip(kernels, biases, strict=True)]
        arguments = constants([together(one) for one in packed])
        for part, chosen, place in zip(parts, plans, places_of(parts, packed[0]), strict=True):
            self.micro_kernel(part.conv, chosen, data, arguments, epilogue, flip, place)
        return f"{len(parts)} blocks of channels with windows of their own, the first: {plans[0].reason}"

    def multiply_groups(
        self,
        split: Groups,
        kernels: Sequence[Array],
        epilogue: Epilogue,
        biases: Sequence[Array | None],
        constants: Constants,
    ) -> str:
        """A convolution whose groups of channels do not mix; `kernels` are [g, o, i, j, c]."""
        flat = split.conv.pointwise and epilogue.flatten_points()
        joined = join(split, self.features, flat)
        conv, size = joined.conv, split.count // joined.count
        arrays = [joined_kernel(kernel, size, conv.kernel.zero_point) for kernel in kernels]
        chosen, data, flip = self.prepare(conv, [one for array in arrays for one in array], flat)
        packed = [pack_groups(joined, chosen, *given) for given in zip(arrays, biases, strict=True)]
        arguments = constants(packed)
        with self.builder.loop(0, joined.count, independent=True) as (number, _):
            place = joined.place(self.builder, chosen, number)
            self.micro_kernel(conv, chosen, data, arguments, epilogue, flip, place)
        return f"{joined.count} groups of channels, each: {chosen.reason}"

    def micro_kernel(
        self,
        conv: Convolution,
        chosen: Plan,
        data: SSAValue,
        arguments: Sequence[SSAValue],
        epilogue: Epilogue,
        flip: bool,
        place: Place | None = None,
        runs: Sequence[Span] = (),
    ) -> None:
        """The products, and what follows; results are narrowed 64 at a time where that is possible."""
        packs = chosen.dot is not None and can_pack(epilogue, self.features)
        MatmulEmitter(self.builder, conv, chosen, data, arguments, epilogue, flip, packs, place or Place(), runs).emit()

    def prepare(self, conv: Convolution, kernels: Sequence[Array], flat: bool) -> tuple[Plan, SSAValue, bool]:
        """How a contraction runs, its data as one row, and whether the loop turns its codes."""
        dot, padding = dot_of(conv, self.features), self.paddings.of(conv.data.value)
        turns = turns_codes(conv, dot)
        turned = turns and (padding is not None or conv.images * conv.out_rows * conv.out_columns > FEW_PIXELS)
        chosen = plan_for(conv, kernels, self.features, flat=flat, turns=turns and not turned, tile=self.tile)
        extend = widened_by(conv, dot)
        if turned or extend is not None or (dot is not None and slack(conv, chosen)):
            if padding is not None and padding.of_image:
                self.paddings.take(conv.data.value)
            else:
                self.paddings.write(conv.data.value)
                padding = None
            data = emit_codes(self.builder, conv.data.value, padding, -128 if turned else 0, extend)
        else:
            self.paddings.write(conv.data.value)
            data = self.builder.flatten(conv.data.value)
        return chosen, data, turns and not turned

    def take_bias(self, contraction: Contraction) -> Sequence[Array | None]:
        """Leave a constant bias out of the epilogue; returns each call's, for the initial accumulators, or None."""
        none = [None] * len(self.given.calls)
        bias = find_bias(contraction.epilogue, contraction.conv.out)
        argument = None if bias is None else argument_of(bias.value)
        if bias is None or argument is None or not self.given.constant(argument):
            return none
        arrays = [to_numpy(constant.value) for constant in self.given.constants_of(argument)]
        if any(array.size != contraction.conv.outputs for array in arrays):
            return none
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


def biased(packed: Sequence[Packed], biases: Sequence[Array | None]) -> list[Packed]:
    """With each call's bias in the initial accumulators, if it has one."""
    return [one if bias is None else add_bias(one, bias) for one, bias in zip(packed, biases, strict=True)]
