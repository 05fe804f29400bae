"""Imports operators that ONNX Runtime writes into optimized files, as compositions of simpler ones."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.products import product, scaled
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.operators.attention import divided, joined
from relay.frontend.onnx.operators.quantized.parameters import channels_first, channels_last, plain
from relay.frontend.onnx.table import MICROSOFT, REFUSED, op

REFUSED["com.microsoft.nchwc"] = REFUSED["com.ms.internal.nhwc"] = (
    "its layout is that of the machine on which ONNX Runtime optimised the file",
    'optimise it at level "extended" at most, or import the file from before',
)
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "": (), "Elu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "LeakyRelu": ("alpha",), "Relu": (),
    "Selu": ("alpha", "gamma"), "Sigmoid": (), "Softplus": (), "Softsign": (), "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}  # fmt: skip
"""The functions that may follow a convolution or product in one node, with the attributes that their parameters
become."""


def _activated(importer: Importer, node: Node, value: SSAValue) -> SSAValue:
    """The value after the function that the attribute `activation` names."""
    kind, given = node.word("activation"), node.reals("activation_params") or ()
    if kind == "Clip" and len(given) == 2:
        return importer.clip(value, *given)
    names = _ACTIVATIONS[node.one_of("activation", [*_ACTIVATIONS])]
    parameters = dict(zip(names, given, strict=False))
    parameters |= {name: node.real(f"activation_{name}") for name in names if node.has(f"activation_{name}")}
    return plain(importer, node, kind, [value], parameters) if kind else value


@op("FusedConv", domain=MICROSOFT)
def convolution(importer: Importer, node: Node) -> SSAValue:
    """Import FusedConv: `activation(conv(x, w) + bias + z)`."""
    return _activated(importer, node, importer.add(plain(importer, node, "Conv", node.values[:3]), node.optional(3)))


@op("FusedGemm", domain=MICROSOFT)
def fused_gemm(importer: Importer, node: Node) -> SSAValue:
    return _activated(importer, node, plain(importer, node, "Gemm", node.values))


@op("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def matmul(importer: Importer, node: Node) -> SSAValue:
    """Import FusedMatMul: `alpha * a @ b`; transBatch moves the first axis before the last, trans swaps the last
    two."""
    sides: list[SSAValue] = []
    for number, letter in enumerate("AB"):
        value, rank = node.input(number), node.rank(number)
        axes = list(range(rank))
        if rank > 2 and node.integer(f"transBatch{letter}", 0):
            axes = [*axes[1:-1], 0, axes[-1]]
        if rank > 1 and node.integer(f"trans{letter}", 0):
            axes[-2:] = reversed(axes[-2:])
        sides.append(importer.transpose(value, axes))
    return scaled(importer, product(importer, *sides), node.real("alpha", 1.0))


@op("Gelu", "BiasGelu", "FastGelu", "QuickGelu", domain=MICROSOFT)
def gelu(importer: Importer, node: Node) -> SSAValue:
    """Import GELU variants, of the sum with a bias vector if there is one: by erf, FastGelu by tanh, QuickGelu as `x *
    sigmoid(alpha * x)`."""
    x = importer.add(node.input(0), node.optional(1))
    if node.kind == "QuickGelu":
        return plain(importer, node, "Swish", [x], {"alpha": node.real("alpha", 1.702)})
    return plain(importer, node, "Gelu", [x], {"approximate": "tanh" if node.kind == "FastGelu" else "none"})


def _normalized(
    importer: Importer, node: Node, x: SSAValue, gamma: SSAValue, beta: SSAValue | None, epsilon: float
) -> SSAValue:
    """Each row normalized by its mean and variance; for the simplified operators by its mean square."""
    if "Simplified" in node.kind:
        return importer.call(relay.RmsNormOp, x, gamma, epsilon=node.real("epsilon", epsilon))
    return plain(importer, node, "LayerNormalization", [x, gamma, beta], {"epsilon": node.real("epsilon", epsilon)})


@op("SimplifiedLayerNormalization")
def simplified_norm(importer: Importer, node: Node) -> SSAValue:
    if node.axis(node.integer("axis", -1), node.rank(0)) != node.rank(0) - 1:
        raise node.unsupported("normalizes more than the last axis")
    return _normalized(importer, node, node.input(0), node.input(1), None, 1e-5)


@op("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_norm(importer: Importer, node: Node) -> list[SSAValue]:
    """Import SkipLayerNormalization: normalizes the sum of input, skip and bias, which is the fourth output. The second
    and third outputs, which only training needs, are not supported."""
    if node.wants(1) or node.wants(2):
        raise node.unsupported("gives mean and deviation, which only training needs")
    total = importer.call(relay.AddOp, node.input(0), node.input(1))
    beta, bias = (None, node.optional(3)) if "Simplified" in node.kind else (node.optional(3), node.optional(4))
    total = importer.add(total, bias)
    return [_normalized(importer, node, total, node.input(2), beta, 1e-5), total, total, total]


@op("EmbedLayerNormalization", domain=MICROSOFT)
def embedding(importer: Importer, node: Node) -> list[SSAValue]:
    """Import EmbedLayerNormalization. It has three results: the normalized sum of word, position and segment
    embeddings; the length of each sequence, which is the sum of its mask (0 without a mask); and the sum before
    normalization."""
    words, mask = node.static(0), node.optional(7)
    positions = node.optional(8)
    if positions is None:
        positions = importer.unnamed(np.arange(words[1], dtype=np.int32)[None])
    total = plain(importer, node, "Gather", [node.input(2), node.input(0)])
    total = importer.call(relay.AddOp, total, plain(importer, node, "Gather", [node.input(3), positions]))
    if node.optional(4) is not None:
        total = importer.call(relay.AddOp, total, plain(importer, node, "Gather", [node.input(4), node.input(1)]))
    if mask is None:
        lengths = importer.unnamed(np.zeros(words[0], np.int32))
    else:
        lengths = importer.call(relay.SumOp, importer.cast(mask, i32), axis=[1])
    return [_normalized(importer, node, total, node.input(5), node.input(6), 1e-12), lengths, total]


def _absent(node: Node, *numbers: int) -> None:
    for number in numbers:
        if node.optional(number) is not None:
            raise node.unsupported(f"input {number} is not supported", "import the file before ONNX Runtime fused it")


def _valid_keys(importer: Importer, bounds: SSAValue, keys: int) -> SSAValue:
    """The mask [batch, keys] of the keys before the end of each sequence; `bounds` [1 or 2, batch, 1] has the ends, and
    may have the starts behind them."""
    at = importer.unnamed(np.arange(keys, dtype=importer.dtype(bounds))[None])
    valid = importer.call(relay.LessOp, at, importer.row(bounds, 0, 0))
    if importer.shape(bounds)[0] == 1:
        return valid
    started = importer.call(relay.GreaterEqualOp, at, importer.row(bounds, 1, 0))
    return importer.call(relay.LogicalAndOp, valid, started)


def _attended(importer: Importer, node: Node, q: SSAValue, k: SSAValue, v: SSAValue, mask: int, bias: int) -> SSAValue:
    """`softmax(q @ k.T * scale + mask) @ v` of each head, with the heads' results concatenated along the last axis.
    `mask` and `bias` are the indices of optional inputs. The mask has a flag for each key or for each pair of query and
    key, or the ends (and perhaps the starts) of the valid keys of each sequence."""
    batch, _, _, size = importer.shape(q)
    added: SSAValue | None = node.optional(bias)
    if (given := node.optional(mask)) is not None:
        dims, low = node.static(mask), node.real("mask_filter_value", -10000.0)
        if dims in ((batch,), (2 * batch,)):
            dims = (batch, importer.shape(k)[2])
            given = _valid_keys(importer, importer.reshape(given, [-1, batch, 1]), dims[1])
        if len(dims) not in (2, 3) or dims[0] != batch:
            raise node.unsupported(f"its mask has the shape {list(dims)}", "it may have one number per key or pair")
        left_out = Scalar(importer, importer.cast(given, importer.element(q))) * -low + low
        dims = (batch, 1, *((1, dims[1]) if len(dims) == 2 else dims[1:]))
        left_out = importer.reshape(left_out.value, dims)
        added = importer.add(left_out, added)
    more: dict[str, int] = {"causal": 0} if node.integer("unidirectional", 0) else {}
    sides = (q, k, v) if added is None else (q, k, v, added)
    found = importer.call(relay.AttentionOp, *sides, scale=node.real("scale", 0.0) or 1 / math.sqrt(size), **more)
    return joined(importer, found)


@op("Attention", domain=MICROSOFT)
def attention(importer: Importer, node: Node) -> SSAValue:
    """Import Attention, whose queries, keys and values are the product of the input with one matrix."""
    _absent(node, 4, 6)
    if node.integer("do_rotary", 0):
        raise node.unsupported("turns queries and keys by their position")
    count, width = node.integer("num_heads"), node.static(1)[1]
    node.static(0)
    every = importer.add(product(importer, node.input(0), node.input(1)), node.optional(2))
    sides = importer.parts(every, node.integers("qkv_hidden_sizes") or (width // 3,) * 3, 2)
    q, k, v = (divided(importer, each, count) for each in sides)
    return _attended(importer, node, q, k, v, mask=3, bias=5)


@op("MultiHeadAttention", domain=MICROSOFT)
def heads_attention(importer: Importer, node: Node) -> SSAValue:
    """Import MultiHeadAttention of queries, keys and values, with an optional bias vector for all three; keys and
    values may be given per head."""
    _absent(node, 6, 7, 8, 9)
    count, sides = node.integer("num_heads"), [node.input(number) for number in range(3)]
    for number in range(3):
        node.static(number)
    if node.rank(0) != 3 or {node.rank(1), node.rank(2)} - {3, 4}:
        raise node.unsupported("packs queries, keys and values in one tensor")
    heads: list[SSAValue] = []
    start = 0
    for side in sides:
        if importer.rank(side) == 3 and node.optional(3) is not None:
            end = start + importer.shape(side)[2]
            side = importer.call(relay.AddOp, side, importer.slice(node.input(3), {0: (start, end)}))
            start = end
        heads.append(divided(importer, side, count) if importer.rank(side) == 3 else side)
    return _attended(importer, node, heads[0], heads[1], heads[2], mask=4, bias=5)


@op("NhwcMaxPool", domain=MICROSOFT)
def pool(importer: Importer, node: Node) -> SSAValue:
    """Import NhwcMaxPool, a max pool with channels last."""
    first = channels_first(importer, node.input(0))
    return channels_last(importer, plain(importer, node, "MaxPool", [first]))
