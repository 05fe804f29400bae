"""Imports elementwise operators: functions, arithmetic, comparisons, logic, bitwise operators, activations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BoolAttr, f32, f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import dtype_of, element_type
from relay.dialects.op import TensorOp
from relay.frontend.importing import functions
from relay.frontend.importing.formulas import Scalar, bounded, named, truths
from relay.frontend.importing.functions import ACTIVATIONS, FUNCTIONS, POWERS, atan2, glu, log1p, shrunk
from relay.frontend.importing.products import scaled
from relay.frontend.importing.tensors import Property
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, is_value
from relay.frontend.torch.table import Result, aten, op

_SAME = named("abs bitwise_not relu sign", neg=relay.NegativeOp, sgn=relay.SignOp)
_ROUNDED = named("ceil floor trunc")
"""Rounding functions, which leave integers unchanged."""
_FLOAT = named(
    "acos acosh asin asinh atan atanh cos cosh erf exp expm1 log log10 log2 rsqrt sigmoid sin sinh sqrt tan tanh"
)
"""Functions that compute in floats; integers are cast to float32."""
_UNARY = _SAME | _ROUNDED | _FLOAT
_BINARY = named(
    "bitwise_and bitwise_or bitwise_xor floor_divide maximum minimum",
    fmod=relay.ModOp, mul=relay.MultiplyOp, remainder=relay.FloorModOp,
    __and__=relay.BitwiseAndOp, __or__=relay.BitwiseOrOp, __xor__=relay.BitwiseXorOp,
)  # fmt: skip
_EXTREMES = {"max": relay.MaximumOp, "min": relay.MinimumOp}
_COMPARED: dict[str, type[TensorOp]] = {
    "eq": relay.EqualOp, "ge": relay.GreaterEqualOp, "gt": relay.GreaterOp, "le": relay.LessEqualOp,
    "lt": relay.LessOp, "ne": relay.NotEqualOp,
}  # fmt: skip
_LOGIC = named("logical_and logical_or logical_xor logical_not")
_TESTED = named("isnan isinf isfinite")
_OF_BOOLEANS: dict[type[TensorOp], type[TensorOp]] = {
    relay.BitwiseAndOp: relay.LogicalAndOp, relay.BitwiseOrOp: relay.LogicalOrOp,
    relay.BitwiseXorOp: relay.LogicalXorOp,
    relay.MultiplyOp: relay.LogicalAndOp, relay.MaximumOp: relay.LogicalOrOp, relay.MinimumOp: relay.LogicalAndOp,
    relay.AddOp: relay.LogicalOrOp, relay.BitwiseNotOp: relay.LogicalNotOp,
    relay.MaxOp: relay.AnyOp, relay.MinOp: relay.AllOp,
}  # fmt: skip
"""The ops that replace arithmetic ops on booleans."""


def name_of(node: Node) -> str:
    """The operator's name without dialect and overload: `add` for `aten.add_.Tensor`."""
    name = node.packet.partition(".")[2]
    return name if name.endswith("__") else name.removesuffix("_")


def given(node: Node, name: str, default: float | None = None) -> SSAValue | float:
    """An argument that is a tensor or a number."""
    found = node.arguments.get(name)
    return found if is_value(found) else node.number_of(name, default)


def both(importer: Importer, node: Node, first: str = "self", second: str = "other") -> tuple[SSAValue, SSAValue]:
    """Two operands in the type in which PyTorch computes."""
    a, b = given(node, first), given(node, second)
    element = importer.promoted(a, b)
    return importer.operand(a, element), importer.operand(b, element)


def computed(importer: Importer, kind: type[TensorOp], *operands: SSAValue, **properties: Property) -> SSAValue:
    """Append an op of class `kind`; on booleans, the op that replaces it according to `_OF_BOOLEANS`."""
    if importer.element(operands[0]) == i1:
        kind = _OF_BOOLEANS.get(kind, kind)
    return importer.call(kind, *operands, **properties)


