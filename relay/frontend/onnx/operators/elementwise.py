"""Imports elementwise operators: functions, arithmetic, comparisons, logic, bitwise operators, activations."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.dialects.op import TensorOp
from relay.frontend.importing import functions
from relay.frontend.importing.formulas import Scalar, bounded, named
from relay.frontend.importing.functions import elu, shrunk, softplus
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import Convert, op

_UNARY = named(
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor Log Relu Sigmoid Sign Sin Sinh Sqrt "
    "Tan Tanh",
    IsNaN=relay.IsnanOp, Neg=relay.NegativeOp, Not=relay.LogicalNotOp,
)  # fmt: skip
_BINARY = named(
    "Add BitwiseAnd BitwiseOr BitwiseXor Equal Greater Less",
    And=relay.LogicalAndOp, Div=relay.DivideOp, GreaterOrEqual=relay.GreaterEqualOp, LessOrEqual=relay.LessEqualOp,
    Mul=relay.MultiplyOp, Or=relay.LogicalOrOp, Sub=relay.SubtractOp, Xor=relay.LogicalXorOp,
)  # fmt: skip
_CHAINS: dict[str, type[TensorOp]] = {
    "Max": relay.MaximumOp, "Mean": relay.AddOp, "Min": relay.MinimumOp, "Sum": relay.AddOp,
}  # fmt: skip


@op(*_UNARY)
def unary(importer: Importer, node: Node) -> SSAValue:
    return importer.call(_UNARY[node.kind], node.input(0))


@op("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor")
def broadcast_binary(importer: Importer, node: Node) -> SSAValue:
    """Import binary operators of versions up to 6, whose attribute `broadcast` aligns the second operand's axes with
    those of the first from `axis` on."""
    first, second = node.input(0), node.input(1)
    if node.has("axis") and node.flag("broadcast"):
        axis, rank = node.axis(node.integer("axis"), node.rank(0)), node.rank(0)
        dims = node.shape(1)
        second = importer.reshape(second, [*dims, *[1] * (rank - axis - len(dims))])
    return importer.call(_BINARY[node.kind], first, second)


@op(*_BINARY, since=7)
def binary(importer: Importer, node: Node) -> SSAValue:
    return importer.call(_BINARY[node.kind], node.input(0), node.input(1))


@op(*_CHAINS)
def chain(importer: Importer, node: Node) -> SSAValue:
    """Import an operator with any number of operands, combined one after the other; Mean divides by their number."""
    found = reduce(lambda a, b: importer.call(_CHAINS[node.kind], a, b), node.inputs())
    if node.kind != "Mean":
        return found
    return importer.call(relay.DivideOp, found, importer.like(len(node.values), found))


@op("Pow")
def power(importer: Importer, node: Node) -> SSAValue:
    """Import Pow, computed in the base's type; integer bases with float exponents in the exponent's type."""
    base, exponent = node.input(0), node.input(1)
    element = importer.element(base)
    if not importer.is_float(base) and importer.is_float(exponent):
        base = importer.cast(base, importer.element(exponent))
    known = importer.known(exponent)
    if known is not None and importer.is_float(base) and known.size == 1 and known.ndim <= importer.rank(base):
        if (number := float(known.reshape(-1)[0])) in (0.5, 2):
            return importer.cast(functions.POWERS[number](Scalar(importer, base)).value, element)
    exponent = importer.cast(exponent, importer.element(base))
    return importer.cast(importer.call(relay.PowerOp, base, exponent), element)


@op("Mod")
def modulo(importer: Importer, node: Node) -> SSAValue:
    """Import Mod, whose result has the sign of the divisor, or with `fmod` that of the dividend."""
    kind = relay.ModOp if node.flag("fmod") else relay.FloorModOp
    return importer.call(kind, node.input(0), node.input(1))


@op("IsInf")
def is_infinite(importer: Importer, node: Node) -> SSAValue:
    x = node.input(0)
    found = importer.call(relay.IsinfOp, x)
    for name, kind in (("detect_negative", relay.GreaterOp), ("detect_positive", relay.LessOp)):
        if not node.integer(name, 1):
            found = importer.call(relay.LogicalAndOp, found, importer.call(kind, x, importer.like(0, x)))
    return found


@op("BitShift")
def bit_shift(importer: Importer, node: Node) -> SSAValue:
    """Import BitShift; if the shift, as an unsigned number, is at least the number of bits, the result is all zeros or
    all sign bits."""
    kind = relay.LeftShiftOp if node.one_of("direction", ("LEFT", "RIGHT")) == "LEFT" else relay.RightShiftOp
    value, amount = node.input(0), node.input(1)
    bits = 8 * importer.dtype(value).itemsize
    count = Scalar(importer, importer.cast(amount, element_type(np.dtype(f"uint{bits}"))))
    least = importer.cast(count.of(relay.MinimumOp, bits - 1).value, importer.element(value))
    shifted = Scalar(importer, importer.call(kind, value, least))
    if kind is relay.RightShiftOp and importer.dtype(value).kind == "i":
        return shifted.value
    return (count < bits).choose(shifted, 0, shifted).value


@op("Clip")
def clip_by_attributes(importer: Importer, node: Node) -> SSAValue:
    least = float(np.finfo(np.float32).max)
    return importer.clip(node.input(0), node.real("min", -least), node.real("max", least))


@op("Clip", since=11)
def clip(importer: Importer, node: Node) -> SSAValue:
    """Import Clip; constant bounds become properties."""
    x, low, high = node.input(0), node.optional(1), node.optional(2)
    numbers = [None if each is None else importer.known(each) for each in (low, high)]
    if all(each is not None and each.size == 1 for each in numbers) and importer.dtype(x).isbuiltin == 1:
        a, b = (each.reshape(-1)[0].item() for each in numbers if each is not None)
        if a <= b:
            return importer.clip(x, a, b)
    return bounded(importer, x, low, high)


@op("PRelu")
def prelu(importer: Importer, node: Node) -> SSAValue:
    """Import PRelu: of floats with one slope for each index of a single axis, as `relay.nn.prelu`; any other, by the
    formula `x if x > 0 else slope * x`."""
    x, slope = node.input(0), node.input(1)
    dims = importer.shape(slope)
    rank = node.rank(0)
    padded = (1,) * (rank - len(dims)) + dims
    channels = [axis for axis, size in enumerate(padded) if size != 1]
    if node.version < 7 and len(dims) == 1:  # along the channels, whatever the rank
        padded, channels = (1, *dims, *[1] * (rank - 2)), [1]
        slope = importer.reshape(slope, padded)
    if len(channels) == 1 and importer.is_float(x) and padded[channels[0]] == node.shape(0)[channels[0]]:
        return importer.call(relay.PreluOp, x, importer.reshape(slope, [padded[channels[0]]]), axis=channels[0])
    return functions.prelu(Scalar(importer, x), Scalar(importer, slope)).value


_PLAIN: dict[str, Convert] = {
    "BitCast": lambda i, n: i.call(relay.ReinterpretOp, n.input(0), dtype=i.element_of(n.integer("to"), n)),
    "LeakyRelu": lambda i, n: i.call(relay.LeakyReluOp, n.input(0), alpha=n.real("alpha")),
    "Reciprocal": lambda i, n: functions.FUNCTIONS["reciprocal"](Scalar(i, n.input(0))).value,
    "Round": lambda i, n: Scalar(i, n.input(0)).to_even().value,
    "Where": lambda i, n: i.call(relay.WhereOp, *n.inputs()),
}
"""Operators that compute in the type of their operands."""
for _kind, _convert in _PLAIN.items():
    op(_kind)(_convert)

_FORMULAS: dict[str, Callable[[Scalar, Node], Scalar]] = {
    "Celu": lambda x, n: (x > 0.0).choose(
        x, ((x.of(relay.MinimumOp, 0.0) / n.real("alpha")).exp() - 1.0) * n.real("alpha"), x
    ),
    "Elu": lambda x, n: elu(x, n.real("alpha")),
    "Gelu": lambda x, n: x.of(relay.GeluOp, approximate=BoolAttr.from_bool(n.word("approximate") == "tanh")),
    "HardSigmoid": lambda x, n: (x * n.real("alpha") + n.real("beta")).between(0.0, 1.0),
    "HardSwish": lambda x, n: x * (x * (1 / 6) + 0.5).between(0.0, 1.0),
    "Mish": lambda x, n: x * softplus(x).of(relay.TanhOp),
    "Selu": lambda x, n: elu(x, n.real("alpha"), n.real("gamma")),
    "Shrink": lambda x, n: shrunk(x, n.real("lambd"), n.real("bias")),
    "Softplus": lambda x, n: softplus(x),
    "Softsign": lambda x, n: x / (x.of(relay.AbsOp) + 1.0),
    "Swish": lambda x, n: x * (x * n.real("alpha")).of(relay.SigmoidOp),
    "ThresholdedRelu": lambda x, n: (x > n.real("alpha")).choose(x, 0.0, x),
}


@op(*_FORMULAS)
def formula(importer: Importer, node: Node) -> SSAValue:
    """Import an operator by its formula; f16 and narrower floats are computed in float32."""
    x = node.input(0)
    element = importer.element(x)
    narrow = importer.is_float(x) and importer.dtype(x).itemsize < 4
    wide = importer.cast(x, element_type(np.float32)) if narrow else x
    return importer.cast(_FORMULAS[node.kind](Scalar(importer, wide), node).value, element)
