"""Every operation that is an expression of C, on edges and random numbers, against numpy."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from relay.byoc.c.source import PRELUDE
from relay.byoc.c.toolchain import STANDARD, STRICT
from relay.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES
from relay.dialects.attributes import Array
from relay.lowering.c.expressions import ROWS
from relay.lowering.c.function import FunctionWriter
from relay.module import IRModule
from relay.runtime.memory import address
from tests.marks import ci
from tests.numeric.c_sources import compiler

RNG = np.random.default_rng(3)
INTS, FLOATS = ("i8", "i16", "i32", "i64"), ("f32", "f64")
DTYPES = {"i1": "bool", "f32": "float32", "f64": "float64", **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)}}
COUNT = 400
One = Callable[[Any], Any]
Two = Callable[[Any, Any], Any]


def unsigned(a: Array) -> Array:
    return a.view(f"uint{8 * a.itemsize}")


TWO: dict[str, Two] = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift,
    "arith.shrui": lambda a, b: (unsigned(a) >> unsigned(b)).view(a.dtype),
    "arith.divsi": lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    "arith.remsi": np.fmod,
    "arith.divui": lambda a, b: (unsigned(a) // unsigned(b)).view(a.dtype),
    "arith.remui": lambda a, b: (unsigned(a) % unsigned(b)).view(a.dtype),
    "arith.maxui": lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype),
    "arith.minui": lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype),
}  # fmt: skip
"""Of two integers."""

TWO_FLOATS: dict[str, Two] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.remf": np.fmod, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin, "math.copysign": np.copysign, "math.powf": lambda a, b: np.power(np.abs(a), b),
}  # fmt: skip

ONE_FLOAT: dict[str, One] = {
    "arith.negf": np.negative, "math.absf": np.abs, "math.ceil": np.ceil, "math.floor": np.floor,
    "math.trunc": np.trunc, "math.roundeven": np.rint, "math.sqrt": lambda a: np.sqrt(np.abs(a)),
    "math.rsqrt": lambda a: 1 / np.sqrt(np.abs(a)), "math.round": lambda a: np.trunc(a + np.copysign(0.5, a)),
    "math.exp": np.exp, "math.expm1": np.expm1, "math.log": lambda a: np.log(np.abs(a)),
    "math.log2": lambda a: np.log2(np.abs(a)), "math.log10": lambda a: np.log10(np.abs(a)), "math.sin": np.sin,
    "math.cos": np.cos, "math.tan": np.tan, "math.sinh": np.sinh, "math.cosh": np.cosh, "math.tanh": np.tanh,
    "math.asin": lambda a: np.arcsin(np.sin(a)), "math.acos": lambda a: np.arccos(np.sin(a)), "math.atan": np.arctan,
    "math.asinh": np.arcsinh, "math.acosh": lambda a: np.arccosh(np.cosh(a)), "math.erf": np.vectorize(math.erf),
    "math.atanh": lambda a: np.arctanh(np.sin(a)),
}  # fmt: skip
EXACT = {"arith.negf", "math.absf", "math.ceil", "math.floor", "math.trunc", "math.roundeven", "math.round"}
OPERANDS = {
    **dict.fromkeys(("math.sqrt", "math.rsqrt", "math.log", "math.log2", "math.log10"), "math.absf"),
    **dict.fromkeys(("math.asin", "math.acos", "math.atanh"), "math.sin"),
    "math.acosh": "math.cosh",
}
"""What makes the first operand one that the function takes."""


@dataclass(frozen=True)
class Case:
    """Statements that make `%r` of `%x0`, `%x1`; what it is in numpy."""

    name: str
    body: str
    result: str
    types: Sequence[str]
    operands: Sequence[Array]
    wanted: Array
    tolerance: float = 0.0


def numbers(type: str) -> Array:
    """Edges, then random numbers."""
    if type[0] == "f":
        edges = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan])
        return np.concatenate([edges, RNG.normal(0, 9, COUNT - edges.size)]).astype(DTYPES[type])
    info = np.iinfo(DTYPES[type])
    low, high = int(info.min), int(info.max)
    edges = np.array([low, low + 1, -2, -1, 0, 1, 2, high - 1, high], DTYPES[type])
    return RNG.permutation(np.concatenate([edges, RNG.integers(low, high, COUNT - 9, DTYPES[type], endpoint=True)]))


def function(case: Case, name: str) -> FuncOp:
    """A loop over all elements."""
    arguments = "".join(f"%a{n}: memref<{COUNT}x{type}>, " for n, type in enumerate(case.types))
    loads = "".join(f"%x{n} = memref.load %a{n}[%i] : memref<{COUNT}x{type}>\n" for n, type in enumerate(case.types))
    text = f"""func.func @{name}({arguments}%o: memref<{COUNT}x{case.result}>) {{
      %zero = arith.constant 0 : index
      %end = arith.constant {COUNT} : index
      %one = arith.constant 1 : index
      scf.for %i = %zero to %end step %one {{
        {loads}{case.body}
        memref.store %r, %o[%i] : memref<{COUNT}x{case.result}>
      }}
      func.return
    }}"""
    return IRModule.parse(text)[name]


def check(cases: Sequence[Case], folder: Path) -> None:
    """All cases, compiled as one file without a warning."""
    helpers: dict[str, str] = {}
    codes = [FunctionWriter(function(case, f"f{n}"), helpers).write() for n, case in enumerate(cases)]
    shown = [code.replace("static void", "void", 1) for code in codes]
    heads = "".join(code.partition("\n{")[0] + ";\n" for code in shown)
    start = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n" + PRELUDE
    (folder / "f.c").write_text("\n".join([start, *helpers.values(), heads, *shown]))
    command = [compiler("cc"), *STANDARD, *STRICT, "-O1", "-fPIC", "-shared", "f.c", "-o", "f.so", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    library: Any = ctypes.CDLL(str(folder / "f.so"))
    for n, case in enumerate(cases):
        found = np.zeros(COUNT, DTYPES[case.result])
        arrays = [*map(np.ascontiguousarray, case.operands), found]
        library[f"f{n}"](*(ctypes.c_void_p(address(array)) for array in arrays))
        same = np.allclose(found, case.wanted, case.tolerance, case.tolerance, equal_nan=True)
        assert same, f"{case.name}: {[a[found != case.wanted][:3] for a in (*arrays, case.wanted)]}"
        if not case.tolerance and case.result[0] == "f":
            assert np.array_equal(np.signbit(found), np.signbit(case.wanted)) or "NaN" in case.name, case.name


def of_two(name: str, type: str) -> Case:
    """An operation of two integers."""
    a, b = numbers(type), numbers(type)
    if name.startswith("arith.sh"):
        b = RNG.integers(0, 8 * a.itemsize, COUNT).astype(a.dtype)
    elif "div" in name or "rem" in name:
        b[(b == 0) | (b == -1) | (b == np.iinfo(b.dtype).min)] = 3
        a[a == np.iinfo(a.dtype).min] += 1
    return Case(f"{name} {type}", f"%r = {name} %x0, %x1 : {type}", type, (type, type), (a, b), TWO[name](a, b))


@pytest.mark.parametrize("type", ["i8", *ci(("i16", "i64")), "i32"])
def test_integers(type: str, tmp_path: Path):
    x, y = numbers(type), numbers(type)
    cases = [of_two(name, type) for name in TWO]
    for name in INTEGER_PREDICATES:
        a, b = (unsigned(x), unsigned(y)) if name[0] == "u" else (x, y)
        of = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[name[-2:]]
        wanted = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[of]
        cases.append(Case(name, f"%r = arith.cmpi {name}, %x0, %x1 : {type}", "i1", (type, type), (x, y), wanted))
    body = f"%c = arith.cmpi slt, %x0, %x1 : {type}\n%r = arith.select %c, %x1, %x0 : {type}"
    cases.append(Case("select", body, type, (type, type), (x, y), np.maximum(x, y)))
    zeros = np.array([8 * x.itemsize - int(number).bit_length() for number in unsigned(x)], x.dtype)
    cases.append(Case("ctlz", f"%r = math.ctlz %x0 : {type}", type, (type,), (x,), zeros))
    cases.append(Case("absi", f"%r = math.absi %x0 : {type}", type, (type,), (x,), np.abs(x)))
    for other in (*INTS, "i1"):
        before, after = 8 * x.itemsize, 1 if other == "i1" else int(other[1:])
        if after < before:
            wanted = (x & 1).astype(bool) if other == "i1" else x.astype(DTYPES[other])
            cases.append(Case("trunci", f"%r = arith.trunci %x0 : {type} to {other}", other, (type,), (x,), wanted))
        elif after > before:
            for name, a in (("extsi", x), ("extui", unsigned(x))):
                body = f"%r = arith.{name} %x0 : {type} to {other}"
                cases.append(Case(f"{name} {type} {other}", body, other, (type,), (x,), a.astype(DTYPES[other])))
    bits = x > 0
    for name, wanted in (("extsi", -bits.astype(x.dtype)), ("extui", bits.astype(x.dtype))):
        cases.append(Case(f"{name} i1", f"%r = arith.{name} %x0 : i1 to {type}", type, ("i1",), (bits,), wanted))
    for name in ("addi", "subi", "muli", "andi", "xori"):
        other = y > 0
        wanted = bits & other if name in ("muli", "andi") else bits ^ other
        body = f"%r = arith.{name} %x0, %x1 : i1"
        cases.append(Case(f"{name} i1", body, "i1", ("i1", "i1"), (bits, other), wanted))
    check(cases, tmp_path)


@pytest.mark.parametrize("type", ["f32", pytest.param("f64", marks=pytest.mark.ci)])
def test_floats(type: str, tmp_path: Path):
    x, y = numbers(type), numbers(type)
    z = np.where(np.isfinite(x), x, 0).astype(x.dtype)
    cases: list[Case] = []
    with np.errstate(all="ignore"):
        for name, of in TWO_FLOATS.items():
            close = 2e-5 if name == "math.powf" else 0.0
            a, b = (np.abs(z), y) if close else (x, y)
            body, wanted = f"%r = {name} %x0, %x1 : {type}", of(a, b).astype(x.dtype)
            cases.append(Case(f"{name} NaN", body, type, (type, type), (a, b), wanted, close))
        for name, of in ONE_FLOAT.items():
            before = OPERANDS.get(name)
            body = f"%b = {before} %x0 : {type}\n%r = {name} %b : {type}" if before else f"%r = {name} %x0 : {type}"
            close = 0.0 if name in EXACT else 2e-5
            a = z if close else x
            cases.append(Case(f"{name} NaN", body, type, (type,), (a,), of(a).astype(x.dtype), close))
        for name in FLOAT_PREDICATES:
            less, more, same, none = x < y, x > y, x == y, np.isnan(x) | np.isnan(y)
            wanted = {"false": none & False, "true": none | True, "ord": ~none, "uno": none}.get(name)
            if wanted is None:
                core = {"eq": same, "gt": more, "ge": more | same, "lt": less, "le": less | same, "ne": less | more}
                wanted = core[name[1:]] | (none & (name[0] == "u"))
            cases.append(Case(name, f"%r = arith.cmpf {name}, %x0, %x1 : {type}", "i1", (type, type), (x, y), wanted))
    for other in INTS:
        limit = min(2.0 ** (8 * np.dtype(DTYPES[other]).itemsize - 2), 2.0**30)
        a = np.clip(z * 7, -limit, limit).astype(x.dtype)
        cases.append(
            Case("fptosi", f"%r = arith.fptosi %x0 : {type} to {other}", other, (type,), (a,), a.astype(DTYPES[other]))
        )
        for word, wanted in (("round", np.trunc(a + np.copysign(0.5, a))), ("roundeven", np.rint(a))):
            halves = f"%w = math.{word} %x0 : {type}\n%r = arith.fptosi %w : {type} to {other}"
            cases.append(Case(f"{word} {other}", halves, other, (type,), (a,), wanted.astype(DTYPES[other])))
        b = np.abs(a)
        body = f"%r = arith.fptoui %x0 : {type} to {other}"
        cases.append(Case("fptoui", body, other, (type,), (b,), b.astype(DTYPES[other])))
        n = numbers(other)
        for word, given in (("sitofp", n), ("uitofp", unsigned(n))):
            body = f"%r = arith.{word} %x0 : {other} to {type}"
            cases.append(Case(word, body, type, (other,), (n,), given.astype(x.dtype)))
    whole = "i32" if type == "f32" else "i64"
    cases.append(
        Case("bits", f"%r = arith.bitcast %x0 : {type} to {whole}", whole, (type,), (x,), x.view(DTYPES[whole]))
    )
    other = "f64" if type == "f32" else "f32"
    word = "extf" if type == "f32" else "truncf"
    cases.append(
        Case(word, f"%r = arith.{word} %x0 : {type} to {other}", other, (type,), (x,), x.astype(DTYPES[other]))
    )
    fused = (np.float64(z) * np.float64(z) + np.float64(z)).astype(x.dtype)
    cases.append(Case("fma", f"%r = math.fma %x0, %x0, %x0 : {type}", type, (type,), (z,), fused, 1e-6))
    check(cases, tmp_path)


def test_a_chain_of_operations_is_one_expression():
    """Plainly where its range is known, by functions that wrap where it is not."""
    body = """%w = arith.extsi %x0 : i8 to i32
        %p = arith.muli %w, %w : i32
        %s = arith.addi %p, %x1 : i32
        %i2 = arith.index_cast %i : index to i32
        %r = arith.addi %s, %i2 : i32"""
    case = Case("chain", body, "i32", ("i8", "i32"), (), np.zeros(1))
    text = FunctionWriter(function(case, "f"), {}).write()
    assert "const int32_t t1 = a0[i];\n        a2[i] = add_i32(add_i32(t1 * t1, a1[i]), i);\n" in text


def test_what_is_read_before_a_store_stays_read_before_it():
    """A value that is used once moves to its use, but not over a store."""
    text = """func.func @f(%a: memref<4xi32>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %x = memref.load %a[%zero] : memref<4xi32>
      %y = memref.load %a[%one] : memref<4xi32>
      memref.store %y, %a[%zero] : memref<4xi32>
      memref.store %x, %a[%one] : memref<4xi32>
      func.return
    }"""
    written = FunctionWriter(IRModule.parse(text)["f"], {}).write()
    assert "    const int32_t t1 = a0[0];\n    a0[0] = a0[1];\n    a0[1] = t1;\n" in written


def test_an_index_of_one_value_is_no_variable():
    """Its uses are offsets, and compilers warn of a variable without uses."""
    text = """func.func @f(%a: memref<9xi32>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %end = arith.constant 8 : index
      %sum = arith.addi %one, %zero : index
      scf.for %i = %zero to %end step %one {
        %x = memref.load %a[%sum] : memref<9xi32>
        memref.store %x, %a[%i] : memref<9xi32>
      }
      func.return
    }"""
    written = FunctionWriter(IRModule.parse(text)["f"], {}).write()
    assert "a0[i] = a0[1];" in written and "const" not in written


def test_loops_hand_on_their_numbers_at_once():
    """Two numbers that change places."""
    text = """func.func @f(%a: memref<2xi32>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %end = arith.constant 3 : index
      %x = memref.load %a[%zero] : memref<2xi32>
      %y = memref.load %a[%one] : memref<2xi32>
      %p, %q = scf.for %i = %zero to %end step %one iter_args(%s = %x, %t = %y) -> (i32, i32) {
        scf.yield %t, %s : i32, i32
      }
      memref.store %p, %a[%zero] : memref<2xi32>
      memref.store %q, %a[%one] : memref<2xi32>
      func.return
    }"""
    written = FunctionWriter(IRModule.parse(text)["f"], {}).write()
    assert "const int32_t t3 = v2;" in written and "v1 = t3;" in written and "v2 = t4;" in written


def test_every_row_is_tested():
    text = Path(__file__).read_text()
    assert {name for name in ROWS if name not in text and name.partition(".")[2] not in text} == set()
