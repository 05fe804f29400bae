"""Expansions of pooling to its plain form: channels last, no window beyond the padding, padding not counted."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, int_values, ints, scalar_attr
from relay.dialects.op import is_code, shape, tensor
from relay.interpreters.meaning import ops_of
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.rearrange import padded
from relay.transforms.expansions.steps import Expansions, channels_last, finish

POOLS = {(issubclass(op, relay.MaxPoolBase), len(op.SPATIAL)): op for op in ops_of(relay.PoolOp)}
"""The pooling op for each (is maximum, number of spatial axes)."""


def pool(new: Expansion, op: relay.PoolOp) -> SSAValue | None:
    """relay.nn.avg_pool3d %x  =>  transposes around a relay.nn.avg_pool3d with channels last; its padding is extended
    for `ceil_mode`, and replaced by a relay.nn.pad of %x if the mean includes padding

    Poolings of two dimensions keep their layout, which `convert-layout` changes.
    """
    counted = isinstance(op, relay.AvgPoolBase) and bool(op.count_include_pad.value.data)
    kept = isinstance(op, relay.Pool2dOp)
    if (kept or not op.layout.data) and not counted and not op.ceil_mode.value.data:
        return None
    data, padding = op.data if kept else channels_last(new, op), op.each_padding()
    axes, sizes = op.axes.axes if kept else ("N", *op.SPATIAL, "C"), op.sizes()
    spatial = [sizes[letter] for letter in op.SPATIAL]
    counts = op.counts(spatial)
    if counted:
        widths = dict(zip(op.SPATIAL, padding, strict=True))
        zero = scalar_attr(0, tensor(data).element_type)
        data = padded(new, data, [widths.get(letter, (0, 0)) for letter in axes], zero)
        spatial = [size + before + after for size, (before, after) in zip(spatial, padding, strict=True)]
        padding = [(0, 0)] * len(padding)
    ends = zip(spatial, counts, op.windows(), padding, strict=True)
    after = [max(a, (n - 1) * s + (k - 1) * d + 1 - b - size) for size, n, (k, s, d), (b, a) in ends]
    properties: dict[str, Attribute | None] = {
        name: op.properties[name] for name in ("pool_size", "strides", "dilation")
    }
    properties["padding"] = ints([*(before for before, _ in padding), *after])
    if kept:
        return new.value(type(op), data, properties=properties | {"layout": op.layout})
    return finish(new, op, new.value(type(op), data, properties=properties))


def global_pool(new: Expansion, op: relay.GlobalMaxPool2dOp | relay.GlobalAvgPool2dOp) -> SSAValue:
    """relay.nn.global_avg_pool2d %x  =>  relay.nn.avg_pool2d of one window"""
    data = channels_last(new, op)
    kind = POOLS[isinstance(op, relay.GlobalMaxPool2dOp), 2]
    return finish(new, op, new.value(kind, data, properties={"pool_size": ints(shape(data)[1:-1])}))


def adaptive(new: Expansion, op: relay.AdaptivePoolOp) -> SSAValue:
    """relay.nn.adaptive_avg_pool2d %x  =>  relay.nn.avg_pool2d, or relay.take of each window and a reduction"""
    data, wanted = channels_last(new, op), int_values(op.output_size)
    largest, spatial = isinstance(op, relay.AdaptiveMaxBase), shape(data)[1:-1]
    if all(size % count == 0 for size, count in zip(spatial, wanted, strict=True)):
        cells = ints([size // count for size, count in zip(spatial, wanted, strict=True)])
        kind = POOLS[largest, len(wanted)]
        return finish(new, op, new.value(kind, data, properties={"pool_size": cells, "strides": cells}))
    type = tensor(data).element_type
    x = data if largest else new.cast(data, sum_type(op))
    total = np.ones([1] * len(wanted), np.int64)
    for axis, (size, count) in enumerate(zip(spatial, wanted, strict=True)):
        places, inside = windows(size, count)
        at = {"axis": IntegerAttr(1 + 2 * axis, i64)}
        x = new.value(relay.TakeOp, x, new.constant(places, np.int32), properties=at)
        if not largest and not inside.all():
            trailing = [1] * (len(shape(x)) - 3 - 2 * axis)
            x = new.value(relay.MultiplyOp, x, new.constant_like(inside.reshape(*inside.shape, *trailing), x))
        total = total * inside.sum(axis=1).reshape([-1 if k == axis else 1 for k in range(len(wanted))])
    axes = ints(range(2, 2 * len(wanted) + 1, 2))
    result = new.value(relay.MaxOp if largest else relay.SumOp, x, properties={"axis": axes})
    return finish(new, op, result if largest else new.cast(mean(new, result, total[..., None]), type))


def sum_type(op: relay.AdaptivePoolOp) -> Attribute:
    """The type in which the elements are summed."""
    type = tensor(op.data).element_type
    return type if isinstance(type, AnyFloat) else i32 if is_code(type) else i64


def windows(size: int, count: int) -> tuple[Array, Array]:
    """For one axis of `size` elements, which `count` windows divide: the element index of each cell of each window,
    [window, cell], and a mask of the same shape. Windows smaller than the largest are padded; the mask is False at
    padding."""
    first = [i * size // count for i in range(count)]
    end = [-(-(i + 1) * size // count) for i in range(count)]
    most = max(b - a for a, b in zip(first, end, strict=True))
    cells, ends = np.array(first)[:, None] + np.arange(most), np.array(end)[:, None]
    return np.minimum(cells, ends - 1), cells < ends


def mean(new: Expansion, total: SSAValue, count: Array) -> SSAValue:
    """Divide sums by counts; integers are rounded to the nearest, halves away from zero."""
    if isinstance(tensor(total).element_type, AnyFloat):
        return new.value(relay.DivideOp, total, new.constant_like(count, total))
    positive = new.value(relay.GreaterOp, total, new.constant_like(0, total))
    halves = new.constant_like(count // 2, total), new.constant_like(-(count // 2), total)
    nudged = new.value(relay.AddOp, total, new.value(relay.WhereOp, positive, *halves))
    return new.value(relay.DivideOp, nudged, new.constant_like(count, total))


EXPANSIONS: Expansions = {
    **dict.fromkeys(POOLS.values(), pool),
    **dict.fromkeys(ops_of(relay.GlobalPool2dOp), global_pool),
    **dict.fromkeys(ops_of(relay.AdaptivePoolOp), adaptive),
}
KEPT = frozenset(POOLS.values())
"""Pooling ops that their expansion leaves unchanged if they are in the plain form for which there is a lowering:
channels last, no window beyond the padding, padding not counted."""
