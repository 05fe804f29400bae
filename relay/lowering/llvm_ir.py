"""LLVM IR text from level 3: `func`, `scf`, `memref`, `vector`, `arith`, `math`; one function per operation kind.

A memref is a pointer; its static type gives every address as one GEP. All memref arguments are `noalias`: the memory
plan never gives a kernel overlapping buffers of which it writes one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects import arith, func, llvm, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.target import Target

from relay.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES
from relay.dialects.attributes import dtype_of, to_numpy
from relay.errors import Unsupported

ENTRY = "relay_main"
"""The symbol of `@main` behind one pointer to a table of pointers."""


@dataclass(frozen=True)
class LlvmIrTarget(Target):
    """Write the module as LLVM IR text (after `plan-memory`)."""

    name = "llvm-ir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(translate(module))


def translate(module: ModuleOp, attributes: str = "") -> str:
    """LLVM IR text of the module; `attributes` are added to every function's."""
    declarations: dict[str, str] = {}
    parts: list[str] = []
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.body.blocks:
            parts.append(FunctionWriter(op, declarations).write())
        elif not isinstance(op, func.FuncOp):
            raise Unsupported(f"llvm-ir: {op.name}", "is no function")
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_visibility is None and op.body.blocks:
            parts.append(entry(op))
    text = "\n".join([*parts, *declarations.values()])
    return f"{text}\nattributes #0 = {{ nounwind {attributes} }}\n"


def entry(function: func.FuncOp) -> str:
    """A function of one argument, the table of the memrefs' addresses."""
    name, count = function.sym_name.data, len(function.body.block.args)
    lines = [f"define void @relay_{name}(ptr %table) #0 {{"]
    for i in range(count):
        lines.append(f"  %a{i} = getelementptr ptr, ptr %table, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %a{i}, align 8")
    arguments = ", ".join(f"ptr %p{i}" for i in range(count))
    return "\n".join([*lines, f"  call void @{name}({arguments})", "  ret void", "}"])


def type_name(type: Attribute) -> str:
    """The LLVM spelling of a type."""
    match type:
        case IntegerType():
            return f"i{type.width.data}"
        case IndexType():
            return "i64"
        case Float16Type():
            return "half"
        case Float32Type():
            return "float"
        case Float64Type():
            return "double"
        case VectorType():
            return f"<{type.get_shape()[0]} x {type_name(type.element_type)}>"
        case MemRefType():
            return "ptr"
        case _:
            raise Unsupported(f"llvm-ir: type {type}", "has no LLVM form here")


def scalar_of(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, VectorType) else type


def suffix(type: Attribute) -> str:
    """The mangling of an overloaded intrinsic: `v16i32`, `f32`, `p0`."""
    if isinstance(type, VectorType):
        return f"v{type.get_shape()[0]}{suffix(type.element_type)}"
    if isinstance(type, IndexType):
        return "i64"
    if isinstance(type, IntegerType):
        return f"i{type.width.data}"
    return {"half": "f16", "float": "f32", "double": "f64"}[type_name(type)]


def literal(value: float | int | bool, type: Attribute) -> str:
    """A number as LLVM writes it."""
    if isinstance(type, Float32Type | Float64Type | Float16Type):
        number = struct.unpack("<f", struct.pack("<f", value))[0] if isinstance(type, Float32Type) else float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if isinstance(type, IntegerType) and type.width.data == 1:
        return "true" if value else "false"
    return str(int(value))


BINARY: dict[str, str] = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.divsi": "sdiv",
    "arith.divui": "udiv",
    "arith.remsi": "srem",
    "arith.remui": "urem",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shl",
    "arith.shrsi": "ashr",
    "arith.shrui": "lshr",
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
}
CASTS: dict[str, str] = {
    "arith.extsi": "sext",
    "arith.extui": "zext",
    "arith.trunci": "trunc",
    "arith.sitofp": "sitofp",
    "arith.uitofp": "uitofp",
    "arith.fptosi": "fptosi",
    "arith.fptoui": "fptoui",
    "arith.extf": "fpext",
    "arith.truncf": "fptrunc",
    "arith.bitcast": "bitcast",
    "vector.bitcast": "bitcast",
}
INTRINSICS: dict[str, str] = {
    "arith.maxsi": "llvm.smax",
    "arith.minsi": "llvm.smin",
    "arith.maxui": "llvm.umax",
    "arith.minui": "llvm.umin",
    "arith.maximumf": "llvm.maximum",
    "arith.minimumf": "llvm.minimum",
    "arith.maxnumf": "llvm.maxnum",
    "arith.minnumf": "llvm.minnum",
    "math.absf": "llvm.fabs",
    "math.ceil": "llvm.ceil",
    "math.copysign": "llvm.copysign",
    "math.cos": "llvm.cos",
    "math.exp": "llvm.exp",
    "math.floor": "llvm.floor",
    "math.fma": "llvm.fma",
    "math.log": "llvm.log",
    "math.powf": "llvm.pow",
    "math.round": "llvm.round",
    "math.roundeven": "llvm.roundeven",
    "math.sin": "llvm.sin",
    "math.sqrt": "llvm.sqrt",
    "math.tanh": "llvm.tanh",
    "math.trunc": "llvm.trunc",
    "vector.fma": "llvm.fma",
}

