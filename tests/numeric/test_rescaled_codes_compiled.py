"""Codes rescaled to other codes, alone as a table; sums of codes of which one side is repeated as one rescaling."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relay
from relay.compile.pipeline import default_pipeline
from relay.interpreters import run
from relay.lowering.share_kernels import ShareKernels
from relay.module import IRModule
from relay.passes import Pipeline

SCALES = "input_scale = 0.05 : f32, output_scale = 0.03 : f32, input_zero_point = 14 : i32, output_zero_point = 3 : i32"
FACTOR = "multiplier = 1789569773 : i32, shift = 1 : i32, real_multiplier = 1.6666667 : f64"
KINDS = [("i8", "i8", "tflite"), ("ui8", "i8", "tflite_single"), ("i8", "ui8", "f64_away"), ("ui8", "ui8", "f32_even")]


def rescaled(given: str, wanted: str, rounding: str, rows: int = 2) -> IRModule:
    x, y = f"tensor<{rows}x150x{given}>", f"tensor<{rows}x150x{wanted}>"
    return IRModule.parse(
        f"""func.func @main(%x: {x}) -> {y} {{
          %r = qnn.requantize %x {{{SCALES}, {FACTOR}, rounding = "{rounding}", out_dtype = {wanted}}} : ({x}) -> {y}
          func.return %r : {y}
        }}"""
    )


@pytest.mark.parametrize(
    ("given", "wanted", "rounding"),
    [*KINDS[::3], *(pytest.param(*kind, marks=pytest.mark.ci) for kind in KINDS[1:3])],
)
def test_a_rescale_alone_is_a_table(given: str, wanted: str, rounding: str):
    mod = rescaled(given, wanted, rounding)
    codes = np.resize(np.arange(256, dtype=np.uint8).view("int8" if given == "i8" else "uint8"), (2, 150))
    np.testing.assert_array_equal(relay.build(mod)(codes), run(mod, [codes])[0])
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(mod)
    assert "vpermi2var" in str(mod) and "fptosi" not in str(mod)


def test_fewer_codes_than_entries_are_no_table():
    mod = rescaled("i8", "i8", "tflite", rows=1)
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(mod)
    assert "vpermi2var" not in str(mod)


def test_a_rescale_beside_other_operations_is_no_table():
    mod = IRModule.parse(
        f"""func.func @main(%x: tensor<300xi8>, %y: tensor<300xi8>) -> tensor<300xi8> {{
          %r = qnn.requantize %x {{{SCALES}, {FACTOR}, out_dtype = i8}} : (tensor<300xi8>) -> tensor<300xi8>
          %m = relay.maximum %r, %y : (tensor<300xi8>, tensor<300xi8>) -> tensor<300xi8>
          func.return %m : tensor<300xi8>
        }}"""
    )
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(mod)
    assert "vpermi2var" not in str(mod)


PARAMETERS = (
    "lhs_scale = 0.05 : f32, lhs_zero_point = 14 : i32, rhs_scale = 0.04 : f32, rhs_zero_point = 5 : i32, "
    "output_scale = 0.061 : f32, output_zero_point = 3 : i32, multiplier = 1760232528 : i32, shift = -19 : i32, "
    "left_shift = 20 : i32, lhs_multiplier = 1073741824 : i32, lhs_shift = 0 : i32, "
    "rhs_multiplier = 1717986918 : i32, rhs_shift = -1 : i32"
)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("add", "37"),
        pytest.param("add", "1", marks=pytest.mark.ci),
        ("subtract", "4x1"),
        pytest.param("subtract", "3x1x1", marks=pytest.mark.ci),
    ],
)
def test_a_sum_with_repeated_codes_is_one_rescaling(kind: str, shape: str):
    whole, part = "tensor<3x4x37xi8>", f"tensor<{shape}xi8>"
    for sides in ((whole, part), (part, whole)):
        mod = IRModule.parse(
            f"""func.func @main(%x: {sides[0]}, %y: {sides[1]}) -> {whole} {{
              %r = qnn.{kind} %x, %y {{{PARAMETERS}}} : ({sides[0]}, {sides[1]}) -> {whole}
              func.return %r : {whole}
            }}"""
        )
        rng = np.random.default_rng(3)
        codes = [
            rng.integers(-128, 128, [int(n) for n in side[len("tensor<") : -len("xi8>")].split("x")]).astype(np.int8)
            for side in sides
        ]
        np.testing.assert_array_equal(relay.build(mod)(*codes), run(mod, codes)[0])
        default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(mod)
        rescale = str(mod.op.attributes["relay.rescale"])
        assert "f32 = 3 : i64" in rescale and "literal = 0" in rescale


QUANTIZED = [("i8", 0.05, 3), ("ui8", 2 / 255, 128), ("i8", 0.023528477, -128), ("i8", 0.125, 0), ("i16", 1e-3, 0)]


def quantizes(count: int, rounding: str = "away") -> IRModule:
    """Floats as codes of several kinds."""
    given = f"tensor<{count}xf32>"
    wanted = [f"tensor<{count}x{kind}>" for kind, _, _ in QUANTIZED]
    lines = [
        f"%{n} = qnn.quantize %x {{scale = {scale} : f32, zero_point = {zero} : i32, "
        f'rounding = "{rounding}", out_dtype = {kind}}} '
        f": ({given}) -> {wanted[n]}"
        for n, (kind, scale, zero) in enumerate(QUANTIZED)
    ]
    types, values = ", ".join(wanted), ", ".join(f"%{n}" for n in range(len(wanted)))
    return IRModule.parse(
        f"func.func @main(%x: {given}) -> ({types}) {{\n{chr(10).join(lines)}\nfunc.return {values} : {types}\n}}"
    )


@pytest.mark.parametrize("rounding", [pytest.param("away", marks=pytest.mark.ci), "even"])
def test_floats_on_both_sides_of_every_code(rounding: str):
    """The quotients' codes come from multiply-adds; they are those of the division on the floats around each step."""
    parts = [np.array([0, 1e-45, 1e-38, 1e-20, 1e9, 3e38, np.inf], np.float32)]
    for kind, scale, _ in QUANTIZED:
        levels = np.arange(0.5, 400) if kind != "i16" else np.arange(0.5, 33000, 37)
        near = (levels * np.float32(scale)).astype(np.float32).view(np.int32)[:, None]
        parts.append((near + np.arange(-3, 4, dtype=np.int32)).view(np.float32).reshape(-1))
    x = np.concatenate([sign * part for part in parts for sign in (1, -1)]).astype(np.float32)
    mod = quantizes(x.size, rounding)
    wanted = run(mod, [x])
    results = relay.build(mod)(x)
    assert isinstance(results, tuple)
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rounding", [pytest.param("away", marks=pytest.mark.ci), "even"])
@pytest.mark.parametrize(("features", "divisions"), [("-mattr=+fma", 0), ("", len(QUANTIZED))])
def test_quotients_are_multiplied_where_products_and_sums_are_fused(features: str, divisions: int, rounding: str):
    mod, steps = quantizes(64, rounding), default_pipeline(f"x86_64-linux-gnu {features}")
    Pipeline([step for step in steps if not isinstance(step, ShareKernels)]).apply(mod)
    assert len(re.findall("arith.divf .*: vector", str(mod))) == divisions


@pytest.mark.parametrize(
    "target", ["llvm", pytest.param("x86_64-unknown-linux-gnu -mattr=+sse2", marks=pytest.mark.ci)]
)
@pytest.mark.parametrize("rounding", ["tflite", "tflite_single", "upward", "tonearest"])
def test_shifts_to_the_left_of_some_channels(rounding: str, target: str):
    """The kernel has them as an argument, and only its callers know their signs."""
    x, vector = "tensor<2x5xi32>", "tensor<5xi32>"
    mod = IRModule.parse(
        f"""func.func @main(%x: {x}) -> {x} {{
          %m = relay.constant dense<[1073741824, 1373741824, 2073741824, 1173741824, 1273741824]> : {vector}
          %s = relay.constant dense<[3, -2, -5, 1, 0]> : {vector}
          %r = relay.fixed_point_multiply %x, %m, %s {{rounding = "{rounding}"}} : ({x}, {vector}, {vector}) -> {x}
          func.return %r : {x}
        }}"""
    )
    numbers = np.random.default_rng(0).integers(-3000, 3000, (2, 5)).astype(np.int32)
    np.testing.assert_array_equal(relay.build(mod, target)(numbers), run(mod, [numbers])[0])
