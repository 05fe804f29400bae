"""Elementwise operators: functions, arithmetic, comparisons, logic, bits, activations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import dtype_of, element_type
from relay.dialects.op import TensorOp
from relay.frontend.importing.formulas import Scalar, elu, gelu, nearest_even
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, is_value
from relay.frontend.torch.table import Result, aten, op

_SAME: dict[str, type[TensorOp]] = {
    "abs": relay.AbsOp, "bitwise_not": relay.BitwiseNotOp, "neg": relay.NegativeOp, "relu": relay.ReluOp,
    "sign": relay.SignOp, "sgn": relay.SignOp,
}  # fmt: skip
_ROUNDED: dict[str, type[TensorOp]] = {"ceil": relay.CeilOp, "floor": relay.FloorOp, "trunc": relay.TruncOp}
"""Nothing to do for integers."""
_FLOAT: dict[str, type[TensorOp]] = {
    "acos": relay.AcosOp, "acosh": relay.AcoshOp, "asin": relay.AsinOp, "asinh": relay.AsinhOp, "atan": relay.AtanOp,
    "atanh": relay.AtanhOp, "cos": relay.CosOp, "cosh": relay.CoshOp, "erf": relay.ErfOp, "exp": relay.ExpOp,
    "expm1": relay.Expm1Op, "log": relay.LogOp, "log10": relay.Log10Op, "log2": relay.Log2Op, "rsqrt": relay.RsqrtOp,
    "sigmoid": relay.SigmoidOp, "sin": relay.SinOp, "sinh": relay.SinhOp, "sqrt": relay.SqrtOp, "tan": relay.TanOp,
    "tanh": relay.TanhOp,
}  # fmt: skip
"""Integers are taken as float32."""
_BINARY: dict[str, type[TensorOp]] = {
    "bitwise_and": relay.BitwiseAndOp, "bitwise_or": relay.BitwiseOrOp,
    "bitwise_xor": relay.BitwiseXorOp, "floor_divide": relay.FloorDivideOp, "fmod": relay.ModOp,
    "maximum": relay.MaximumOp, "minimum": relay.MinimumOp, "mul": relay.MultiplyOp, "remainder": relay.FloorModOp,
    "__and__": relay.BitwiseAndOp, "__or__": relay.BitwiseOrOp, "__xor__": relay.BitwiseXorOp,
}  # fmt: skip
_COMPARED: dict[str, type[TensorOp]] = {
    "eq": relay.EqualOp, "ge": relay.GreaterEqualOp, "gt": relay.GreaterOp, "le": relay.LessEqualOp,
    "lt": relay.LessOp, "ne": relay.NotEqualOp,
}  # fmt: skip
_LOGIC: dict[str, type[TensorOp]] = {
    "logical_and": relay.LogicalAndOp, "logical_or": relay.LogicalOrOp, "logical_xor": relay.LogicalXorOp,
}  # fmt: skip
_OF_BOOLEANS: dict[type[TensorOp], type[TensorOp]] = {
    relay.BitwiseAndOp: relay.LogicalAndOp, relay.BitwiseOrOp: relay.LogicalOrOp,
    relay.BitwiseXorOp: relay.LogicalXorOp,
    relay.MultiplyOp: relay.LogicalAndOp, relay.MaximumOp: relay.LogicalOrOp, relay.MinimumOp: relay.LogicalAndOp,
    relay.AddOp: relay.LogicalOrOp, relay.BitwiseNotOp: relay.LogicalNotOp,
}  # fmt: skip
"""Operators on booleans."""


def name_of(node: Node) -> str:
    """The operator's name without its dialect and overload; `add` of `aten.add_.Tensor`."""
    name = node.packet.partition(".")[2]
    return name if name.endswith("__") else name.removesuffix("_")


def either(names: dict[str, Any]) -> list[str]:
    """The operators, and those that write their result to the first operand."""
    return [*names, *(f"{name}_" for name in names if not name.startswith("__"))]


def given(node: Node, name: str, default: float | None = None) -> SSAValue | float:
    """A tensor or a number."""
    found = node.arguments.get(name)
    return found if is_value(found) else node.number_of(name, default)


