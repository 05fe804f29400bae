"""Imports operators of networks: products, convolutions, pools, norms, softmax, attention, images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.formulas import Scalar, norm, normed
from relay.frontend.importing.paddings import padded
from relay.frontend.importing.products import einsum, product, scaled
from relay.frontend.importing.resizing import Rule, resized, sampled
from relay.frontend.importing.windows import ADAPTIVE, SPATIAL, convolved, pooled, spatial, transposed_convolved
from relay.frontend.torch.builder import F32, Importer
from relay.frontend.torch.node import Node, is_list
from relay.frontend.torch.operators.elementwise import name_of
from relay.frontend.torch.table import Result, aten, of_vectors


def times_transposed(importer: Importer, a: SSAValue, b: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    """`a @ b.T + bias` for a matrix b; the rows of a, of any rank, are multiplied in one product."""
    dims, out = list(importer.shape(a)), importer.shape(b)[0]
    if len(dims) == 1:
        row = times_transposed(importer, importer.reshape(a, [1, *dims]), b, bias)
        return importer.reshape(row, [out])
    if not importer.is_float(a):
        return importer.add(product(importer, a, importer.transpose(b, (1, 0))), bias)
    element = importer.element(a)
    if len(dims) > 2 and dims.count(DYNAMIC) > 1:
        return importer.add(importer.call(relay.BatchMatmulOp, a, b, transpose_b=True, out_dtype=element), bias)
    rows = importer.reshape(a, [-1 if DYNAMIC in dims[:-1] else prod(dims[:-1]), dims[-1]])
    found = importer.call(relay.MatmulOp, rows, b, transpose_b=True, out_dtype=element)
    return importer.reshape(importer.add(found, bias), [*dims[:-1], out])


@aten("linear")
def linear(importer: Importer, node: Node) -> SSAValue:
    weight, single = node.value("weight"), node.rank("weight") == 1
    if single:
        weight = importer.reshape(weight, [1, *importer.shape(weight)])
    found = times_transposed(importer, node.value("input"), weight, node.optional("bias"))
    return importer.reshape(found, node.shape("input")[:-1]) if single else found


@aten("matmul", "mm", "bmm", "mv", "dot", "vdot")
def matmul(importer: Importer, node: Node) -> SSAValue:
    second = next(name for name in ("other", "mat2", "vec", "tensor") if node.has(name))
    return product(importer, node.value("input" if node.has("input") else "self"), node.value(second))


@aten("_int_mm")
def integer_product(importer: Importer, node: Node) -> SSAValue:
    """Import _int_mm: the product of 8-bit integers, summed in 32 bits."""
    element = element_type(np.int32)
    return importer.call(relay.MatmulOp, node.value("self"), node.value("mat2"), out_dtype=element)


@aten("addmm", "baddbmm", "addbmm", "addmv")
def add_product(importer: Importer, node: Node) -> SSAValue:
    """Import addmm and the like: `beta * self + alpha * a @ b`."""
    pairs = (("mat1", "mat2"), ("batch1", "batch2"), ("mat", "vec"))
    first, second = next(pair for pair in pairs if node.has(pair[0]))
    found = product(importer, node.value(first), node.value(second))
    if name_of(node) == "addbmm":
        found = importer.call(relay.SumOp, found, axis=[0])
    found = scaled(importer, found, node.number_of("alpha", 1))
    beta = node.number_of("beta", 1)
    if beta == 0:
        return found
    return importer.call(relay.AddOp, scaled(importer, node.value("self"), beta), found)


@aten("outer", "ger")
def outer(importer: Importer, node: Node) -> SSAValue:
    a, b = node.value("self"), node.value("vec2")
    return importer.call(relay.MultiplyOp, importer.reshape(a, [*importer.shape(a), 1]), b)


@aten("einsum")
def contraction(importer: Importer, node: Node) -> SSAValue:
    return einsum(importer, node.word("equation"), node.values("tensors"))


def _batched(importer: Importer, value: SSAValue, rank: int) -> tuple[SSAValue, bool]:
    """The value with a leading batch axis added if it has none, and whether one was added."""
    lacks = importer.rank(value) == rank - 1
    return (importer.call(relay.ExpandDimsOp, value, axis=0) if lacks else value), lacks


def _unbatched(importer: Importer, value: SSAValue, lacked: bool) -> SSAValue:
    return importer.call(relay.SqueezeOp, value, axis=[0]) if lacked else value


@aten("convolution", "_convolution", *(f"conv{n}d" for n in SPATIAL), *(f"conv_transpose{n}d" for n in SPATIAL))
def convolution(importer: Importer, node: Node) -> SSAValue:
    weight = node.value("weight")
    kernel = node.static("weight")[2:]
    count = spatial(node, len(kernel))
    data, lacks = _batched(importer, node.value("input"), count + 2)
    strides, dilations = node.each("stride", count, 1), node.each("dilation", count, 1)
    groups = node.integer("groups", 1)
    if isinstance(node.arguments.get("padding"), str):
        whole = [dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)]
        same = node.word("padding") == "same"
        padding = [(each // 2, each - each // 2) if same else (0, 0) for each in whole]
    else:
        padding = [(each, each) for each in node.each("padding", count, 0)]
    if node.flag("transposed") or "transpose" in node.packet:
        extra = node.each("output_padding", count, 0)
        found = transposed_convolved(importer, data, weight, strides, dilations, padding, extra, groups)
    else:
        found = convolved(importer, data, weight, strides, dilations, padding, groups)
    bias = node.optional("bias")
    found = found if bias is None else importer.call(relay.BiasAddOp, found, bias, axis=1)
    return _unbatched(importer, found, lacks)


@aten(*(f"{kind}_pool{n}d" for kind in ("max", "avg") for n in SPATIAL),
      *(f"max_pool{n}d_with_indices" for n in SPATIAL))  # fmt: skip
def pool(importer: Importer, node: Node) -> list[Result]:
    """Import max_pool and avg_pool; the indices of maxima are not computed."""
    largest = "max" in node.packet
    count = int(node.packet.partition("_pool")[2][0])
    if not largest and not importer.is_float(node.value("self")):
        raise node.unsupported(f"averages {importer.dtype(node.value('self'))}", "cast it to float")
    data, lacks = _batched(importer, node.value("self"), count + 2)
    kernel = node.each("kernel_size", count, 1)
    strides = node.each("stride", count, 1) if node.integers("stride", []) else kernel
    padding = [(each, each) for each in node.each("padding", count, 0)]
    divisor, dilations = node.integer("divisor_override", 0), node.each("dilation", count, 1)
    kind, ceil = "MaxPool" if largest else "AveragePool", node.flag("ceil_mode")
    if divisor and ceil:
        raise node.unsupported(f"divisor_override is {divisor} and ceil_mode True", "leave one of them out")
    counted = node.flag("count_include_pad", True) or divisor != 0
    found = pooled(importer, kind, data, kernel, strides, dilations, padding, ceil, counted)
    if divisor:
        found = importer.call(relay.MultiplyOp, found, importer.like(prod(kernel) / divisor, found))
    return [_unbatched(importer, found, lacks), None]


@aten(*(f"adaptive_{kind}_pool{n}d" for kind in ADAPTIVE for n in SPATIAL),
      *(f"_adaptive_avg_pool{n}d" for n in SPATIAL))  # fmt: skip
def adaptive_pool(importer: Importer, node: Node) -> list[Result]:
    count = int(node.packet.partition("_pool")[2][0])
    kind = "max" if "max" in node.packet else "avg"
    data, lacks = _batched(importer, node.value("self"), count + 2)
    given, dims = node.arguments.get("output_size"), importer.shape(data)[2:]
    rows = given if is_list(given) else [given] * count
    sizes = [each if isinstance(each, int) else size for each, size in zip(rows, dims, strict=True)]
    if kind == "avg" and [*sizes] == [1] * count:
        axes = range(2, count + 2)
        return [_unbatched(importer, importer.call(relay.MeanOp, data, axis=axes, keepdims=True), lacks), None]
    found = importer.call(ADAPTIVE[kind][count], data, output_size=sizes, layout=f"NC{SPATIAL[count]}")
    return [_unbatched(importer, found, lacks), None]


def _vectors(importer: Importer, node: Node, dims: Sequence[int], *names: str) -> list[SSAValue]:
    """The arguments `names` cast to the element type of the input. For an omitted one, a constant: ones for a weight or
    a variance, zeros for others."""
    element, dtype = importer.element(node.value("input")), importer.dtype(node.value("input"))
    found: list[SSAValue] = []
    for name in names:
        value = node.optional(name)
        if value is None:
            value = importer.unnamed(np.full(dims, name in ("weight", "running_var")).astype(dtype))
        found.append(importer.cast(value, element))
    return found


def _normalized(importer: Importer, node: Node) -> SSAValue:
    """Each channel normalized by a mean and variance stored in the program."""
    names = ("weight", "bias", "running_mean", "running_var")
    vectors = _vectors(importer, node, node.shape("input")[1:2], *names)
    return importer.call(relay.BatchNormOp, node.value("input"), *vectors, axis=1, epsilon=node.real("eps"))


@aten("batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit", "cudnn_batch_norm",
      "native_batch_norm")  # fmt: skip
def batch_norm(importer: Importer, node: Node) -> list[Result]:
    """Import batch_norm by stored statistics. Without these, a batch of one image is normalized by the image's own
    statistics: `run_decompositions` turns instance_norm into such nodes."""
    x = node.value("input")
    if not node.has("running_mean") and importer.rank(x) > 2 and importer.shape(x)[0] == 1:
        return [_by_own(importer, node), None, None]
    node.evaluates(node.flag("training") or not node.has("running_mean"))
    return [_normalized(importer, node), None, None]


def _by_own(importer: Importer, node: Node) -> SSAValue:
    """Each channel of each image normalized by its own mean and variance."""
    gamma, beta = _vectors(importer, node, node.static("input")[1:2], "weight", "bias")
    return importer.call(relay.InstanceNormOp, node.value("input"), gamma, beta, axis=1, epsilon=node.real("eps"))


def _last(importer: Importer, node: Node) -> range:
    """The axes that are normalized, which are the last ones."""
    rank = importer.rank(node.value("input"))
    return range(rank - len(node.integers("normalized_shape")), rank)


@aten("layer_norm", "native_layer_norm")
def layer_norm(importer: Importer, node: Node) -> list[Result]:
    vectors = _vectors(importer, node, node.integers("normalized_shape"), "weight", "bias")
    axes, epsilon = _last(importer, node), node.real("eps", 1e-5)
    return [normed(importer, node.value("input"), axes, relay.LayerNormOp, vectors, epsilon), None, None]


@aten("rms_norm", "_fused_rms_norm")
def rms_norm(importer: Importer, node: Node) -> list[Result]:
    vectors = _vectors(importer, node, node.integers("normalized_shape"), "weight")
    axes, epsilon = _last(importer, node), node.real("eps", float(np.finfo(np.float32).eps))
    return [normed(importer, node.value("input"), axes, relay.RmsNormOp, vectors, epsilon), None]


@aten("group_norm", "native_group_norm")
def group_norm(importer: Importer, node: Node) -> list[Result]:
    """Import group_norm: groups of channels normalized as rows, followed by a scale and an offset per channel."""
    groups = node.integer("num_groups" if node.has("num_groups") else "group")
    gamma, beta = _vectors(importer, node, node.static("input")[1:2], "weight", "bias")
    kept = {"num_groups": groups, "axis": 1, "epsilon": node.real("eps", 1e-5)}
    return [importer.call(relay.GroupNormOp, node.value("input"), gamma, beta, **kept), None, None]


@aten("instance_norm")
def instance_norm(importer: Importer, node: Node) -> SSAValue:
    if not node.flag("use_input_stats", True):
        return _normalized(importer, node)
    return _by_own(importer, node)


@aten("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax")
@of_vectors
def softmax(importer: Importer, node: Node) -> SSAValue:
    x = node.value("self")
    x = importer.typed(x, node.dtype()) if node.has("dtype") else importer.real(x)
    if node.flag("half_to_float"):
        x = importer.cast(x, F32)
    axis = node.along("dim")
    if 0 in importer.shape(x):
        return x
    if "log" in node.packet:
        return importer.call(relay.LogSoftmaxOp, x, axis=axis)
    return importer.call(relay.SoftmaxOp, x, beta=1.0, axis=axis)


@aten("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu")
def attention(importer: Importer, node: Node) -> list[Result]:
    """Import scaled_dot_product_attention, `softmax(q @ k.T * scale + mask) @ v`; several query heads may share key and
    value heads."""
    node.evaluates(node.real("dropout_p", 0.0) != 0)
    given = [node.value(name) for name in ("query", "key", "value")]
    scale = node.real("scale", 1 / math.sqrt(node.shape("query")[-1]))
    if (mask := node.optional("attn_mask")) is not None:
        given.append(importer.cast(mask, importer.element(given[0])) if importer.is_float(mask) else mask)
    outer = importer.shape(given[0])[:-2]
    heads = [_of_rank_4(importer, each) for each in given]
    more: dict[str, int] = {"causal": 0} if node.flag("is_causal") else {}
    found = importer.call(relay.AttentionOp, *heads, scale=scale, **more)
    dims = importer.shape(found)[2:]
    return [found if len(outer) == 2 else importer.reshape(found, [*outer, *dims]), None]


def _of_rank_4(importer: Importer, value: SSAValue) -> SSAValue:
    """The value [..., heads, rows, columns] with all axes before the heads merged into one, which is 1 if there are
    none."""
    dims = importer.shape(value)
    if len(dims) == 4:
        return value
    inner = [*[1] * (3 - len(dims)), *dims[-3:]]
    return importer.reshape(value, [-1 if DYNAMIC in dims[:-3] else prod(dims[:-3]), *inner])


@aten(*(f"{kind}{n}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in SPATIAL),
      "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
      "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")  # fmt: skip
def upsample(importer: Importer, node: Node) -> SSAValue:
    """Import upsampling of the spatial axes by factors, or to sizes."""
    data, name = node.value("input" if node.has("input") else "self"), name_of(node)
    dims = node.static("input" if node.has("input") else "self")[2:]
    names = ("scales_d", "scales_h", "scales_w")[3 - len(dims) :] if len(dims) > 1 else ("scales",)
    factors = node.sequence("scale_factors") or [node.arguments.get(name) for name in names]
    sizes = node.integers("output_size", []) or [
        math.floor(size * factor) for size, factor in zip(dims, factors, strict=True) if isinstance(factor, float)
    ]
    exact, corners = "exact" in name, node.flag("align_corners")
    mode = "nearest" if "nearest" in name else "cubic" if "cubic" in name else "linear"
    smooth = name.endswith("_aa")
    coordinates = "asymmetric" if mode == "nearest" and not exact else "half_pixel"
    coordinates = "align_corners" if corners and not smooth else coordinates
    rounding = "round_prefer_ceil" if exact else "floor"
    rule = Rule(mode, coordinates, rounding, smooth, -0.5 if smooth else -0.75, smooth)
    wanted: dict[int, tuple[float, int | None]] = {}
    for axis, (size, target) in enumerate(zip(dims, sizes, strict=True)):
        given = factors[axis] if axis < len(factors) else None
        factor = given if isinstance(given, float) and given > 0 and not corners else target / size
        if corners and smooth:  # half-pixel coordinates, but with the factor that aligns corners
            factor = (target - 1) / (size - 1) if min(size, target) > 1 else math.inf
        wanted[axis + 2] = (factor, target)
    return resized(importer, data, rule, wanted)


@aten("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(importer: Importer, node: Node) -> SSAValue:
    mode = ("linear", "nearest", "cubic")[node.integer("interpolation_mode")]
    padding = ("zeros", "border", "reflection")[node.integer("padding_mode")]
    for name in ("input", "grid"):
        node.static(name)
    return sampled(importer, node.value("input"), node.value("grid"), mode, padding, node.flag("align_corners"))


@aten("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag")
def embedding_bag(importer: Importer, node: Node) -> list[Result]:
    """Import embedding_bag: the sum, mean or maximum of the embeddings of each bag; `offsets` has the first index of
    each bag."""
    weight, indices, offsets = (node.value(name) for name in ("weight", "indices", "offsets"))
    (count,), (bags,) = node.static("indices", 1), node.static("offsets", 1)
    rows = importer.call(relay.TakeOp, weight, indices, axis=0, mode="clip")
    if (factor := node.optional("per_sample_weights")) is not None:
        rows = importer.call(relay.MultiplyOp, rows, importer.reshape(factor, [count, 1]))
    last = importer.unnamed(np.asarray([count], np.int64))
    offsets = importer.cast(offsets, i64)
    if node.flag("include_last_offset"):
        bags -= 1
    ends = importer.concatenate([importer.slice(offsets, {0: (0, bags)}), last], 0)
    begin, end = (importer.reshape(importer.slice(ends, {0: pair}), [bags, 1]) for pair in ((0, bags), (1, bags + 1)))
    places = importer.unnamed(np.arange(count))
    inside = importer.call(
        relay.LogicalAndOp, importer.call(relay.LessEqualOp, begin, places), importer.call(relay.LessOp, places, end)
    )
    if (padding := node.integer("padding_idx", -1)) >= 0:
        kept = importer.call(relay.NotEqualOp, indices, importer.like(padding, indices))
        inside = importer.call(relay.LogicalAndOp, inside, kept)
    mask, mode = importer.cast(inside, importer.element(rows)), node.integer("mode", 0)
    if mode == 2:
        shown = importer.reshape(inside, [bags, count, 1])
        some = importer.call(relay.AnyOp, inside, axis=[1], keepdims=True)
        low = importer.like(-np.inf, rows)
        largest = importer.call(relay.MaxOp, importer.call(relay.WhereOp, shown, rows, low), axis=[1])
        return [importer.call(relay.WhereOp, some, largest, importer.like(0, rows)), None, None, None]
    total = product(importer, mask, rows)
    if mode == 1:
        number = importer.call(relay.SumOp, mask, axis=[1], keepdims=True)
        number = importer.call(relay.MaximumOp, number, importer.like(1, number))
        total = importer.call(relay.DivideOp, total, number)
    return [total, None, None, None]


def _cells(node: Node, height: int, width: int) -> tuple[list[int], np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """The padded image's sizes, and for each element of a window and each window its index in the flattened image."""
    kernel, strides, dilations, pads = (node.each(n, 2, 1) for n in ("kernel_size", "stride", "dilation", "padding"))
    sizes = [height + 2 * pads[0], width + 2 * pads[1]]
    axes: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = []
    for size, cells, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        starts = np.arange(0, size - dilation * (cells - 1), stride)
        axes.append(np.arange(cells)[:, None] * dilation + starts)
    rows, columns = axes
    places = rows[:, None, :, None] * sizes[1] + columns[None, :, None, :]
    return sizes, places.reshape(rows.shape[0] * columns.shape[0], -1)


