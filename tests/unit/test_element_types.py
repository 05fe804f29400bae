"""bf16, floats of 8 bits and less, integers of 2 and 4 bits: text, side-car files, bytes, casts in the interpreter."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path
from shutil import which

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import BFloat16Type, IntegerType, ReducedPrecisionFloatType, Signedness, UnitAttr, f32

from relay import IRModule
from relay.dialects import relay
from relay.dialects.attributes import Array, WeightPrinter, dtype_of, element_type, elements, to_numpy
from relay.dialects.element_types import FEW_BITS, as_stored, bits_of, converted, from_stored
from relay.errors import InvalidArgument, Malformed
from relay.interpreters import compute
from relay.module import read_module

FLOATS = [
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3b11fnuz",
    "float8_e4m3",
    "float8_e3m4",
]
OFTEN = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")
"""One of each way to write infinities and NaN."""
NAMES = [*FLOATS, *FEW_BITS, "bfloat16", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
MLIR_OPT = which("mlir-opt-22") or which("mlir-opt")


def dtype(name: str) -> np.dtype[np.generic]:
    return np.dtype(getattr(ml_dtypes, name))


def every_code(name: str) -> Array:
    """All numbers of a dtype."""
    of = dtype(name)
    if of.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(of)
    bits = int(name[-1]) if name in FEW_BITS else int(name[5])
    return np.arange(1 << bits, dtype=np.uint8).view(of)


def cast(x: Array, to: str, *, saturate: bool = False) -> Array:
    flag = UnitAttr() if saturate else None
    (result,) = compute(relay.CastOp, [x], {"dtype": element_type(dtype_named(to)), "saturate": flag})
    return result


def dtype_named(name: str) -> np.dtype[np.generic]:
    return dtype(name) if name in NAMES else np.dtype(name)


def text_of(array: Array) -> str:
    """A module that returns the array, with its numbers in full."""
    weight, out = elements(array, label="w"), StringIO()
    WeightPrinter(out).print_attribute(weight)
    body = f"%0 = relay.constant {out.getvalue()}\n  func.return %0 : {weight.type}"
    return f"func.func @main() -> {weight.type} {{\n  {body}\n}}"


def constant_of(module: IRModule) -> Array:
    op = next(op for op in module.op.walk() if op.name == "relay.constant")
    return np.array(to_numpy(op.properties["value"]))


def some(name: str, shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(7).choice(every_code(name), shape)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (3,), (40, 41), (0, 2)])
def test_text_and_side_car_keep_every_bit(name: str, shape: tuple[int, ...], tmp_path: Path):
    array = some(name, shape)
    module = IRModule.parse(text_of(array))
    found = constant_of(module)
    assert found.dtype == array.dtype and found.shape == shape and found.tobytes() == array.tobytes()
    (op,) = [op for op in module.op.walk() if op.name == "relay.constant"]
    op.properties["value"] = elements(array, label="w")
    (tmp_path / "m.mlir").write_text(str(module))
    module.save_weights(tmp_path / "m.safetensors")
    again = constant_of(read_module(tmp_path / "m.mlir"))
    assert again.dtype == array.dtype and again.tobytes() == array.tobytes()


def of_upstream(name: str, shape: tuple[int, ...]) -> Array:
    """Numbers of a dtype, of those that are none of ours too."""
    return some(name, shape) if name in NAMES else np.random.default_rng(7).integers(0, 2, shape).astype(name)


@cache
def printed(names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[str, dict[object, str]]:
    """The errors of one process, and what it prints of a module for each dtype and shape."""
    texts: list[str] = []
    for name, shape in product(names, shapes):
        array = of_upstream(name, shape)
        text = text_of(array).replace("relay.constant ", '"relay.constant"() {value = ')
        texts.append(text.replace("\n  func.return", f"}} : () -> {elements(array).type}\n  func.return"))
    command = [str(MLIR_OPT), "--allow-unregistered-dialect", "--split-input-file"]
    given = "\n// -----\n".join(texts)
    done = subprocess.run(command, input=given, text=True, capture_output=True)
    return done.stderr, dict(zip(product(names, shapes), done.stdout.split("// -----"), strict=False))


UPSTREAM, SHAPES = (*NAMES, "bool", "float32"), ((), (5,), (11, 23))


@pytest.mark.skipif(MLIR_OPT is None, reason="needs mlir-opt 22")
@pytest.mark.parametrize("name", UPSTREAM)
@pytest.mark.parametrize("shape", SHAPES)
def test_mlir_opt_takes_our_text_and_we_take_what_it_prints(name: str, shape: tuple[int, ...]):
    errors, texts = printed(UPSTREAM, SHAPES)
    assert not errors
    text = texts[name, shape]
    assert constant_of(IRModule.parse(text)).tobytes() == of_upstream(name, shape).tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<[1, -2, 15]> : tensor<3xi4>", [1, -2, -1]),
        ('dense<"0x0F07"> : tensor<2xi4>', [-1, 7]),
        ('dense<"0x0F"> : tensor<3xui4>', [15, 15, 15]),
        ('dense<"0x0302"> : tensor<2xi2>', [-1, -2]),
        ('dense<"0x05"> : tensor<3xi1>', [True, False, True]),
        ('dense<"0x0501"> : tensor<9xi1>', [True, False, True, *[False] * 5, True]),
        ("dense<0x7F80> : tensor<2xbf16>", [math.inf, math.inf]),
        ("dense<[0x7F800000, 1.0]> : tensor<2xf32>", [math.inf, 1.0]),
        ("dense<[0xFC, 0x3C]> : tensor<2xf8E5M2>", [-math.inf, 1.0]),
        ("dense<-3> : tensor<2x1xi4>", [[-3], [-3]]),
    ],
)
def test_upstreams_spellings_are_read(text: str, expected: list[float]):
    type = text.rpartition(" : ")[2]
    module = IRModule.parse(f"func.func @main() -> {type} {{ %0 = relay.constant {text}\n func.return %0 : {type} }}")
    assert constant_of(module).astype(np.float32).tolist() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dense<[0x1FF]> : tensor<1xf8E5M2>", "f8E5M2 has 8 bits"),
        ('dense<"0x0102"> : tensor<3xi4>', "Expected 3 elements from the type, but got 2"),
        ("dense<[1, 2]> : tensor<3xi4>", "Expected [3] shape from the type, but got [2] shape"),
        ('dense<"0xZZ"> : tensor<3xi4>', "Hex string in denseAttr is invalid"),
        ("dense<16> : tensor<1xi4>", "out of range for type i4"),
    ],
)
def test_a_wrong_constant_is_one_clear_error(text: str, message: str):
    with pytest.raises(Malformed) as raised:
        IRModule.parse(f"func.func @main() {{ %0 = relay.constant {text}\n func.return }}")
    assert message in str(raised.value)


def test_each_type_has_its_dtype_and_back():
    types = [BFloat16Type(), *(of() for of in ReducedPrecisionFloatType.__subclasses__() if of.name != "tf32")]
    types += [IntegerType(bits, sign) for bits in (2, 4) for sign in (Signedness.SIGNLESS, Signedness.UNSIGNED)]
    assert [element_type(dtype_of(type)) for type in types] == types
    assert {dtype_of(type).name for type in types} == set(NAMES)
    assert [bits_of(type) for type in types[:2]] == [16, 8] and [bits_of(type) for type in types[-4:]] == [2, 2, 4, 4]
    with pytest.raises(InvalidArgument, match="has no numpy dtype"):
        dtype_of(IntegerType(5))


@pytest.mark.parametrize(("name", "size"), [("int4", 3), ("uint4", 3), ("int2", 2), ("uint2", 2)])
def test_files_hold_several_numbers_a_byte_the_first_in_the_lowest_bits(name: str, size: int):
    array = np.array([1, 0, 1, 1, 1], np.int8).astype(dtype(name))
    stored = as_stored(array)
    first = 1 | 0 << int(name[-1]) | (1 << 4 | 1 << 6 if size == 2 else 0)
    assert stored.dtype == np.uint8 and stored.size == size and stored[0] == first
    assert from_stored(stored, array.dtype, array.shape).tobytes() == array.tobytes()


def test_equal_numbers_are_equal_weights_whatever_the_bits_beside_them():
    codes = np.array([0x0F, 0xFF, 0x7F], np.uint8)
    weight = elements(codes.view(ml_dtypes.int4))
    assert (
        weight.array.tobytes() == b"\x0f\x0f\x0f" and weight.handle == elements(np.full(3, -1, ml_dtypes.int4)).handle
    )


# Casts, against oracles that share no code with ours


@pytest.mark.parametrize("name", FLOATS)
def test_every_code_of_8_bits_is_the_number_that_upstreams_semantics_define(name: str):
    type = element_type(dtype(name))
    assert isinstance(type, ReducedPrecisionFloatType)
    reals = [type.decode_bits(code) for code in range(256)]
    np.testing.assert_array_equal(cast(every_code(name), "float32"), np.array(reals, np.float32))


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.ci) for n in FLOATS])
@given(st.floats(width=32))
def test_a_float_is_rounded_to_8_bits_as_upstreams_semantics_define(name: str, real: float):
    type = element_type(dtype(name))
    assert isinstance(type, ReducedPrecisionFloatType)
    (found,) = cast(np.array([real], np.float32), name).astype(np.float32)
    np.testing.assert_array_equal(found, np.float32(type.decode_bits(type.encode_bits(real))))


@given(st.floats(width=64))
def test_a_double_is_rounded_to_bf16_once(real: float):
    found = cast(np.array([real]), "bfloat16").astype(np.float64)[0]
    if math.isnan(real):
        assert math.isnan(found)
        return
    bits = struct.unpack("<H", BFloat16Type().pack([real]))[0]
    np.testing.assert_array_equal(found, np.uint32(bits << 16).view(np.float32).astype(np.float64))


@given(st.integers(0, 2**32 - 1))
def test_bf16_is_the_upper_half_of_f32_rounded_half_to_even(bits: int):
    real = np.array([bits], np.uint32).view(np.float32)
    (found,) = cast(real, "bfloat16").view(np.uint16)
    if np.isnan(real[0]):
        assert found & 0x7FFF > 0x7F80
    else:
        assert found == (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def test_every_bf16_is_the_f32_whose_upper_half_it_is():
    codes = every_code("bfloat16")
    expected = (codes.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(cast(codes, "float32"), expected)


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_of_64_bits_is_rounded_to_bf16_once(number: int):
    found = int(cast(np.array([number]), "bfloat16").astype(np.float64)[0])
    size = max(abs(number).bit_length() - 8, 0)
    whole, rest = abs(number) >> size, abs(number) & ((1 << size) - 1)
    half = 1 << size >> 1
    up = rest > half or (rest == half and size > 0 and whole & 1)
    assert found == int(math.copysign(1, number)) * (whole + up << size)


@pytest.mark.parametrize("name", FEW_BITS)
def test_integers_wrap_to_few_bits_and_widen_with_their_sign(name: str):
    bits, signed = int(name[-1]), name.startswith("i")
    numbers = np.arange(-300, 300, dtype=np.int32)
    modulus = 1 << bits
    wrapped = [(n % modulus) - (modulus if signed and n % modulus >= modulus // 2 else 0) for n in range(-300, 300)]
    assert cast(numbers, name).astype(np.int32).tolist() == wrapped
    assert cast(cast(numbers, name), "int64").tolist() == wrapped
    assert cast(cast(numbers, name), "bool").tolist() == [n != 0 for n in wrapped]
    least = -modulus // 2 if signed else 0
    reals = np.array([least + 0.75, least, least + modulus - 1.25], np.float32)
    assert cast(reals, name).astype(np.int32).tolist() == [int(real) for real in reals]


BEYOND = {
    "float8_e4m3fn": (448.0, math.nan),
    "float8_e5m2": (57344.0, math.inf),
    "float8_e4m3fnuz": (240.0, math.nan),
    "float8_e5m2fnuz": (57344.0, math.nan),
}
"""The largest number, and what is beyond it: the table of ONNX's `Cast`."""


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_too_large_saturates_only_if_asked(name: str):
    most, beyond = BEYOND[name]
    given = np.array([most, most * 2, -most * 2, math.inf, -math.inf, math.nan], np.float32)
    np.testing.assert_array_equal(
        cast(given, name).astype(np.float32), np.array([most, beyond, -beyond, beyond, -beyond, math.nan], np.float32)
    )
    np.testing.assert_array_equal(
        cast(given, name, saturate=True).astype(np.float32), np.array([most, most, -most, most, -most, math.nan])
    )