def both(importer: Importer, node: Node, first: str = "self", second: str = "other") -> tuple[SSAValue, SSAValue]:
    """Two operands in the type that PyTorch computes in."""
    a, b = given(node, first), given(node, second)
    element = importer.promoted(a, b)
    return importer.operand(a, element), importer.operand(b, element)


def computed(importer: Importer, kind: type[TensorOp], *operands: SSAValue) -> SSAValue:
    """An op, on booleans the one that means the same."""
    if importer.element(operands[0]) == i1:
        kind = _OF_BOOLEANS.get(kind, kind)
    return importer.call(kind, *operands)


@aten(*either(_SAME))
def unary(importer: Importer, node: Node) -> SSAValue:
    return computed(importer, _SAME[name_of(node)], node.value("self"))


@aten(*either(_ROUNDED))
def rounded(importer: Importer, node: Node) -> SSAValue:
    x = node.value("self")
    return importer.call(_ROUNDED[name_of(node)], x) if importer.is_float(x) else x


@aten(*either(_FLOAT))
def unary_of_floats(importer: Importer, node: Node) -> SSAValue:
    return importer.call(_FLOAT[name_of(node)], importer.real(node.value("self")))


@aten(*either(_BINARY))
def binary(importer: Importer, node: Node) -> SSAValue:
    return computed(importer, _BINARY[name_of(node)], *both(importer, node))


@aten("atan2")
def angle(importer: Importer, node: Node) -> SSAValue:
    """`atan(y / x)`, half a turn on or back where x is negative, a quarter turn where it is 0."""
    y, x = (Scalar(importer, importer.real(each)) for each in both(importer, node))
    near, half, none = (y / x).of(relay.AtanOp), x.number(math.pi), x.number(0.0)
    turn = (y < 0.0).choose(-half, half, x)
    straight = (y < 0.0).choose(-math.pi / 2, (y > 0.0).choose(math.pi / 2, none, x), x)
    behind = (x < 0.0).choose(near + turn, near, x)
    return x.of(relay.EqualOp, 0.0).choose(straight, behind, x).value


@aten("add", "sub", "add_", "sub_", "rsub")
def sum_(importer: Importer, node: Node) -> SSAValue:
    """`self + alpha * other`; `rsub` has the operands exchanged."""
    a, b = both(importer, node)
    alpha = node.number_of("alpha", 1)
    if name_of(node) == "rsub":
        a, b = b, a
    if alpha != 1:
        b = importer.call(relay.MultiplyOp, b, importer.like(alpha, b))
    return computed(importer, relay.AddOp if name_of(node) == "add" else relay.SubtractOp, a, b)


@aten(*either(_COMPARED))
def comparison(importer: Importer, node: Node) -> SSAValue:
    a, b = both(importer, node)
    if importer.element(a) == i1:
        a, b = (importer.cast(each, element_type(np.uint8)) for each in (a, b))
    return importer.call(_COMPARED[name_of(node)], a, b)


def truths(importer: Importer, value: SSAValue) -> SSAValue:
    """Which elements are not 0."""
    if importer.element(value) == i1:
        return value
    return importer.call(relay.NotEqualOp, value, importer.like(0, value))


@aten(*either(_LOGIC))
def logic(importer: Importer, node: Node) -> SSAValue:
    a, b = (truths(importer, node.value(name)) for name in ("self", "other"))
    return importer.call(_LOGIC[name_of(node)], a, b)


@aten("logical_not", "logical_not_")
def logical_not(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.LogicalNotOp, truths(importer, node.value("self")))


@aten("div", "div_", "divide", "true_divide")
def divide(importer: Importer, node: Node) -> SSAValue:
    """Floats, unless `rounding_mode` is floor or trunc, which keep integers."""
    a, b = both(importer, node)
    mode = node.word("rounding_mode")
    if mode == "floor":
        return importer.call(relay.FloorDivideOp, a, b)
    if mode == "trunc" and not importer.is_float(a):
        return importer.call(relay.DivideOp, a, b)
    quotient = importer.call(relay.DivideOp, importer.real(a), importer.real(b))
    return importer.call(relay.TruncOp, quotient) if mode == "trunc" else quotient