@aten(*_UNARY)
def unary(importer: Importer, node: Node) -> SSAValue:
    x, name = node.value("self"), name_of(node)
    if name in _ROUNDED and not importer.is_float(x):
        return x
    if name in ("sign", "sgn") and importer.is_float(x):  # PyTorch's sign of NaN is 0
        x = importer.call(relay.WhereOp, importer.call(relay.IsnanOp, x), importer.like(0, x), x)
    return computed(importer, _UNARY[name], importer.real(x) if name in _FLOAT else x)


@aten(*_BINARY, "max.other", "min.other")
def binary(importer: Importer, node: Node) -> SSAValue:
    return computed(importer, (_BINARY | _EXTREMES)[name_of(node)], *both(importer, node))


@aten("atan2")
def angle(importer: Importer, node: Node) -> SSAValue:
    y, x = (Scalar(importer, importer.real(each)) for each in both(importer, node))
    return atan2(y, x).value


@aten("add", "sub", "rsub")
def sum_(importer: Importer, node: Node) -> SSAValue:
    """Import add, sub and rsub: `self + alpha * other`; `rsub` swaps the operands."""
    a, b = both(importer, node)
    if name_of(node) == "rsub":
        a, b = b, a
    b = scaled(importer, b, node.number_of("alpha", 1))
    return computed(importer, relay.AddOp if name_of(node) == "add" else relay.SubtractOp, a, b)


@aten(*_COMPARED)
def comparison(importer: Importer, node: Node) -> SSAValue:
    a, b = both(importer, node)
    if importer.element(a) == i1:
        a, b = (importer.cast(each, element_type(np.uint8)) for each in (a, b))
    return importer.call(_COMPARED[name_of(node)], a, b)


@aten(*_LOGIC)
def logic(importer: Importer, node: Node) -> SSAValue:
    operands = (truths(importer, node.value(name)) for name in ("self", "other") if node.has(name))
    return importer.call(_LOGIC[name_of(node)], *operands)


@aten("div", "divide", "true_divide")
def divide(importer: Importer, node: Node) -> SSAValue:
    """Import a division, computed in floats, except integers with a `rounding_mode` of floor or trunc."""
    a, b = both(importer, node)
    mode = node.word("rounding_mode")
    if mode == "floor":
        return importer.call(relay.FloorDivideOp, a, b)
    if mode == "trunc" and not importer.is_float(a):
        return importer.call(relay.DivideOp, a, b)
    quotient = importer.call(relay.DivideOp, importer.real(a), importer.real(b))
    return importer.call(relay.TruncOp, quotient) if mode == "trunc" else quotient


@aten(*_TESTED)
def tested(importer: Importer, node: Node) -> SSAValue:
    """Import a test such as isnan; integers are finite numbers."""
    x, name = node.value("self"), name_of(node)
    if importer.is_float(x):
        return importer.call(_TESTED[name], x)
    return importer.filled(importer.unnamed(np.asarray(name == "isfinite")), importer.lengths(x))


@aten("pow")
def power(importer: Importer, node: Node) -> SSAValue:
    """Import pow; exponents such as 2 and 0.5 become products and roots."""
    a, b = both(importer, node, "self", "exponent")
    exponent = node.arguments.get("exponent")
    if importer.is_float(a) and not is_value(exponent) and (plain := POWERS.get(node.real("exponent"))):
        return plain(Scalar(importer, a)).value
    return importer.call(relay.PowerOp, a, b)


def _soft(x: Scalar) -> Scalar:
    """softplus, `max(x, 0) + log1p(exp(-|x|))`."""
    return x.of(relay.MaximumOp, 0.0) + log1p((-x.of(relay.AbsOp)).exp())


