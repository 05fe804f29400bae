"""Imports operators of networks: convolutions, pools, norms, softmax, products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, FloatAttr, f32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar, norm
from relay.frontend.importing.products import einsum, product, scaled
from relay.frontend.importing.windows import convolved, pooled, same_padding, spans_of, spatial, transposed_convolved
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op


def each(node: Node, name: str, count: int, default: int) -> tuple[int, ...]:
    """An attribute with an integer for each spatial axis."""
    found = node.integers(name) or (default,) * count
    if len(found) != count or min(found) < 1:
        raise node.malformed(f"the attribute {name} is {list(found)} for {count} spatial axes")
    return found


def pads(
    importer: Importer, node: Node, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]]:  # fmt: skip
    """The padding (before, after) of each spatial axis, from `pads` or `auto_pad`."""
    count = len(kernel)
    mode = node.word("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        widths = same_padding(importer, sizes, spans_of(kernel, dilations), strides)
        return widths if mode == "SAME_UPPER" else [(after, before) for before, after in widths]
    flat = (node.integers("pads") if mode != "VALID" else None) or (0,) * (2 * count)
    if mode not in ("NOTSET", "VALID", "") or len(flat) != 2 * count:
        raise node.malformed(f"has auto_pad {mode!r} and pads {list(flat)} for {count} spatial axes")
    return list(zip(flat[:count], flat[count:], strict=True))


def outside(
    importer: Importer, value: SSAValue, widths: Sequence[tuple[int, int]]
) -> tuple[SSAValue, list[tuple[int, int]]]:
    """The value with its spatial axes cropped by negative widths, and the remaining widths."""
    sizes = importer.shape(value)[2:]
    cut = {
        axis + 2: (max(-before, 0), size - max(-after, 0))
        for axis, (size, (before, after)) in enumerate(zip(sizes, widths, strict=True))
        if min(before, after) < 0
    }
    return importer.slice(value, cut), [(max(before, 0), max(after, 0)) for before, after in widths]


def window(
    importer: Importer, node: Node, kernel: Sequence[int]
) -> tuple[SSAValue, Sequence[int], Sequence[int], list[tuple[int, int]]]:
    """The data of a convolution, cropped by negative pads, and the strides, dilations and remaining pads."""
    strides, dilations = (each(node, name, len(kernel), 1) for name in ("strides", "dilations"))
    data, padding = outside(
        importer, node.input(0), pads(importer, node, node.shape(0)[2:], kernel, strides, dilations)
    )
    return data, strides, dilations, padding


@op("Conv")
def convolution(importer: Importer, node: Node) -> SSAValue:
    spatial(node, node.rank(0) - 2)
    data, strides, dilations, padding = window(importer, node, node.static(1)[2:])
    found = convolved(importer, data, node.input(1), strides, dilations, padding, node.integer("group", 1))
    return biased(importer, node, found)


def biased(importer: Importer, node: Node, value: SSAValue, number: int = 2) -> SSAValue:
    """Add the bias, a vector along the channels, which is the node's optional input with index `number`; the value
    itself if the node lacks this input."""
    bias = node.optional(number)
    return value if bias is None else importer.call(relay.BiasAddOp, value, bias, axis=1)


@op("ConvTranspose")
def transposed_convolution(importer: Importer, node: Node) -> SSAValue:
    count = spatial(node, node.rank(0) - 2)
    sizes, kernel = node.static(0)[2:], node.static(1)[2:]
    strides, dilations = each(node, "strides", count, 1), each(node, "dilations", count, 1)
    extra = list(node.integers("output_padding") or (0,) * count)
    spans = spans_of(kernel, dilations)
    whole = [(size - 1) * stride + span for size, stride, span in zip(sizes, strides, spans, strict=True)]
    wanted, mode = node.integers("output_shape"), node.word("auto_pad", "NOTSET")
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(size * stride for size, stride in zip(sizes, strides, strict=True))
    if wanted is not None:
        padding: list[tuple[int, int]] = []
        for axis, size in enumerate(wanted[-count:]):
            total = whole[axis] + extra[axis] - size
            if total < 0:
                extra[axis], total = extra[axis] - total, 0
            less = total // 2
            padding.append((less, total - less) if mode == "SAME_UPPER" else (total - less, less))
    else:
        padding = pads(importer, node, sizes, kernel, strides, dilations)
    given, groups = (node.input(0), node.input(1)), node.integer("group", 1)
    found = transposed_convolved(importer, *given, strides, dilations, padding, extra, groups)
    return biased(importer, node, found)


@op("AveragePool", "MaxPool", "LpPool")
def pool(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a pool: the mean, maximum or Lp norm of each window."""
    if node.wants(1):
        raise node.unsupported("gives indices")
    count, value = spatial(node, node.rank(0) - 2), node.input(0)
    kernel, strides, dilations = (each(node, name, count, 1) for name in ("kernel_shape", "strides", "dilations"))
    widths = pads(importer, node, node.shape(0)[2:], kernel, strides, dilations)
    rest = (kernel, strides, dilations, widths, node.flag("ceil_mode"))
    if node.kind != "LpPool":
        return [pooled(importer, node.kind, value, *rest, node.flag("count_include_pad"))]

    def summed(_: object, parts: SSAValue) -> SSAValue:
        means = pooled(importer, "AveragePool", parts, *rest, counted=True)
        return importer.call(relay.MultiplyOp, means, importer.like(prod(kernel), means))

    return [norm(importer, value, node.integer("p", 2), summed)]


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(importer: Importer, node: Node) -> SSAValue:
    value, rank = node.input(0), node.rank(0)
    if rank == 4 and node.kind != "GlobalLpPool":
        kind = relay.GlobalAvgPool2dOp if node.kind == "GlobalAveragePool" else relay.GlobalMaxPool2dOp
        return importer.call(kind, value, layout="NCHW")
    axes = range(2, rank)
    if node.kind == "GlobalLpPool":
        return norm(importer, value, node.integer("p", 2), lambda k, v: importer.call(k, v, axis=axes, keepdims=True))
    kind = relay.MeanOp if node.kind == "GlobalAveragePool" else relay.MaxOp
    return importer.call(kind, value, axis=axes, keepdims=True)