@aten("isnan", "isinf", "isfinite")
def tested(importer: Importer, node: Node) -> SSAValue:
    """Integers are finite numbers."""
    x, name = node.value("self"), name_of(node)
    if not importer.is_float(x):
        dims = [importer.size(x, axis) for axis in range(importer.rank(x))]
        return importer.filled(importer.unnamed(np.asarray(name == "isfinite")), dims)
    kinds: dict[str, type[TensorOp]] = {
        "isnan": relay.IsnanOp, "isinf": relay.IsinfOp, "isfinite": relay.IsfiniteOp,
    }  # fmt: skip
    return importer.call(kinds[name], x)


@aten("pow", "pow_")
def power(importer: Importer, node: Node) -> SSAValue:
    """Squares and roots are products and roots."""
    a, b = both(importer, node, "self", "exponent")
    exponent = node.arguments.get("exponent")
    if importer.is_float(a) and not is_value(exponent):
        match node.real("exponent"):
            case 0.5:
                return importer.call(relay.SqrtOp, a)
            case 1.0:
                return a
            case 2.0:
                return importer.call(relay.MultiplyOp, a, a)
            case 3.0:
                return importer.call(relay.MultiplyOp, importer.call(relay.MultiplyOp, a, a), a)
            case -0.5:
                return importer.call(relay.RsqrtOp, a)
            case _:
                pass
    return importer.call(relay.PowerOp, a, b)


@aten("square")
def square(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.MultiplyOp, node.value("self"), node.value("self"))


@aten("reciprocal", "reciprocal_")
def reciprocal(importer: Importer, node: Node) -> SSAValue:
    x = importer.real(node.value("self"))
    return importer.call(relay.DivideOp, importer.like(1, x), x)


def _log1p(x: Scalar) -> Scalar:
    """`log(1 + x)`; `x - (u - 1)` with `u = 1 + x` is what the sum rounds off: `log(u) + (x - (u - 1)) / u`."""
    total = x + 1.0
    exact = total.of(relay.LogOp) + (x - (total - 1.0)) / total
    return exact.of(relay.IsfiniteOp).choose(exact, total.of(relay.LogOp), x)


def _soft(x: Scalar) -> Scalar:
    """softplus, `max(x, 0) + log1p(exp(-|x|))`."""
    return x.of(relay.MaximumOp, 0.0) + _log1p((-x.of(relay.AbsOp)).exp())


@aten("log1p")
def log1p(importer: Importer, node: Node) -> SSAValue:
    return _log1p(Scalar(importer, importer.real(node.value("self")))).value


@aten("round", "round_")
def round_(importer: Importer, node: Node) -> SSAValue:
    """Halves to even; `decimals` digits behind the point."""
    x, decimals = node.value("self"), node.integer("decimals", 0)
    if not importer.is_float(x):
        if decimals < 0:
            raise node.unsupported("rounds integers to tens")
        return x
    if not decimals:
        return nearest_even(importer, x)
    factor = importer.like(10.0 ** abs(decimals), x)
    there, back = (relay.MultiplyOp, relay.DivideOp) if decimals > 0 else (relay.DivideOp, relay.MultiplyOp)
    return importer.call(back, nearest_even(importer, importer.call(there, x, factor)), factor)


@aten("clamp", "clamp_", "clip", "clamp_min", "clamp_max", "clamp_min_", "clamp_max_", "hardtanh", "hardtanh_", "relu6")
def clamp(importer: Importer, node: Node) -> SSAValue:
    """Bounds that are numbers are properties; of bounds in the wrong order the upper one counts."""
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
    for kind, bound in ((relay.MaximumOp, low), (relay.MinimumOp, high)):
        if bound is not None:
            x = importer.call(kind, x, importer.operand(bound, element))
    return x


