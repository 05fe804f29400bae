"""Imports ONNX's attention, rotary embeddings and RMS normalization as whole ops."""

from __future__ import annotations

import math
from math import prod

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, BoolAttr, Float16Type, Float32Type, f32, i1
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import normed
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op

KNOWN = frozenset(("scale", "softcap", "is_causal", "q_num_heads", "kv_num_heads", "softmax_precision"))
"""Attributes of Attention with which it can become a `relay.nn.attention`; `softmax_precision` is ignored, since the op
always computes in float32."""
HALVES = Float16Type | BFloat16Type


@op("RMSNormalization")
def rms_norm(importer: Importer, node: Node) -> SSAValue:
    """Import RMSNormalization; several axes are normalized as one, and f16 data is normalized in float32 and scaled in
    its own type."""
    x, scale, dims = node.input(0), node.input(1), node.shape(0)
    axis, narrow = node.axis(node.integer("axis", -1), len(dims)), importer.element(x)
    if DYNAMIC in dims[axis:]:
        raise node.unsupported("normalizes rows of a size that is not known", "give its shapes")
    epsilon = node.real("epsilon", 1e-5)
    if importer.shape(scale) == (prod(dims[axis:]),) == dims[-1:] and isinstance(narrow, Float32Type):
        return importer.call(relay.RmsNormOp, x, scale, epsilon=epsilon)
    if isinstance(narrow, HALVES) and node.integer("stash_type", 1) == 1:
        x = importer.cast(x, f32)
    ones = importer.unnamed(np.ones(dims[axis:], importer.dtype(x)))
    found = normed(importer, x, range(axis, len(dims)), relay.RmsNormOp, [ones], epsilon)
    return importer.call(relay.MultiplyOp, importer.cast(found, narrow), scale)


@op("RotaryEmbedding")
def rotary_embedding(importer: Importer, node: Node) -> SSAValue:
    """Import RotaryEmbedding of data [batch, heads, rows, size] or [batch, rows, heads * size]; the latter are reshaped
    to [batch, rows, heads, size] and not transposed."""
    x, dims = node.input(0), node.static(0)
    cos, sin = (node.input(number) for number in (1, 2))
    if (places := node.optional(3)) is not None:
        cos, sin = (importer.call(relay.TakeOp, each, places, axis=0) for each in (cos, sin))
    wide = len(dims) == 3
    if wide:
        heads = node.integer("num_heads", 0)
        if heads < 1 or dims[2] % heads:
            raise node.malformed(f"the attribute num_heads is {heads} for rows of {dims[2]}")
        x = importer.reshape(x, (*dims[:2], heads, dims[2] // heads))
    size = node.integer("rotary_embedding_dim", 0) or importer.shape(x)[-1]
    cos, sin = (
        importer.call(relay.ExpandDimsOp, importer.slice(each, {2: (0, size // 2)}), axis=2 if wide else 1)
        for each in (cos, sin)
    )
    interleaved = BoolAttr.from_bool(bool(node.integer("interleaved", 0)))
    found = importer.call(relay.RotaryEmbeddingOp, x, cos, sin, interleaved=interleaved)
    return importer.reshape(found, dims) if wide else found


@op("Attention")
def attention(importer: Importer, node: Node) -> list[SSAValue]:
    """Import Attention of float32 if the node does not output the scores; otherwise return an empty list, which selects
    ONNX's body of the operator. Past keys and values are prepended to the new ones, and the concatenations are
    outputs."""
    mask, past = node.optional(3), node.optional(4)
    real = isinstance(importer.element(node.input(0)), Float32Type)
    if not real or node.wants(3) or node.optional(6) is not None or not KNOWN.issuperset(node.attributes):
        return []
    heads = [_heads(importer, node, number) for number in range(3)]
    before = 0
    if past is not None:
        before = node.static(4)[2]
        heads[1:] = [importer.concatenate([node.input(4 + i), heads[1 + i]], 2) for i in range(2)]
    query, keys = importer.shape(heads[0]), importer.shape(heads[1])[2]
    if mask is not None:
        kinds, sizes = (i1, importer.element(heads[0])), ((1,), (keys,))
        if importer.element(mask) not in kinds or importer.shape(mask)[-1:] not in sizes:
            return []
    scale = node.real("scale", 1 / math.sqrt(query[3]))
    more: dict[str, int | float] = {"causal": before} if node.integer("is_causal", 0) else {}
    if (cap := node.real("softcap", 0.0)) != 0:
        more["softcap"] = cap
    found = importer.call(relay.AttentionOp, *heads, *([] if mask is None else [mask]), scale=scale, **more)
    return [joined(importer, found) if node.rank(0) == 3 else found, *heads[1:]]


def divided(importer: Importer, value: SSAValue, count: int) -> SSAValue:
    """[batch, rows, count * size] transposed to [batch, count, rows, size]."""
    batch, rows, width = importer.shape(value)
    return importer.transpose(importer.reshape(value, [batch, rows, count, width // count]), (0, 2, 1, 3))


def joined(importer: Importer, value: SSAValue) -> SSAValue:
    """[batch, count, rows, size] transposed to [batch, rows, count * size]."""
    batch, count, rows, size = importer.shape(value)
    return importer.reshape(importer.transpose(value, (0, 2, 1, 3)), [batch, rows, count * size])


def _heads(importer: Importer, node: Node, number: int) -> SSAValue:
    """An input as [batch, heads, rows, size]."""
    value, dims = node.input(number), node.static(number)
    if len(dims) == 4:
        return value
    count = node.integer("kv_num_heads" if number else "q_num_heads", 0)
    if count < 1 or dims[2] % count:
        raise node.malformed(f"has {count} heads for rows of {dims[2]}")
    return divided(importer, value, count)
