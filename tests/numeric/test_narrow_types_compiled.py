"""Types that only memory has, compiled: casts of every code, and ops that compute in a wider type."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from _pytest.mark import ParameterSet

from relay import IRModule, build, runtime
from relay.dialects.attributes import Array
from relay.errors import Malformed, Unsupported
from relay.interpreters import run
from relay.runtime import dlpack
from relay.target import host, resolve

FLOATS = ["bf16", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E4M3", "f8E3M4"]
FEWER = ["f6E2M3FN", "f6E3M2FN", "f4E2M1FN"]
INTEGERS = ["i4", "ui4", "i2", "ui2"]
OPS = {
    "relay.add": "%0 = relay.add %x, %y : (tensor<4x16xT>, tensor<4x16xT>) -> tensor<4x16xT>",
    "relay.multiply": "%0 = relay.multiply %x, %y : (tensor<4x16xT>, tensor<4x16xT>) -> tensor<4x16xT>",
    "relay.maximum": "%0 = relay.maximum %x, %y : (tensor<4x16xT>, tensor<4x16xT>) -> tensor<4x16xT>",
    "relay.negative": "%0 = relay.negative %x : (tensor<4x16xT>) -> tensor<4x16xT>",
    "relay.max": "%0 = relay.max %x {axis = array<i64: 1>} : (tensor<4x16xT>) -> tensor<4xT>",
    "relay.transpose": "%0 = relay.transpose %x {axes = array<i64: 1, 0>} : (tensor<4x16xT>) -> tensor<16x4xT>",
    "relay.concatenate": "%0 = relay.concatenate %x, %y {axis = 0 : i64} : (tensor<4x16xT>, tensor<4x16xT>)"
    " -> tensor<8x16xT>",
    "relay.less": "%0 = relay.less %x, %y : (tensor<4x16xT>, tensor<4x16xT>) -> tensor<4x16xi1>",
    "relay.clip": "%0 = relay.clip %x {a_min = 0. : T, a_max = 1. : T} : (tensor<4x16xT>) -> tensor<4x16xT>",
}


NUMPY = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "i8": "int8",
    "ui8": "uint8",
    "i1": "bool",
}


HALVES = {
    "dense": ("32x48", "32x24", "%0 = relay.nn.dense %x, %w {out_dtype = f16} : (D, W) -> R", "24x48"),
    "products": (
        "2x8x48",
        "2x8x24",
        "%0 = relay.nn.batch_matmul %x, %w {out_dtype = f16} : (D, W) -> R",
        "2x24x48",
    ),
    "softmax": ("32x48", "32x48", "%0 = relay.nn.softmax %x {beta = 1. : f16, axis = -1 : i64} : (D) -> R", "1"),
    "mean": ("32x48", "32", "%0 = relay.mean %x {axis = array<i64: 1>} : (D) -> R", "1"),
    "exp": ("32x48", "32x48", "%0 = relay.exp %x : (D) -> R", "1"),
}
"""Ops on f16: the sizes of data and result, the op, and the sizes of its other operand."""


def few(values: Sequence[str], *default: str) -> list[ParameterSet]:
    """All of them, of which CI alone runs those that are not named."""
    return [pytest.param(value, marks=() if value in default else pytest.mark.ci) for value in values]


@pytest.mark.parametrize("kind", few([*HALVES], "dense", "exp"))
@pytest.mark.parametrize("options", ["-mcpu=sapphirerapids", "-mattr=+avx2,+fma,+f16c"])
def test_no_half_is_computed_alone(kind: str, options: str):
    """f16, with arithmetic of the processor's own and without: near float32, and never by instructions for one."""
    data, result, op, other = HALVES[kind]
    types = {"D": f"tensor<{data}xf16>", "R": f"tensor<{result}xf16>", "W": f"tensor<{other}xf16>"}
    for name, type in types.items():
        op = op.replace(f"({name}", f"({type}").replace(f", {name})", f", {type})").replace(f"-> {name}", f"-> {type}")
    head, tail = (
        f"func.func @main(%x: {types['D']}, %w: {types['W']}) -> {types['R']}",
        f"func.return %0 : {types['R']}",
    )
    module = IRModule.parse(f"{head} {{\n{op}\n{tail}\n}}")
    target = f"x86_64-unknown-linux-gnu {options}"
    model = build(module, target=target)
    assert re.search(r"\bv(add|sub|mul|div|f[n]?m\w+)sh\b|__(extend|trunc)\w*h", model.get_source("asm")) is None
    if not (fits := resolve(target).features <= host().features) and "avx512fp16" not in host().features:
        pytest.skip("this machine has no arithmetic of f16")
    model = model if fits else build(module)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal([int(n) for n in sizes.split("x")]).astype(np.float16) for sizes in (data, other)]
    found, wanted = np.asarray(model.run(*given)), np.asarray(run(module, given)[0])
    assert np.allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=2e-3, atol=2e-3)


