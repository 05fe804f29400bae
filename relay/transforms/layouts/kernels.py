"""Kernels of convolutions in other layouts."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from relay.dialects import relay
from relay.dialects.layout import Layout, Step, steps
from relay.dialects.op import DYNAMIC, shape
from relay.transforms.layouts.moving import Mover

DEPTHWISE = Layout.parse("OIHW")
"""The layout of the kernel of a depthwise convolution, if that is written as a grouped convolution: a kernel [h, w,
groups, multiplier] becomes [groups x multiplier, 1, h, w]."""


def channels(op: relay.Conv2dBase) -> int:
    """The number of channels of the data."""
    return Layout.parse(op.data_layout.data).sizes(shape(op.data))["C"]


def set_kernel_layout(op: relay.Conv2dBase, wanted: str) -> None:
    """Convert a convolution's kernel to another layout. HWOI is only for depthwise convolutions; the kernels of others
    are left unchanged."""
    if op.kernel_layout.data == wanted or (wanted == "HWOI" and not separable(op)):
        return
    block = op.parent_block()
    assert block is not None
    mover = Mover(block)
    mover.before = op
    op.operands[1] = mover.move(op.kernel, changes(op, wanted), op)
    op.properties["kernel_layout"] = StringAttr(wanted)


def separable(op: relay.Conv2dBase) -> bool:
    """Whether each input channel is convolved separately (depthwise)."""
    groups = op.groups.value.data
    return op.depthwise or (groups > 1 and channels(op) in (groups, DYNAMIC))


def changes(op: relay.Conv2dBase, wanted: str) -> list[Step]:
    """The reshapes and transposes from the kernel's layout to the wanted one."""
    dims, groups = shape(op.kernel), op.groups.value.data
    if op.depthwise:
        height, width, _, multiplier = dims
        flat = (groups * multiplier, 1, height, width)
        target = Layout.parse(wanted)
        return [("transpose", (2, 3, 0, 1)), ("reshape", flat), *steps(flat, DEPTHWISE, target)]
    source = Layout.parse(op.kernel_layout.data)
    if wanted != "HWOI":
        return steps(dims, source, Layout.parse(wanted))
    sizes = source.sizes(dims)
    parted = (groups, sizes["O"] // groups, sizes["H"], sizes["W"])
    return [*steps(dims, source, DEPTHWISE), ("reshape", parted), ("transpose", (2, 3, 0, 1))]