@op("BatchNormalization")
def batch_norm(importer: Importer, node: Node) -> SSAValue:
    if node.version >= 14 and node.flag("training_mode"):
        raise node.unsupported("is in training mode", "export the model for inference")
    data = node.input(0)
    vectors = [importer.cast(node.input(number), importer.element(data)) for number in range(1, 5)]
    return importer.call(relay.BatchNormOp, data, *vectors, axis=1, epsilon=node.real("epsilon"))


@op("InstanceNormalization")
def instance_norm(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.InstanceNormOp, *node.inputs(), axis=1, epsilon=node.real("epsilon"))


@op("LayerNormalization")
def layer_norm(importer: Importer, node: Node) -> list[SSAValue]:
    """Import LayerNormalization, computed as in ONNX Runtime's kernel: the mean is subtracted before squaring. ONNX's
    body of the operator computes `E[x^2] - E[x]^2`, which cancels for rows of nearly equal elements, to NaN if all are
    equal."""
    x, gamma, beta = node.input(0), node.input(1), node.optional(2)
    rank, epsilon = importer.rank(x), node.real("epsilon", 1e-5)
    axes = list(range(node.axis(node.integer("axis", -1), rank), rank))
    narrow = importer.element(x)
    if len(axes) == 1 and isinstance(narrow, Float32Type) and not (node.wants(1) or node.wants(2)):
        beta = beta or importer.unnamed(np.zeros(importer.shape(gamma), np.float32))
        if importer.rank(gamma) == importer.rank(beta) == 1:
            return [importer.call(relay.LayerNormOp, x, gamma, beta, epsilon=epsilon)]
    if isinstance(narrow, Float16Type | BFloat16Type) and node.integer("stash_type", 1) == 1:
        x = importer.cast(x, f32)
    mean = Scalar(importer, x).of(relay.MeanOp, axis=axes, keepdims=True)
    centred = Scalar(importer, x) - mean
    root = ((centred * centred).of(relay.MeanOp, axis=axes, keepdims=True) + epsilon).of(relay.SqrtOp)
    inverse = root.number(1) / root
    result = importer.cast((centred * inverse).value, narrow)
    result = importer.call(relay.MultiplyOp, result, gamma)
    return [importer.add(result, beta), mean.value, inverse.value]


