"""Functions of float32 as arithmetic: within 2 units of the last place, the same bits in every lane and on every
processor with fused multiply-adds, and nothing called of the mathematical library."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects.attributes import Array
from relay.lowering.math.angles import TWO_BY_PI
from relay.module import IRModule
from relay.runtime import Executable
from relay.target import host

SIZE = 20_011
"""Not a multiple of 16: the last elements are computed one by one."""
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "tanh": np.tanh, "erf": np.vectorize(math.erf, [float]),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "log2": np.log2, "log10": np.log10, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh,
}  # fmt: skip
SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 3.4028235e38, -3.4028235e38, 2**-126, 0.5, -0.5, 2,
     -2, 3, -3, 0.625, 88.72284, -87.4, -103.97, 1e20, 16777216, 16777215, -8388609, 2**30, 3e22],
    np.float32,
)  # fmt: skip


def points() -> Array:
    """Special numbers, any bits, and numbers around zero."""
    rng = np.random.default_rng(5)
    parts = [SPECIAL, *(rng.uniform(-size, size, 3000).astype(np.float32) for size in (1, 2, 12, 110))]
    rest = SIZE - sum(part.size for part in parts) - SPECIAL.size
    return np.concatenate([*parts, rng.integers(0, 2**32, rest, np.uint32).view(np.float32), SPECIAL])


@cache
def compiled(size: int, target: str = "llvm") -> Executable:
    """All functions of one argument, and powers of two."""
    type = f"tensor<{size}xf32>"
    lines = [f"  %r{n} = relay.{name} %x : ({type}) -> {type}\n" for n, name in enumerate(FUNCTIONS)]
    lines.append(f"  %p = relay.power %x, %y : ({type}, {type}) -> {type}\n")
    results = ", ".join([f"%r{n}" for n in range(len(FUNCTIONS))] + ["%p"])
    types = ", ".join([type] * (len(FUNCTIONS) + 1))
    head = f"func.func @main(%x: {type}, %y: {type}) -> ({types}) {{\n"
    return build(IRModule.parse(f"{head}{''.join(lines)}  func.return {results} : {types}\n}}"), target)


def outputs(executable: Executable, *given: Array) -> list[Array]:
    found = executable.run(*given)
    assert isinstance(found, tuple)
    return list(found)


def units(found: Array, wanted: Array) -> float:
    """The largest error in units of the last place; zeros have their sign, and special numbers are equal."""
    with np.errstate(over="ignore"):
        nearest = wanted.astype(np.float32)
    finite = np.isfinite(nearest)
    assert np.array_equal(found[~finite], nearest[~finite], equal_nan=True) and np.isfinite(found[finite]).all()
    zero = (nearest == 0) & (found == 0)
    assert np.array_equal(np.signbit(found[zero]), np.signbit(nearest[zero]))
    step = np.spacing(np.abs(nearest[finite])).astype(np.float64)
    return float(np.max(np.abs(found[finite] - wanted[finite]) / step))


X86 = platform.machine() == "x86_64" and sys.platform == "linux"
NOT_X86 = pytest.mark.skipif(not X86, reason="runs code for several processors of x86-64")
UNFUSED = "x86_64-unknown-linux-gnu"
"""No multiply-adds, vectors of 4 floats."""
TARGETS = ["llvm", pytest.param(UNFUSED, marks=[NOT_X86, pytest.mark.ci])]


@pytest.mark.parametrize("target", TARGETS)
def test_within_two_units_of_the_last_place(target: str):
    x = points()
    with np.errstate(all="ignore"):
        for name, found in zip(FUNCTIONS, outputs(compiled(SIZE, target), x, x), strict=False):
            assert units(found, FUNCTIONS[name](x.astype(np.float64))) <= 2, name


@pytest.mark.parametrize("target", TARGETS)
def test_exponential_functions_of_negative_numbers_are_those_of_numbers(target: str):
    """The sign is part of the constants; the bits stay."""
    x, type = points(), f"tensor<{SIZE}xf32>"
    text = f"""func.func @main(%x: {type}) -> {type} {{
      %n = relay.negative %x : ({type}) -> {type}
      %r = relay.exp %n : ({type}) -> {type}
      func.return %r : {type}
    }}"""
    found = build(IRModule.parse(text), target).run(x)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, outputs(compiled(SIZE, target), -x, x)[list(FUNCTIONS).index("exp")], equal_nan=True)


@pytest.mark.parametrize("target", TARGETS)
def test_hyperbolic_tangents_are_odd_and_at_most_one(target: str):
    """Also where the quotient's two sides are nearly equal, and where its number of ln(2) changes."""
    steps = np.arange(1, 60)[:, None] * np.float32(np.log(2) / 4) * (1 + np.arange(-40, 41) * 2.0**-23)
    near = np.resize(np.concatenate([steps.reshape(-1), np.linspace(7, 11, 3000)]), SIZE // 2).astype(np.float32)
    x = np.concatenate([near, -near, np.zeros(1, np.float32)])
    found = outputs(compiled(SIZE, target), x, x)[list(FUNCTIONS).index("tanh")]
    assert np.array_equal(found[: near.size], -found[near.size : -1])
    assert found.max() == 1 and units(found, np.tanh(x.astype(np.float64))) <= 2


def test_inverse_roots_are_rounded_as_quotients_are():
    """Also where a root's last digits are all ones, the hardest to invert; zeros, infinities, denormals."""
    ones = [np.arange(last - 4096, last, dtype=np.uint32).view(np.float32) for last in (0x40000000, 0x40800000)]
    bits = np.random.default_rng(9).integers(0, 2**32, 1 << 17, np.uint32).view(np.float32)
    x = np.concatenate([SPECIAL, *ones, bits])
    type = f"tensor<{x.size}xf32>"
    text = (
        f"func.func @main(%x: {type}) -> {type} {{ %r = relay.rsqrt %x : ({type}) -> {type} func.return %r : {type} }}"
    )
    with np.errstate(all="ignore"):
        wanted = np.float32(1) / np.sqrt(x)
    found = build(IRModule.parse(text)).run(x)
    assert isinstance(found, np.ndarray) and np.array_equal(found, wanted, equal_nan=True)
    zero = x == 0
    assert np.array_equal(np.signbit(found[zero]), np.signbit(x[zero]))


def test_divisions_by_constants_are_rounded_as_quotients_are():
    """Of all signs and exponents; special numbers as well. Below 2^-100 the last digit may differ."""
    far = 1.5 * 2.0**40
    numbers = (6.0, 3.0, 49.0, 1.0000001, 1.9999999, 16777215.0, far)
    bits = np.random.default_rng(9).integers(0, 2**32, 1 << 17, np.uint32).view(np.float32)
    between = (far * np.arange(401, 433, 2) * 2.0**-150).astype(np.float32)  # quotients half between denormal numbers
    x = np.concatenate([SPECIAL, bits, between, np.resize(SPECIAL, -SPECIAL.size % 16)])
    type = f"tensor<{x.size}xf32>"
    lines = [
        f"%c{n} = relay.constant dense<{number}> : tensor<f32>\n"
        f"%r{n} = relay.divide %x, %c{n} : ({type}, tensor<f32>) -> {type}\n"
        for n, number in enumerate(numbers)
    ]
    results, types = ", ".join(f"%r{n}" for n in range(len(numbers))), ", ".join([type] * len(numbers))
    text = f"func.func @main(%x: {type}) -> ({types}) {{\n{''.join(lines)}func.return {results} : {types}\n}}"
    large = ~(np.abs(x) < 2.0**-100) | (x == 0)
    found = build(IRModule.parse(text)).run(x)
    assert isinstance(found, tuple)
    for got, number in zip(found, numbers, strict=True):
        with np.errstate(all="ignore"):
            wanted = x / np.float32(number)
        assert np.array_equal(got[large], wanted[large], equal_nan=True), number
        assert np.array_equal(np.signbit(got[x == 0]), np.signbit(x[x == 0]))
        assert (np.abs(got[~large] - wanted[~large]) <= np.spacing(np.abs(wanted[~large]))).all(), number


def test_what_divides_vectors_by_constants():
    """Multiply-adds where the target has them; an instruction that divides elsewhere."""
    type = "tensor<64xf32>"
    text = f"""func.func @main(%x: {type}) -> {type} {{
      %c = relay.constant dense<6.0> : tensor<f32>
      %r = relay.divide %x, %c : ({type}, tensor<f32>) -> {type}
      func.return %r : {type}
    }}"""
    for features, counts in (("avx2,+fma", (0, 2)), ("sse4.1", (1, 0))):
        module = IRModule.parse(text)
        default_pipeline(f"x86_64-unknown-linux-gnu -mattr=+{features}").apply(module)
        names = [op.name for op in module.op.walk()]
        assert (names.count("arith.divf"), names.count("math.fma")) == counts, features


def test_functions_of_f16_are_near_and_need_no_library():
    """Some are computed in f64, from which no processor rounds to f16."""
    x, type, names = (
        np.linspace(0.1, 0.9, 37).astype(np.float16),
        "tensor<37xf16>",
        ", ".join(f"%{n}" for n in FUNCTIONS),
    )
    types = ", ".join([type] * len(FUNCTIONS))
    body = "".join(f"%{name} = relay.{name} %x : ({type}) -> {type}\n" for name in FUNCTIONS)
    text = f"func.func @main(%x: {type}) -> ({types}) {{\n{body}func.return {names} : {types}\n}}"
    with np.errstate(all="ignore"):
        for name, found in zip(FUNCTIONS, outputs(build(IRModule.parse(text)), x), strict=True):
            wanted = FUNCTIONS[name](x.astype(np.float64))
            step = np.spacing(np.abs(wanted).astype(np.float16)).astype(np.float64)
            nan = np.isnan(wanted)
            assert np.array_equal(np.isnan(found), nan), name
            assert (np.abs(found.astype(np.float64) - wanted)[~nan] <= 0.51 * step[~nan]).all(), name


def test_casts_to_f16_are_rounded_once():
    """Numbers in f64 in the middle of two of f16, and next to the middle."""
    rng = np.random.default_rng(8)
    any_bits = rng.integers(0, 2**64, 2000, np.uint64).view(np.float64)
    halves = rng.integers(0, 0x7BFF, 2000).astype(np.uint16)
    middle = (halves.view(np.float16).astype(np.float64) + (halves + 1).view(np.float16).astype(np.float64)) / 2
    middle *= rng.choice([1, -1], 2000) * (1 + rng.choice([0, 1e-15, -1e-15, 1e-9, -1e-9], 2000))
    x = np.concatenate([any_bits, middle, SPECIAL.astype(np.float64), [65519.99999, 65520, -65520]])
    executable = build(
        IRModule.parse(f"""func.func @main(%x: tensor<{x.size}xf64>) -> tensor<{x.size}xf16> {{
          %r = relay.cast %x {{dtype = f16}} : (tensor<{x.size}xf64>) -> tensor<{x.size}xf16>
          func.return %r : tensor<{x.size}xf16>
        }}""")
    )
    found = executable.run(x)
    assert isinstance(found, np.ndarray)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float16)
    number = ~np.isnan(wanted)
    assert np.array_equal(found[number].view(np.uint16), wanted[number].view(np.uint16))
    assert np.isnan(found[~number]).all()


