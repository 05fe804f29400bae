"""Elementwise operations of `keras.ops`, and layers that merge tensors. Source: keras/src/ops, layers/merging."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import TensorOp
from relay.frontend.importing.formulas import Scalar, nearest_even, truths
from relay.frontend.importing.products import einsum, product
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Argument, Layer, is_list, is_value
from relay.frontend.keras.table import layer, op

_BY_NAME = {each.__name__: each for each in relay.Relay.operations if issubclass(each, TensorOp)}
_ANY: dict[str, type[TensorOp]] = {
    "Absolute": relay.AbsOp, "Abs": relay.AbsOp, "Negative": relay.NegativeOp, "Sign": relay.SignOp,
    **{name: _BY_NAME[f"{name}Op"] for name in ("Floor", "Ceil", "Trunc")},
}  # fmt: skip
"""Functions of numbers of any type."""
_OTHER = {"Arccos": "Acos", "Arccosh": "Acosh", "Arcsin": "Asin", "Arcsinh": "Asinh", "Arctan": "Atan",
          "Arctanh": "Atanh"}  # fmt: skip
_FLOAT: dict[str, type[TensorOp]] = {
    name: _BY_NAME[f"{_OTHER.get(name, name)}Op"]
    for name in [*"Cos Cosh Erf Exp Expm1 Log Log10 Log2 Rsqrt Sin Sinh Sqrt Tan Isnan Isinf Isfinite".split(), *_OTHER]
}
"""Functions of floats; integers are taken as float32."""
_FORMULAS: dict[str, Callable[[Scalar], Scalar]] = {
    "Log1p": lambda x: (x + 1.0).of(relay.LogOp),
    "Reciprocal": lambda x: x.number(1.0) / x,
    "Square": lambda x: x * x,
    "Exp2": lambda x: (x * math.log(2)).exp(),
}
_BINARY: dict[str, type[TensorOp]] = {
    "Add": relay.AddOp, "Subtract": relay.SubtractOp, "Multiply": relay.MultiplyOp, "Maximum": relay.MaximumOp,
    "Minimum": relay.MinimumOp, "FloorDivide": relay.FloorDivideOp, "Mod": relay.FloorModOp, "Power": relay.PowerOp,
    "Equal": relay.EqualOp, "NotEqual": relay.NotEqualOp, "Greater": relay.GreaterOp, "Less": relay.LessOp,
    "GreaterEqual": relay.GreaterEqualOp, "LessEqual": relay.LessEqualOp, "Divide": relay.DivideOp,
    "TrueDivide": relay.DivideOp,
}  # fmt: skip
_LOGIC: dict[str, type[TensorOp]] = {
    "LogicalAnd": relay.LogicalAndOp, "LogicalOr": relay.LogicalOrOp, "LogicalXor": relay.LogicalXorOp,
    "LogicalNot": relay.LogicalNotOp,
}  # fmt: skip


def both(importer: Importer, node: Layer) -> list[SSAValue]:
    """Two operands in the type that Keras computes in."""
    return importer.promoted(node.argument(0, "x1"), node.argument(1, "x2"))


@op(*_ANY)
def plain(importer: Importer, node: Layer) -> SSAValue:
    x, name = node.value(0, "x"), node.kind.removeprefix("ops.")
    if name in ("Floor", "Ceil", "Trunc"):
        x = importer.real(x)
    return importer.call(_ANY[name], x)


@op(*_FLOAT)
def function(importer: Importer, node: Layer) -> SSAValue:
    return importer.call(_FLOAT[node.kind.removeprefix("ops.")], importer.real(node.value(0, "x")))


@op(*_FORMULAS)
def formula(importer: Importer, node: Layer) -> SSAValue:
    name, x = node.kind.removeprefix("ops."), node.value(0, "x")
    x = x if name == "Square" else importer.real(x)
    return _FORMULAS[name](Scalar(importer, x)).value


@op("Round")
def round_(importer: Importer, node: Layer) -> SSAValue:
    """Halves to even."""
    node.refuse({"decimals": 0})
    return nearest_even(importer, importer.real(node.value(0, "x")))


@op(*_BINARY)
def binary(importer: Importer, node: Layer) -> SSAValue:
    a, b = both(importer, node)
    name = node.kind.removeprefix("ops.")
    if name in ("Divide", "TrueDivide"):
        a, b = importer.real(a), importer.real(b)
    if name == "Power" and importer.is_float(a) and (power := importer.known(b)) is not None and power.ndim == 0:
        x = Scalar(importer, a)
        if float(power) in (0.5, 2.0):
            return (x * x if power == 2 else x.of(relay.SqrtOp)).value
    if importer.element(a) == i1:
        a, b = (importer.cast(each, element_type(np.uint8)) for each in (a, b))
    return importer.call(_BINARY[name], a, b)


@op(*_LOGIC)
def logic(importer: Importer, node: Layer) -> SSAValue:
    names = ["x"] if node.kind == "ops.LogicalNot" else ["x1", "x2"]
    given = [node.value(place, name) for place, name in enumerate(names)]
    return importer.call(_LOGIC[node.kind.removeprefix("ops.")], *(truths(importer, each) for each in given))


@op("Where")
def where(importer: Importer, node: Layer) -> SSAValue:
    condition = truths(importer, node.value(0, "condition"))
    given = importer.promoted(node.argument(1, "x1"), node.argument(2, "x2"))
    return importer.call(relay.WhereOp, condition, *given)


@op("Clip")
def clip(importer: Importer, node: Layer) -> SSAValue:
    x, low, high = node.value(0, "x"), node.config.get("x_min"), node.config.get("x_max")
    for kind, bound in ((relay.MaximumOp, low), (relay.MinimumOp, high)):
        if bound is not None:
            x, limit = importer.promoted(x, bound)
            x = importer.call(kind, x, limit)
    return x


@op("Cast")
def cast(importer: Importer, node: Layer) -> SSAValue:
    return importer.cast(node.value(0, "x"), element_type(np.dtype(node.word("dtype"))))


@op("StopGradient", "Copy", "Identity")
def identity(importer: Importer, node: Layer) -> SSAValue:
    return node.value(0, "x")


@op("ZerosLike", "OnesLike")
def like(importer: Importer, node: Layer) -> SSAValue:
    op = relay.ZerosLikeOp if node.kind == "ops.ZerosLike" else relay.OnesLikeOp
    return importer.call(op, node.value(0, "x"))


@op("Matmul", "Dot")
def matmul(importer: Importer, node: Layer) -> SSAValue:
    a, b = both(importer, node)
    if node.kind == "ops.Dot" and max(importer.rank(a), importer.rank(b)) > 2:
        raise node.unsupported(f"multiplies {a.type} by {b.type}", "use keras.ops.matmul")
    return product(importer, a, b)


@op("Einsum")
def contraction(importer: Importer, node: Layer) -> SSAValue:
    values = importer.promoted(*node.arguments)
    for value in values:
        node.static(value)
    return einsum(importer, node.word("subscripts"), values)


def _folded(importer: Importer, node: Layer, op: type[TensorOp]) -> SSAValue:
    """All inputs together; those of a lower rank get axes of 1 behind the batch."""
    values = importer.promoted(*node.values())
    most = max(importer.rank(value) for value in values)
    spread: list[SSAValue] = []
    for value in values:
        dims = importer.shape(value)
        spread.append(importer.reshape(value, [*dims[:1], *[1] * (most - len(dims)), *dims[1:]]))
    return reduce(lambda a, b: importer.call(op, a, b), spread)


_MERGED: dict[str, type[TensorOp]] = {
    "Add": relay.AddOp, "Multiply": relay.MultiplyOp, "Maximum": relay.MaximumOp, "Minimum": relay.MinimumOp,
    "Average": relay.AddOp, "Subtract": relay.SubtractOp,
}  # fmt: skip


@layer(*_MERGED)
def merged(importer: Importer, node: Layer) -> SSAValue:
    values = node.values()
    if node.kind == "Subtract" and len(values) != 2:
        raise node.malformed(f"subtracts {len(values)} tensors")
    found = _folded(importer, node, _MERGED[node.kind])
    if node.kind != "Average":
        return found
    found = importer.real(found)
    return importer.call(relay.DivideOp, found, importer.like(len(values), found))


@layer("Dot")
def dot(importer: Importer, node: Layer) -> SSAValue:
    """The products along one axis of each, for each index of the first axis."""
    a, b = node.values()
    given = node.integers("axes")
    if len(given) not in (1, 2):
        raise node.malformed(f"has the axes {given}")
    left, right = (node.axis(each, importer.rank(x)) for each, x in zip((given[0], given[-1]), (a, b), strict=True))
    if node.flag("normalize"):
        a, b = (_unit(importer, x, axis) for x, axis in ((a, left), (b, right)))
    if importer.rank(a) == importer.rank(b) == 2 and left == right == 1:
        total = importer.call(relay.MultiplyOp, a, b)
        return importer.call(relay.SumOp, total, axis=[1], keepdims=True)
    for value in (a, b):
        node.static(value)
    names = ["b" + "cdef"[: importer.rank(a) - 1], "b" + "ghij"[: importer.rank(b) - 1]]
    names = [own.replace(own[at], "z") for own, at in zip(names, (left, right), strict=True)]
    rest = "".join(each for own in names for each in own if each not in "bz")
    return einsum(importer, f"{names[0]},{names[1]}->b{rest}", [a, b])


def _unit(importer: Importer, x: SSAValue, axis: int) -> SSAValue:
    data = Scalar(importer, x)
    total = Scalar(importer, importer.call(relay.SumOp, (data * data).value, axis=[axis], keepdims=True))
    return (data * total.of(relay.MaximumOp, 1e-12).of(relay.RsqrtOp)).value


def constant_or_value(importer: Importer, node: Layer, given: Argument) -> SSAValue:
    """A tensor, or one of the numbers that a call holds."""
    if is_value(given):
        return given
    if isinstance(given, np.ndarray | int | float) or is_list(given):
        array = np.asarray(given)
        return importer.unnamed(array.astype(np.float32) if array.dtype == np.float64 else array)
    raise node.malformed(f"has the operand {str(given)[:80]!r}")
