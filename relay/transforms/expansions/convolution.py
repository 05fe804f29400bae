"""Expansions of convolutions to `relay.nn.conv2d`, which has fast kernels.

One dimension: images of height 1. Three dimensions: the depth slices under a window become channels. Transposed: one
convolution with an output channel for each channel and each position within a stride; its results are then interleaved.
No zero is inserted into the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, ints, scalar_attr
from relay.dialects.layout import Layout
from relay.dialects.op import TensorOp, shape, tensor
from relay.interpreters.meaning import ops_of
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.rearrange import padded
from relay.transforms.expansions.steps import Expansions, relaid

KINDS: dict[int, type[TensorOp]] = {1: relay.Conv1dOp, 2: relay.Conv2dOp, 3: relay.Conv3dOp}
"""Convolution ops by the number of their spatial axes."""


@dataclass(frozen=True)
class Window:
    """The properties of a convolution: one integer, or a pair for the padding, for each spatial axis."""

    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    dilation: Sequence[int]
    groups: int
    rest: dict[str, Attribute | None]
    """The remaining properties: the type of the sums, and the zero points."""

    def properties(self) -> dict[str, Attribute | None]:
        return {
            "strides": ints(self.strides),
            "padding": ints([before for before, _ in self.padding] + [after for _, after in self.padding]),
            "dilation": ints(self.dilation),
            "groups": IntegerAttr(self.groups, i64),
            **self.rest,
        }


def channels_last(new: Expansion, op: relay.ConvNd | relay.ConvTransposeNd) -> tuple[SSAValue, SSAValue]:
    """The operands as [n, spatial..., c] and [o, spatial..., i]."""
    data, kernel = Layout.parse(f"N{op.SPATIAL}C"), Layout.parse(f"O{op.SPATIAL}I")
    return relaid(new, op.data, op.data_axes, data), relaid(new, op.kernel, op.kernel_axes, kernel)


def finish(new: Expansion, op: relay.ConvNd | relay.ConvTransposeNd, result: SSAValue) -> SSAValue:
    """Convert [n, spatial..., c] to the layout of the op's result."""
    return relaid(new, result, Layout.parse(f"N{op.SPATIAL}C"), op.result_axes)


def rest(op: relay.ConvNd | relay.ConvTransposeNd) -> dict[str, Attribute | None]:
    return {name: op.properties.get(name) for name in ("out_dtype", "input_zero_point", "kernel_zero_point")}