@aten("where")
def where(importer: Importer, node: Node) -> SSAValue:
    condition = truths(importer, node.value("condition"))
    return importer.call(relay.WhereOp, condition, *both(importer, node, "self", "other"))


@aten("masked_fill", "masked_fill_")
def masked_fill(importer: Importer, node: Node) -> SSAValue:
    x = node.value("self")
    fill = importer.operand(given(node, "value"), importer.element(x))
    return importer.call(relay.WhereOp, node.value("mask"), fill, x)


@aten("addcmul", "addcdiv")
def add_product(importer: Importer, node: Node) -> SSAValue:
    kind = relay.MultiplyOp if name_of(node) == "addcmul" else relay.DivideOp
    x, factor = node.value("self"), node.number_of("value", 1)
    found = importer.call(kind, node.value("tensor1"), node.value("tensor2"))
    if factor != 1:
        found = importer.call(relay.MultiplyOp, found, importer.like(factor, found))
    return importer.call(relay.AddOp, x, found)


@aten("lerp")
def lerp(importer: Importer, node: Node) -> SSAValue:
    a, b = node.value("self"), node.value("end")
    rest = importer.call(relay.SubtractOp, b, a)
    weight = importer.operand(given(node, "weight"), importer.element(a))
    return importer.call(relay.AddOp, a, importer.call(relay.MultiplyOp, rest, weight))


def _threshold(x: Scalar, node: Node) -> Scalar:
    return (x > node.real("threshold")).choose(x, node.real("value"), x)


def _softplus(x: Scalar, node: Node) -> Scalar:
    """`log(1 + exp(beta * x)) / beta`; x itself where `beta * x` is above the threshold."""
    beta, threshold = node.real("beta", 1.0), node.real("threshold", 20.0)
    inner = x * beta
    return (inner > threshold).choose(x, _soft(inner) / beta, x)


def _hard(x: Scalar) -> Scalar:
    return (x + 3.0).between(0.0, 6.0) / 6.0


def _elu(x: Scalar, node: Node) -> Scalar:
    """`x` where it is positive, else `alpha * expm1(x * input_scale)`; all of it times scale."""
    scale = node.real("scale", 1.0)
    low = (x * node.real("input_scale", 1.0)).of(relay.Expm1Op) * node.real("alpha", 1.0)
    return (x > 0.0).choose(x, low, x) * scale


_FORMULAS: dict[str, Callable[[Scalar, Node], Scalar]] = {
    "celu": lambda x, n: (x > 0.0).choose(x, (x / n.real("alpha", 1.0)).of(relay.Expm1Op) * n.real("alpha", 1.0), x),
    "elu": _elu,
    "erfc": lambda x, n: -x.of(relay.ErfOp) + 1.0,
    "exp2": lambda x, n: (x * math.log(2)).exp(),
    "frac": lambda x, n: x - x.of(relay.TruncOp),
    "gelu": lambda x, n: gelu(x, n.word("approximate") == "tanh"),
    "hardshrink": lambda x, n: (x < -n.real("lambd", 0.5)).choose(x, (x > n.real("lambd", 0.5)).choose(x, 0.0, x), x),
    "hardsigmoid": lambda x, n: _hard(x),
    "hardswish": lambda x, n: x * _hard(x),
    "leaky_relu": lambda x, n: x.of(relay.LeakyReluOp, alpha=n.real("negative_slope", 0.01)),
    "log_sigmoid": lambda x, n: -_soft(-x),
    "mish": lambda x, n: x * _soft(x).of(relay.TanhOp),
    "selu": lambda x, n: elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
    "silu": lambda x, n: x * x.of(relay.SigmoidOp),
    "softplus": _softplus,
    "softshrink": lambda x, n: (x < -n.real("lambd", 0.5)).choose(
        x + n.real("lambd", 0.5), (x > n.real("lambd", 0.5)).choose(x - n.real("lambd", 0.5), 0.0, x), x
    ),
    "softsign": lambda x, n: x / (x.of(relay.AbsOp) + 1.0),
    "tanhshrink": lambda x, n: x - x.of(relay.TanhOp),
    "threshold": _threshold,
}