def test_powers():
    x, y = points(), np.random.default_rng(6).permutation(points())
    y[3000:9000] = np.trunc(np.nan_to_num(y[3000:9000]))
    count = SPECIAL.size
    x[: count**2], y[: count**2] = np.repeat(SPECIAL, count), np.tile(SPECIAL, count)
    with np.errstate(all="ignore"):
        assert units(outputs(compiled(SIZE), x, y)[-1], np.power(x.astype(np.float64), y.astype(np.float64))) <= 1


def hardest() -> list[float]:
    """Numbers that are, for their size, the nearest to a multiple of a quarter of a turn: of `2^e 2/pi`, denominators
    of convergents."""
    found: list[float] = []
    for exponent in range(-20, 104):
        part, whole = (TWO_BY_PI << (exponent + 20)) % (1 << 260), 1 << 260
        before, denominator = 0, 1
        while part and denominator < 1 << 24:
            found.append(math.ldexp(denominator, exponent))
            quotient, rest = divmod(whole, part)
            whole, part = part, rest
            before, denominator = denominator, quotient * denominator + before
    return found


def test_the_hardest_numbers():
    x = np.array([number for number in hardest() if number < 3.4e38][-SIZE:])
    x = np.resize(x, SIZE).astype(np.float32)
    for name, found in zip(FUNCTIONS, outputs(compiled(SIZE), x, x), strict=False):
        if name in ("sin", "cos", "tan"):
            assert units(found, FUNCTIONS[name](x.astype(np.float64))) <= 2, name