class FunctionWriter:
    """Writes one function. Blocks are opened as loops need them; `label` is the current one, for phis."""

    def __init__(self, function: func.FuncOp, declarations: dict[str, str]):
        self.function = function
        self.declarations = declarations
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.counter = 0
        self.label = "entry"

    def write(self) -> str:
        block = self.function.body.block
        arguments: list[str] = []
        for number, argument in enumerate(block.args):
            self.names[argument] = f"%arg{number}"
            kind = "noalias nocapture " if isinstance(argument.type, MemRefType) else ""
            arguments.append(f"{type_name(argument.type)} {kind}%arg{number}")
        self.body(block)
        scope = "internal " if self.function.sym_visibility is not None else ""
        attributes = "noinline " if scope else ""
        head = f"define {scope}void @{self.function.sym_name.data}({', '.join(arguments)}) {attributes}#0 {{"
        return "\n".join([head, "entry:", *self.lines, "}"])

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def of(self, value: SSAValue) -> str:
        return self.names[value]

    def typed(self, value: SSAValue) -> str:
        return f"{type_name(value.type)} {self.names[value]}"

    def define(self, result: SSAValue, text: str) -> str:
        name = self.fresh()
        self.names[result] = name
        self.lines.append(f"  {name} = {text}")
        return name

    def emit(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, name: str, result: str, arguments: str) -> None:
        self.declarations[name] = f"declare {result} @{name}({arguments})"

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        if (name := BINARY.get(op.name)) is not None:
            a, b = op.operands
            self.define(op.results[0], f"{name} {self.typed(a)}, {self.of(b)}")
        elif (name := CASTS.get(op.name)) is not None:
            result = op.results[0]
            self.define(result, f"{name} {self.typed(op.operands[0])} to {type_name(result.type)}")
        elif (name := INTRINSICS.get(op.name)) is not None:
            self.intrinsic(op.results[0], name, list(op.operands))
        elif (writer := WRITERS.get(op.name)) is not None:
            writer(self, op)
        else:
            raise Unsupported(f"llvm-ir: {op.name}", "has no translation", "run the passes up to plan-memory first")

    def intrinsic(self, result: SSAValue, name: str, operands: list[SSAValue], extra: str = "") -> None:
        full = f"{name}.{suffix(result.type)}"
        out = type_name(result.type)
        types = ", ".join([*(type_name(v.type) for v in operands), *(["i1"] if extra else [])])
        self.declare(full, out, types)
        self.define(result, f"call {out} @{full}({', '.join(self.typed(v) for v in operands)}{extra})")

    # Memory

    def address(self, buffer: SSAValue, indices: list[SSAValue]) -> str:
        """A pointer to an element; the constant part of the index is folded by LLVM."""
        type = buffer.type
        assert isinstance(type, MemRefType)
        strides, offset = layout(type)
        total: str | None = str(offset) if offset else None
        for index, stride in zip(indices, strides, strict=True):
            term = self.of(index)
            if stride == 0 or term == "0":
                continue
            if stride != 1:
                term = self.emit(f"mul nsw i64 {term}, {stride}")
            total = term if total is None else self.emit(f"add nsw i64 {total}, {term}")
        element = type_name(type.element_type)
        if total is None:
            return self.of(buffer)
        return self.emit(f"getelementptr inbounds {memory_type(element)}, ptr {self.of(buffer)}, i64 {total}")


def layout(type: MemRefType[Attribute]) -> tuple[list[int], int]:
    """Static strides and offset, in elements. The offset is part of the address only here: views keep their base."""
    strides, offset = type.get_strides(), type.get_offset()
    if strides is None or any(s is None for s in strides) or offset is None:
        raise Unsupported(f"llvm-ir: {type}", "has a layout that is not static")
    return [s for s in strides if s is not None], offset