@aten("round")
def round_(importer: Importer, node: Node) -> SSAValue:
    """Import round with halves to even, to `decimals` digits after the decimal point."""
    x, decimals = node.value("self"), node.integer("decimals", 0)
    if not importer.is_float(x):
        if decimals < 0:
            raise node.unsupported(f"the argument decimals is {decimals} for {x.type}", "cast self to float")
        return x
    data, factor = Scalar(importer, x), 10.0 ** abs(decimals)
    if not decimals:
        return data.to_even().value
    return ((data * factor).to_even() / factor if decimals > 0 else (data / factor).to_even() * factor).value


@aten("clamp", "clip", "clamp_min", "clamp_max", "hardtanh", "relu6")
def clamp(importer: Importer, node: Node) -> SSAValue:
    """Import clamp and the like; constant bounds are properties, and if the bounds are in the wrong order the upper one
    is used."""
    if "hardtanh" in node.packet or "relu6" in node.packet:
        low, high = node.number_of("min_val", -1), node.number_of("max_val", 1)
        low, high = (0, 6) if "relu6" in node.packet else (low, high)
        return importer.clip(node.value("self"), low, high)
    x = node.value("self")
    low, high = (given(node, name) if node.has(name) else None for name in ("min", "max"))
    element = importer.promoted(x, *(each for each in (low, high) if each is not None))
    x = importer.cast(x, element)
    if isinstance(low, int | float) and isinstance(high, int | float) and low <= high:
        if dtype_of(element).isbuiltin == 1:
            return importer.clip(x, low, high)
    return bounded(importer, x, *(None if each is None else importer.operand(each, element) for each in (low, high)))


@aten("where")
def where(importer: Importer, node: Node) -> SSAValue:
    condition = truths(importer, node.value("condition"))
    return importer.call(relay.WhereOp, condition, *both(importer, node, "self", "other"))


@aten("masked_fill")
def masked_fill(importer: Importer, node: Node) -> SSAValue:
    x = node.value("self")
    fill = importer.operand(given(node, "value"), importer.element(x))
    return importer.call(relay.WhereOp, node.value("mask"), fill, x)


@aten("addcmul", "addcdiv")
def add_product(importer: Importer, node: Node) -> SSAValue:
    kind = relay.MultiplyOp if name_of(node) == "addcmul" else relay.DivideOp
    found = importer.call(kind, node.value("tensor1"), node.value("tensor2"))
    return importer.call(relay.AddOp, node.value("self"), scaled(importer, found, node.number_of("value", 1)))


@aten("lerp")
def lerp(importer: Importer, node: Node) -> SSAValue:
    a, b = (Scalar(importer, node.value(name)) for name in ("self", "end"))
    weight = importer.operand(given(node, "weight"), importer.element(a.value))
    return (a + (b - a) * Scalar(importer, weight)).value


def _softplus(x: Scalar, node: Node) -> Scalar:
    """`log(1 + exp(beta * x)) / beta`; x itself where `beta * x` is above the threshold."""
    beta, threshold = node.real("beta", 1.0), node.real("threshold", 20.0)
    inner = x * beta
    return (inner > threshold).choose(x, _soft(inner) / beta, x)


def _elu(x: Scalar, node: Node) -> Scalar:
    """`scale * (x if x > 0 else alpha * expm1(x * input_scale))`."""
    scale = node.real("scale", 1.0)
    low = (x * node.real("input_scale", 1.0)).of(relay.Expm1Op) * node.real("alpha", 1.0)
    return (x > 0.0).choose(x, low, x) * scale


