"""Attention. Source: keras/src/layers/attention."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import Scalar, truths
from relay.frontend.importing.products import product, scaled
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_list, is_value
from relay.frontend.keras.operators.core import einsum_dense
from relay.frontend.keras.table import layer


def _kept(importer: Importer, node: Layer, scores: SSAValue, mask: SSAValue | None) -> SSAValue | None:
    """Which scores [batch, heads, queries, keys] count: by a mask [batch, (heads,) queries, keys], by the order of the
    steps, and by a window around each."""
    window = node.config.get("sliding_window")
    causal = node.keywords.get("use_causal_mask") is True
    kept = None if mask is None else truths(importer, mask)
    if kept is not None and importer.rank(kept) < importer.rank(scores):
        kept = importer.call(relay.ExpandDimsOp, kept, axis=1)
    if not causal and window is None:
        return kept
    *_, rows, columns = importer.shape(scores)
    if DYNAMIC in (rows, columns):
        raise node.unsupported("masks steps by their number, which is not known", "give its shapes")
    at = np.arange(rows)[:, None] - np.arange(columns)
    constant = np.full((rows, columns), True)
    if causal:
        constant &= at >= 0
    if isinstance(window, int):
        constant &= np.abs(at) < window
    own = importer.unnamed(constant)
    return own if kept is None else importer.call(relay.LogicalAndOp, kept, own)


def _weighed(
    importer: Importer, scores: SSAValue, kept: SSAValue | None, value: SSAValue, least: float
) -> tuple[SSAValue, SSAValue]:
    """The softmax of the scores that count, times the values; and that softmax."""
    if kept is not None:
        scores = importer.call(relay.WhereOp, kept, scores, importer.like(least, scores))
    weights = importer.call(relay.SoftmaxOp, scores, beta=1.0, axis=importer.rank(scores) - 1)
    return product(importer, weights, value), weights


def _dense(importer: Importer, node: Layer, part: str, x: SSAValue, equation: str, axes: str, **more: str) -> SSAValue:
    """One of the products with weights that an attention holds."""
    config = {"equation": equation, "bias_axes": axes if node.flag("use_bias", True) else None, **more}
    return einsum_dense(importer, node.inner("EinsumDense", part, config, x))


@layer("MultiHeadAttention", "GroupQueryAttention")
def multi_head_attention(importer: Importer, node: Layer) -> SSAValue | list[SSAValue]:
    """Heads of queries may share those of keys and values."""
    names = ("query", "value", "key")
    query, value = (node.value(place, name) for place, name in enumerate(names[:2]))
    key = node.optional(2, "key") or value
    if node.config.get("attention_axes") not in (None, [1]) or importer.rank(query) != 3 or importer.rank(value) != 3:
        raise node.unsupported(f"attends along other axes than the second of {query.type}")
    for each in ("query_mask", "value_mask", "key_mask"):
        if node.keywords.get(each) is not None:
            raise node.unsupported(f"is given {each}", "give attention_mask")
    parts = "" if node.kind == "MultiHeadAttention" else "_"
    q = _dense(importer, node, f"{parts}query_dense", query, "abc,cde->abde", "de")
    k = _dense(importer, node, f"{parts}key_dense", key, "abc,cde->abde", "de")
    v = _dense(importer, node, f"{parts}value_dense", value, "abc,cde->abde", "de")
    width = importer.shape(q)[-1]
    q, k, v = (importer.transpose(each, (0, 2, 1, 3)) for each in (q, k, v))
    mask, shown = node.optional(6, "attention_mask"), node.keywords.get("return_attention_scores") is True
    if mask is None and not shown and node.config.get("sliding_window") is None:
        causal = {"causal": 0} if node.keywords.get("use_causal_mask") is True else {}
        found = importer.call(relay.AttentionOp, q, k, v, scale=1 / math.sqrt(width), **causal)
        return _gated(importer, node, parts, query, found)
    # of a row that a mask leaves without keys, Keras gives the mean of the values: the op gives 0
    if (times := importer.shape(q)[1] // max(importer.shape(k)[1], 1)) > 1:
        k, v = (importer.call(relay.RepeatOp, each, repeats=times, axis=1) for each in (k, v))
    turned = importer.transpose(k, (0, 1, 3, 2))
    scores = product(importer, scaled(importer, q, 1 / math.sqrt(width)), turned)
    kept = _kept(importer, node, scores, mask)
    found, weights = _weighed(importer, scores, kept, v, -3e38)
    found = _gated(importer, node, parts, query, found)
    return [found, weights] if shown else found


def _gated(importer: Importer, node: Layer, parts: str, query: SSAValue, found: SSAValue) -> SSAValue:
    """The heads side by side, perhaps times a gate, as the output."""
    found = importer.transpose(found, (0, 2, 1, 3))
    if node.flag("use_gate"):
        gate = _dense(importer, node, "_gate_dense", query, "abc,cde->abde", "de", activation="sigmoid")
        found = importer.call(relay.MultiplyOp, found, gate)
    return _dense(importer, node, f"{parts}output_dense", found, "abcd,cde->abe", "e")


@layer("Attention", "AdditiveAttention")
def attention(importer: Importer, node: Layer) -> SSAValue | list[SSAValue]:
    """`softmax(score(query, key)) @ value`; the score is a product, or a sum of tanh."""
    given = node.argument(0, "inputs")
    values = [each for each in given if is_value(each)] if is_list(given) else []
    if len(values) not in (2, 3):
        raise node.malformed(f"takes {len(values)} tensors, not 2 or 3")
    query, value, key = (*values, values[1])[:3]
    additive, mode = node.kind == "AdditiveAttention", node.word("score_mode", "dot")
    width = importer.shape(query)[-1]
    names = ["scale"] * node.flag("use_scale", additive) + ["concat_score_weight"] * (mode == "concat")
    weights = {name: importer.weight(node, name, each) for name, each in node.weights(*names).items()}
    scale = weights.get("scale")
    if additive or mode == "concat":
        a = importer.call(relay.ExpandDimsOp, query, axis=2)
        b = importer.call(relay.ExpandDimsOp, key, axis=1)
        total = importer.call(relay.AddOp, a, b)
        if scale is not None and not additive:
            total = importer.call(relay.MultiplyOp, total, scale)
        total = Scalar(importer, total).of(relay.TanhOp)
        if additive and scale is not None:
            total = total * Scalar(importer, scale)
        scores = importer.call(relay.SumOp, total.value, axis=[3])
        if mode == "concat":
            scores = importer.call(relay.MultiplyOp, scores, weights["concat_score_weight"])
    elif mode == "dot" and width:
        scores = product(importer, query, importer.transpose(key, (0, 2, 1)))
        scores = scores if scale is None else importer.call(relay.MultiplyOp, scores, scale)
    else:
        raise node.malformed(f"score_mode is {mode[:40]!r}")
    kept = _kept(importer, node, scores, None)
    found, shares = _weighed(importer, scores, kept, value, -1e9)
    return [found, shares] if node.keywords.get("return_attention_scores") is True else found