@aten(*either(_FORMULAS))
def formula(importer: Importer, node: Node) -> SSAValue:
    """Halves and narrower floats are computed in float32."""
    x = node.value("self")
    element: Attribute = importer.element(x)
    if importer.is_float(x) and importer.dtype(x).itemsize < 4:
        x = importer.cast(x, f32)
    found = _FORMULAS[name_of(node)](Scalar(importer, x), node).value
    return importer.cast(found, element) if importer.is_float(x) else found


@aten("prelu", "_prelu_kernel")
def prelu(importer: Importer, node: Node) -> SSAValue:
    """A slope for all, or one per channel."""
    x, slope = node.value("self"), node.value("weight")
    if importer.rank(slope) == 1 and importer.rank(x) > 1:
        slope = importer.reshape(slope, [-1, *[1] * (importer.rank(x) - 2)])
    positive = importer.call(relay.GreaterOp, x, importer.like(0, x))
    return importer.call(relay.WhereOp, positive, x, importer.call(relay.MultiplyOp, x, slope))


@aten("glu")
def glu(importer: Importer, node: Node) -> SSAValue:
    """The first half along an axis times the sigmoid of the second."""
    dims = node.static("self")
    axis = node.axis(node.integer("dim", -1), len(dims))
    a, b = (
        importer.slice(node.value("self"), {axis: (start, start + dims[axis] // 2)}) for start in (0, dims[axis] // 2)
    )
    return importer.call(relay.MultiplyOp, a, importer.call(relay.SigmoidOp, b))


_OF_SIZES: dict[str, type[TensorOp]] = {
    "add": relay.AddOp, "sub": relay.SubtractOp, "mul": relay.MultiplyOp, "floordiv": relay.FloorDivideOp,
    "mod": relay.FloorModOp, "eq": relay.EqualOp, "ne": relay.NotEqualOp, "lt": relay.LessOp,
    "le": relay.LessEqualOp, "gt": relay.GreaterOp, "ge": relay.GreaterEqualOp, "and_": relay.LogicalAndOp,
    "or_": relay.LogicalOrOp, "pow": relay.PowerOp, "truediv": relay.DivideOp, "sym_max": relay.MaximumOp,
    "sym_min": relay.MinimumOp,
}  # fmt: skip


@op(*(f"_operator.{name}" for name in _OF_SIZES), "torch.sym_max", "torch.sym_min")
def of_sizes(importer: Importer, node: Node) -> Result:
    """Arithmetic of sizes: numbers where they are known."""
    a, b = node.positional
    name = node.target.rpartition(".")[2]
    if not is_value(a) and not is_value(b):
        known: Any = {"sym_max": max, "sym_min": min}.get(name) or getattr(operator, name)
        return known(a, b)
    values = [each if is_value(each) else importer.unnamed(np.asarray(each, np.int64)) for each in (a, b)]
    if name == "truediv":
        values = [importer.cast(each, element_type(np.float64)) for each in values]
    return importer.call(_OF_SIZES[name], *values)


@op("_operator.neg", "torch.sym_not", "torch.sym_int", "torch.sym_float", "math.ceil", "math.floor", "math.trunc")
def of_size(importer: Importer, node: Node) -> Result:
    (x,) = node.positional
    name = node.target.rpartition(".")[2]
    if not is_value(x):
        known: dict[str, Callable[..., Any]] = {
            "neg": operator.neg, "sym_not": operator.not_, "sym_int": int, "sym_float": float, "ceil": math.ceil,
            "floor": math.floor, "trunc": math.trunc,
        }  # fmt: skip
        return known[name](x)
    kinds: dict[str, type[TensorOp]] = {
        "neg": relay.NegativeOp, "sym_not": relay.LogicalNotOp, "ceil": relay.CeilOp, "floor": relay.FloorOp,
        "trunc": relay.TruncOp,
    }  # fmt: skip
    found = importer.call(kinds[name], x) if name in kinds else x
    return importer.cast(found, element_type(np.float64) if name == "sym_float" else i64 if name != "sym_not" else i1)
