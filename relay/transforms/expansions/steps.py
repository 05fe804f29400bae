"""The type of a row of `EXPANSIONS`, and functions that several expansions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.layout import Layout, steps
from relay.dialects.op import shape
from relay.transforms.expansion import Expansion

Row = Callable[[Expansion, Any], SSAValue | Sequence[SSAValue] | None]
"""Builds the simpler ops for an op, and returns the values of its results (or its only value); None leaves the op
unchanged."""
Expansions = Mapping[type[Operation], Row]


def relaid(new: Expansion, x: SSAValue, source: Layout, target: Layout) -> SSAValue:
    """A tensor converted from one layout to another with the same letters."""
    for kind, numbers in steps(shape(x), source, target):
        x = new.reshape(x, numbers) if kind == "reshape" else new.transpose(x, numbers)
    return x


def reduced(new: Expansion, kind: type[relay.ReduceOp], x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """A reduction of x over the axes, which are kept with size 1."""
    return new.value(kind, x, properties={"axis": ints(axes), "keepdims": IntegerAttr.from_bool(True)})


def channels_last(new: Expansion, op: relay.SpatialOp) -> SSAValue:
    """The data as [n, spatial..., c]."""
    return relaid(new, op.data, op.axes, Layout.parse(f"N{op.SPATIAL}C"))


def finish(new: Expansion, op: relay.SpatialOp, result: SSAValue) -> SSAValue:
    """Convert [n, spatial..., c] to the op's layout."""
    return relaid(new, result, Layout.parse(f"N{op.SPATIAL}C"), op.axes)