_FORMULAS: dict[str, Callable[[Scalar, Node], Scalar]] = {
    **{name.replace("_", ""): lambda x, n, f=f: f(x) for name, f in (ACTIVATIONS | FUNCTIONS).items()},
    "celu": lambda x, n: (x > 0.0).choose(x, (x / n.real("alpha", 1.0)).of(relay.Expm1Op) * n.real("alpha", 1.0), x),
    "elu": _elu,
    "erfc": lambda x, n: -x.of(relay.ErfOp) + 1.0,
    "frac": lambda x, n: x - x.of(relay.TruncOp),
    "gelu": lambda x, n: x.of(relay.GeluOp, approximate=BoolAttr.from_bool(n.word("approximate") == "tanh")),
    "hardshrink": lambda x, n: (x < -n.real("lambd", 0.5)).choose(x, (x > n.real("lambd", 0.5)).choose(x, 0.0, x), x),
    "leaky_relu": lambda x, n: x.of(relay.LeakyReluOp, alpha=n.real("negative_slope", 0.01)),
    "log_sigmoid": lambda x, n: -_soft(-x),
    "mish": lambda x, n: x * _soft(x).of(relay.TanhOp),
    "softplus": _softplus,
    "softshrink": lambda x, n: shrunk(x, n.real("lambd", 0.5), n.real("lambd", 0.5)),
    "threshold": lambda x, n: (x > n.real("threshold")).choose(x, n.real("value"), x),
}


@aten(*_FORMULAS)
def formula(importer: Importer, node: Node) -> SSAValue:
    """Import an operator by its formula; f16 and narrower floats are computed in float32, and so are integers, except
    for squares and thresholds."""
    x, name = node.value("self"), name_of(node)
    element: Attribute | None = None
    if importer.is_float(x):
        element = importer.element(x)
        x = importer.cast(x, f32) if importer.dtype(x).itemsize < 4 else x
    elif name not in ("square", "threshold"):
        x = importer.real(x)
    found = _FORMULAS[name](Scalar(importer, x), node).value
    return found if element is None else importer.cast(found, element)


@aten("prelu", "_prelu_kernel")
def prelu(importer: Importer, node: Node) -> SSAValue:
    """Import prelu with one slope, or one per channel."""
    x, slope = node.value("self"), node.value("weight")
    if importer.rank(slope) == 1 and importer.rank(x) > 1:
        slope = importer.reshape(slope, [-1, *[1] * (importer.rank(x) - 2)])
    return functions.prelu(Scalar(importer, x), Scalar(importer, slope)).value


@aten("glu")
def gated(importer: Importer, node: Node) -> SSAValue:
    axis = node.axis(node.integer("dim", -1), len(node.static("self")))
    return glu(Scalar(importer, node.value("self")), axis).value


_OF_SIZES = named(
    "ceil floor trunc", add=relay.AddOp, sub=relay.SubtractOp, mul=relay.MultiplyOp, floordiv=relay.FloorDivideOp,
    mod=relay.FloorModOp, and_=relay.LogicalAndOp, or_=relay.LogicalOrOp, pow=relay.PowerOp, neg=relay.NegativeOp,
    truediv=relay.DivideOp, sym_max=relay.MaximumOp, sym_min=relay.MinimumOp, sym_not=relay.LogicalNotOp, **_COMPARED,
)  # fmt: skip
_KNOWN_SIZES: dict[str, Callable[..., Any]] = {
    "sym_max": max, "sym_min": min, "sym_not": operator.not_, "sym_int": int, "sym_float": float,
    "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc,
}  # fmt: skip
"""The Python functions that compute known sizes, by operator; operators that are not listed are functions of Python's
`operator` module."""


@op(*(f"_operator.{name}" for name in _OF_SIZES.keys() - _KNOWN_SIZES.keys()),
    *(f"{'torch' if name.startswith('sym') else 'math'}.{name}" for name in _KNOWN_SIZES))  # fmt: skip
def of_sizes(importer: Importer, node: Node) -> Result:
    """Import arithmetic of sizes; known sizes are computed at import."""
    name, given = node.target.rpartition(".")[2], node.positional
    if not any(is_value(each) for each in given):
        return (_KNOWN_SIZES.get(name) or getattr(operator, name))(*given)
    values = [each if is_value(each) else importer.unnamed(np.asarray(each, np.int64)) for each in given]
    if name in ("truediv", "sym_float"):
        values = [importer.cast(each, f64) for each in values]
    found = importer.call(_OF_SIZES[name], *values) if name in _OF_SIZES else values[0]
    return importer.cast(found, i64) if name in ("ceil", "floor", "trunc", "sym_int") else found
