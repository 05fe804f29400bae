"""The pass `combine-parallel-conv2d`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from relay.dialects import qnn, relay
from relay.dialects.op import shape
from relay.transforms.combining import CombineParallel, Product


@dataclass(frozen=True)
class CombineParallelConv2D(CombineParallel):
    """Merge convolutions of the same input with constant weights into one convolution.

    At least `min_num_branches` of them must have equal windows, strides, padding and types; their weights are
    concatenated, and each gets a slice of the channels. For NHWC images and OHWI kernels without groups. No integer
    changes; floats are added in the same order.
    """

    name: ClassVar[str] = "combine-parallel-conv2d"
    why = "merges convolutions of the same input"
    AXIS: ClassVar[int] = 3

    def key(self, op: Product) -> Hashable | None:
        if not isinstance(op, relay.Conv2dOp | qnn.Conv2dOp) or op.groups.value.data != 1:
            return None
        layouts = op.data_layout.data, op.result_layout.data, op.kernel_layout.data
        return shape(op.kernel)[1:] if layouts == ("NHWC", "NHWC", "OHWI") else None
