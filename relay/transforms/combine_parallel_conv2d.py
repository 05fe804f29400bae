"""The pass `combine-parallel-conv2d`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.dialects import qnn, relay
from relay.dialects.op import shape, tensor
from relay.passes import Pass
from relay.transforms.combining import combine, kernel_numbers


@dataclass(frozen=True)
class CombineParallelConv2D(Pass):
    """Merge convolutions of the same input with constant weights into one convolution.

    At least `min_num_branches` of them must have equal windows, strides, padding and types; their weights are
    concatenated, and each gets a slice of the channels. For NHWC images and OHWI kernels without groups. No integer
    changes; floats are added in the same order.
    """

    name: ClassVar[str] = "combine-parallel-conv2d"
    opt_level = 4
    invalidates = ()
    why = "merges convolutions of the same input"
    min_num_branches: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        combine(op, key, 3, self.min_num_branches, self.name)


def key(op: Operation) -> Hashable | None:
    """A key that is equal for convolutions that can be merged; None if the op cannot be."""
    if not isinstance(op, relay.Conv2dOp | qnn.Conv2dOp) or kernel_numbers(op) is None:
        return None
    layouts = op.data_layout.data, op.result_layout.data, op.kernel_layout.data
    if op.groups.value.data != 1 or layouts != ("NHWC", "NHWC", "OHWI"):
        return None
    same = frozenset((name, attr) for name, attr in op.properties.items() if name != "kernel_scale")
    return type(op), op.data, same, shape(op.kernel)[1:], tensor(op.kernel).element_type