def test_lanes_are_as_scalars():
    """The last elements, which are in no vector, and the same numbers in vectors."""
    x, y = np.random.default_rng(7).uniform(-4, 4, (2, SIZE)).astype(np.float32)
    rest = SIZE % 16
    x[-rest:], y[-rest:] = x[:rest], y[:rest]
    for found in outputs(compiled(SIZE), x, y):
        assert found[:rest].tobytes() == found[-rest:].tobytes()


@pytest.mark.ci
@NOT_X86
@pytest.mark.skipif("fma" not in host().features, reason="the processor has no fused multiply-adds")
def test_the_same_bits_on_every_processor_that_fuses():
    """With 512-bit vectors or without, with an instruction for powers of two or not."""
    x = points()
    wanted = outputs(compiled(SIZE), x, x)
    narrow = outputs(compiled(SIZE, "x86_64-unknown-linux-gnu -mattr=+avx2,+fma"), x, x)
    for name, found, right in zip([*FUNCTIONS, "power"], narrow, wanted, strict=True):
        assert np.array_equal(found, right, equal_nan=True), name


@pytest.mark.parametrize(
    "target", [pytest.param("thumbv7em-none-eabihf -mcpu=cortex-m4", marks=pytest.mark.ci), "wasm32-unknown-unknown"]
)
def test_nothing_of_the_library_is_called(target: str, tmp_path: Path):
    """The object code names no function of libm; quotients and conversions may be the compiler's own functions."""
    type = "tensor<3xf32>"
    lines = [
        f"%{n + 1} = relay.{name} %{n} : ({type}) -> {type}" for n, name in enumerate(("exp", "erf", "log", "sin"))
    ]
    lines.append(f"%5 = relay.power %4, %0 : ({type}, {type}) -> {type}")
    body = "\n".join(lines).replace("%", "%v")
    text = f"func.func @main(%v0: {type}) -> {type} {{\n{body}\nfunc.return %v5 : {type}\n}}"
    code = build(IRModule.parse(text), target).export(tmp_path)[0].read_bytes()
    assert b"relay_model_run" in code
    for name in (b"expf", b"erff", b"logf", b"log2", b"sinf", b"pow", b"rint", b"fma", b"floor", b"round"):
        assert name not in code, name