def test_only_floats_of_few_bits_saturate():
    with pytest.raises(InvalidArgument, match="only floats of few bits saturate, not bf16"):
        cast(np.zeros(1, np.float32), "bfloat16", saturate=True)


@pytest.mark.parametrize("kind", [relay.AddOp, relay.SubtractOp, relay.MultiplyOp, relay.DivideOp])
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_arithmetic_on_16_bits_is_that_of_f32_rounded_once(kind: type[relay.BinaryOp], name: str):
    rng = np.random.default_rng(3)
    lhs, rhs = (cast(rng.normal(size=4096).astype(np.float32), name) for _ in range(2))
    (found,) = compute(kind, [lhs, rhs])
    (wide,) = compute(kind, [cast(lhs, "float32"), cast(rhs, "float32")])
    assert found.dtype == dtype_named(name) and found.tobytes() == cast(wide, name).tobytes()


def test_a_sum_of_bf16_is_rounded_once():
    ones = np.ones(1000, ml_dtypes.bfloat16)
    (found,) = compute(relay.SumOp, [ones], {"axis": relay_axis(0)})
    assert found.dtype == ones.dtype and float(found) == 1000.0


def relay_axis(axis: int):
    from relay.dialects.attributes import ints

    return ints([axis])


@pytest.mark.parametrize("name", FEW_BITS)
def test_arithmetic_on_few_bits_wraps(name: str):
    every = every_code(name)
    lhs, rhs = np.meshgrid(every, every)
    wide = lhs.astype(np.int32), rhs.astype(np.int32)
    for kind, function in ((relay.AddOp, np.add), (relay.SubtractOp, np.subtract), (relay.MultiplyOp, np.multiply)):
        (found,) = compute(kind, [lhs, rhs])
        assert found.astype(np.int32).tolist() == cast(function(*wide), name).astype(np.int32).tolist()


def test_rounding_is_the_same_for_arrays_of_rank_0():
    assert float(converted(np.asarray(1.00390625), dtype("bfloat16"))) == 1.0
    assert element_type(np.float32) == f32


@pytest.mark.parametrize("module", ["relay", "relay.runtime", "relay.dialects.relay", "relay.transform"])
def test_ml_dtypes_is_imported_when_such_a_type_is_met_not_before(module: str):
    command = f"import sys, {module}; sys.exit('ml_dtypes' in sys.modules)"
    subprocess.run([sys.executable, "-c", command], check=True)
