"""Numpy implementation of one- and three-dimensional convolutions and of transposed ones: one matrix product for each
position of the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.element_types import wider_dtype
from relay.dialects.layout import Layout
from relay.interpreters.arithmetic import Dtype
from relay.interpreters.meaning import Meanings, cell_slices, number, ops_of, padded
from relay.interpreters.nn import centred, in_layout, matrix_product

ConvTranspose = relay.ConvTransposeNd | qnn.Conv2dTransposeOp


def channels_last(op: relay.ConvNd | ConvTranspose, data: Array, kernel: Array) -> tuple[Array, Array]:
    """Data and kernel minus their zero points, in the layouts [n, spatial..., c] and [o, spatial..., i]."""
    data, kernel = centred(data, number(op.input_zero_point)), centred(kernel, number(op.kernel_zero_point))
    last = Layout.parse(f"N{op.SPATIAL}C"), Layout.parse(f"O{op.SPATIAL}I")
    return in_layout(data, op.data_axes, last[0]), in_layout(kernel, op.kernel_axes, last[1])


def products(parts: Sequence[Array], matrices: Sequence[Array], out: Dtype) -> Array:
    """For each group of channels, multiply its data [..., c] (in `parts`) by the transpose of its matrix [o, c] (in
    `matrices`), in the type `out`; concatenate the groups' results along the last axis."""
    lines = [part.reshape(-1, part.shape[-1]) for part in parts]
    whole = np.concatenate([matrix_product(a, b, out) for a, b in zip(lines, matrices, strict=True)], axis=-1)
    return whole.reshape(*parts[0].shape[:-1], -1)


def conv(op: relay.ConvNd, data: Array, kernel: Array) -> Array:
    data, kernel = channels_last(op, data, kernel)
    groups, out = op.groups.value.data, wider_dtype(dtype_of(op.out_dtype))
    image = padded(data, [(0, 0), *op.each_padding(), (0, 0)])
    spatial = [op.extent(n, k, axis) for axis, (n, k) in enumerate(sizes(data, kernel))]
    total = np.zeros((data.shape[0], *spatial, kernel.shape[0]), out)
    for place in np.ndindex(*kernel.shape[1:-1]):
        under = image[cell_slices(place, spatial, op.each_stride(), op.each_dilation())]
        matrices = np.split(kernel[(slice(None), *place)], groups)
        total += products(np.split(under, groups, axis=-1), matrices, out)
    return in_layout(total, Layout.parse(f"N{op.SPATIAL}C"), op.result_axes)


def conv_transpose(op: ConvTranspose, data: Array, kernel: Array) -> Array:
    """A transposed convolution: each position of the kernel adds products to the output positions that it reaches; then
    the padding is cut off."""
    data, kernel = channels_last(op, data, kernel)
    groups, out, padding = op.groups.value.data, wider_dtype(dtype_of(op.out_dtype)), op.each_padding()
    spatial = [op.extent(n, k, axis) for axis, (n, k) in enumerate(sizes(data, kernel))]
    steps = zip(sizes(data, kernel), spatial, padding, op.each_stride(), op.each_dilation(), strict=True)
    whole = [max(n * s + k * d, before + size) for (n, k), size, (before, _), s, d in steps]
    total = np.zeros((data.shape[0], *whole, kernel.shape[0] * groups), out)
    parts = np.split(data, groups, axis=-1)
    for place in np.ndindex(*kernel.shape[1:-1]):
        matrices = np.split(kernel[(slice(None), *place)], groups, axis=-1)
        total[cell_slices(place, data.shape[1:-1], op.each_stride(), op.each_dilation())] += products(
            parts, matrices, out
        )
    kept = total[(slice(None), *(slice(b, b + n) for (b, _), n in zip(padding, spatial, strict=True)))]
    return in_layout(kept, Layout.parse(f"N{op.SPATIAL}C"), op.result_axes)


def sizes(data: Array, kernel: Array) -> list[tuple[int, int]]:
    """For each spatial axis, the pair of the data's size and the kernel's size."""
    return list(zip(data.shape[1:-1], kernel.shape[1:-1], strict=True))


MEANINGS: Meanings = {
    **dict.fromkeys(ops_of(relay.ConvBase), conv),
    **dict.fromkeys(ops_of(relay.ConvTransposeBase), conv_transpose),
}