def dtype(type: str) -> np.dtype[Any]:
    if type in NUMPY or type == "i1":
        return np.dtype(NUMPY.get(type, "bool"))
    named = {"bf16": "bfloat16"} | {name: name.replace("i", "int") for name in INTEGERS}
    return np.dtype(getattr(ml_dtypes, named.get(type, f"float{type[1]}_{type[2:].lower()}")))


def parsed(type: str, op: str) -> IRModule:
    zero, one = ("0 :", "1 :") if type in INTEGERS else ("-1.0 :", "1.0 :")
    body = op.replace("0. :", zero).replace("1. :", one).replace("xT>", f"x{type}>").replace(": T", f": {type}")
    result = body.rpartition("-> ")[2]
    given = f"%x: tensor<4x16x{type}>, %y: tensor<4x16x{type}>"
    return IRModule.parse(f"func.func @main({given}) -> {result} {{\n {body}\n func.return %0 : {result}\n}}")


def cast(source: str, target: str, size: int, flag: str = "") -> IRModule:
    a, b = f"tensor<{size}x{source}>", f"tensor<{size}x{target}>"
    body = f"%0 = relay.cast %x {{dtype = {target}{flag}}} : ({a}) -> {b}"
    return IRModule.parse(f"func.func @main(%x: {a}) -> {b} {{\n {body}\n func.return %0 : {b}\n}}")


def same(module: IRModule, inputs: Sequence[Array], target: str = "llvm") -> None:
    """The executable gives the interpreter's numbers, bit for bit, but for which NaN."""
    (expected,), actual = run(module, inputs), build(module, target=target).run(*inputs)
    assert isinstance(actual, np.ndarray)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if np.issubdtype(expected.dtype, np.integer) or expected.dtype == np.bool_ or "int" in expected.dtype.name:
        assert actual.tobytes() == expected.tobytes()
        return
    with np.errstate(invalid="ignore"):
        reals, wanted = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(reals, wanted)
    np.testing.assert_array_equal(np.signbit(reals), np.signbit(wanted))


def every_code(type: str) -> Array:
    of = dtype(type)
    if of.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(of)
    bits = int("".join(c for c in type if c.isdigit())[:1])
    return np.arange(1 << bits, dtype=np.uint8).view(of)


def near_codes(type: str) -> Array:
    """Numbers of f32 at every code, in the middle between neighbours, and beside both."""
    finite = every_code(type).astype(np.float32)
    finite = np.unique(finite[np.isfinite(finite)])
    middles = (finite[1:].astype(np.float64) + finite[:-1]) / 2
    with np.errstate(over="ignore"):
        points = np.concatenate([finite, middles.astype(np.float32), finite[-1:] * 1.5, finite[:1] * 4])
    beside = [np.nextafter(points, np.float32(direction)) for direction in (-np.inf, np.inf)]
    return np.concatenate(
        [points, *beside, np.array([0.0, -0.0, np.inf, -np.inf, 1e38, -1e-44, np.nan, -np.nan], np.float32)]
    )


@pytest.mark.parametrize(
    "type", few([*FLOATS, *FEWER, "f8E8M0FNU", *INTEGERS], "bf16", "f8E4M3FN", "f4E2M1FN", "f8E8M0FNU", "i4", "ui2")
)
def test_every_code_is_read_as_it_is_meant(type: str):
    codes = every_code(type)
    same(cast(type, "f32", codes.size), [codes])


@pytest.mark.parametrize("type", few([*FLOATS, *FEWER], "bf16", "f8E5M2FNUZ", "f8E4M3", "f4E2M1FN"))
def test_floats_are_rounded_as_they_are_meant(type: str):
    reals = near_codes(type)
    same(cast("f32", type, reals.size), [reals])
    if type != "bf16":
        same(cast("f32", type, reals.size, ", saturate"), [reals])


@pytest.mark.parametrize("type", few(["bf16", "f8E4M3FN", "f8E5M2FNUZ"], "f8E4M3FN"))
@pytest.mark.parametrize("source", ["f64", "f16", "i32", "ui8", "i1", "i4"])
def test_other_numbers_are_rounded_once(type: str, source: str):
    wide = near_codes(type).astype(np.float64)
    with np.errstate(all="ignore"):
        lines = np.concatenate([wide, wide * (1 + 2.0**-40), wide * (1 - 2.0**-40), [2.0**31 - 1, 513.0, 514.0]])
        of = dtype(source)
        numbers = np.clip(lines, -(2.0**31), 2.0**31 - 1).astype(of) if "i" in source else lines.astype(of)
    same(cast(source, type, numbers.size), [numbers])


@pytest.mark.parametrize("type", few(INTEGERS, "i4", "ui2"))
@pytest.mark.parametrize("source", few(["i32", "i8", "f32", "bf16"], "i32", "bf16"))
def test_integers_of_few_bits_wrap(type: str, source: str):
    low, high = (-300, 300) if source == "i32" else (-128, 128) if source == "i8" else (0, 2)
    numbers = np.arange(low, high).astype(dtype(source))
    same(cast(source, type, numbers.size), [numbers])