@aten("im2col", "col2im")
def windows(importer: Importer, node: Node) -> SSAValue:
    """Import im2col (the windows of an image, concatenated) and col2im (the sum of windows at their positions)."""
    x, lacks = _batched(importer, node.value("self"), 4 if node.packet == "aten.im2col" else 3)
    pad_h, pad_w = node.each("padding", 2, 0)
    if node.packet == "aten.im2col":
        n, c, height, width = importer.shape(x)
        (whole_h, whole_w), places = _cells(node, height, width)
        wide = padded(importer, x, {2: (pad_h, pad_h), 3: (pad_w, pad_w)})
        flat = importer.reshape(wide, [n, c, whole_h * whole_w])
        found = importer.take(flat, places, 2)
        return _unbatched(importer, importer.reshape(found, [n, c * places.shape[0], places.shape[1]]), lacks)
    height, width = node.integers("output_size")
    n, rows, _ = importer.shape(x)
    (whole_h, whole_w), places = _cells(node, height, width)
    c = rows // places.shape[0]
    parts = importer.transpose(importer.reshape(x, [n * c, places.size]), (1, 0))
    zeros = importer.filled(importer.like(0, x), [whole_h * whole_w, n * c])
    where = importer.unnamed(places.reshape(-1, 1).astype(np.int64))
    found = importer.call(relay.ScatterNdOp, zeros, where, parts, mode="add")
    image = importer.reshape(importer.transpose(found, (1, 0)), [n, c, whole_h, whole_w])
    image = importer.slice(image, {2: (pad_h, pad_h + height), 3: (pad_w, pad_w + width)})
    return _unbatched(importer, image, lacks)


