"""Scalar code in `arith` and `math` for the elementwise ops: a table with a row for each op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType, f32, f64, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.element_types import bits_of, is_narrow
from relay.dialects.op import TensorOp, created, tensor
from relay.dialects.plug_in import blamed, row
from relay.errors import Unsupported
from relay.lowering.linalg import division, fixed_point, narrow
from relay.lowering.linalg.emitter import Emitter, kind, lowest, signless
from relay.transforms.location import place

Scalar = Callable[[Emitter, Any, Sequence[SSAValue]], Sequence[SSAValue]]
"""A function that emits the scalar code of an op for its operands' elements, and returns one value per result."""

BINARY: dict[type[Operation], dict[str, Callable[[SSAValue, SSAValue], Operation]]] = {
    relay.AddOp: {"float": arith.AddfOp, "signed": arith.AddiOp, "unsigned": arith.AddiOp},
    relay.SubtractOp: {"float": arith.SubfOp, "signed": arith.SubiOp, "unsigned": arith.SubiOp},
    relay.MultiplyOp: {"float": arith.MulfOp, "signed": arith.MuliOp, "unsigned": arith.MuliOp},
    relay.MaximumOp: {"float": arith.MaximumfOp, "signed": arith.MaxSIOp, "unsigned": arith.MaxUIOp},
    relay.MinimumOp: {"float": arith.MinimumfOp, "signed": arith.MinSIOp, "unsigned": arith.MinUIOp},
    relay.LeftShiftOp: {"signed": arith.ShLIOp, "unsigned": arith.ShLIOp},
    relay.RightShiftOp: {"signed": arith.ShRSIOp, "unsigned": arith.ShRUIOp},
    relay.BitwiseAndOp: {"signed": arith.AndIOp, "unsigned": arith.AndIOp},
    relay.BitwiseOrOp: {"signed": arith.OrIOp, "unsigned": arith.OrIOp},
    relay.BitwiseXorOp: {"signed": arith.XOrIOp, "unsigned": arith.XOrIOp},
    relay.LogicalAndOp: {"unsigned": arith.AndIOp},
    relay.LogicalOrOp: {"unsigned": arith.OrIOp},
    relay.LogicalXorOp: {"unsigned": arith.XOrIOp},
}

COMPARE: dict[type[Operation], dict[str, str]] = {
    relay.EqualOp: {"float": "oeq", "signed": "eq", "unsigned": "eq"},
    relay.GreaterOp: {"float": "ogt", "signed": "sgt", "unsigned": "ugt"},
    relay.LessOp: {"float": "olt", "signed": "slt", "unsigned": "ult"},
    relay.NotEqualOp: {"float": "une", "signed": "ne", "unsigned": "ne"},
    relay.GreaterEqualOp: {"float": "oge", "signed": "sge", "unsigned": "uge"},
    relay.LessEqualOp: {"float": "ole", "signed": "sle", "unsigned": "ule"},
}

CONVERSIONS: dict[tuple[str, str], type[Operation]] = {
    ("float", "signed"): arith.FPToSIOp,
    ("float", "unsigned"): arith.FPToUIOp,
    ("signed", "float"): arith.SIToFPOp,
    ("unsigned", "float"): arith.UIToFPOp,
}

NAMED = {kind.name: kind for dialect in (relay.Relay, math.Math) for kind in dialect.operations}
UNARY: dict[type[Operation], type[Operation]] = {
    NAMED[f"relay.{name}"]: NAMED[f"math.{name}"]
    for name in (
        "sqrt exp expm1 log log2 log10 erf round floor ceil trunc "
        "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
    ).split()
}
"""The functions of a float that have one name in `relay` and `math`."""


