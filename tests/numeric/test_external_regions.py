"""Regions of every form, written by hand: several results, results that are inputs or the same, uncommon windows."""

from __future__ import annotations

import numpy as np
import pytest

from relay import IRModule
from relay.byoc import BuildInfo, find
from relay.errors import Malformed, Unsupported
from relay.interpreters import run
from relay.interpreters.arithmetic import quantize_multiplier
from relay.runtime import loaders
from tests.numeric.external_sessions import COMPILERS, Session, compare, installed, whole

SHARED = """
func.func @main(%x: tensor<1x4x4x2xi8>, %y: tensor<1x4x4x2xi8>)
  -> (tensor<1x2x2x2xi8>, tensor<1x4x4x2xi8>, tensor<1x2x2x2xi8>, tensor<8xi8>) {
  %p = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x4x2xi8>)
    -> tensor<1x2x2x2xi8>
  %r = relay.reshape %p {newshape = array<i64: 8>} : (tensor<1x2x2x2xi8>) -> tensor<8xi8>
  func.return %p, %y, %p, %r : tensor<1x2x2x2xi8>, tensor<1x4x4x2xi8>, tensor<1x2x2x2xi8>, tensor<8xi8>
}
"""
CONVOLUTION = """
func.func @main(%x: tensor<1x7x6x4x{code}>) -> tensor<1x{rows}x{columns}x4x{code}> {{
  %k = relay.constant dense<{kernel}> : tensor<{dims}x{code}>
  %b = relay.constant dense<[100, -200, 300, 0]> : tensor<4xi32>
  %c = qnn.conv2d %x, %k {{strides = array<i64: {strides}>, padding = array<i64: {padding}>, groups = {groups} : i64,
    dilation = array<i64: {dilation}>, kernel_layout = "{layout}", input_scale = 0.5 : f32,
    input_zero_point = {zero} : i32, kernel_scale = 0.01 : f32, kernel_zero_point = {kernel_zero} : i32,
    out_dtype = i32}}
    : (tensor<1x7x6x4x{code}>, tensor<{dims}x{code}>) -> tensor<1x{rows}x{columns}x4xi32>
  %d = relay.nn.bias_add %c, %b : (tensor<1x{rows}x{columns}x4xi32>, tensor<4xi32>) -> tensor<1x{rows}x{columns}x4xi32>
  %r = qnn.requantize %d {{input_scale = 0.005 : f32, output_scale = 2.0 : f32, output_zero_point = {zero} : i32,
    multiplier = {multiplier} : i32, shift = {shift} : i32, min = {low} : i32, max = {high} : i32, out_dtype = {code}}}
    : (tensor<1x{rows}x{columns}x4xi32>) -> tensor<1x{rows}x{columns}x4x{code}>
  func.return %r : tensor<1x{rows}x{columns}x4x{code}>
}}
"""
DEFAULTS: dict[str, str | int] = {
    "code": "i8",
    "dims": "4x3x3x4",
    "layout": "OHWI",
    "groups": 1,
    "strides": "1, 1",
    "dilation": "1, 1",
    "padding": "1, 1, 1, 1",
    "zero": 3,
    "kernel_zero": 0,
    "low": 3,
    "high": 127,
}
SHAPES: dict[str, dict[str, str | int]] = {
    "same": {},
    "more padding than SAME": {"padding": "2, 0, 1, 3"},
    "strides": {"strides": "2, 3", "padding": "0, 1, 1, 0"},
    "dilation": {"dilation": "2, 1", "padding": "2, 1, 2, 1"},
    "groups": {"groups": 2, "dims": "4x3x3x2"},
    "depthwise": {"groups": 4, "dims": "3x3x4x1", "layout": "HWOI"},
    "uint8": {"code": "ui8", "kernel_zero": 120, "high": 255},
    "one pixel": {"dims": "4x1x1x4", "padding": "0, 0, 0, 0"},
}