@op("LRN")
def local_response(importer: Importer, node: Node) -> SSAValue:
    return importer.call(
        relay.LrnOp, node.input(0), axis=1, size=node.integer("size"), bias=node.real("bias"), alpha=node.real("alpha"),
        beta=node.real("beta"),
    )  # fmt: skip


@op("LpNormalization")
def lp_normalization(importer: Importer, node: Node) -> SSAValue:
    x, axis = node.input(0), [node.axis(node.integer("axis", -1), node.rank(0))]
    found = norm(importer, x, node.integer("p", 2), lambda k, v: importer.call(k, v, axis=axis, keepdims=True))
    size = Scalar(importer, found)
    return (Scalar(importer, x) / size.of(relay.EqualOp, 0).choose(1, size, size)).value


@op("Softmax", "LogSoftmax", "Hardmax")
def flat_softmax(importer: Importer, node: Node) -> SSAValue:
    """Import softmaxes of versions up to 12, which merge all axes from `axis` on."""
    dims = node.static(0)
    axis = node.axis(node.integer("axis", 1), len(dims)) if dims else 0
    flat = importer.reshape(node.input(0), [prod(dims[:axis]), prod(dims[axis:])])
    return importer.reshape(_softmax(importer, node, flat, 1), dims)


@op("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(importer: Importer, node: Node) -> SSAValue:
    return _softmax(importer, node, node.input(0), node.axis(node.integer("axis", -1), node.rank(0)))


def _softmax(importer: Importer, node: Node, value: SSAValue, axis: int) -> SSAValue:
    if node.kind == "Softmax":
        return importer.call(relay.SoftmaxOp, value, beta=FloatAttr(1.0, f32), axis=axis)
    if node.kind == "LogSoftmax":
        return importer.call(relay.LogSoftmaxOp, value, axis=axis)
    node.static(0)
    index = importer.call(relay.ArgmaxOp, value, axis=[axis])
    on, off = importer.like(1, value), importer.like(0, value)
    return importer.call(relay.OneHotOp, index, on, off, depth=importer.shape(value)[axis], axis=axis)


@op("MatMul")
def matmul(importer: Importer, node: Node) -> SSAValue:
    a, b = node.input(0), node.input(1)
    found = importer.of_few_bits(a, b, turned=False)
    return product(importer, a, b) if found is None else found


@op("Gemm")
def gemm(importer: Importer, node: Node) -> SSAValue:
    """Import Gemm: `alpha * a @ b + beta * c`."""
    a, b, c = node.input(0), node.input(1), node.optional(2)
    turned = {f"transpose_{letter}": node.flag(f"trans{letter.upper()}") for letter in "ab"}
    narrow = None if turned["transpose_a"] else importer.of_few_bits(a, b, turned["transpose_b"])
    if narrow is not None:
        found = narrow
    elif importer.is_float(a):
        found = importer.call(relay.MatmulOp, a, b, out_dtype=importer.element(a), **turned)
    else:
        left, right = (
            importer.transpose(value, (1, 0)) if turned[f"transpose_{letter}"] else value
            for letter, value in (("a", a), ("b", b))
        )
        found = product(importer, left, right)
    found = scaled(importer, found, node.real("alpha", 1.0))
    return found if c is None else importer.call(relay.AddOp, found, scaled(importer, c, node.real("beta", 1.0)))


@op("Einsum")
def contraction(importer: Importer, node: Node) -> SSAValue:
    return einsum(importer, node.word("equation"), node.inputs())