@pytest.mark.parametrize(
    ("op", "type"),
    [
        pytest.param(op, type, marks=() if op == "relay.add" or type in ("bf16", "i4") else pytest.mark.ci)
        for op in OPS
        for type in ("bf16", "f8E4M3FN", "f8E5M2FNUZ", "f4E2M1FN", *INTEGERS)
    ],
)
def test_ops_compute_in_a_wider_type_and_round_once(op: str, type: str):
    rng = np.random.default_rng(5)
    x, y = (rng.choice(every_code(type), (4, 16)) for _ in range(2))
    if type not in INTEGERS:
        x, y = (np.where(np.isfinite(v.astype(np.float32)), v, np.ones_like(v)) for v in (x, y))
    same(parsed(type, OPS[op]), [x, y])


def test_a_product_of_bf16_is_that_of_f32_rounded():
    rng = np.random.default_rng(5)
    x, k = (rng.integers(-8, 8, shape).astype(ml_dtypes.bfloat16) for shape in ((5, 32), (12, 32)))
    types = "tensor<5x32xbf16>", "tensor<12x32xbf16>", "tensor<5x12xbf16>"
    body = f"%0 = relay.nn.dense %x, %k {{out_dtype = bf16}} : ({types[0]}, {types[1]}) -> {types[2]}"
    text = (
        f"func.func @main(%x: {types[0]}, %k: {types[1]}) -> {types[2]} {{\n {body}\n func.return %0 : {types[2]}\n}}"
    )
    same(IRModule.parse(text), [x, k])


def test_constants_of_few_bits_are_weights_of_a_model_in_f32():
    weights = "dense<[[1, -2, 7, -8], [0, 3, -1, 4]]> : tensor<2x4xi4>"
    text = f"""func.func @main(%x: tensor<3x4xf32>) -> tensor<3x2xf32> {{
      %w = relay.constant {weights}
      %k = relay.cast %w {{dtype = f32}} : (tensor<2x4xi4>) -> tensor<2x4xf32>
      %0 = relay.nn.dense %x, %k {{out_dtype = f32}} : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
      func.return %0 : tensor<3x2xf32>
    }}"""
    same(IRModule.parse(text), [np.arange(12, dtype=np.float32).reshape(3, 4)])


def test_a_saved_executable_keeps_the_types_of_its_arguments(tmp_path: Path):
    module = parsed("bf16", OPS["relay.add"])
    build(module).save(tmp_path / "model.bin")
    loaded = runtime.load(tmp_path / "model.bin")
    assert [spec.dtype for spec in loaded.inputs] == [dtype("bf16")] * 2
    x = np.ones((4, 16), ml_dtypes.bfloat16)
    found = loaded.run(x, x)
    assert isinstance(found, np.ndarray) and found.tobytes() == np.full((4, 16), 2, x.dtype).tobytes()


@pytest.mark.parametrize(("source", "target"), [("f32", "f8E8M0FNU"), ("i64", "bf16"), ("ui64", "f8E5M2")])
def test_a_cast_without_lowering_is_one_clear_error(source: str, target: str):
    with pytest.raises(Unsupported, match=f"relay.cast in @.*: has no lowering from {source} to {target}; "):
        build(cast(source, target, 4))


@pytest.mark.parametrize("type", INTEGERS)
def test_products_of_few_bits_stay_refused_by_the_verifier(type: str):
    a = f"tensor<4x4x{type}>"
    body = f"%0 = relay.nn.dense %x, %x {{out_dtype = {type}}} : ({a}, {a}) -> {a}"
    with pytest.raises(Malformed, match=f"takes floats or 8/16-bit codes, not {type}"):
        IRModule.parse(f"func.func @main(%x: {a}) -> {a} {{\n {body}\n func.return %0 : {a}\n}}")


class Foreign:
    """An array of another library, that numpy has no dtype for: only DLPack gives it."""

    def __init__(self, array: Array):
        self.array = array

    def __array__(self, *_: object) -> Array:
        raise TypeError("no such dtype")

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0

    def __dlpack__(self, **_: object) -> object:
        place = self.array.ctypes.data
        return dlpack.capsule_of(place, self.array.shape, self.array.dtype, self.__dlpack_device__(), self.array)


@pytest.mark.parametrize("type", ["bf16", "f8E5M2"])
def test_an_array_that_numpy_cannot_hold_is_taken_by_dlpack(type: str):
    executable = build(parsed(type, OPS["relay.add"]))
    x = np.ones((4, 16), dtype(type))
    found = executable.run(Foreign(x), Foreign(x))
    assert isinstance(found, np.ndarray) and found.tobytes() == np.full((4, 16), 2, x.dtype).tobytes()
    assert not dlpack.EXPORTED


def test_without_ml_dtypes_a_model_of_such_numbers_is_one_clear_error(tmp_path: Path):
    build(parsed("bf16", OPS["relay.add"])).save(tmp_path / "model.bin")
    code = f"""
import sys
sys.modules["ml_dtypes"] = None
from relay import runtime
from relay.errors import Unsupported
try:
    runtime.load({str(tmp_path / "model.bin")!r})
except Unsupported as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "numbers of bfloat16: need the package ml_dtypes; pip install ml_dtypes\n"
