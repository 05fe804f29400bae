"""Rescaled sums of codes on a GPU, on the emulator: all pairs of codes, from memory and just clipped."""

from __future__ import annotations

import numpy as np
import pytest

from relay.interpreters import run
from relay.interpreters.arithmetic import fused_multiply_add
from relay.module import IRModule
from tests.numeric.gpu_models import Emulated
from tests.numeric.test_rescaled_codes_compiled import PARAMETERS

CODES = np.arange(256, dtype=np.uint8)
SHAPE = "tensor<256x256x{}>"
RESCALE = (
    "input_scale = 0.05 : f32, output_scale = 0.03 : f32, input_zero_point = 14 : i32, output_zero_point = 14 : i32, "
    'multiplier = 1789569773 : i32, shift = 1 : i32, real_multiplier = 1.6666667 : f64, rounding = "tflite"'
)


def codes(dtype: str) -> list[np.ndarray]:
    """All pairs of codes."""
    return [np.ascontiguousarray(side).view(dtype) for side in np.meshgrid(CODES, CODES, indexing="ij")]


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
@pytest.mark.parametrize("kind", ["add", "subtract"])
def test_all_pairs(kind: str, dtype: str):
    type = SHAPE.format(dtype)
    module = IRModule.parse(
        f"""func.func @main(%x: {type}, %y: {type}) -> {type} {{
          %r = qnn.{kind} %x, %y {{{PARAMETERS}}} : ({type}, {type}) -> {type}
          func.return %r : {type}
        }}"""
    )
    given = codes("int8" if dtype == "i8" else "uint8")
    model = Emulated(module)
    np.testing.assert_array_equal(model.run(given)[0], run(module, given)[0])
    text = model.executable.get_source("ptx")
    assert "dp2a" in text and "cvt.rni.s32.f32" in text and "cvt.pack.sat" in text


def test_codes_that_were_just_clipped():
    type = SHAPE.format("i8")
    module = IRModule.parse(
        f"""func.func @main(%x: {type}, %y: {type}) -> {type} {{
          %z = qnn.requantize %x {{{RESCALE}, out_dtype = i8}} : ({type}) -> {type}
          %r = qnn.add %z, %y {{{PARAMETERS}}} : ({type}, {type}) -> {type}
          func.return %r : {type}
        }}"""
    )
    model = Emulated(module)
    np.testing.assert_array_equal(model.run(codes("int8"))[0], run(module, codes("int8"))[0])
    assert "cvt.sat.f32.f32" in model.executable.get_source("ptx")


def test_sums_are_rounded_once():
    """Against exact rationals, at numbers whose sums float64 cannot hold."""
    rng = np.random.default_rng(5)
    x, y, z = ((rng.standard_normal(4000) * scale).astype(np.float32) for scale in (1, 1, 2.0**-20))
    exact = x.astype(np.longdouble) * y.astype(np.longdouble) + z.astype(np.longdouble)
    assert np.finfo(np.longdouble).nmant < 63 or np.array_equal(fused_multiply_add(x, y, z), exact.astype(np.float32))
    one, tiny = np.array([1.0], np.float32), np.array([2.0**-24], np.float32)
    above = np.nextafter(one, np.float32(2))
    assert fused_multiply_add(one, tiny, one)[0] == 1 and fused_multiply_add(above, tiny, one)[0] == above[0]
