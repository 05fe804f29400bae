"""The pass `combine-parallel-dense`: merges matrix products of the same data with several constant kernels into one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from relay.dialects import qnn, relay
from relay.transforms.combining import CombineParallel, Product


@dataclass(frozen=True)
class CombineParallelDense(CombineParallel):
    """Merge matrix products of the same input with constant weights into one product. There must be at least
    `min_num_branches`; the weights are concatenated, and each product gets a slice of the result. No integer changes;
    floats are added in the same order."""

    name: ClassVar[str] = "combine-parallel-dense"
    why = "merges matrix products of the same input"
    AXIS: ClassVar[int] = -1

    def key(self, op: Product) -> Hashable | None:
        return () if isinstance(op, relay.DenseOp | qnn.DenseOp) else None