def _distance(importer: Importer, node: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    """The norm of the differences along the last axis."""
    rest = importer.call(relay.SubtractOp, a, b)
    axis = [importer.rank(rest) - 1]
    return norm(importer, rest, node.real("p", 2.0), lambda kind, value: importer.call(kind, value, axis=axis))


@aten("_cdist_forward", "cdist")
def cdist(importer: Importer, node: Node) -> SSAValue:
    a, b = node.value("x1"), node.value("x2")
    a = importer.call(relay.ExpandDimsOp, a, axis=importer.rank(a) - 1)
    b = importer.call(relay.ExpandDimsOp, b, axis=importer.rank(b) - 2)
    return _distance(importer, node, a, b)


@aten("_pdist_forward", "pdist")
def pdist(importer: Importer, node: Node) -> SSAValue:
    """Import pdist: the distances of all pairs of rows."""
    first, second = np.triu_indices(node.static("self", 2)[0], 1)
    x = node.value("self")
    return _distance(importer, node, *(importer.take(x, rows, 0) for rows in (first, second)))


@aten("cosine_similarity")
def cosine_similarity(importer: Importer, node: Node) -> SSAValue:
    """Import cosine_similarity: the product of the vectors, each divided by its norm, which is at least eps."""
    sides: list[Scalar] = []
    axis = [node.axis(node.integer("dim", 1), node.rank("x1"))]
    if node.static("x1") != node.static("x2") or not node.rank("x1"):
        what = f"compares {node.value('x1').type} with {node.value('x2').type}"
        raise node.unsupported(what, "give both one shape, of at least one axis")
    for x in (Scalar(importer, node.value(name)) for name in ("x1", "x2")):
        length = (x * x).of(relay.SumOp, axis=axis, keepdims=True).of(relay.SqrtOp)
        sides.append(x / length.of(relay.MaximumOp, node.real("eps", 1e-8)))
    return (sides[0] * sides[1]).of(relay.SumOp, axis=axis).value
