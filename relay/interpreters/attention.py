"""Numpy implementation of attention and rotary embeddings. Every step is computed in the data's type."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.interpreters.activation import number
from relay.interpreters.elementwise import exp, tanh
from relay.interpreters.meaning import Meanings


def attention(op: relay.AttentionOp, query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    one, (_, heads, rows, _), (_, groups, keys, _) = query.dtype.type, query.shape, key.shape
    key, value = (np.repeat(each, heads // groups, axis=1) for each in (key, value))
    scores = (query * number(op.scale, query)) @ key.swapaxes(-1, -2)
    if op.softcap is not None:
        cap = number(op.softcap, query)
        scores = tanh(scores / cap) * cap
    if mask is not None:
        scores = np.where(mask, scores, one(-np.inf)) if mask.dtype == bool else scores + mask
    if op.causal is not None:
        scores = np.where(np.tri(rows, keys, op.causal.value.data, dtype=np.bool_), scores, one(-np.inf))
    largest = scores.max(axis=-1, keepdims=True)
    powers = exp(scores - largest)
    total = powers.sum(axis=-1, keepdims=True)
    return np.where(largest == -np.inf, np.zeros_like(powers), powers / total) @ value


def rotary_embedding(op: relay.RotaryEmbeddingOp, data: Array, cos: Array, sin: Array) -> Array:
    pairs = cos.shape[-1]
    turned, rest = np.split(data, [2 * pairs], axis=-1)
    interleaved = bool(op.interleaved.value.data)
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else np.split(turned, 2, axis=-1)
    found = (a * cos - b * sin, a * sin + b * cos)
    turned = np.stack(found, axis=-1).reshape(turned.shape) if interleaved else np.concatenate(found, axis=-1)
    return np.concatenate([turned, rest], axis=-1)


MEANINGS: Meanings = {relay.AttentionOp: attention, relay.RotaryEmbeddingOp: rotary_embedding}
