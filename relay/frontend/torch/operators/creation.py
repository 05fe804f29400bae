"""Imports constants, ranges, casts, sizes, and operators that return their input."""

from __future__ import annotations

from math import ceil, prod

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import DYNAMIC
from relay.frontend.torch.builder import F32, Importer
from relay.frontend.torch.node import Node, is_size, is_value
from relay.frontend.torch.operators.elementwise import given, name_of
from relay.frontend.torch.table import REFUSED, Result, aten, op

MOST_NUMBERS = 1 << 28
"""The maximum number of elements of a constant that is computed at import."""
_WHY = {
    "draws random numbers": "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial "
    "normal uniform exponential random geometric cauchy log_normal rrelu rrelu_with_noise poisson binomial "
    "fractional_max_pool2d fractional_max_pool3d",
    "the size of its result, or of another one, depends on values": "nonzero masked_select masked_scatter unique2 "
    "_unique2 unique_consecutive nonzero_static where.default",
    "makes a Python number of a tensor, which must stay a tensor": "item _local_scalar_dense",
    "is for training": "_adaptive_avg_pool2d_backward avg_pool2d_backward convolution_backward "
    "embedding_dense_backward max_pool2d_with_indices_backward native_group_norm_backward native_layer_norm_backward",
    "computes with complex numbers": "_fft_r2c _fft_c2r _fft_c2c complex view_as_complex view_as_real",
    "speaks of places in memory, which values do not have": "empty_strided sym_stride sym_storage_offset",
}
REFUSED.update((f"aten.{name}", why) for why, names in _WHY.items() for name in names.split())


@aten("alias", "clone", "contiguous", "detach", "lift_fresh_copy", "lift_fresh", "lift", "dropout",
      "feature_dropout", "alpha_dropout", "positive", "resolve_conj", "resolve_neg", "conj",
      "_conj_physical")  # fmt: skip
def identity(importer: Importer, node: Node) -> SSAValue:
    """Import operators that return their input, and dropout at inference."""
    node.evaluates("dropout" in node.packet and node.flag("train"))
    return node.value("input" if node.has("input") else "self")


@aten("native_dropout")
def native_dropout(importer: Importer, node: Node) -> list[SSAValue | None]:
    node.evaluates(node.flag("train", True))
    x = node.value("input")
    return [x, importer.filled(importer.unnamed(np.asarray(True)), importer.lengths(x))]


@aten("copy")
def copy(importer: Importer, node: Node) -> SSAValue:
    """Import copy: the source broadcast to the shape, and cast to the element type, of the first argument."""
    x, source = node.value("self"), node.value("src")
    source = importer.cast(source, importer.element(x))
    return importer.expanded(source, importer.lengths(x))


@aten("_to_copy", "to", "type_as", "float", "half", "double", "int", "long", "bool", "bfloat16")
def to(importer: Importer, node: Node) -> SSAValue:
    x = node.value("self")
    if node.packet == "aten.type_as" or node.target == "aten.to.other":
        return importer.cast(x, importer.element(node.value("other")))
    return importer.typed(x, node.dtype())


@aten("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
      "sym_constrain_range_for_size", "_check")  # fmt: skip
@op("torch._check", "torch.sym_constrain_range_for_size")
def nothing(importer: Importer, node: Node) -> list[Result]:
    return [None] * len(node.outputs)


@aten("sym_size", "size")
def sym_size(importer: Importer, node: Node) -> Result:
    return importer.size(node.value("self"), node.along("dim"))


@aten("sym_numel", "numel")
def sym_numel(importer: Importer, node: Node) -> Result:
    x, dims = node.value("self"), node.shape("self")
    return importer.call(relay.NdarraySizeOp, x, dtype=i64) if DYNAMIC in dims else prod(dims)


_NUMBERS = {"zeros": 0.0, "zero": 0.0, "ones": 1.0, "empty": 0.0}
"""The fill values by operator; uninitialized tensors are filled with 0."""


@aten(*(f"{kind}{name}{like}" for name in ("zeros", "ones", "empty", "full")
        for kind, like in (("", ""), ("", "_like"), ("new_", ""))),
      "scalar_tensor", "fill", "zero")  # fmt: skip
def full(importer: Importer, node: Node) -> SSAValue:
    """Import full and the like: a tensor filled with one number. Its element type is the requested one, else that of
    the argument `self`. If neither is given, it is the type that PyTorch gives the number if the operator is `full` or
    the number is a tensor, else float32."""
    name, own, dtype = name_of(node).removesuffix("_like").removeprefix("new_"), node.optional("self"), node.dtype()
    sizes = node.sizes("size") if own is None or node.has("size") else importer.lengths(own)
    named = next((each for each in ("value", "s") if node.has(each)), "fill_value")
    number = _NUMBERS[name] if name in _NUMBERS else given(node, named)
    if dtype is not None:
        element = element_type(dtype)
    elif own is not None:
        element = importer.element(own)
    else:
        element = importer.promoted(number) if name == "full" or is_value(number) else F32
    return importer.filled(importer.operand(number, element), sizes)


@aten("arange")
def arange(importer: Importer, node: Node) -> SSAValue:
    """Import arange: `start + i * step` up to the end, exclusively; integers unless a bound is a float."""
    bounds = [node.arguments.get(name) for name in ("start", "end", "step")]
    numbers = [default if each is None else each for each, default in zip(bounds, (0, None, 1), strict=True)]
    dtype = node.dtype() or np.dtype(np.float32 if any(isinstance(n, float) for n in numbers) else np.int64)
    if any(is_value(each) for each in numbers):
        values = (importer.operand(each, i64) for each in numbers if is_size(each))
        found = importer.call(relay.DynArangeOp, *(importer.reshape(each, []) for each in values))
        return importer.cast(found, element_type(dtype))
    start, end, step = (node.number_of(name, default) for name, default in (("start", 0), ("end", None), ("step", 1)))
    count = max(ceil((end - start) / step), 0)
    if count > MOST_NUMBERS:
        raise node.unsupported(f"gives {count} numbers", f"up to {MOST_NUMBERS} are supported")
    if dtype.kind in "iu":
        start, step = int(start), int(step)
    return importer.unnamed((start + np.arange(count) * step).astype(dtype))


@aten("linspace")
def linspace(importer: Importer, node: Node) -> SSAValue:
    count = node.integer("steps")
    if not 0 <= count <= MOST_NUMBERS:
        raise node.unsupported(f"the argument steps is {count}", f"0 to {MOST_NUMBERS} are supported")
    start, end, dtype = node.real("start"), node.real("end"), node.dtype() or np.dtype(np.float32)
    return importer.unnamed(np.linspace(start, end, count).astype(dtype))


@aten("eye")
def eye(importer: Importer, node: Node) -> SSAValue:
    rows = node.integer("n")
    columns = node.integer("m", rows)
    if not 0 <= rows * columns <= MOST_NUMBERS:
        raise node.unsupported(f"gives {rows} x {columns} numbers", f"up to {MOST_NUMBERS} are supported")
    return importer.unnamed(np.eye(rows, columns, dtype=node.dtype() or np.dtype(np.float32)))


@aten("one_hot")
def one_hot(importer: Importer, node: Node) -> SSAValue:
    x, depth = node.value("self"), node.integer("num_classes", -1)
    if depth < 0:
        raise node.unsupported(f"the argument num_classes is {depth}: values decide how many", "give num_classes")
    on, off = importer.like(1, x), importer.like(0, x)
    return importer.call(relay.OneHotOp, x, on, off, depth=depth, axis=importer.rank(x))
