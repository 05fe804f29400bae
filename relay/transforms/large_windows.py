"""Largest elements of large windows, as those of smaller windows of smaller windows."""

from __future__ import annotations

from math import prod

from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import DYNAMIC
from relay.transforms.expansion import Expansion

SIDE = 5
"""Cells along a side of the first windows. Borders of smaller windows have few kinds of rows and columns."""


class LargeWindow(RewritePattern):
    """relay.nn.max_pool2d of k cells %x  =>  relay.nn.max_pool2d of k - 4 cells (relay.nn.max_pool2d of 5 cells %x)

    Along rows and columns of more than 5 cells, where windows are side by side and that is fewer cells in all: 13x13
    becomes three of 5x5. Of the padding the first takes its share. Cells outside of the image count for nothing before
    and after, and each window of windows covers what the large one does.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.MaxPool2dOp, rewriter: PatternRewriter) -> None:
        windows, padding = op.windows(), op.each_padding()
        if not op.plain or any(stride > 1 for _, stride, _ in windows):
            return
        cells = [side for side, _, _ in windows]
        sizes = op.sizes()
        spatial = [sizes[letter] for letter in op.SPATIAL]
        if max(cells) <= SIDE or DYNAMIC in spatial:
            return
        near = [min(side, SIDE) for side in cells]
        far = [side - first + 1 for side, first in zip(cells, near, strict=True)]
        first = [tuple(share(n, a, b) for n in both) for both, a, b in zip(padding, near, far, strict=True)]
        second = [(x - a, y - b) for (x, y), (a, b) in zip(padding, first, strict=True)]
        between = [n + a + b - side + 1 for n, (a, b), side in zip(spatial, first, near, strict=True)]
        count = prod(op.counts(spatial))
        if min(between) < 1 or prod(between) * prod(near) + count * prod(far) >= count * prod(cells):
            return
        new, x = Expansion(op), op.data
        for window, around in ((near, first), (far, second)):
            flat = [before for before, _ in around] + [after for _, after in around]
            sides: dict[str, Attribute] = {"pool_size": ints(window), "padding": ints(flat)}
            x = new.value(relay.MaxPool2dOp, x, properties={**op.properties, **sides})
        new.replace(rewriter, x)


def share(padding: int, near: int, far: int) -> int:
    """What the first of two windows takes of the padding: half of a window, and so much that the rest is less than the
    second one."""
    return max(min(padding, (near - 1) // 2), padding - (far - 1))