def conv2d(new: Expansion, data: SSAValue, kernel: SSAValue, window: Window) -> SSAValue:
    """A convolution of NHWC data with an OHWI kernel; the depthwise form is used where each channel is a group."""
    properties, (outputs, height, width, inputs) = window.properties(), shape(kernel)
    if window.groups > 1 and inputs == 1:
        kernel = new.reshape(kernel, [window.groups, outputs // window.groups, height, width])
        kernel = new.transpose(kernel, [2, 3, 0, 1])
        properties["kernel_layout"] = StringAttr("HWOI")
    return new.value(relay.Conv2dOp, data, kernel, properties=properties)


def conv1d(new: Expansion, op: relay.Conv1dOp) -> SSAValue:
    """relay.nn.conv1d %x, %k  =>  relay.nn.conv2d of images of one row"""
    data, kernel = channels_last(new, op)
    (images, width, channels), (outputs, taps, inputs) = shape(data), shape(kernel)
    window = Window(
        [1, *op.each_stride()], [(0, 0), *op.each_padding()], [1, *op.each_dilation()], op.groups.value.data, rest(op)
    )
    image = new.reshape(data, [images, 1, width, channels])
    result = conv2d(new, image, new.reshape(kernel, [outputs, 1, taps, inputs]), window)
    return finish(new, op, new.reshape(result, [images, shape(result)[2], outputs]))


def conv3d(new: Expansion, op: relay.Conv3dOp) -> SSAValue:
    """relay.nn.conv3d %x, %k  =>  relay.nn.conv2d of images whose channels are those of all depths under the window"""
    data, kernel = channels_last(new, op)
    (stride, *strides), (dilation, *dilations) = op.each_stride(), op.each_dilation()
    (before, after), *padding = op.each_padding()
    outputs, taps, height, width, inputs = shape(kernel)
    groups = op.groups.value.data
    zero = scalar_attr(0 if op.input_zero_point is None else op.input_zero_point.value.data, tensor(data).element_type)
    data = padded(new, data, [(0, 0), (before, after)], zero)
    images, depth, rows, columns, channels = shape(data)
    count = (depth - (taps - 1) * dilation - 1) // stride + 1
    slices = [
        new.sliced(data, 1, tap * dilation, tap * dilation + (count - 1) * stride + 1, stride) for tap in range(taps)
    ]
    parts = [new.reshape(part, [images * count, rows, columns, groups, 1, channels // groups]) for part in slices]
    whole = new.joined(parts, 4)
    flat = new.reshape(new.transpose(kernel, [0, 2, 3, 1, 4]), [outputs, height, width, taps * inputs])
    window = Window(strides, padding, dilations, groups, rest(op))
    result = conv2d(new, new.reshape(whole, [images * count, rows, columns, channels * taps]), flat, window)
    return finish(new, op, new.reshape(result, [images, count, *shape(result)[1:]]))


@dataclass(frozen=True)
class Phases:
    """One axis of a transposed convolution, as `stride` convolutions whose results are interleaved."""

    taps: Array
    """[stride, taps]: for each of the `stride` convolutions, the index in the original kernel of each of its taps; the
    kernel's size stands for a missing tap."""
    begin: int
    """The index at which the op's result begins in the array of interleaved results, whose earlier elements are
    dropped."""
    dilation: int
    padding: tuple[int, int]
    used: int
    """The number of elements along this axis of the data, counted from its start, that the convolutions need."""

    @property
    def stride(self) -> int:
        """The number of convolutions whose results are interleaved."""
        return self.taps.shape[0]


def phases(size: int, kernel: int, stride: int, dilation: int, before: int, result: int) -> Phases:
    """Split one axis of a transposed convolution into phases. Position q * stride + r of the result, padding included,
    reads the data at q + (r - i * dilation) / stride, for the taps i for which that is an integer; so the taps of each
    phase r are known. The padding is cut off afterwards. If the stride exceeds the result, only the first element of
    the data is read."""
    if size == 1 or stride >= result + before:
        size, stride = 1, min(stride, result + before)
    skipped = before // stride
    reads = {
        (r, i): skipped + (r - i * dilation) // stride
        for r in range(stride)
        for i in range(kernel)
        if (r - i * dilation) % stride == 0
    }
    first, last = min(reads.values()), max(reads.values())
    step = gcd(*(at - first for at in reads.values())) or 1
    taps = np.full((stride, (last - first) // step + 1), kernel, np.int32)
    for (r, i), at in reads.items():
        taps[r, (at - first) // step] = i
    count = -(-(before + result) // stride) - skipped
    end = count + last
    return Phases(taps, before % stride, step, (-first, max(end - size, 0)), min(size, end))


def conv_transpose(new: Expansion, op: relay.ConvTransposeNd) -> SSAValue:
    """relay.nn.conv2d_transpose %x, %k  =>  relay.nn.conv2d with an output channel for each channel of the result and
    each position within a stride; then the results are interleaved"""
    data, kernel = channels_last(new, op)
    results = op.result_axes.sizes(shape(op.result))
    result = [results[letter] for letter in op.SPATIAL]
    strides, groups = op.each_stride(), op.groups.value.data
    numbers = zip(
        shape(data)[1:-1], shape(kernel)[1:-1], strides, op.each_dilation(), op.each_padding(), result, strict=True
    )
    axes = [phases(size, k, s, d, before, out) for size, k, s, d, (before, _), out in numbers]
    used = [shape(data)[0], *(phase.used for phase in axes), shape(data)[-1]]
    data = new.slice(data, [0] * len(used), used)
    window = Window([1] * len(axes), [p.padding for p in axes], [p.dilation for p in axes], groups, rest(op))
    kernel = of_phases(new, op, kernel, axes)
    if len(axes) == 2:
        sums = conv2d(new, data, kernel, window)
    else:
        sums = new.value(KINDS[len(axes)], data, kernel, properties=window.properties())
    return finish(new, op, in_turns(new, sums, axes, groups, result))


def of_phases(new: Expansion, op: relay.ConvTransposeNd, kernel: SSAValue, axes: Sequence[Phases]) -> SSAValue:
    """Rearrange the kernel of a transposed convolution, [o, spatial..., i of all groups], for a convolution that
    computes all phases as channels: [(group, phases, o), taps..., i of a group]. A phase is the results at one position
    within the strides, which use the same taps. Where a phase has fewer taps than others, the kernel is filled with its
    zero point."""
    count, (outputs, *sizes, inputs) = len(axes), shape(kernel)
    groups, zero = op.groups.value.data, 0 if op.kernel_zero_point is None else op.kernel_zero_point.value.data
    missing = [int((phase.taps == size).any()) for phase, size in zip(axes, sizes, strict=True)]
    widths = [(0, 0), *((0, more) for more in missing)]
    kernel = padded(new, kernel, widths, scalar_attr(zero, tensor(kernel).element_type))
    for axis, phase in enumerate(axes):
        properties = {"axis": IntegerAttr(1 + 2 * axis, i64)}
        kernel = new.value(relay.TakeOp, kernel, new.constant(phase.taps, np.int32), properties=properties)
    places, taps = [phase.stride for phase in axes], [phase.taps.shape[1] for phase in axes]
    alternating = [size for pair in zip(places, taps, strict=True) for size in pair]
    kernel = new.reshape(kernel, [outputs, *alternating, groups, inputs // groups])
    order = [2 * count + 1, *range(1, 2 * count, 2), 0, *range(2, 2 * count + 1, 2), 2 * count + 2]
    return new.reshape(new.transpose(kernel, order), [groups * prod(places) * outputs, *taps, inputs // groups])


def in_turns(new: Expansion, sums: SSAValue, axes: Sequence[Phases], groups: int, result: Sequence[int]) -> SSAValue:
    """Interleave [n, q..., (group, phases, o)] to [n, q * stride + phase..., (group, o)], cut to the result."""
    images, *counts, channels = shape(sums)
    strides = [phase.stride for phase in axes]
    if prod(strides) > 1:
        n, outputs = len(counts), channels // groups // prod(strides)
        split = new.reshape(sums, [images, *counts, groups, *strides, outputs])
        order = [0, *(axis for k in range(n) for axis in (1 + k, 2 + n + k)), 1 + n, 2 + 2 * n]
        sizes = [count * stride for count, stride in zip(counts, strides, strict=True)]
        sums = new.reshape(new.transpose(split, order), [images, *sizes, groups * outputs])
    ends = [phase.begin + size for phase, size in zip(axes, result, strict=True)]
    return new.slice(sums, [0, *(phase.begin for phase in axes), 0], [images, *ends, shape(sums)[-1]])


EXPANSIONS: Expansions = {
    relay.Conv1dOp: conv1d,
    relay.Conv3dOp: conv3d,
    **dict.fromkeys(ops_of(relay.ConvTransposeBase), conv_transpose),
}
