"""Layers of a float function: convolutions and products, each with the bias and the clamp that follow it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.byoc.regions import constant_of
from relay.dialects import relay
from relay.dialects.attributes import Array, elements, to_numpy
from relay.dialects.op import is_tensor, rank
from relay.transforms.location import words

Anchor = relay.Conv2dOp | relay.DenseOp


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A convolution or product with constant weights, and the bias and the clamp that follow it, if any."""

    index: int
    """The layer's index in the function, in program order."""
    anchor: Anchor
    bias: relay.BiasAddOp | None
    clamp: Operation | None

    @property
    def ops(self) -> list[Operation]:
        return [op for op in (self.anchor, self.bias, self.clamp) if op is not None]

    @property
    def result(self) -> SSAValue:
        return self.ops[-1].results[0]

    @property
    def weights(self) -> Array:
        """The weights; those of a depthwise convolution in the shape [h, w, output channels]."""
        return flat_kernel(self.anchor)

    @property
    def vector(self) -> Array | None:
        """The bias vector, with one element per output channel; None without a bias."""
        return None if self.bias is None else constant_of(self.bias.bias)

    @property
    def axis(self) -> int:
        """The dimension of `weights` that is the output channels."""
        return channel_axis(self.anchor)

    @property
    def groups(self) -> int:
        """The number of groups of a convolution; 1 for a product."""
        return self.anchor.groups.value.data if isinstance(self.anchor, relay.Conv2dOp) else 1

    @property
    def name(self) -> str:
        """The layer's name, such as `conv2d_3`: the kind of op and the index."""
        return f"{self.anchor.name.rpartition('.')[2]}_{self.index}"


def channel_axis(anchor: relay.Conv2dBase | relay.DenseBase) -> int:
    """The dimension of a kernel that is the output channels; for a depthwise kernel, its dimension in [h, w,
    channels]."""
    return 2 if isinstance(anchor, relay.Conv2dBase) and anchor.depthwise else 0


def flat_kernel(anchor: Anchor) -> Array:
    """The kernel as an array; a depthwise kernel [h, w, channels, multiplier] is reshaped to [h, w, channels *
    multiplier]."""
    found = constant_of(anchor.kernel)
    assert found is not None
    return found.reshape(*found.shape[:2], -1) if channel_axis(anchor) == 2 else found


def is_float(value: SSAValue) -> bool:
    """Whether the value is a tensor of float32."""
    return is_tensor(value.type) and value.type.element_type == f32


def only_user(value: SSAValue) -> Operation | None:
    """The user of the value, if there is only one and it uses the value once; otherwise None."""
    return next(iter(value.uses)).operation if value.has_one_use() else None


def clamp_bounds(op: Operation | None) -> tuple[float, float] | None:
    """The bounds of a float clamp (`relay.clip`, or `relay.maximum` with the constant 0); None for other ops."""
    if isinstance(op, relay.ClipOp) and is_float(op.input):
        return float(to_numpy(op.a_min)), float(to_numpy(op.a_max))
    if isinstance(op, relay.MaximumOp) and is_float(op.lhs):
        floor = constant_of(op.rhs)
        if floor is not None and floor.size == 1 and float(floor.reshape(())) == 0.0:
            return 0.0, float(np.finfo(np.float32).max)
    return None


def layers_of(function: FuncOp) -> list[Layer]:
    """Every convolution and product of float32 with constant weights, in program order."""
    found: list[Layer] = []
    for op in function.body.walk():
        if isinstance(op, relay.Conv2dOp | relay.DenseOp) and is_float(op.data) and constant_of(op.kernel) is not None:
            found.append(_layer(len(found), op))
    return found


def _layer(index: int, anchor: Anchor) -> Layer:
    after, bias = only_user(anchor.result), None
    if isinstance(after, relay.BiasAddOp) and constant_of(after.bias) is not None:
        if after.axis.value.data in (-1, rank(after.data) - 1) and after.data is anchor.result:
            bias, after = after, only_user(after.result)
    return Layer(index, anchor, bias, after if clamp_bounds(after) is not None else None)


def names_of(op: Operation) -> Iterator[str]:
    """The names of an op: that of the tensor in the model's file from which it was imported, then the names of its
    weights, then those of its results."""
    yield from re.findall(r"'([^']*)'", words(op.location))
    for value in op.operands:
        if isinstance(value.owner, relay.ConstantOp) and value.owner.label is not None:
            yield value.owner.label.data
    for result in op.results:
        if result.name_hint is not None:
            yield result.name_hint


def matches(op: Operation, pattern: str) -> bool:
    """Whether one of the op's names matches a pattern with `*`, `?` and `[...]`."""
    return any(fnmatchcase(name, pattern) for name in names_of(op))


def constant_before(op: Operation, array: Array, old: SSAValue | None) -> SSAValue:
    """Insert a constant before the op, with the label and the name of the constant that it replaces."""
    label = old.owner.label if old is not None and isinstance(old.owner, relay.ConstantOp) else None
    value = elements(array, label="weight" if label is None else label.data)
    new = relay.ConstantOp.make([], {"value": value, "label": label}, like=op)
    new.result.name_hint = None if old is None else old.name_hint
    Rewriter.insert_op(new, InsertPoint.before(op))
    return new.result