def memory_type(element: str) -> str:
    """Booleans take a byte in memory."""
    return "i8" if element == "i1" else element


def alignment(type: Attribute) -> int:
    return dtype_of(scalar_of(type)).itemsize


def write_constant(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    type, value = op.result.type, op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        number = value.value.data
        w.names[op.result] = literal(number, type)
        return
    assert isinstance(value, DenseIntOrFPElementsAttr) and isinstance(type, VectorType)
    numbers = to_numpy(value).reshape(-1).tolist()
    element = type.element_type
    parts = ", ".join(f"{type_name(element)} {literal(n, element)}" for n in numbers)
    w.names[op.result] = f"<{parts}>"


def write_compare(w: FunctionWriter, op: Operation) -> None:
    table, name = (INTEGER_PREDICATES, "icmp") if op.name == "arith.cmpi" else (FLOAT_PREDICATES, "fcmp")
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    lhs, rhs = op.operands
    w.define(op.results[0], f"{name} {table[predicate.value.data]} {w.typed(lhs)}, {w.of(rhs)}")


def write_negate(w: FunctionWriter, op: Operation) -> None:
    w.define(op.results[0], f"fneg {w.typed(op.operands[0])}")


def write_select(w: FunctionWriter, op: Operation) -> None:
    w.define(op.results[0], f"select {', '.join(w.typed(v) for v in op.operands)}")


def write_index_cast(w: FunctionWriter, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    before, after = type_name(source.type), type_name(result.type)
    if before == after:
        w.names[result] = w.of(source)
        return
    wider = int(after[1:]) > int(before[1:])
    w.define(result, f"{'sext' if wider else 'trunc'} {before} {w.of(source)} to {after}")


def write_rsqrt(w: FunctionWriter, op: Operation) -> None:
    type = type_name(op.results[0].type)
    name = f"llvm.sqrt.{suffix(op.results[0].type)}"
    w.declare(name, type, type)
    root = w.emit(f"call {type} @{name}({w.typed(op.operands[0])})")
    one = literal(1.0, scalar_of(op.results[0].type))
    if isinstance(op.results[0].type, VectorType):
        raise Unsupported("llvm-ir: math.rsqrt", "of vectors has no translation")
    w.define(op.results[0], f"fdiv {type} {one}, {root}")


def write_ctlz(w: FunctionWriter, op: Operation) -> None:
    w.intrinsic(op.results[0], "llvm.ctlz", list(op.operands), ", i1 false")


def write_absi(w: FunctionWriter, op: Operation) -> None:
    w.intrinsic(op.results[0], "llvm.abs", list(op.operands), ", i1 false")


def write_load(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, memref.LoadOp)
    element = type_name(op.res.type)
    at = w.address(op.memref, list(op.indices))
    if element == "i1":
        byte = w.emit(f"load i8, ptr {at}, align 1")
        w.define(op.res, f"trunc i8 {byte} to i1")
    else:
        w.define(op.res, f"load {element}, ptr {at}, align {alignment(op.res.type)}")


def write_store(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    value = w.typed(op.value)
    at = w.address(op.memref, list(op.indices))
    if value.startswith("i1 "):
        value = f"i8 {w.emit(f'zext {value} to i8')}"
    w.lines.append(f"  store {value}, ptr {at}, align {alignment(op.value.type)}")


def write_view(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, memref.ViewOp)
    shift = w.of(op.byte_shift)
    if shift == "0":
        w.names[op.result] = w.of(op.source)
    else:
        w.define(op.result, f"getelementptr inbounds i8, ptr {w.of(op.source)}, i64 {shift}")


def write_alias(w: FunctionWriter, op: Operation) -> None:
    """A reshape or static subview: the same base pointer, another type."""
    w.names[op.results[0]] = w.of(op.operands[0])


def write_vector_load(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, vector.LoadOp)
    at = w.address(op.base, list(op.indices))
    w.define(op.result, f"load {type_name(op.result.type)}, ptr {at}, align {alignment(op.result.type)}")


def write_vector_store(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, vector.StoreOp)
    at = w.address(op.base, list(op.indices))
    w.lines.append(f"  store {w.typed(op.vector)}, ptr {at}, align {alignment(op.vector.type)}")


def write_masked_load(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, vector.MaskedLoadOp)
    at = w.address(op.base, list(op.indices))
    type = op.result.type
    name = f"llvm.masked.load.{suffix(type)}.p0"
    out, mask = type_name(type), type_name(op.mask.type)
    w.declare(name, out, f"ptr, i32, {mask}, {out}")
    arguments = f"ptr {at}, i32 {alignment(type)}, {w.typed(op.mask)}, {w.typed(op.pass_thru)}"
    w.define(op.result, f"call {out} @{name}({arguments})")


def write_masked_store(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, vector.MaskedStoreOp)
    at = w.address(op.base, list(op.indices))
    type = op.value_to_store.type
    name = f"llvm.masked.store.{suffix(type)}.p0"
    w.declare(name, "void", f"{type_name(type)}, ptr, i32, {type_name(op.mask.type)}")
    arguments = f"{w.typed(op.value_to_store)}, ptr {at}, i32 {alignment(type)}, {w.typed(op.mask)}"
    w.lines.append(f"  call void @{name}({arguments})")


def write_broadcast(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, vector.BroadcastOp)
    source, type = op.source, op.vector.type
    assert isinstance(type, VectorType)
    lanes, element = type.get_shape()[0], type_name(type.element_type)
    name = w.of(source)
    if not isinstance(source.type, VectorType):
        name = w.emit(f"insertelement <1 x {element}> poison, {element} {name}, i64 0")
    w.define(
        op.vector, f"shufflevector <1 x {element}> {name}, <1 x {element}> poison, <{lanes} x i32> zeroinitializer"
    )


def write_call_intrinsic(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, llvm.CallIntrinsicOp)
    name, result = op.intrin.data, op.results[0]
    w.declare(name, type_name(result.type), ", ".join(type_name(v.type) for v in op.args))
    w.define(result, f"call {type_name(result.type)} @{name}({', '.join(w.typed(v) for v in op.args)})")


def write_call(w: FunctionWriter, op: Operation) -> None:
    assert isinstance(op, func.CallOp)
    arguments = ", ".join(w.typed(v) for v in op.arguments)
    w.lines.append(f"  call void @{op.callee.string_value()}({arguments})")


def write_return(w: FunctionWriter, op: Operation) -> None:
    w.lines.append("  ret void")


def write_for(w: FunctionWriter, op: Operation) -> None:
    """`scf.for` as a loop tested at its start; bounds are signed i64."""
    assert isinstance(op, scf.ForOp)
    block = op.body.block
    w.counter += 1
    number = w.counter
    head, inside, after = f"head{number}", f"body{number}", f"after{number}"
    before = w.label
    w.lines.append(f"  br label %{head}")
    w.lines.append(f"{head}:")
    placeholders: list[tuple[int, str, str, str]] = []
    for argument, start in zip(block.args, [op.lb, *op.iter_args], strict=True):
        name = w.fresh()
        w.names[argument] = name
        placeholders.append((len(w.lines), name, type_name(argument.type), w.of(start)))
        w.lines.append("")
    induction = w.of(block.args[0])
    test = w.emit(f"icmp slt i64 {induction}, {w.of(op.ub)}")
    w.lines.append(f"  br i1 {test}, label %{inside}, label %{after}")
    w.lines.append(f"{inside}:")
    w.label = inside
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    for inner in block.ops:
        if inner is not end:
            w.operation(inner)
    following = w.emit(f"add nsw i64 {induction}, {w.of(op.step)}")
    values = [following, *(w.of(v) for v in end.operands)]
    w.lines.append(f"  br label %{head}")
    for (line, name, type, start), value in zip(placeholders, values, strict=True):
        w.lines[line] = f"  {name} = phi {type} [ {start}, %{before} ], [ {value}, %{w.label} ]"
    w.lines.append(f"{after}:")
    w.label = after
    for result, argument in zip(op.res, block.args[1:], strict=True):
        w.names[result] = w.of(argument)


WRITERS: dict[str, Callable[[FunctionWriter, Operation], None]] = {
    "arith.constant": write_constant,
    "arith.cmpi": write_compare,
    "arith.cmpf": write_compare,
    "arith.negf": write_negate,
    "arith.select": write_select,
    "arith.index_cast": write_index_cast,
    "math.rsqrt": write_rsqrt,
    "math.ctlz": write_ctlz,
    "math.absi": write_absi,
    "memref.load": write_load,
    "memref.store": write_store,
    "memref.view": write_view,
    "memref.collapse_shape": write_alias,
    "memref.expand_shape": write_alias,
    "memref.subview": write_alias,
    "memref.cast": write_alias,
    "vector.load": write_vector_load,
    "vector.store": write_vector_store,
    "vector.maskedload": write_masked_load,
    "vector.maskedstore": write_masked_store,
    "vector.broadcast": write_broadcast,
    "llvm.call_intrinsic": write_call_intrinsic,
    "func.call": write_call,
    "func.return": write_return,
    "scf.for": write_for,
}

