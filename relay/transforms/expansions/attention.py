"""Expansions of attention and rotary embeddings to products, a softmax, and sums."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i1
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import rank, shape, tensor
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions, reduced


def attention(new: Expansion, op: relay.AttentionOp) -> SSAValue:
    """relay.nn.attention %q, %k, %v  =>  batch_matmul(softmax(batch_matmul(%q * scale, %k) + mask), %v)

    The query heads that share a head of keys and values (grouped-query attention) become rows of one matrix product.
    """
    scores, (_, groups, keys, size) = op.scores(), shape(op.key)
    _, heads, rows, _ = scores
    query, together = new.times(op.query, op.scale.value.data), heads // groups * rows
    found = product(new, new.reshape(query, (shape(query)[0], groups, together, size)), op.key, True)
    found = new.reshape(found, (shape(found)[0], heads, rows, keys))
    if op.softcap is not None:
        cap = new.constant_like(op.softcap.value.data, found)
        found = new.value(relay.MultiplyOp, new.value(relay.TanhOp, new.value(relay.DivideOp, found, cap)), cap)
    bias, kept = op.mask, None
    if op.mask is not None and tensor(op.mask).element_type == i1:
        bias, kept = None, op.mask
    if op.causal is not None:
        past = op.causal.value.data
        earlier = np.tri(rows, keys, past, dtype=bool)
        if kept is not None or (bias is None and past < 0):
            seen = new.constant(earlier, bool)
            kept = seen if kept is None else new.value(relay.LogicalAndOp, kept, seen)
        else:
            later = new.constant_like(np.where(earlier, 0.0, -np.inf), found)
            bias = later if bias is None else new.value(relay.AddOp, bias, later)
    if kept is not None:
        found = new.value(relay.WhereOp, kept, found, new.constant_like(-np.inf, found))
    elif bias is not None:
        found = new.value(relay.AddOp, found, bias)
        if op.mask is not None:
            bias = bias if rank(bias) else new.reshape(bias, (1,))
            most = reduced(new, relay.MaxOp, bias, (rank(bias) - 1,))
            kept = new.value(relay.GreaterOp, most, new.constant_like(-np.inf, most))
    found = new.value(relay.SoftmaxOp, found, properties={"beta": FloatAttr(1.0, f32)})
    if kept is not None:  # a row without any key is 0, and NaN by softmax
        found = new.value(relay.WhereOp, kept, found, new.constant_like(0, found))
    found = product(new, new.reshape(found, (shape(found)[0], groups, together, keys)), op.value, False)
    return new.reshape(found, shape(op.result))


def product(new: Expansion, a: SSAValue, b: SSAValue, transposed: bool) -> SSAValue:
    """a @ b, or a @ transpose(b) if `transposed`, of floats."""
    properties = {"transpose_b": IntegerAttr.from_bool(transposed), "out_dtype": tensor(a).element_type}
    return new.value(relay.BatchMatmulOp, a, b, properties=properties)


def rotary_embedding(new: Expansion, op: relay.RotaryEmbeddingOp) -> SSAValue:
    """relay.nn.rotary_embedding %x, %c, %s  =>  concatenate (a * %c - b * %s), (a * %s + b * %c), rest

    With p, the last size of %c: a and b are the first p and the next p elements of %x along its last axis, or, with
    `interleaved`, the even and the odd ones of the first 2p, and the results are interleaved likewise. `rest` is the
    elements of %x from 2p on."""
    x, dims, pairs = op.data, shape(op.data), shape(op.cos)[-1]
    last, end = rank(x) - 1, 2 * pairs
    neighbours = bool(op.interleaved.value.data)
    a, b = (
        (new.sliced(x, last, 0, end - 1, 2), new.sliced(x, last, 1, end, 2))
        if neighbours
        else (new.sliced(x, last, 0, pairs), new.sliced(x, last, pairs, end))
    )

    def times(one: SSAValue, other: SSAValue) -> SSAValue:
        return new.value(relay.MultiplyOp, one, other)

    parts = [
        new.value(relay.SubtractOp, times(a, op.cos), times(b, op.sin)),
        new.value(relay.AddOp, times(a, op.sin), times(b, op.cos)),
    ]
    if neighbours:
        pair = [new.reshape(each, (*dims[:-1], pairs, 1)) for each in parts]
        parts = [new.reshape(new.joined(pair, last + 1), (*dims[:-1], end))]
    rest = [new.sliced(x, last, end, dims[-1])] if end < dims[-1] else []
    return new.joined([*parts, *rest], last)


EXPANSIONS: Expansions = {relay.AttentionOp: attention, relay.RotaryEmbeddingOp: rotary_embedding}