def convolution(name: str) -> str:
    """The module of a row of `SHAPES`."""
    row = DEFAULTS | SHAPES[name]
    sizes = [int(d) for d in str(row["dims"]).split("x")]
    height, width = sizes[:2] if row["layout"] == "HWOI" else sizes[1:3]
    (sy, sx), (dy, dx), pads = (
        [int(n) for n in str(row[key]).split(",")] for key in ("strides", "dilation", "padding")
    )
    top, left, bottom, right = pads
    row["rows"] = (7 + top + bottom - (height - 1) * dy - 1) // sy + 1
    row["columns"] = (6 + left + right - (width - 1) * dx - 1) // sx + 1
    rng = np.random.default_rng(len(name))
    unsigned = row["code"] == "ui8"
    numbers = rng.integers(0, 256, sizes) if unsigned else rng.integers(-127, 128, sizes)
    row["kernel"] = str(numbers.tolist())
    real = (
        np.float64(np.float32(0.5) * np.float32(0.01)) if unsigned else np.float64(0.5) * np.float64(np.float32(0.01))
    )
    row["multiplier"], row["shift"] = quantize_multiplier(float(real / 2.0))
    return CONVOLUTION.format(**row)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_results_that_are_shared(compiler: str) -> None:
    installed(compiler)
    mod = IRModule.parse(SHARED)
    rng = np.random.default_rng(0)
    feeds = [rng.integers(-128, 128, (1, 4, 4, 2)).astype(np.int8) for _ in range(2)]
    for result, wanted in zip(Session(mod["main"], compiler)(feeds), run(mod, feeds), strict=True):
        assert np.array_equal(result, wanted)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_convolution(compiler: str, name: str) -> None:
    installed(compiler)
    mod = IRModule.parse(convolution(name))
    part = whole(mod, compiler)
    if compiler == "onednn" and name == "uint8":
        assert part is None  # its kernel has a zero point
        return
    assert part is not None
    rng = np.random.default_rng(0)
    type = np.uint8 if name == "uint8" else np.int8
    feed = rng.integers(np.iinfo(type).min, np.iinfo(type).max + 1, (1, 7, 6, 4)).astype(type)
    (result,), (wanted,) = Session(part, compiler)([feed]), run(mod, [feed])
    compare(result, wanted, 0 if find(compiler).exact else 1, f"{compiler} {name}")
    assert len(np.unique(result)) > 8


@pytest.mark.parametrize("shape", [(), (7,), (3, 1, 1, 5), (2, 3, 4, 5, 6), (2, 1, 2, 3, 2, 2), (2, 1, 1, 2, 1, 2, 3)])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_tensors_of_any_rank(compiler: str, shape: tuple[int, ...]) -> None:
    """They are computed, or the compiler leaves them."""
    installed(compiler)
    type = f"tensor<{''.join(f'{size}x' for size in shape)}f32>"
    mod = IRModule.parse(f"""
      func.func @main(%x: {type}, %y: {type}) -> {type} {{
        %s = relay.add %x, %y : ({type}, {type}) -> {type}
        func.return %s : {type}
      }}""")
    part = whole(mod, compiler)
    assert (part is None) == (compiler == "onednn" and len(shape) > 6)
    if part is not None:
        feeds = [
            np.random.default_rng(seed).standard_normal(shape).astype(np.float32).reshape(shape) for seed in (0, 1)
        ]
        assert np.array_equal(Session(part, compiler)(feeds)[0], run(mod, feeds)[0])


@pytest.mark.parametrize("op", ["max", "min", "sum"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_reductions_along_no_axes(compiler: str, op: str) -> None:
    """Every element by itself; or the compiler leaves it."""
    installed(compiler)
    mod = IRModule.parse(f"""
      func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
        %s = relay.{op} %x {{axis = array<i64: 0>, keepdims = true, exclude = true}} : (tensor<3xf32>) -> tensor<3xf32>
        func.return %s : tensor<3xf32>
      }}""")
    if (part := whole(mod, compiler)) is not None:
        feed = np.array([3, -1, 2], np.float32)
        assert np.array_equal(Session(part, compiler)([feed])[0], feed)


@pytest.mark.parametrize("op", ["greater", "less", "equal"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_comparisons_of_truth_values(compiler: str, op: str) -> None:
    installed(compiler)
    mod = IRModule.parse(f"""
      func.func @main(%x: tensor<4xi1>, %y: tensor<4xi1>) -> tensor<4xi1> {{
        %s = relay.{op} %x, %y : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        func.return %s : tensor<4xi1>
      }}""")
    if (part := whole(mod, compiler)) is not None:
        feeds = [np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)]
        assert np.array_equal(Session(part, compiler)(feeds)[0], run(mod, feeds)[0])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_was_not_offered_is_refused(compiler: str) -> None:
    installed(compiler)
    sums = convolution("same").split("%d =")[0] + "func.return %c : tensor<1x7x6x4xi32>\n}"
    sums = sums.replace("-> tensor<1x7x6x4xi8> {", "-> tensor<1x7x6x4xi32> {", 1)
    with pytest.raises(Unsupported, match="qnn.conv2d: is not compiled: its sums are used as such"):
        find(compiler).compile(IRModule.parse(sums)["main"], BuildInfo())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_broken_artifact(compiler: str) -> None:
    installed(compiler)
    for artifact in (b"", b"no artifact at all, but bytes"):
        with pytest.raises(Malformed, match=f"cannot be loaded by '{compiler}'|external function f: is no program"):
            loaders.load(compiler, "1", "f", artifact, {}, [], [])
