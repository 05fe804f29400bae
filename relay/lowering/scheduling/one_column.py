"""Convolutions whose result has one column, as convolutions of one row: tiles of pixels are neighbours in a row.

Signals are images of one column in many models. With windows as wide as the image, each row of it lies in memory as one
pixel of more channels, and the rows follow each other as the pixels of a row do.
"""

from __future__ import annotations

from dataclasses import replace

from relay.dialects.attributes import Array
from relay.lowering.scheduling.contraction import Convolution


def as_row(conv: Convolution) -> Convolution | None:
    """The same sums by rows of one row, if windows are as wide as the image and there are several of them. Depthwise
    convolutions of codes stay: they take the rows of a column together."""
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
    """Kernel [o, i, j, c] as [o, 1, i, j * c]; [i, 1, c] as [1, i, c]."""
    *outputs, rows, columns, channels = kernel.shape
    return kernel.reshape(*outputs, 1, rows, columns * channels)