FORMS = {
    "quotient": ("%x", "relay.divide %x, %r", "relay.multiply %x, %c", "relay.multiply %d, %h"),
    "product": ("%x", "relay.multiply %x, %s", "relay.multiply %h, %x", "relay.multiply %d, %c"),
    "another": ("%y", "relay.divide %x, %r", "relay.multiply %y, %c", "relay.multiply %d, %h"),
}
"""GELU as exporters write it, and of two values, which is something else."""


@pytest.mark.parametrize("form", FORMS)
def test_gelu_is_one_function(form: str):
    factor, inside, first, last = FORMS[form]
    x = np.concatenate([np.linspace(-9, 9, 4003), [-0.0, 1e30, -1e30, np.inf, np.nan]]).astype(np.float32)
    type = f"tensor<{x.size}xf32>"

    def step(name: str, call: str) -> str:
        operands = call.partition(" ")[2].split(", ")
        kinds = ["tensor<f32>" if each in ("%r", "%s", "%h", "%o") else type for each in operands]
        return f"  {name} = {call} : ({', '.join(kinds)}) -> {type}\n"

    numbers = {"%r": 2**0.5, "%s": 0.5**0.5, "%h": 0.5, "%o": 1.0}
    lines = [f"  {name} = relay.constant dense<{np.float32(n):.9e}> : tensor<f32>\n" for name, n in numbers.items()]
    calls = {"%a": inside, "%b": "relay.erf %a", "%c": "relay.add %b, %o", "%d": first, "%e": last}
    text = "".join([*lines, *(step(name, call) for name, call in calls.items())])
    module = IRModule.parse(
        f"func.func @main(%x: {type}, %y: {type}) -> {type} {{\n{text}  func.return %e : {type}\n}}"
    )
    y = x if factor == "%x" else np.ones_like(x)
    found = build(module)(x, y)
    assert isinstance(found, np.ndarray)
    wanted = np.array([0.5 * b * math.erfc(-a / math.sqrt(2)) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    near = np.abs(x) < 10
    assert np.abs(found[near] - wanted[near]).max() <= 2.4e-7
    if factor == "%x":  # the tail of the normal distribution keeps its digits, which `1 + erf` would lose
        tail = (x < -4) & (x > -6)
        assert np.abs(found[tail] / wanted[tail] - 1).max() < 1e-3
        assert found[-5:-3].tolist() == [0.0, np.float32(1e30)] and found[-2] == np.inf and np.isnan(found[-1])
