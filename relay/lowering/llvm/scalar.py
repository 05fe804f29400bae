"""Writes constants, comparisons, and ops on scalars and vectors that take several instructions."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.dialects.vector import BroadcastOp, ExtractOp, ShuffleOp
from xdsl.ir import Operation

from relay.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES
from relay.dialects.attributes import to_numpy
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.rows import LIBRARY
from relay.lowering.llvm.types import lanes, literal, suffix, type_name
from relay.lowering.shaped import is_vector, scalar_of


def write_constant(w: FunctionWriter, op: Operation) -> None:
    """Name a constant by its literal; no instruction is written."""
    assert isinstance(op, ConstantOp)
    type, element = op.result.type, scalar_of(op.result.type)
    numbers, name = to_numpy(op.value).reshape(-1), type_name(element)
    if numbers.tobytes() == numbers[:1].tobytes() * numbers.size:
        number = literal(numbers[0].item(), element)
        w.names[op.result] = splat(number, name) if is_vector(type) else number
    else:
        w.names[op.result] = f"<{', '.join(f'{name} {literal(each, element)}' for each in numbers.tolist())}>"


def splat(number: str, element: str) -> str:
    """Return a vector literal with one number in all lanes."""
    return f"splat ({element} {number})"


def write_compare(w: FunctionWriter, op: Operation) -> None:
    """Write `icmp` or `fcmp`."""
    table, name = (INTEGER_PREDICATES, "icmp") if op.name == "arith.cmpi" else (FLOAT_PREDICATES, "fcmp")
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    lhs, rhs = op.operands
    w.define(op.results[0], f"{name} {table[predicate.value.data]} {w.typed(lhs)}, {w.of(rhs)}")


def write_negate(w: FunctionWriter, op: Operation) -> None:
    """Write `fneg`, which inverts the sign bit, also of zeros."""
    w.define(op.results[0], f"fneg {w.typed(op.operands[0])}")


def write_select(w: FunctionWriter, op: Operation) -> None:
    """Write `select`."""
    w.define(op.results[0], f"select {w.list(op.operands)}")


def write_index_cast(w: FunctionWriter, op: Operation) -> None:
    """Write the conversion of an integer to an index, or of an index to an integer."""
    source, result = op.operands[0], op.results[0]
    before, after = w.type(source), w.type(result)
    if before == after:
        w.names[result] = w.of(source)
        return
    wider = int(after[1:]) > int(before[1:])
    w.define(result, f"{'sext' if wider else 'trunc'} {before} {w.of(source)} to {after}")


def write_rsqrt(w: FunctionWriter, op: Operation) -> None:
    """Write `1 / sqrt(x)`, with both operations correctly rounded."""
    result = op.results[0]
    type, element = type_name(result.type), scalar_of(result.type)
    w.intrinsic(result, "llvm.sqrt", op.operands)
    root, one = w.of(result), literal(1.0, element)
    if is_vector(result.type):
        one = splat(one, type_name(element))
    w.define(result, f"fdiv {type} {one}, {root}")


def write_fptosi(w: FunctionWriter, op: Operation) -> None:
    """Write a conversion towards zero; for a number that was just rounded to even, one instruction rounds and
    converts."""
    source, result = op.operands[0], op.results[0]
    rounded = source.owner
    if isinstance(rounded, Operation) and rounded.name == "math.roundeven" and source.has_one_use():
        value = rounded.operands[0]
        name, out = f"llvm.lrint.{suffix(result.type)}.{suffix(value.type)}", type_name(result.type)
        w.declare(name, out, type_name(value.type))
        w.define(result, f"call {out} @{name}({w.typed(value)})")
    else:
        w.define(result, f"fptosi {w.typed(source)} to {type_name(result.type)}")


FLAGGED = {"math.ctlz": "llvm.ctlz", "math.absi": "llvm.abs"}
"""Intrinsics whose last operand is a flag: whether the result for one input, 0 for `ctlz` and the lowest integer for
`abs`, is undefined. It is false: 0 has as many leading zeros as bits, and the lowest integer is its own absolute
value."""


def write_flagged(w: FunctionWriter, op: Operation) -> None:
    """Write a count of leading zeros, or an absolute value."""
    w.intrinsic(op.results[0], FLAGGED[op.name], op.operands, "false")


def write_broadcast(w: FunctionWriter, op: Operation) -> None:
    """Write a broadcast of a scalar, or of a vector of one element, to every lane."""
    assert isinstance(op, BroadcastOp)
    element = type_name(scalar_of(op.vector.type))
    name = w.of(op.source)
    if not is_vector(op.source.type):
        name = w.emit(f"insertelement <1 x {element}> poison, {element} {name}, i64 0")
    mask = f"<{lanes(op.vector.type)} x i32> zeroinitializer"
    w.define(op.vector, f"shufflevector <1 x {element}> {name}, <1 x {element}> poison, {mask}")


def write_shuffle(w: FunctionWriter, op: Operation) -> None:
    """Write a shuffle: lanes of two vectors by number; -1 stands for any value."""
    assert isinstance(op, ShuffleOp)
    first, second = op.operands
    w.define(op.results[0], f"shufflevector {w.typed(first)}, {w.typed(second)}, {shuffle_mask(op.mask)}")


@lru_cache(maxsize=1024)
def shuffle_mask(mask: DenseArrayBase[IntegerType]) -> str:
    """Return a mask as text, `<2 x i32> <i32 0, i32 poison>`; cached, because a kernel uses few masks of up to 128
    numbers."""
    lanes = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in mask.get_values())
    return f"<{len(mask)} x i32> <{lanes}>"


def write_extract(w: FunctionWriter, op: Operation) -> None:
    """Write the extraction of a lane with a constant number."""
    assert isinstance(op, ExtractOp)
    (lane,) = op.static_position.get_values()
    w.define(op.result, f"extractelement {w.typed(op.vector)}, i64 {lane}")


def write_call_intrinsic(w: FunctionWriter, op: Operation) -> None:
    """Write the call of an intrinsic by its full name, such as `llvm.x86.avx512.vpdpbusd.512`."""
    assert isinstance(op, CallIntrinsicOp)
    name, result = op.intrin.data, op.results[0]
    if name not in w.declarations:
        w.declare(name, w.type(result), ", ".join(w.type(value) for value in op.args))
    w.define(result, f"call {w.type(result)} @{name}({w.list(op.args)})")


def write_library(w: FunctionWriter, op: Operation) -> None:
    """Write a call of a libm function, for a vector lane by lane; types narrower than a float are computed as
    floats."""
    result, element = op.results[0], type_name(scalar_of(op.results[0].type))
    name = LIBRARY[op.name] + ("" if element == "double" else "f")
    wide = "double" if element == "double" else "float"
    w.declare(name, wide, wide)

    def call(value: str) -> str:
        if wide != element:
            value = w.emit(f"fpext {element} {value} to {wide}")
        found = w.emit(f"call {wide} @{name}({wide} {value})")
        return found if wide == element else w.emit(f"fptrunc {wide} {found} to {element}")

    operand = op.operands[0]
    if not is_vector(result.type):
        w.names[result] = call(w.of(operand))
        return
    vector, type = "poison", type_name(result.type)
    for lane in range(lanes(result.type)):
        number = call(w.emit(f"extractelement {w.typed(operand)}, i64 {lane}"))
        vector = w.emit(f"insertelement {type} {vector}, {element} {number}, i64 {lane}")
    w.names[result] = vector


SCALAR: dict[str, Writer] = {
    **dict.fromkeys(LIBRARY, write_library),
    **dict.fromkeys(FLAGGED, write_flagged),
    "arith.constant": write_constant,
    "arith.cmpi": write_compare,
    "arith.cmpf": write_compare,
    "arith.negf": write_negate,
    "arith.select": write_select,
    "arith.index_cast": write_index_cast,
    "math.rsqrt": write_rsqrt,
    "arith.fptosi": write_fptosi,
    "vector.broadcast": write_broadcast,
    "vector.shuffle": write_shuffle,
    "vector.extract": write_extract,
    "llvm.call_intrinsic": write_call_intrinsic,
}
