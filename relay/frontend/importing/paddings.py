"""Padding and cropping of tensors at the ends of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import scalar_attr
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.tensors import TensorBuilder

Widths = Mapping[int, tuple[int, int]]
"""The number of elements to add before and after each axis, by axis; negative numbers crop."""
Mode = Literal["reflect", "edge", "wrap"]


def padded(
    importer: TensorBuilder, value: SSAValue, widths: Widths, mode: Mode | None = None, fill: float = 0
) -> SSAValue:
    """The value cropped where widths are negative, then padded where they are positive. New elements are `fill`, or,
    with a `mode` of `numpy.pad`, copies of elements of the value. The sizes of axes that are cropped, or padded with a
    mode, must be known."""
    dims = importer.shape(value)
    cut = {a: (max(-b, 0), dims[a] - max(-e, 0)) for a, (b, e) in widths.items() if min(b, e) < 0}
    wide = {a: (max(b, 0), max(e, 0)) for a, (b, e) in widths.items() if max(b, e) > 0}
    if any(dims[axis] == DYNAMIC for axis in (*cut, *(wide if mode else ()))):
        raise importer.at.unsupported(f"cuts or mirrors an axis of unknown size, of {value.type}", "give its shapes")
    value = importer.slice(value, cut)
    if mode is None:
        flat = [each for axis in range(len(dims)) for each in wide.get(axis, (0, 0))]
        pad_value = scalar_attr(fill, importer.element(value))
        return importer.call(relay.PadOp, value, pad_width=flat, pad_value=pad_value) if wide else value
    for axis, each in wide.items():
        value = importer.take(value, np.pad(np.arange(importer.shape(value)[axis]), each, mode), axis)
    return value
