"""Contractions with constant weights: their description, and a strategy that computes one by a single micro-kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from xdsl.dialects.builtin import i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.dialects.attributes import Array
from relay.lowering.scheduling.bias import Bias, add_bias, find_bias
from relay.lowering.scheduling.contraction import Convolution, Groups, recognise, recognise_groups
from relay.lowering.scheduling.epilogue import Epilogue, accesses_of, by_points, epilogue_of, operations_of, pick_masks
from relay.lowering.scheduling.given_constants import argument_of
from relay.lowering.scheduling.packed import Packed, pack_constants
from relay.lowering.scheduling.padding import Padding, border_runs, emit_codes, skipping_pays
from relay.lowering.scheduling.picks import Picks
from relay.lowering.scheduling.plan import Around, TileSchedule, conversion_of, decide_tiles, slack, takes_halves
from relay.lowering.scheduling.saturate import match_clamp
from relay.lowering.scheduling.strategy import Emission, Kernel, S, Strategy, summed_from
from relay.lowering.scheduling.tile_products import emitter_of
from relay.lowering.shaped import buffer_of, shape_of
from relay.target import CpuTarget


@dataclass(frozen=True)
class Weighted:
    """A contraction whose weights are constants in all calls, and the elementwise operation after it. `kernels` and
    `biases`: the constants that each call passes; a bias is removed from the epilogue and added to the initial
    accumulators."""

    fill: linalg.FillOp
    op: linalg.GenericOp
    conv: Convolution
    argument: BlockArgument
    kernels: Sequence[Array]
    epilogue: linalg.GenericOp | None
    bias: Bias | None
    biases: Sequence[Array | None]
    groups: Groups | None = None

    @property
    def covers(self) -> Sequence[Operation]:
        """The fill, the contraction, and the epilogue, if there is one."""
        return (self.fill, self.op, *([] if self.epilogue is None else [self.epilogue]))

    @property
    def by_points(self) -> bool:
        """Whether each operand of the epilogue has one element for each point, one for each channel, or a single
        element."""
        return self.epilogue is None or by_points(accesses_of(self.epilogue), len(shape_of(self.conv.out)))

    @cached_property
    def row(self) -> Convolution | None:
        """The convolution with images of one column viewed as images of one row; None if that is not possible."""
        return as_row(self.conv) if self.by_points and self.groups is None else None

    def form(self, one_row: bool) -> tuple[Convolution, Sequence[Array]]:
        """Return the convolution and the weights that each call passes. With `one_row`, they are those of the
        equivalent convolution of images of one row (see `as_row`), if there is one."""
        if not one_row or self.row is None:
            return self.conv, self.kernels
        return self.row, [kernel_of_row(kernel) for kernel in self.kernels]

    def flat(self, conv: Convolution) -> Sequence[bool]:
        """Return the possible values of the decision `flat`, whether all pixels form one row; the best value is
        first."""
        if conv.pointwise and len(shape_of(self.conv.out)) == 2:
            return (True,)
        return (True, False) if conv.pointwise and self.by_points else (False,)

    def around(self, conv: Convolution, target: CpuTarget, padding: Padding | None) -> Around:
        """Return the properties of the surrounding ops on which the schedule of the convolution depends."""
        if self.epilogue is None:
            return Around(self.flat(conv), padding is not None)
        clamp = match_clamp(self.epilogue.body.block)
        dropped = None if self.bias is None else self.bias.sum.result
        packs = target.packs and clamp is not None and clamp.value is not dropped
        outputs = self.epilogue.outputs
        packs = packs and len(outputs) == 1 and buffer_of(outputs[0]).element_type == i8
        length = operations_of(self.epilogue) - (self.bias is not None)
        return Around(self.flat(conv), padding is not None, epilogue=length, packs=packs)

    def start(self, emission: Emission, masks: bool) -> Epilogue:
        """Remove the bias from the elementwise operation after the contraction, and return an `Epilogue` that emits
        that operation. `masks`: whether fewer than 16 channels are loaded and stored by one masked instruction."""
        if self.bias is not None:
            self.bias.drop()
        sums = self.conv.out
        if self.groups is not None and self.groups.view is not None and self.epilogue is None:
            sums = emission.builder.add(self.groups.view.clone()).result
        return Epilogue(emission.builder, sums, self.epilogue, shape_of(sums)[-1], masks)

    def give(self, emission: Emission, packed: Sequence[Packed]) -> list[SSAValue]:
        """Replace the weights in all calls by packed constants; return the new arguments of the function."""
        new = emission.given.replace(self.argument, [one.columns for one in packed])
        emission.remove_views(self.conv.kernel.value, self.argument)
        return new

    def biased(self, packed: Sequence[Packed]) -> list[Packed]:
        """Return the packed constants of each call with the call's bias, if there is one, added to the initial
        accumulators."""
        pairs = zip(packed, self.biases, strict=True)
        return [one if bias is None else add_bias(one, bias) for one, bias in pairs]


def weighted_of(fill: Operation, kernel: Kernel) -> Weighted | None:
    """Return the contraction (convolution or matrix product) whose accumulators the operation `fill` initializes. None
    if there is none, or if some call of the kernel does not pass constant weights."""
    if not isinstance(fill, linalg.FillOp):
        return None
    if fill not in kernel.known:
        kernel.known[fill] = recognise_weighted(fill, kernel)
    return kernel.known[fill]


def recognise_weighted(fill: linalg.FillOp, kernel: Kernel) -> Weighted | None:
    """Recognise the contraction that the fill starts; `weighted_of` caches the result."""
    op, given = summed_from(fill, kernel), kernel.given
    if op is None:
        return None
    split = recognise_groups(op)
    conv = recognise(op) if split is None else split.conv
    if conv is not None and conv.halves and not takes_halves(conv, kernel.target):
        return None
    argument = None if conv is None else argument_of(conv.kernel.value)
    if conv is None or argument is None or not given.constant(argument):
        return None
    epilogue = epilogue_of(op.outputs[0], fill, op) if split is None else split.epilogue
    arrays, shape = given.arrays_of(argument), shape_of(conv.kernel.value)
    kernels = [(a.view(np.uint8) if conv.kernel.unsigned else a).reshape(shape) for a in arrays]
    bias, biases = given_bias(conv, epilogue, kernel)
    return Weighted(fill, op, conv, argument, kernels, epilogue, bias, biases, split)


def given_bias(
    conv: Convolution, epilogue: linalg.GenericOp | None, kernel: Kernel
) -> tuple[Bias | None, list[Array | None]]:
    """Return the bias that the epilogue adds first, and the constant that each call passes for it; None and a list of
    Nones if the epilogue adds no constant bias first."""
    given, none = kernel.given, list[Array | None]([None] * len(kernel.given.calls))
    bias = find_bias(epilogue, conv.out)
    argument = None if bias is None else argument_of(bias.value)
    if bias is None or argument is None or not given.constant(argument):
        return None, none
    arrays = given.arrays_of(argument)
    return (None, none) if any(array.size != conv.outputs for array in arrays) else (bias, [*arrays])


# Images of one column, which are signals in many models


def as_row(conv: Convolution) -> Convolution | None:
    """Return the same convolution with images of one row, if the result has one column; else None. With windows as
    wide as the image, each image row is contiguous in memory, like one pixel of more channels, and tiles of pixels
    are neighbours in a row. Depthwise convolutions of codes are not converted: they process the rows of a column
    together."""
    if conv.out_columns != 1 or conv.out_rows == 1 or conv.others or conv.columns != conv.kernel_columns:
        return None
    if conv.columns > 1 and (conv.dilation[1] != 1 or conv.depthwise) or conv.depthwise and not conv.is_float:
        return None
    return replace(
        conv,
        rows=1,
        columns=conv.rows,
        channels=conv.columns * conv.channels,
        out_rows=1,
        out_columns=conv.out_rows,
        kernel_rows=1,
        kernel_columns=conv.kernel_rows,
        strides=(1, conv.strides[0]),
        dilation=(1, conv.dilation[0]),
    )


def kernel_of_row(kernel: Array) -> Array:
    """Reshape a kernel for images of one row (see `as_row`): [o, i, j, c] to [o, 1, i, j * c], or [i, 1, c] to [1, i,
    c]."""
    *outputs, rows, columns, channels = kernel.shape
    return kernel.reshape(*outputs, 1, rows, columns * channels)


# Data


def copies(conv: Convolution, schedule: TileSchedule) -> bool:
    """Whether the schedule copies the convolution's data to scratch memory: to convert them to another type or sign, or
    because the last step of the reduction would read beyond the end of the data's buffer."""
    return schedule.sign_flip == "copy" or schedule.widen or slack(conv, schedule) > 0


