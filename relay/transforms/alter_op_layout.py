"""The pass `alter-op-layout`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.dialects import relay
from relay.dialects.layout import Layout
from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.layouts.axes import Imaging, layout_of_operand, layout_of_result
from relay.transforms.layouts.conversion import convert_block
from relay.transforms.layouts.kernels import separable, set_kernel_layout
from relay.transforms.legalization import blocks_of, own

NHWC = Layout.parse("NHWC")


@dataclass(frozen=True)
class AlterOpLayout(Pass):
    """Convert data and weights to the layouts that the target's kernels read.

    Images are NHWC, kernels OHWI, depthwise ones HWOI. The pass does the same as `convert-layout` to NHWC: it
    transposes the fewest bits, and results stay equal. A module that already has these layouts is unchanged: its own
    transposes are left alone.
    """

    name: ClassVar[str] = "alter-op-layout"
    establishes = ("layouts",)
    invalidates = ("folded",)
    why = "converts tensors to the layouts that the kernels read"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(foreign(inner) for inner in own(op) if isinstance(inner, Imaging))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.holds(op):
            return
        for conv in [inner for inner in own(op) if isinstance(inner, relay.Conv2dBase)]:
            if conv.kernel_layout.data not in ("OHWI", "HWOI"):
                set_kernel_layout(conv, "HWOI" if separable(conv) else "OHWI")
        for block in blocks_of(op):
            convert_block(block, NHWC, other_layout, ())
        erase_dead(op.walk())


def other_layout(op: Imaging) -> bool:
    """Whether the op's data or result has a layout other than NHWC."""
    return layout_of_operand(op) != NHWC or layout_of_result(op) != NHWC


def foreign(op: Imaging) -> bool:
    """Whether the op's images are not NHWC, or its convolution kernel is neither OHWI nor HWOI."""
    if isinstance(op, relay.Conv2dBase) and op.kernel_layout.data not in ("OHWI", "HWOI"):
        return True
    return other_layout(op)
