"""Imports products with weights, attention, embeddings, and layers that return their input.

Quantized products quantize each row at run time: `code = clamp(rint(x * (127 / (max |x| + epsilon))), -127, 127)`; the
sum of products in 32 bits is divided by the product of both scales. Source: keras/src/layers/core,
keras/src/layers/attention.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing.formulas import Scalar, truths
from relay.frontend.importing.products import einsum, product, scaled
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_row, values_in
from relay.frontend.keras.operators.activations import activated
from relay.frontend.keras.table import REFUSED, TABLE, layer, output, wrapped

_WHY = {
    "runs Python code of its own": "Lambda JaxLayer FlaxLayer TorchModuleWrapper TFSMLayer",
    "has text or sets of different lengths": "StringLookup IntegerLookup TextVectorization Hashing HashedCrossing "
    "Discretization CategoryEncoding",
    "draws random numbers": "RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation "
    "RandomZoom",
    "is recurrent with convolutions": "ConvLSTM1D ConvLSTM2D ConvLSTM3D",
    "runs cells of its own": "RNN",
    "marks steps that layers leave out": "Masking",
}
REFUSED.update((name, why) for why, names in _WHY.items() for name in names.split())
LEVELS = 127.0


@layer("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout", "GaussianDropout",
       "GaussianNoise", "ActivityRegularization", "Identity")  # fmt: skip
def identity(importer: Importer, node: Layer) -> SSAValue:
    """Import a layer that changes its input only in training: the input itself."""
    return node.value()


@layer("SpectralNormalization")
def spectral_normalization(importer: Importer, node: Layer) -> SSAValue:
    """Import SpectralNormalization, which wraps a layer and divides its kernel by a norm in training only: the wrapped
    layer with the kernel as stored, and its result cast to the element type of the input."""
    x = node.value()
    found = output(importer, wrapped(node, "layer", "layer", x))
    return importer.cast(found, importer.element(x))


def _epsilon(node: Layer) -> float:
    """The epsilon that is added to the largest magnitude of a row. Raises Unsupported for other quantizers of the input
    than `AbsMaxQuantizer` with values from -127 to 127."""
    given = node.entry("quantization_config")
    quantizer = given["config"].get("activation_quantizer") if is_row(given) else {"class_name": "AbsMaxQuantizer"}
    if not is_row(quantizer) or quantizer.get("class_name") != "AbsMaxQuantizer":
        raise node.unsupported("multiplies floats by int8 weights", "quantize activations, too: model.quantize('int8')")
    config = quantizer.get("config", {})
    if config.get("value_range", [-127, 127]) != [-127, 127]:
        raise node.unsupported(f"has codes in {config['value_range']}", "-127 to 127 are supported")
    return float(config.get("epsilon", 1e-7))


def _product(importer: Importer, node: Layer, x: SSAValue, kernel: Array, scale: Array | None) -> SSAValue:
    """The product of a matrix and a layer's matrix [inner, columns]. With column scales, the matrix is quantized, and
    each row of the data is quantized at run time."""
    value = importer.weight(node, "kernel", kernel)
    if scale is None:
        return importer.call(relay.MatmulOp, x, value, out_dtype=f32)
    data = Scalar(importer, x)
    base = data.of(relay.AbsOp).of(relay.MaxOp, axis=[1], keepdims=True) + _epsilon(node)
    own = base.number(LEVELS) / base
    codes = (data * own).to_even().between(-LEVELS, LEVELS).value
    sums = importer.call(relay.MatmulOp, importer.cast(codes, i8), value, out_dtype=i32)
    factor = Scalar(importer, importer.weight(node, "kernel_scale", scale.reshape(1, -1)))
    return (Scalar(importer, importer.cast(sums, f32)) / (own * factor)).value


def _contracted(importer: Importer, node: Layer, equation: str, bias_axes: object) -> SSAValue:
    """The input contracted with a kernel by an einsum equation: a matrix product if the contracted axes are the last of
    the input."""
    x, names = importer.real(node.value()), ["bias"] * (bias_axes is not None)
    given, _, wanted = equation.replace(" ", "").partition("->")
    left, _, right = given.partition(",")
    hidden = importer.rank(x) - len(left.replace("...", ""))
    dots = "".join(each for each in "ABCDEFGHIJ" if each not in left)[:hidden] if "..." in left else ""
    left, wanted = left.replace("...", dots), wanted.replace("...", dots)
    shared = "".join(each for each in left if each in right and each not in wanted)
    columns = "".join(each for each in right if each not in shared)
    free = left.removesuffix(shared)
    plain = left == free + shared and sorted(right) == sorted(shared + columns) and wanted == free + columns
    rows = importer.rows(x, len(shared)) if plain and shared else None
    weights = node.weights("kernel", *names, *["kernel_scale"] * node.quantized)
    kernel, bias, scale = weights["kernel"], weights.get("bias"), weights.get("kernel_scale")
    bias = None if bias is None else importer.weight(node, "bias", bias)
    if rows is not None:
        arranged = kernel.transpose([right.index(each) for each in shared + columns])
        tail = arranged.shape[len(shared) :]
        matrix = np.ascontiguousarray(arranged.reshape(-1, prod(tail)))
        found = _product(importer, node, rows, matrix, scale)
        if bias is not None and importer.shape(bias) == tail:
            found, bias = importer.add(found, importer.reshape(bias, [prod(tail)])), None
        found = importer.reshape(found, [*importer.shape(x)[: len(free)], *tail])
    elif scale is not None:
        raise node.unsupported(f"multiplies codes by the equation {equation[:80]!r}", "sum over the last axes")
    else:
        found = einsum(importer, f"{left},{right}->{wanted}", [x, importer.weight(node, "kernel", kernel)])
    return activated(importer, node, importer.add(found, bias))


TABLE["Dense"] = lambda i, node: _contracted(i, node, "...x,xy->...y", "y" if node.flag("use_bias", True) else None)
TABLE["EinsumDense"] = lambda i, node: _contracted(i, node, node.word("equation"), node.entry("bias_axes"))


@layer("Embedding")
def embedding(importer: Importer, node: Layer) -> SSAValue:
    """Import Embedding: rows of a table; int8 rows are divided by their scales."""
    weights = node.weights("embeddings", *["embeddings_scale"] * node.quantized)
    x = node.value()
    if importer.dtype(x).name not in ("int32", "int64"):
        x = importer.cast(x, i32)
    found, *scale = (
        importer.call(relay.TakeOp, importer.weight(node, name, each.reshape(len(each), -1)), x, axis=0, mode="clip")
        for name, each in weights.items()
    )
    return importer.call(relay.DivideOp, importer.cast(found, f32), *scale) if scale else found


def _weighed(
    importer: Importer, node: Layer, scores: SSAValue, mask: SSAValue | None, value: SSAValue, least: float
) -> list[SSAValue]:
    """The softmax of the scores [batch, heads, queries, keys] times the values, and the softmax itself. Keys are
    excluded by a mask [batch, (heads,) queries, keys], by causality, and by a window around each query; the score of an
    excluded key becomes `least`."""
    window, causal = node.entry("sliding_window"), node.keywords.get("use_causal_mask") is True
    rank = importer.rank(scores)
    kept = [] if mask is None else [truths(importer, mask)]
    kept = [importer.call(relay.ExpandDimsOp, each, axis=1) if importer.rank(each) < rank else each for each in kept]
    if causal or window is not None:
        rows, columns = importer.static(scores, (rank - 2, rank - 1))
        distance = np.arange(rows)[:, None] - np.arange(columns)
        far = (np.abs(distance) >= window) if isinstance(window, int) else False
        kept.append(importer.unnamed(~((causal & (distance < 0)) | far)))
    for each in kept:
        scores = importer.call(relay.WhereOp, each, scores, importer.like(least, scores))
    weights = importer.call(relay.SoftmaxOp, scores, beta=1.0, axis=rank - 1)
    return [product(importer, weights, value), weights]


def _dense(importer: Importer, node: Layer, part: str, x: SSAValue, equation: str, axes: str, **more: str) -> SSAValue:
    """Import the EinsumDense layer inside an attention layer that Keras stores under the attribute name `part`: the
    product of `x` and its kernel by `equation`, with a bias along `axes` if the layer has biases."""
    inner = node.inner("EinsumDense", part, more, x)
    return _contracted(importer, inner, equation, axes if node.flag("use_bias", True) else None)


@layer("MultiHeadAttention", "GroupQueryAttention")
def multi_head_attention(importer: Importer, node: Layer) -> SSAValue | list[SSAValue]:
    """Import MultiHeadAttention and GroupQueryAttention, in which several query heads may share key and value heads."""
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
    scale = 1 / sqrt(importer.shape(q)[-1])
    mask, shown = node.optional(6, "attention_mask"), node.keywords.get("return_attention_scores") is True
    if mask is None and not shown and node.entry("sliding_window") is None:
        causal = {"causal": 0} if node.keywords.get("use_causal_mask") is True else {}
        found = [importer.call(relay.AttentionOp, q, k, v, scale=scale, **causal)]
    else:  # for a row without unmasked keys Keras gives the mean of the values, the op 0
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
    """Import Attention, `softmax(score(query, key)) @ value`; the score is a product, or for AdditiveAttention a sum of
    tanh."""
    values = values_in(node.argument(0, "inputs"))
    if len(values) not in (2, 3):
        raise node.malformed(f"takes {len(values)} tensors, not 2 or 3")
    query, value, key = map(importer.real, (*values, values[1])[:3])
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
