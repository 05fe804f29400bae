"""The pass `combine-parallel-dense`: merges matrix products of the same data with several constant kernels into one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.dialects import qnn, relay
from relay.dialects.op import tensor
from relay.passes import Pass
from relay.transforms.combining import combine, kernel_numbers


@dataclass(frozen=True)
class CombineParallelDense(Pass):
    """Merge matrix products of the same input with constant weights into one product. There must be at least
    `min_num_branches`; the weights are concatenated, and each product gets a slice of the result. No integer changes;
    floats are added in the same order."""

    name: ClassVar[str] = "combine-parallel-dense"
    opt_level = 4
    invalidates = ()
    why = "merges matrix products of the same input"
    min_num_branches: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        combine(op, key, -1, self.min_num_branches, self.name)


def key(op: Operation) -> Hashable | None:
    """A key that is equal for products that can be merged; None if the op cannot be."""
    if not isinstance(op, relay.DenseOp | qnn.DenseOp) or kernel_numbers(op) is None:
        return None
    same = frozenset((name, attr) for name, attr in op.properties.items() if name != "kernel_scale")
    return type(op), op.data, same, tensor(op.kernel).element_type
