"""Attention. Source: keras/src/layers/attention."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar, truths
from relay.frontend.importing.products import product, scaled
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, values_in
from relay.frontend.keras.operators.core import einsum_dense
from relay.frontend.keras.table import layer


def _weighed(
    importer: Importer, node: Layer, scores: SSAValue, mask: SSAValue | None, value: SSAValue, least: float
) -> list[SSAValue]:
    """The softmax of the scores [batch, heads, queries, keys] that count, times the values; and that softmax. A mask
    [batch, (heads,) queries, keys] says which count, the order of the steps, and a window around each."""
    window, causal = node.entry("sliding_window"), node.keywords.get("use_causal_mask") is True
    rank = importer.rank(scores)
    kept = [] if mask is None else [truths(importer, mask)]
    kept = [importer.call(relay.ExpandDimsOp, each, axis=1) if importer.rank(each) < rank else each for each in kept]
    if causal or window is not None:
        rows, columns = node.static(scores, (rank - 2, rank - 1))
        distance = np.arange(rows)[:, None] - np.arange(columns)
        far = (np.abs(distance) >= window) if isinstance(window, int) else False
        kept.append(importer.unnamed(~((causal & (distance < 0)) | far)))
    for each in kept:
        scores = importer.call(relay.WhereOp, each, scores, importer.like(least, scores))
    weights = importer.call(relay.SoftmaxOp, scores, beta=1.0, axis=rank - 1)
    return [product(importer, weights, value), weights]


def _dense(importer: Importer, node: Layer, part: str, x: SSAValue, equation: str, axes: str, **more: str) -> SSAValue:
    """One of the products with weights that an attention holds."""
    config = {"equation": equation, "bias_axes": axes if node.flag("use_bias", True) else None, **more}
    return einsum_dense(importer, node.inner("EinsumDense", part, config, x))


@layer("MultiHeadAttention", "GroupQueryAttention")
def multi_head_attention(importer: Importer, node: Layer) -> SSAValue | list[SSAValue]:
    """Heads of queries may share those of keys and values."""
    query, value = (node.value(place, name) for place, name in enumerate(("query", "value")))
    key = node.optional(2, "key") or value
    if node.entry("attention_axes") not in (None, [1]) or importer.rank(query) != 3 or importer.rank(value) != 3:
        raise node.unsupported(f"attends along other axes than the second of {query.type}")
    for each in ("query_mask", "value_mask", "key_mask"):
        if node.keywords.get(each) is not None:
            raise node.unsupported(f"is given {each}", "give attention_mask")
    parts = "" if node.kind == "MultiHeadAttention" else "_"
    q, k, v = (
        importer.transpose(_dense(importer, node, f"{parts}{name}_dense", x, "abc,cde->abde", "de"), (0, 2, 1, 3))
        for name, x in (("query", query), ("key", key), ("value", value))
    )
    scale = 1 / math.sqrt(importer.shape(q)[-1])
    mask, shown = node.optional(6, "attention_mask"), node.keywords.get("return_attention_scores") is True
    if mask is None and not shown and node.entry("sliding_window") is None:
        causal = {"causal": 0} if node.keywords.get("use_causal_mask") is True else {}
        found = [importer.call(relay.AttentionOp, q, k, v, scale=scale, **causal)]
    else:  # of a row that a mask leaves without keys, Keras gives the mean of the values: the op gives 0
        if (times := importer.shape(q)[1] // max(importer.shape(k)[1], 1)) > 1:
            k, v = (importer.call(relay.RepeatOp, each, repeats=times, axis=1) for each in (k, v))
        scores = product(importer, scaled(importer, q, scale), importer.transpose(k, (0, 1, 3, 2)))
        found = _weighed(importer, node, scores, mask, v, -3e38)
    heads = importer.transpose(found[0], (0, 2, 1, 3))
    if node.flag("use_gate"):
        gate = _dense(importer, node, "_gate_dense", query, "abc,cde->abde", "de", activation="sigmoid")
        heads = importer.call(relay.MultiplyOp, heads, gate)
    result = _dense(importer, node, f"{parts}output_dense", heads, "abcd,cde->abe", "e")
    return [result, found[1]] if shown else result


@layer("Attention", "AdditiveAttention")
def attention(importer: Importer, node: Layer) -> SSAValue | list[SSAValue]:
    """`softmax(score(query, key)) @ value`; the score is a product, or a sum of tanh."""
    values = values_in(node.argument(0, "inputs"))
    if len(values) not in (2, 3):
        raise node.malformed(f"takes {len(values)} tensors, not 2 or 3")
    query, value, key = (*values, values[1])[:3]
    additive, concat = node.kind == "AdditiveAttention", node.one_of("score_mode", ("dot", "concat")) == "concat"
    names = ["scale"] * node.flag("use_scale", additive) + ["concat_score_weight"] * concat
    weights = {name: Scalar(importer, importer.weight(node, name, each)) for name, each in node.weights(*names).items()}
    scale = weights.get("scale")
    if additive or concat:
        a, b = (importer.expand_dims(each, [axis]) for axis, each in ((2, query), (1, key)))
        total = Scalar(importer, a) + Scalar(importer, b)
        total = total.of(relay.TanhOp) if additive or scale is None else (total * scale).of(relay.TanhOp)
        total = total * scale if additive and scale is not None else total
        scores = Scalar(importer, importer.call(relay.SumOp, total.value, axis=[3]))
        scores = scores * weights["concat_score_weight"] if concat else scores
    else:
        scores = Scalar(importer, product(importer, query, importer.transpose(key, (0, 2, 1))))
        scores = scores if scale is None else scores * scale
    found = _weighed(importer, node, scores.value, None, value, -1e9)
    return found if node.keywords.get("return_attention_scores") is True else found[0]
