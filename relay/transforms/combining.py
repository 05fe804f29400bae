"""The implementation of `combine-parallel-conv2d` and `combine-parallel-dense`: products of one value become one
product, and slices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, elements, to_numpy
from relay.dialects.op import DYNAMIC, shape, tensor
from relay.errors import InvalidArgument
from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion, known_numbers
from relay.transforms.legalization import blocks_of

Product = relay.Conv2dOp | qnn.Conv2dOp | relay.DenseOp | qnn.DenseOp


@dataclass(frozen=True)
class CombineParallel(Pass):
    """Merges the products with equal keys, if there are at least `min_num_branches` of them."""

    opt_level = 4
    invalidates = ()
    AXIS: ClassVar[int]
    """The axis of a product's result along which its outputs (channels or units) lie."""
    min_num_branches: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.min_num_branches < 2:
            raise InvalidArgument(self.name, f"min_num_branches is {self.min_num_branches}", "it is at least 2")
        for block in blocks_of(op):
            for branches in self.branches(block):
                if len(branches) >= self.min_num_branches:
                    join(branches, self.AXIS)
        erase_dead(op.walk())

    def branches(self, block: Block) -> list[list[Product]]:
        """The products of a block grouped by key, in program order."""
        found: dict[Hashable, list[Product]] = {}
        for op in block.ops:
            if isinstance(op, Product) and kernel_numbers(op) is not None and (key := self.key(op)) is not None:
                same = frozenset((name, attr) for name, attr in op.properties.items() if name != "kernel_scale")
                found.setdefault((type(op), op.data, same, tensor(op.kernel).element_type, key), []).append(op)
        return list(found.values())

    @abstractmethod
    def key(self, op: Product) -> Hashable | None:
        """What must be equal for products that can be merged, besides data, properties and types; None if the product
        cannot be merged."""


def kernel_numbers(op: Product) -> Array | None:
    """The kernel's elements, if it is a constant and all shapes are known; else None."""
    return None if DYNAMIC in shape(op.result) else known_numbers(op.kernel)


def join(branches: Sequence[Product], axis: int) -> None:
    """Replace products by one product with all their kernels, at the position of the first, and one slice for each."""
    first = branches[0]
    new = Expansion(first)
    kernels = [numbers for op in branches if (numbers := kernel_numbers(op)) is not None]
    properties = dict[str, Attribute | None](first.properties)
    if isinstance(first, qnn.Conv2dOp | qnn.DenseOp):
        properties["kernel_scale"] = scales(branches, [len(kernel) for kernel in kernels])
    kernel = new.constant(np.concatenate(kernels), kernels[0].dtype)
    result = new.value(type(first), first.data, kernel, properties=properties)
    parts = [new.sliced(result, axis, end - len(k), end) for k, end in zip(kernels, ends(kernels), strict=True)]
    Rewriter.insert_op(new.ops, InsertPoint.before(first))
    for op, part in zip(branches, parts, strict=True):
        part.name_hint = op.result.name_hint
        Rewriter.replace_op(op, [], [part])


def ends(kernels: Sequence[Array]) -> list[int]:
    """The end index of each kernel's outputs in the joined kernel."""
    return np.cumsum([len(kernel) for kernel in kernels]).tolist()


def scales(branches: Sequence[Product], outputs: Sequence[int]) -> Attribute:
    """The scales of the joined kernel: one scalar if all scales are equal scalars, else one for each output."""
    given = [to_numpy(op.properties["kernel_scale"]) for op in branches]
    if all(numbers.ndim == 0 and numbers == given[0] for numbers in given):
        return branches[0].properties["kernel_scale"]
    return elements(np.concatenate([np.broadcast_to(g, (n,)) for g, n in zip(given, outputs, strict=True)]))