def pick_padding(pick: Picks, conv: Convolution, schedule: TileSchedule, padding: Padding | None) -> bool:
    """Decide whether copying the data also pads it."""
    return pick.may("pad_in_copy", copies(conv, schedule) and padding is not None and padding.of_image)


def emit_data(emission: Emission, conv: Convolution, schedule: TileSchedule, *, pads: bool = False) -> SSAValue:
    """Emit the data as a flat buffer in the form that the schedule requires, with the padded border if `pads`."""
    padding = emission.prepare_padding(conv.data.value, pads=pads)
    if not copies(conv, schedule):
        return emission.builder.flatten(conv.data.value)
    return emit_codes(emission.builder, conv.data.value, padding, conversion_of(conv, schedule))


UNPADDED = {"pad_in_copy": True, "band": True, "skip_border": True, "padded": False}
"""The decisions with which a contraction reads the image without its border, so that no padded copy is written: names,
and their values. A schedule has at most one of them."""


@dataclass(frozen=True)
class OfWeights(Strategy[S]):
    """A strategy for contractions with constant weights."""

    op: linalg.GenericOp
    found: Weighted

    @property
    def covers(self) -> Sequence[Operation]:
        return self.found.covers

    @property
    def reads(self) -> Sequence[SSAValue]:
        return [self.found.conv.data.value, *super().reads]

    def pads(self, schedule: S) -> Sequence[SSAValue]:
        unpadded = any(schedule.decisions.get(name) is value for name, value in UNPADDED.items())
        return (self.found.conv.data.value,) if unpadded else ()


