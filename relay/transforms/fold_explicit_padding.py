"""The pass `fold-explicit-padding`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import qnn, relay
from relay.dialects.attributes import dtype_of, int_values, ints, to_numpy
from relay.dialects.layout import Layout
from relay.dialects.op import tensor
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import PatternPass


class PadOfConvolution(RewritePattern):
    """nn.conv2d (nn.pad %x with zeros or the zero point) => nn.conv2d %x with more padding"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.Conv2dOp | qnn.Conv2dOp, rewriter: PatternRewriter) -> None:
        pad = op.data.owner
        if not isinstance(pad, relay.PadOp):
            return
        zero_point = op.input_zero_point
        nothing = 0 if zero_point is None else zero_point.value.data
        widths = image_widths(pad, op.data_layout.data)
        if widths is None or to_numpy(pad.pad_value) != nothing:
            return
        new = Expansion(op)
        properties = dict[str, Attribute | None](op.properties) | {"padding": more(int_values(op.padding), widths)}
        new.replace(rewriter, new.value(type(op), pad.input, op.kernel, properties=properties))


class PadOfMaximum(RewritePattern):
    """nn.max_pool2d (nn.pad %x with the lowest number)  =>  nn.max_pool2d %x with more padding, where every window
    still lies partly in the image"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.MaxPool2dOp, rewriter: PatternRewriter) -> None:
        pad = op.data.owner
        if not isinstance(pad, relay.PadOp) or op.ceil_mode.value.data:
            return
        type = tensor(op.data).element_type
        least = -np.inf if dtype_of(type).kind == "f" else limits(type)[0]
        widths = image_widths(pad, op.layout.data)
        if widths is None or to_numpy(pad.pad_value) != least:
            return
        padding = more(int_values(op.padding), widths)
        top, left, bottom, right = int_values(padding)
        height, width = ((cells - 1) * dilation + 1 for cells, _, dilation in op.windows())
        if max(top, bottom) >= height or max(left, right) >= width:
            return
        new = Expansion(op)
        properties = dict[str, Attribute | None](op.properties) | {"padding": padding}
        new.replace(rewriter, new.value(relay.MaxPool2dOp, pad.input, properties=properties))


def image_widths(pad: relay.PadOp, layout: str) -> tuple[int, int, int, int] | None:
    """The amounts (top, left, bottom, right) by which `pad` pads height and width; None if it pads other axes."""
    axes, widths = Layout.parse(layout), pad.widths()
    rows, columns = axes.index("H"), axes.index("W")
    if any(width != (0, 0) for i, width in enumerate(widths) if i not in (rows, columns)):
        return None
    return widths[rows][0], widths[columns][0], widths[rows][1], widths[columns][1]


def more(padding: tuple[int, ...], widths: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    """The sum of two paddings."""
    return ints([a + b for a, b in zip(padding, widths, strict=True)])


@dataclass(frozen=True)
class FoldExplicitPadding(PatternPass):
    """Let convolutions and max pools do the padding of a preceding `nn.pad`, in any layout. No result changes: the
    padding is with the zero point (floats: 0), or with the lowest value."""

    name: ClassVar[str] = "fold-explicit-padding"
    opt_level = 1
    invalidates = ()
    why = "folds nn.pad into the convolution or pooling that reads it"
    PATTERNS = (PadOfConvolution, PadOfMaximum)