def negative(e: Emitter, op: relay.NegativeOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x = xs[0]
    if kind(tensor(op.input).element_type) == "float":
        return [e(arith.NegfOp(x))]
    return [e(arith.SubiOp(e.constant(0, x.type), x))]


def absolute(e: Emitter, op: relay.AbsOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x = xs[0]
    match kind(tensor(op.input).element_type):
        case "float":
            return [e(math.AbsFOp(x))]
        case "unsigned":
            return [x]
        case "signed":
            return [e(arith.MaxSIOp(x, e(arith.SubiOp(e.constant(0, x.type), x))))]


def sign(e: Emitter, op: relay.SignOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit 1 where x > 0, else -1 where x < 0, else x."""
    x, of = xs[0], kind(tensor(op.input).element_type)
    compare = arith.CmpfOp if of == "float" else arith.CmpiOp
    zero = e.constant(0, x.type)
    found = x
    for number, predicate in ((-1, COMPARE[relay.LessOp][of]), (1, COMPARE[relay.GreaterOp][of])):
        if number > 0 or of != "unsigned":
            found = e(arith.SelectOp(e(compare(x, zero, predicate)), e.constant(number, x.type), found))
    return [found]


def flip(e: Emitter, op: relay.BitwiseNotOp | relay.LogicalNotOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit the inversion of all bits."""
    return [e(arith.XOrIOp(xs[0], e.constant(-1, xs[0].type)))]


def rsqrt(e: Emitter, op: relay.RsqrtOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e(arith.DivfOp(e.constant(1.0, xs[0].type), e(math.SqrtOp(xs[0]))))]


def sigmoid(e: Emitter, op: relay.SigmoidOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    one = e.constant(1.0, xs[0].type)
    return [e(arith.DivfOp(one, e(arith.AddfOp(one, e(math.ExpOp(e(arith.NegfOp(xs[0]))))))))]


def where(e: Emitter, op: relay.WhereOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [e(arith.SelectOp(*xs))]


def clip(e: Emitter, op: relay.ClipOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    type = tensor(op.input).element_type
    low, high = (e.constant(to_numpy(bound).item(), type) for bound in (op.a_min, op.a_max))
    raised = e(BINARY[relay.MaximumOp][kind(type)](xs[0], low))
    return [e(BINARY[relay.MinimumOp][kind(type)](raised, high))]


def cast(e: Emitter, op: relay.CastOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return [convert(e, xs[0], tensor(op.input).element_type, op.dtype, op.saturate is not None)]


def convert(e: Emitter, x: SSAValue, source: Attribute, target: Attribute, saturate: bool = False) -> SSAValue:
    """Convert a number of one `relay` element type to another: integers wrap, floats truncate, and a conversion to `i1`
    is `!= 0`."""
    if source == target:
        return x
    if is_narrow(source):
        x, source = narrow.widen(e, x, source)
    if isa(target, IntegerType) and is_narrow(target):
        between = IntegerType(32 if kind(source) == "float" else 8)
        return narrow.narrow_integer(e, convert(e, x, source, between), target)
    if is_narrow(target):
        if bits_of(source) <= 16 or source == f32:
            return narrow.narrow_float(e, convert(e, x, source, f32), target, saturate)
        return narrow.narrow_float(e, narrow.rounded_to_odd(e, convert(e, x, source, f64)), target, saturate)
    to = signless(target)
    if target == IntegerType(1) and source != target:
        zero = e.constant(0, source)
        return e(arith.CmpfOp(x, zero, "une") if kind(source) == "float" else arith.CmpiOp(x, zero, "ne"))
    kinds = kind(source), kind(target)
    if kinds == ("float", "float"):
        return resize_float(e, x, to)
    if kinds in CONVERSIONS:
        return e(created(CONVERSIONS[kinds], [x], [to]))
    assert isa(x.type, IntegerType) and isa(to, IntegerType)
    return e(arith.TruncIOp(x, to)) if to.width.data < x.type.width.data else e.widen(x, source, to)


def resize_float(e: Emitter, x: SSAValue, to: Attribute) -> SSAValue:
    """Convert a float to another width."""
    if x.type == to:
        return x
    assert isinstance(to, AnyFloat) and isinstance(x.type, AnyFloat)
    return e(arith.ExtFOp(x, to) if to.bitwidth > x.type.bitwidth else arith.TruncFOp(x, to))


def lookup(e: Emitter, op: relay.LookupOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit `table[code - lowest code]`; the table is a tensor."""
    type = tensor(op.input).element_type
    code = e.widen(xs[0], type, i32)
    if base := int(lowest(type)):
        code = e(arith.AddiOp(code, e.constant(-base, i32)))
    return [e.extract(xs[1], [e.to_index(code)])]


def unchanged(e: Emitter, op: Operation, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return xs


def reinterpret(e: Emitter, op: relay.ReinterpretOp, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    to, source = signless(op.dtype), tensor(op.input).element_type
    if IntegerType(1) in (source, op.dtype):  # memory has a byte for an i1
        return [convert(e, xs[0], source, op.dtype)]
    return [xs[0] if xs[0].type == to else e(arith.BitcastOp(xs[0], to))]


OTHERS: dict[type[Operation], Scalar] = {
    relay.DivideOp: division.divide,
    relay.FloorDivideOp: division.floor_divide,
    relay.ModOp: division.mod,
    relay.FloorModOp: division.floor_mod,
    relay.PowerOp: division.power,
    relay.SignOp: sign,
    relay.BitwiseNotOp: flip,
    relay.LogicalNotOp: flip,
    relay.CopyOp: lambda e, op, xs: xs,
    relay.NegativeOp: negative,
    relay.AbsOp: absolute,
    relay.RsqrtOp: rsqrt,
    relay.SigmoidOp: sigmoid,
    relay.WhereOp: where,
    relay.ClipOp: clip,
    relay.CastOp: cast,
    relay.ReinterpretOp: reinterpret,
    relay.LookupOp: lookup,
    relay.BiasAddOp: lambda e, op, xs: [e(BINARY[relay.AddOp][kind(tensor(op.data).element_type)](*xs))],
    relay.FixedPointMultiplyOp: fixed_point.fixed_point_multiply,
    relay.HighMultiplyOp: lambda e, op, xs: [fixed_point.high_multiply(e, *xs)],
    relay.RoundingRightShiftOp: lambda e, op, xs: [fixed_point.rounding_right_shift(e, *xs)],
    relay.FixedPointReciprocalOp: lambda e, op, xs: fixed_point.reciprocal(e, xs[0]),
    relay.BroadcastToOp: unchanged,
    relay.TransposeOp: unchanged,
}
"""Scalar code of ops that need several ops, or that depend on more than the kind of number."""


def is_scalar(op: Operation) -> bool:
    """Whether the op is elementwise, and a table of this module or its dialect's plug-in has the scalar code that
    computes one element."""
    cls = type(op)
    return cls in BINARY or cls in COMPARE or cls in UNARY or cls in OTHERS or of_plug_in(op) is not None


def of_plug_in(op: Operation) -> Scalar | None:
    """Return the scalar code that the plug-in of the op's dialect provides; None if there is none."""
    if not isinstance(op, TensorOp) or not op.ELEMENTWISE or op.name.startswith("relay."):
        return None
    return row(op, "scalars")


def scalar(e: Emitter, op: Operation, xs: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Emit the scalar code of an op for its operands' elements. Raises Unsupported."""
    cls = type(op)
    if (other := OTHERS.get(cls)) is not None:
        return other(e, op, xs)
    if (unary := UNARY.get(cls)) is not None:
        return [e(created(unary, xs, [xs[0].type]))]
    if (plugged := of_plug_in(op)) is not None:
        with blamed(op.name.partition(".")[0], f"its scalar code of {op.name} fails"):
            return plugged(e, op, xs)
    of = kind(tensor(op.operands[0]).element_type)
    if (predicate := COMPARE.get(cls)) is not None:
        compare = arith.CmpfOp if of == "float" else arith.CmpiOp
        return [e(compare(xs[0], xs[1], predicate[of]))]
    if (binary := BINARY.get(cls)) is not None and of in binary:
        return [e(binary[of](xs[0], xs[1]))]
    raise Unsupported(place(op), f"has no scalar code for {of} numbers")
