"""Elementwise operations of `keras.ops`, and layers that merge tensors. Source: keras/src/ops, layers/merging."""

from __future__ import annotations

from functools import reduce

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import TensorOp
from relay.frontend.importing.formulas import Scalar, named, nearest_even, truths
from relay.frontend.importing.functions import FUNCTIONS, POWERS
from relay.frontend.importing.products import einsum, product
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Argument, Layer, is_list, is_value
from relay.frontend.keras.table import TABLE, layer, op

_ANY = named("Abs Negative Sign", Absolute=relay.AbsOp)
"""Functions of numbers of any type."""
_FLOAT = named(
    "Ceil Cos Cosh Erf Exp Expm1 Floor Isfinite Isinf Isnan Log Log10 Log2 Rsqrt Sin Sinh Sqrt Tan Trunc",
    Arccos=relay.AcosOp, Arccosh=relay.AcoshOp, Arcsin=relay.AsinOp, Arcsinh=relay.AsinhOp, Arctan=relay.AtanOp,
    Arctanh=relay.AtanhOp,
)  # fmt: skip
"""Functions of floats; integers are taken as float32."""
_FORMULAS = {name.capitalize(): function for name, function in FUNCTIONS.items()}
_BINARY = named(
    "Add Subtract Multiply Maximum Minimum FloorDivide Power Equal NotEqual Greater Less GreaterEqual LessEqual Divide",
    Mod=relay.FloorModOp, TrueDivide=relay.DivideOp,
)  # fmt: skip
_LOGIC = named("LogicalAnd LogicalOr LogicalXor LogicalNot")


def both(importer: Importer, node: Layer) -> list[SSAValue]:
    """Two operands in the type that Keras computes in."""
    return importer.promoted(node.argument(0, "x1"), node.argument(1, "x2"))


@op(*_ANY, *_FLOAT, *_FORMULAS)
def function(importer: Importer, node: Layer) -> SSAValue:
    x, name = node.x, node.kind.removeprefix("ops.")
    x = x if name in _ANY or name == "Square" else importer.real(x)
    if name in _FORMULAS:
        return _FORMULAS[name](Scalar(importer, x)).value
    return importer.call((_ANY | _FLOAT)[name], x)


@op("Round")
def round_(importer: Importer, node: Layer) -> SSAValue:
    """Halves to even."""
    node.refuse({"decimals": 0})
    return nearest_even(importer, importer.real(node.x))


@op(*_BINARY)
def binary(importer: Importer, node: Layer) -> SSAValue:
    a, b = both(importer, node)
    name = node.kind.removeprefix("ops.")
    if name in ("Divide", "TrueDivide"):
        a, b = importer.real(a), importer.real(b)
    if name == "Power" and importer.is_float(a) and (power := importer.known(b)) is not None and power.ndim == 0:
        if plain := POWERS.get(float(power)):
            return plain(Scalar(importer, a)).value
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
    x, low, high = node.x, node.config.get("x_min"), node.config.get("x_max")
    for kind, bound in ((relay.MaximumOp, low), (relay.MinimumOp, high)):
        if bound is not None:
            x, limit = importer.promoted(x, bound)
            x = importer.call(kind, x, limit)
    return x


TABLE.update({
    "ops.Cast": lambda importer, node: importer.cast(node.x, element_type(np.dtype(node.word("dtype")))),
    "ops.ZerosLike": lambda importer, node: importer.call(relay.ZerosLikeOp, node.x),
    "ops.OnesLike": lambda importer, node: importer.call(relay.OnesLikeOp, node.x),
    **{f"ops.{name}": lambda importer, node: node.x for name in ("StopGradient", "Copy", "Identity")},
})  # fmt: skip


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


_MERGED = named("Add Multiply Maximum Minimum Subtract", Average=relay.AddOp)


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
        pairs = ((a, left), (b, right))
        a, b = (importer.call(relay.L2NormalizeOp, x, axis=[axis], eps=1e-12) for x, axis in pairs)
    if importer.rank(a) == importer.rank(b) == 2 and left == right == 1:
        total = importer.call(relay.MultiplyOp, a, b)
        return importer.call(relay.SumOp, total, axis=[1], keepdims=True)
    for value in (a, b):
        node.static(value)
    names = ["b" + "cdef"[: importer.rank(a) - 1], "b" + "ghij"[: importer.rank(b) - 1]]
    names = [own.replace(own[at], "z") for own, at in zip(names, (left, right), strict=True)]
    rest = "".join(each for own in names for each in own if each not in "bz")
    return einsum(importer, f"{names[0]},{names[1]}->b{rest}", [a, b])


def constant_or_value(importer: Importer, node: Layer, given: Argument) -> SSAValue:
    """A tensor, or one of the numbers that a call holds."""
    if is_value(given):
        return given
    if isinstance(given, np.ndarray | int | float) or is_list(given):
        array = np.asarray(given)
        return importer.unnamed(array.astype(np.float32) if array.dtype == np.float64 else array)
    raise node.malformed(f"has the operand {str(given)[:80]!r}")
