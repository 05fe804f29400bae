"""Imports elementwise operations of `keras.ops`, reductions, products, and layers that merge tensors.

Source: keras/src/ops, layers/merging.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod

import numpy as np
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.frontend.importing.formulas import Scalar, bounded, logsumexp, named, norm, truths
from relay.frontend.importing.functions import FUNCTIONS, POWERS
from relay.frontend.importing.products import einsum, product
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer
from relay.frontend.keras.operators.movement import like, or_flat
from relay.frontend.keras.table import TABLE, layer, op

_ANY = named("Abs Negative Sign", Absolute=relay.AbsOp)
"""Functions that accept any numeric type."""
_FLOAT = named(
    "Ceil Cos Cosh Erf Exp Expm1 Floor Isfinite Isinf Isnan Log Log10 Log2 Rsqrt Sin Sinh Sqrt Tan Trunc",
    Arccos=relay.AcosOp, Arccosh=relay.AcoshOp, Arcsin=relay.AsinOp, Arcsinh=relay.AsinhOp, Arctan=relay.AtanOp,
    Arctanh=relay.AtanhOp,
)  # fmt: skip
"""Functions that compute in floats; integers are cast to float32."""
_FORMULAS = {name.capitalize(): function for name, function in FUNCTIONS.items()}
_BINARY = named(
    "Add Subtract Multiply Maximum Minimum FloorDivide Power Equal NotEqual Greater Less GreaterEqual LessEqual Divide",
    Mod=relay.FloorModOp, TrueDivide=relay.DivideOp,
)  # fmt: skip
_OF_TRUTHS = {"Add": relay.LogicalOrOp, "Maximum": relay.LogicalOrOp, "Multiply": relay.LogicalAndOp,
              "Minimum": relay.LogicalAndOp}  # fmt: skip
_LOGIC = named("LogicalAnd LogicalOr LogicalXor LogicalNot")
_REDUCED = named("Sum Prod Mean Max Min Any All", Amax=relay.MaxOp, Amin=relay.MinOp)
_MERGED = {name: name for name in ("Add", "Multiply", "Maximum", "Minimum", "Subtract")} | {"Average": "Add"}


@op(*_ANY, *_FLOAT, *_FORMULAS)
def function(importer: Importer, node: Layer) -> SSAValue:
    x, name = node.x, node.operation
    if name == "Trunc" and not importer.is_float(x):
        return x
    x = importer.numbers(x) if name == "Square" else x if name in _ANY else importer.real(x)
    return _FORMULAS[name](Scalar(importer, x)).value if name in _FORMULAS else importer.call((_ANY | _FLOAT)[name], x)


@op("Round")
def round_(importer: Importer, node: Layer) -> SSAValue:
    """Import Round, with halves to even; integers are returned unchanged."""
    node.refuse({"decimals": 0})
    return Scalar(importer, node.x).to_even().value if importer.is_float(node.x) else node.x


def both(importer: Importer, node: Layer, first: int = 0) -> list[SSAValue]:
    """Two operands cast to the type in which Keras computes."""
    return importer.promoted(node.argument(first, "x1"), node.argument(first + 1, "x2"))


@op(*_BINARY)
def binary(importer: Importer, node: Layer) -> SSAValue:
    (a, b), name = both(importer, node), node.operation
    if name in ("Divide", "TrueDivide"):
        a, b = importer.real(a), importer.real(b)
    if name == "Power" and importer.is_float(a) and (power := importer.known(b)) is not None and power.ndim == 0:
        if plain := POWERS.get(float(power)):
            return plain(Scalar(importer, a)).value
    return _paired(importer, name, a, b)


def _paired(importer: Importer, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """A binary operator on two tensors of one type. On booleans, sums and maxima are `or`, products and minima are
    `and`; other operators compute in int32."""
    if importer.element(a) == i1 and (kind := _OF_TRUTHS.get(name)):
        return importer.call(kind, a, b)
    return importer.call(_BINARY[name], importer.numbers(a), importer.numbers(b))


@op(*_LOGIC)
def logic(importer: Importer, node: Layer) -> SSAValue:
    names = ["x"] if node.operation == "LogicalNot" else ["x1", "x2"]
    given = (importer.promoted(node.argument(place, name))[0] for place, name in enumerate(names))
    return importer.call(_LOGIC[node.operation], *(truths(importer, each) for each in given))


@op("Clip")
def clip(importer: Importer, node: Layer) -> SSAValue:
    given = [node.entry(name) for name in ("x_min", "x_max")]
    x, *bounds = importer.promoted(node.x, *(each for each in given if each is not None))
    return bounded(importer, x, *(None if each is None else bounds.pop(0) for each in given))


@op("Matmul", "Dot")
def matmul(importer: Importer, node: Layer) -> SSAValue:
    given = node.argument(0, "x1"), node.argument(1, "x2")
    a, b = importer.promoted(*given) if node.operation == "Dot" else importer.factors(*given)
    if node.operation == "Dot" and max(importer.rank(a), importer.rank(b)) > 2:
        raise node.unsupported(f"multiplies {a.type} by {b.type}", "use keras.ops.matmul")
    return product(importer, a, b)


@layer(*_MERGED)
def merged(importer: Importer, node: Layer) -> SSAValue:
    """Import a merging layer such as Add: all inputs combined; inputs of lower rank get axes of size 1 after the
    batch."""
    values = importer.promoted(*node.values())
    if node.kind == "Subtract" and len(values) != 2:
        raise node.malformed(f"subtracts {len(values)} tensors")
    most, shapes = max(map(importer.rank, values)), map(importer.shape, values)
    dims = [[*each[:1], *[1] * (most - len(each)), *each[1:]] for each in shapes]
    spread = map(importer.reshape, values, dims)
    found = reduce(lambda a, b: _paired(importer, _MERGED[node.kind], a, b), spread)
    return (Scalar(importer, importer.real(found)) / len(values)).value if node.kind == "Average" else found


@layer("Dot")
def dot(importer: Importer, node: Layer) -> SSAValue:
    """Import Dot: products summed along one axis of each input, for each index of the batch axis."""
    given, values = node.integers("axes"), node.values()
    if len(given) not in (1, 2):
        raise node.malformed(f"has the axes {given}")
    axes = [node.axis(each, importer.rank(x)) for each, x in zip((given[0], given[-1]), values, strict=True)]
    if node.flag("normalize"):
        pairs = zip(values, axes, strict=True)
        values = [importer.call(relay.L2NormalizeOp, x, axis=[axis], eps=1e-12) for x, axis in pairs]
    if axes == [1, 1] and all(importer.rank(each) == 2 for each in values):
        return importer.call(relay.SumOp, importer.call(relay.MultiplyOp, *values), axis=[1], keepdims=True)
    names: list[str] = []
    for letters, value, axis in zip(("cdef", "ghij"), values, axes, strict=True):
        own = "b" + letters[: len(importer.static(value)) - 1]
        names.append(own.replace(own[axis], "z"))
    rest = "".join(each for each in "".join(names) if each not in "bz")
    return einsum(importer, f"{','.join(names)}->b{rest}", values)


@op(*_REDUCED)
def reduction(importer: Importer, node: Layer) -> SSAValue:
    """Import a reduction: means are computed in floats, `any` and `all` on booleans; sums and products of integers in
    at least 32 bits."""
    x, name = node.x, node.operation
    x = importer.real(x) if name == "Mean" else truths(importer, x) if name in ("Any", "All") else x
    if node.entry("dtype") is not None:
        x = importer.cast(x, element_type(node.dtype()))
    elif name in ("Sum", "Prod") and not importer.is_float(x):
        dtype = importer.dtype(x)
        x = importer.cast(x, element_type(np.uint32 if dtype.kind == "u" else np.int32))
    kept = {"axis": node.axes(x), "keepdims": node.flag("keepdims")}
    return importer.call(_REDUCED[name], x, **kept) if importer.rank(x) else x


def _variance(importer: Importer, x: SSAValue, axes: list[int], keep: bool) -> SSAValue:
    mean = importer.call(relay.MeanOp, x, axis=axes, keepdims=True)
    return importer.call(relay.VarianceOp, x, mean, axis=axes, keepdims=keep)


_OF_FLOATS: dict[str, Callable[[Importer, SSAValue, list[int], bool], SSAValue]] = {
    "Logsumexp": logsumexp,
    "Norm": lambda i, x, axes, keep: norm(i, x, 2, lambda kind, each: i.call(kind, each, axis=axes, keepdims=keep)),
    "Std": lambda i, x, axes, keep: i.call(relay.SqrtOp, _variance(i, x, axes, keep)),
    "Var": _variance,
}


@op(*_OF_FLOATS)
def reduction_of_floats(importer: Importer, node: Layer) -> SSAValue:
    node.refuse({"ord": 2})
    x = importer.real(node.x)
    return _OF_FLOATS[node.operation](importer, x, node.axes(x), node.flag("keepdims"))


@op("Argmax", "Argmin")
def position(importer: Importer, node: Layer) -> SSAValue:
    """Import Argmax and Argmin: the index of the first largest or smallest element; without an axis, the index in the
    flattened tensor."""
    x, kind = node.x, relay.ArgmaxOp if node.operation == "Argmax" else relay.ArgminOp
    if node.entry("axis") is None:
        node.refuse({"keepdims": False})
        x = importer.reshape(x, [prod(importer.static(x))])
    return importer.call(kind, x, dtype=i32, axis=node.axes(x), keepdims=node.flag("keepdims"))


@op("Cumsum", "Cumprod")
def cumulative(importer: Importer, node: Layer) -> SSAValue:
    """Import Cumsum and Cumprod; without an axis, the tensor is flattened first."""
    kind = relay.CumsumOp if node.operation == "Cumsum" else relay.CumprodOp
    x, axis = or_flat(importer, node, node.x)
    x = importer.cast(x, element_type(node.dtype(importer.dtype(x))))
    return importer.call(kind, importer.numbers(x), axis=axis)


TABLE.update({
    "ops.Argsort": lambda i, node: i.call(relay.ArgsortOp, node.x, axis=node.along(node.x, -1), dtype=i32),
    "ops.Cast": lambda i, node: i.cast(node.x, element_type(node.dtype())),
    "ops.Einsum": lambda i, node: einsum(i, node.word("subscripts"), i.factors(*node.arguments)),
    "ops.OnesLike": lambda i, node: i.call(relay.OnesLikeOp, like(i, node)),
    "ops.Sort": lambda i, node: i.call(relay.SortOp, node.x, axis=node.along(node.x, -1)),
    "ops.TopK": lambda i, node: i.several(relay.TopkOp, node.x, k=node.integer("k"), axis=-1, dtype=i32),
    "ops.Where": lambda i, node: i.call(relay.WhereOp, truths(i, node.value(0, "condition")), *both(i, node, 1)),
    "ops.ZerosLike": lambda i, node: i.call(relay.ZerosLikeOp, like(i, node)),
    **{f"ops.{name}": lambda _, node: node.x for name in ("StopGradient", "Copy", "Identity")},
})  # fmt: skip
