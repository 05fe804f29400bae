"""Ops that become one instruction or one intrinsic: tables with a row for each op."""

from __future__ import annotations

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
    "arith.remf": "frem",
}
"""LLVM's instructions with two operands, by the name of the MLIR op that becomes each."""

CASTS: dict[str, str] = {
    "arith.extsi": "sext",
    "arith.extui": "zext",
    "arith.trunci": "trunc",
    "arith.sitofp": "sitofp",
    "arith.uitofp": "uitofp",
    "arith.fptoui": "fptoui",
    "arith.extf": "fpext",
    "arith.truncf": "fptrunc",
    "arith.bitcast": "bitcast",
    "vector.bitcast": "bitcast",
}
"""Conversion instructions."""

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
    "math.acos": "llvm.acos",
    "math.asin": "llvm.asin",
    "math.atan": "llvm.atan",
    "math.ceil": "llvm.ceil",
    "math.copysign": "llvm.copysign",
    "math.cos": "llvm.cos",
    "math.cosh": "llvm.cosh",
    "math.exp": "llvm.exp",
    "math.floor": "llvm.floor",
    "math.fma": "llvm.fma",
    "math.log": "llvm.log",
    "math.log10": "llvm.log10",
    "math.log2": "llvm.log2",
    "math.powf": "llvm.pow",
    "math.round": "llvm.round",
    "math.roundeven": "llvm.roundeven",
    "math.sin": "llvm.sin",
    "math.sinh": "llvm.sinh",
    "math.sqrt": "llvm.sqrt",
    "math.tan": "llvm.tan",
    "math.tanh": "llvm.tanh",
    "math.trunc": "llvm.trunc",
    "vector.fma": "llvm.fma",
}
"""Intrinsics that are overloaded by one type, which all operands and the result have."""

LIBRARY: dict[str, str] = {
    "math.acosh": "acosh",
    "math.asinh": "asinh",
    "math.atanh": "atanh",
    "math.erf": "erf",
    "math.expm1": "expm1",
}
"""Functions of libm for which LLVM has no intrinsic, by their names for doubles."""