@dataclass(frozen=True, kw_only=True)
class ContractionSchedule(TileSchedule):
    """A micro-kernel, and how its data is prepared. `one_row`: images of one column are viewed as images of one row;
    `pad_in_copy`: the copy of the data also pads it; `masks`: fewer than 16 channels are loaded and stored by one
    masked instruction."""

    strategy = "contraction"
    one_row: bool
    pad_in_copy: bool
    masks: bool


@dataclass(frozen=True)
class Contraction(OfWeights[ContractionSchedule]):
    """A convolution or product that mixes all channels, computed by one micro-kernel."""

    record = ContractionSchedule
    any_length = True

    @classmethod
    def match(cls, op: Operation, kernel: Kernel) -> Self | None:
        found = weighted_of(op, kernel)
        return cls(found.op, found) if found and not found.groups and not found.conv.depthwise else None

    def decide(self, kernel: Kernel, pick: Picks) -> ContractionSchedule:
        found, row = self.found, self.found.row
        one_row = pick("one_row", (False,) if row is None else (True, False), row is not None)
        conv, kernels = found.form(one_row)
        padding = kernel.waiting.get(conv.data.value)
        around = replace(found.around(conv, kernel.target, padding), matrices=True)
        if not one_row and (runs := border_runs(conv, padding)):
            pays = skipping_pays(conv, runs, kernel.target.costs)
            around = replace(around, border_rows=(pays, not pays))
        chosen = decide_tiles(pick, conv, kernels, kernel.target, around)
        pick_padding(pick, conv, chosen, padding)
        pick_masks(pick, kernel.target, conv.outputs)
        return pick.schedule(ContractionSchedule, chosen.cycles, chosen.why)

    def emit(self, emission: Emission, schedule: ContractionSchedule) -> None:
        found, epilogue = self.found, self.found.start(emission, schedule.masks)
        padding = emission.paddings.get(found.conv.data.value)
        if schedule.one_row:
            epilogue.turn_points()
        if schedule.flat:
            epilogue.flatten_points()
        conv, kernels = found.form(schedule.one_row)
        runs = border_runs(conv, padding) if schedule.skip_border_rows else ()
        data = emit_data(emission, conv, schedule, pads=schedule.pad_in_copy)
        arguments = found.give(
            emission, found.biased([pack_constants(conv, schedule, array, runs) for array in kernels])
        )
        emitter_of(schedule)(emission.builder, conv, schedule, data, arguments, epilogue, runs=runs).emit()
