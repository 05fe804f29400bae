"""The lowering of each `relay` op to `linalg` and `tensor` ops, by kind; `LOWERINGS` lists all that are not
elementwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from relay.dialects import relay
from relay.lowering.linalg import contraction, indexing, movement, pool, reduce, resize, sort
from relay.lowering.linalg.emitter import Emitter

Lowering = Callable[[Emitter, Any, Sequence[SSAValue]], Sequence[SSAValue]]
"""A function that emits an op for its lowered operands, and returns the lowered results."""

LOWERINGS: dict[type[Operation], Lowering] = {
    relay.ConstantOp: movement.constant,
    relay.ReshapeOp: movement.reshape,
    relay.PadOp: movement.pad,
    relay.ConcatenateOp: movement.concatenate,
    relay.StridedSliceOp: movement.strided_slice,
    relay.TakeOp: movement.take,
    relay.GatherNdOp: movement.gather_nd,
    relay.Conv2dOp: contraction.conv2d,
    relay.DenseOp: contraction.dense,
    relay.WeightOnlyDenseOp: contraction.weight_only_dense,
    relay.BatchMatmulOp: contraction.batch_matmul,
    relay.MaxPool1dOp: pool.max_pool,
    relay.MaxPool2dOp: pool.max_pool,
    relay.MaxPool3dOp: pool.max_pool,
    **dict.fromkeys(reduce.COMBINE, reduce.reduce),
    **dict.fromkeys(reduce.PREDICATE, reduce.arg),
    relay.Resize2dOp: resize.resize2d,
    relay.GatherOp: indexing.gather,
    relay.ReverseSequenceOp: indexing.reverse_sequence,
    relay.ScatterOp: indexing.scatter,
    relay.ScatterAddOp: indexing.scatter,
    relay.ScatterNdOp: indexing.scatter_nd,
    relay.StridedSetOp: indexing.strided_set,
    relay.DynamicUpdateSliceOp: indexing.dynamic_update_slice,
    relay.SortOp: sort.sort,
    relay.ArgsortOp: sort.argsort,
    relay.TopkOp: sort.topk,
}
"""The lowerings of ops that are not part of an elementwise group."""
