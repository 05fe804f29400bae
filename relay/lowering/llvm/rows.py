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
    "math.powf": "llvm.pow",
    "vector.fma": "llvm.fma",
    **{
        f"math.{name}": f"llvm.{name}"
        for name in (
            "acos asin atan ceil copysign cos cosh exp floor fma log log10 log2 round roundeven sin sinh sqrt tan tanh "
            "trunc"
        ).split()
    },
}
"""Intrinsics that are overloaded by one type, which all operands and the result have."""

LIBRARY: dict[str, str] = {f"math.{name}": name for name in ("acosh", "asinh", "atanh", "erf", "expm1")}
"""Functions of libm for which LLVM has no intrinsic, by their names for doubles."""
