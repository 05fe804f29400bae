"""What passes derive from the facts that ops state (`relay.dialects.op`): more ops, and no other number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, i8

from relay.byoc.accuracy import declared
from relay.byoc.quantized import Codes
from relay.byoc.regions import Region
from relay.byoc.scales import find_scales
from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import shape, tensor
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.attach_target import AttachTarget
from relay.transforms.convert_layout import ConvertLayout
from relay.transforms.to_mixed_precision import ToMixedPrecision
from relay.transforms.unsigned_codes import UnsignedCodes, multiplies
from tests.unit.test_byoc_accuracy import Rounder, chain, function, requantize

RESCALED = """
  %q = qnn.requantize %x {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32,
    output_zero_point = -7 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, out_dtype = i8}
    : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>"""
MOVES = {
    "reverse": ("relay.reverse %q {axis = array<i64: 1>}", "2x3x4"),
    "tile": ("relay.tile %q {reps = array<i64: 1, 2, 1>}", "2x6x4"),
    "repeat": ("relay.repeat %q {repeats = 2 : i64, axis = 0 : i64}", "4x3x4"),
    "squeeze": ("relay.squeeze %q", "2x3x4"),
    "expand_dims": ("relay.expand_dims %q {axis = 0 : i64}", "1x2x3x4"),
    "stack": ("relay.stack %q", "1x2x3x4"),
    "mirror_pad": ("relay.nn.mirror_pad %q {pad_width = array<i64: 0, 0, 1, 0, 0, 0>}", "2x4x4"),
    "sort": ("relay.sort %q", "2x3x4"),
}


def typed(text: str, dims: str) -> str:
    return f"{text} : (tensor<2x3x4xi8>) -> tensor<{dims}xi8>"


@pytest.mark.parametrize("name", MOVES)
def test_scales_are_kept(name: str):
    text, dims = MOVES[name]
    body = f"{RESCALED}\n  %r = {typed(text, dims)}\n  func.return %r : tensor<{dims}xi8>"
    found = Region(IRModule.parse(f"func.func @main(%x: tensor<2x3x4xi8>) -> tensor<{dims}xi8> {{{body}\n}}")["main"])
    assert find_scales(found)[found.outputs[0]] == Codes(0.25, -7)


def test_all_parts_have_the_scale_of_the_whole():
    body = f"""{RESCALED}
  %a, %b = relay.split %q {{indices_or_sections = 2 : i64, axis = 2 : i64}}
    : (tensor<2x3x4xi8>) -> (tensor<2x3x2xi8>, tensor<2x3x2xi8>)
  func.return %a, %b : tensor<2x3x2xi8>, tensor<2x3x2xi8>"""
    types = "(tensor<2x3x2xi8>, tensor<2x3x2xi8>)"
    found = Region(IRModule.parse(f"func.func @main(%x: tensor<2x3x4xi8>) -> {types} {{{body}\n}}")["main"])
    assert [find_scales(found)[value] for value in found.outputs] == [Codes(0.25, -7)] * 2


def test_each_grid_has_the_scale_of_its_own_coordinates():
    body = """
  %a = relay.clip %x {a_min = 0 : i8, a_max = 9 : i8} : (tensor<2xi8>) -> tensor<2xi8>
  %g, %h = relay.meshgrid %a, %y : (tensor<2xi8>, tensor<3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  %d = qnn.dequantize %g {scale = 0.5 : f32, zero_point = 1 : i32} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  func.return %d, %h : tensor<2x3xf32>, tensor<2x3xi8>"""
    text = f"func.func @main(%x: tensor<2xi8>, %y: tensor<3xi8>) -> (tensor<2x3xf32>, tensor<2x3xi8>) {{{body}\n}}"
    found = Region(IRModule.parse(text)["main"])
    assert find_scales(found)[found.outputs[1]] == Codes(1.0, 0)


def test_a_bound_per_channel_stays_with_its_channel():
    """Padded channels are exact, and lie elsewhere: one bound for all is left."""
    codes = "tensor<1x2x2x3xi8>"
    reverse = f"relay.reverse @ {{axis = array<i64: 1, 2>}} : ({codes}) -> {codes}"
    assert declared(Rounder(), function(chain(requantize(), reverse))) == (1, [1])
    wider = "tensor<1x2x2x4xi8>"
    body = f"""  %0 = {requantize().replace("@", "%x")}
  %1 = relay.nn.pad %0 {{pad_width = array<i64: 0, 0, 0, 0, 0, 0, 0, 1>, pad_value = 0 : i8}} : ({codes}) -> {wider}
  func.return %1 : {wider}"""
    assert declared(Rounder(), function(body, wider)) == (1, [1])


def test_a_choice_by_inexact_codes_has_no_bound():
    codes, flags = "tensor<1x2x2x3xi8>", "tensor<1x2x2x3xi1>"
    body = f"""  %0 = {requantize().replace("@", "%x")}
  %1 = relay.less %0, %y : ({codes}, {codes}) -> {flags}
  %2 = relay.where %1, %x, %y : ({flags}, {codes}, {codes}) -> {codes}
  func.return %2 : {codes}"""
    assert declared(Rounder(), function(body))[1] == [255]


PRODUCT = """
  %c = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<1x4x4x2xf32>, tensor<3x1x1x2xf32>) -> tensor<1x4x4x3xf32>"""
HALVES = {
    "reverse": ("relay.reverse %c {axis = array<i64: 1>} : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>", True),
    "take": (
        "relay.take %c, %i {axis = 2 : i64} : (tensor<1x4x4x3xf32>, tensor<5xi32>) -> tensor<1x4x5x3xf32>",
        True,
    ),
    "pad": (
        "relay.nn.pad %c {pad_width = array<i64: 0, 0, 1, 0, 0, 0, 0, 0>, pad_value = 1.5 : f32} "
        ": (tensor<1x4x4x3xf32>) -> tensor<1x5x4x3xf32>",
        True,
    ),
    "pad with what f16 has not": (
        "relay.nn.pad %c {pad_width = array<i64: 0, 0, 1, 0, 0, 0, 0, 0>, pad_value = -1.0e+06 : f32} "
        ": (tensor<1x4x4x3xf32>) -> tensor<1x5x4x3xf32>",
        False,
    ),
    "mean": ("relay.mean %c {axis = array<i64: 1>} : (tensor<1x4x4x3xf32>) -> tensor<1x4x3xf32>", False),
}


@pytest.mark.parametrize("name", HALVES)
def test_what_is_moved_stays_in_half_precision(name: str):
    line, moved = HALVES[name]
    result = line.rsplit(" ", 1)[1]
    types = "%x: tensor<1x4x4x2xf32>, %k: tensor<3x1x1x2xf32>, %i: tensor<5xi32>"
    body = f"{PRODUCT}\n  %r = {line}\n  func.return %r : {result}"
    before = IRModule.parse(f"func.func @main({types}) -> {result} {{{body}\n}}")
    after = ToMixedPrecision()(AttachTarget("x86_64 -mattr=+avx512fp16")(before))
    after.verify()
    kind = line.split(" ", 1)[0]
    (op,) = (op for op in after["main"].walk() if op.name == kind)
    assert tensor(op.results[0]).element_type == (f16 if moved else f32)
    rng = np.random.default_rng(1)
    feed: list[Array] = [rng.standard_normal(shape(value)).astype(np.float32) for value in before["main"].args[:2]]
    feed.append(np.array([3, 0, 1, 1, 2], np.int32))
    (a,), (b,) = run(before, feed), run(after, feed)
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


def between_products(*lines: str) -> IRModule:
    """i8 codes of one convolution, moved, read by another."""
    codes = "tensor<1x4x4x4xi8>"
    moves = "\n".join(f"  {line.replace('T', codes)}" for line in lines)
    return IRModule.parse(f"""
func.func @main(%x: {codes}, %k: tensor<4x1x1x4xi8>) -> tensor<1x4x4x4xi32> {{
  %c = relay.nn.conv2d %x, %k {{out_dtype = i32}} : ({codes}, tensor<4x1x1x4xi8>) -> tensor<1x4x4x4xi32>
  %s = relay.constant dense<7> : tensor<i32>
  %d = relay.right_shift %c, %s : (tensor<1x4x4x4xi32>, tensor<i32>) -> tensor<1x4x4x4xi32>
  %e = relay.clip %d {{a_min = -128 : i32, a_max = 127 : i32}} : (tensor<1x4x4x4xi32>) -> tensor<1x4x4x4xi32>
  %0 = relay.cast %e {{dtype = i8}} : (tensor<1x4x4x4xi32>) -> {codes}
{moves}
  %r = relay.nn.conv2d %m, %k {{input_zero_point = -3 : i32, out_dtype = i32}}
    : ({codes}, tensor<4x1x1x4xi8>) -> tensor<1x4x4x4xi32>
  func.return %r : tensor<1x4x4x4xi32>
}}""")


MOVED_CODES: dict[str, Sequence[str]] = {
    "transpose": ["%m = relay.transpose %0 {axes = array<i64: 0, 2, 1, 3>} : (T) -> T"],
    "reverse": ["%m = relay.reverse %0 {axis = array<i64: 1>} : (T) -> T"],
    "clip": ["%m = relay.clip %0 {a_min = -5 : i8, a_max = 60 : i8} : (T) -> T"],
    "maximum": [
        "%t = relay.transpose %0 {axes = array<i64: 0, 2, 1, 3>} : (T) -> T",
        "%m = relay.maximum %0, %t : (T, T) -> T",
    ],
    "where": [
        "%z = relay.less %x, %x : (T, T) -> tensor<1x4x4x4xi1>",
        "%m = relay.where %z, %0, %0 : (tensor<1x4x4x4xi1>, T, T) -> T",
    ],
}


@pytest.mark.parametrize("name", MOVED_CODES)
def test_moved_codes_become_unsigned(name: str):
    before = between_products(*MOVED_CODES[name])
    after = UnsignedCodes()(AttachTarget("x86_64 -mcpu=cascadelake")(before))
    after.verify()
    last = [op for op in after["main"].walk() if multiplies(op)][-1]
    assert tensor(last.operands[0]).element_type != i8
    rng = np.random.default_rng(2)
    feed = [rng.integers(-128, 128, shape(value)).astype(np.int8) for value in before["main"].args]
    assert np.array_equal(run(before, feed)[0], run(after, feed)[0])


LAYOUTS = """
func.func @main(%x: tensor<1x4x5x2xT>, %k: tensor<2x1x1x2xT>) -> tensor<1x4x5x2xU> {
  %0 = relay.nn.conv2d %x, %k {out_dtype = U} : (tensor<1x4x5x2xT>, tensor<2x1x1x2xT>) -> tensor<1x4x5x2xU>
  BETWEEN
  %r = relay.nn.conv2d %m, %k {out_dtype = U} : (tensor<1x4x5x2xT>, tensor<2x1x1x2xT>) -> tensor<1x4x5x2xU>
  func.return %r : tensor<1x4x5x2xU>
}"""


def in_channels_first(between: str, data: str, sums: str) -> tuple[IRModule, IRModule]:
    """Convolutions with ops between them, and the same in NCHW; both compute the same."""
    text = LAYOUTS.replace("BETWEEN", between).replace("xT>", f"x{data}>").replace("xU>", f"x{sums}>")
    before = IRModule.parse(text.replace("= U", f"= {sums}"))
    after = ConvertLayout("NHWC", "NCHW")(before)
    after.verify()
    rng = np.random.default_rng(3)
    feed = [
        rng.integers(-100, 100, shape(v)).astype("int8" if data == "i8" else "float32") for v in before["main"].args
    ]
    np.testing.assert_allclose(run(before, feed)[0], run(after, feed)[0], rtol=1e-5)
    return before, after


def transposed_images(mod: IRModule) -> int:
    return sum(isinstance(op, relay.TransposeOp) and op.input.type != op.result.type for op in mod["main"].walk())


def test_quantised_functions_take_another_layout():
    """`qnn.abs` is elementwise: only what comes in and what goes out is transposed."""
    between = """
  %q = qnn.requantize %0 {input_scale = 0.5 : f32, output_scale = 0.25 : f32, output_zero_point = -7 : i32,
    multiplier = 1073741824 : i32, shift = -5 : i32, out_dtype = i8} : (tensor<1x4x5x2xU>) -> tensor<1x4x5x2xT>
  %m = qnn.abs %q {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.5 : f32,
    output_zero_point = -3 : i32} : (tensor<1x4x5x2xT>) -> tensor<1x4x5x2xT>"""
    _, after = in_channels_first(between, "i8", "i32")
    assert transposed_images(after) == 2


def test_an_op_that_names_its_axes_stays_in_its_layout():
    """Its operand is brought back: `convert-layout` knows of few ops how they name their axes."""
    between = "%m = relay.nn.softmax %0 {beta = 1.0 : f32, axis = 2 : i64} : (tensor<1x4x5x2xT>) -> tensor<1x4x5x2xT>"
    before, after = in_channels_first(between, "f32", "f32")
    (softmax,) = (op for op in after["main"].walk() if isinstance(op, relay.SoftmaxOp))
    assert softmax.axis.value.data == 2 and transposed_images(after) == 4 and transposed_images(before) == 0


@pytest.mark.parametrize("axes", ["0, 2, 1, 3", "0, 3, 1, 2", "0, 1, 2, 3"])
def test_a_transpose_between_convolutions_turns_the_image(axes: str):
    """Sizes are equal, so that only the numbers tell whether it is still there."""
    text = f"""
func.func @main(%x: tensor<1x4x4x4xf32>, %k: tensor<4x1x1x4xf32>) -> tensor<1x4x4x4xf32> {{
  %0 = relay.nn.conv2d %x, %k {{out_dtype = f32}} : (tensor<1x4x4x4xf32>, tensor<4x1x1x4xf32>) -> tensor<1x4x4x4xf32>
  %m = relay.transpose %0 {{axes = array<i64: {axes}>}} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %r = relay.nn.conv2d %m, %k {{out_dtype = f32}} : (tensor<1x4x4x4xf32>, tensor<4x1x1x4xf32>) -> tensor<1x4x4x4xf32>
  func.return %r : tensor<1x4x4x4xf32>
}}"""
    before = IRModule.parse(text)
    rng = np.random.default_rng(5)
    feed = [rng.normal(size=shape(v)).astype("float32") for v in before["main"].args]
    for wanted in ("NCHW", "NCHW2c"):
        after = ConvertLayout("NHWC", wanted)(before)
        np.testing.assert_allclose(run(after, feed)[0], run(before, feed)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["i1", "i4", "ui8", "bf16", "f32", "f8E4M3FN", "f4E2M1FN"])
def test_a_cast_reads_unsigned_codes_only_where_the_type_holds_them(dtype: str):
    """Codes that a convolution and a cast read: floats of 8 bits would round what is 128 larger."""
    before = IRModule.parse(f"""
func.func @main(%x: tensor<1x4x4x4xi32>, %k: tensor<4x1x1x4xi8>)
    -> (tensor<1x4x4x4xi32>, tensor<1x4x4x4x{dtype}>) {{
  %e = relay.clip %x {{a_min = -128 : i32, a_max = 127 : i32}} : (tensor<1x4x4x4xi32>) -> tensor<1x4x4x4xi32>
  %c = relay.cast %e {{dtype = i8}} : (tensor<1x4x4x4xi32>) -> tensor<1x4x4x4xi8>
  %q = relay.cast %c {{dtype = {dtype}}} : (tensor<1x4x4x4xi8>) -> tensor<1x4x4x4x{dtype}>
  %r = relay.nn.conv2d %c, %k {{input_zero_point = -3 : i32, out_dtype = i32}}
    : (tensor<1x4x4x4xi8>, tensor<4x1x1x4xi8>) -> tensor<1x4x4x4xi32>
  func.return %r, %q : tensor<1x4x4x4xi32>, tensor<1x4x4x4x{dtype}>
}}""")
    rng = np.random.default_rng(6)
    feed = [rng.integers(-200, 200, (1, 4, 4, 4)).astype("int32"), rng.integers(-9, 9, (4, 1, 1, 4)).astype("int8")]
    after = UnsignedCodes()(AttachTarget("x86_64 -mcpu=cascadelake")(before))
    for new, old in zip(run(after, feed), run(before, feed), strict=True):
        np.testing.assert_array_equal(new.astype("float64"), old.astype("float64"))


@pytest.mark.parametrize(
    "masked",
    [
        "%b = relay.constant dense<-1.0e9> : tensor<f32>\n"
        "  %m = relay.where %z, %d, %b : (tensor<1x4xi1>, tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>",
        "%m = relay.clip %d {a_min = 0.0 : f32, a_max = 3.4e38 : f32} : (tensor<1x4xf32>) -> tensor<1x4xf32>",
        "%m = relay.clip %d {a_min = 70000.0 : f32, a_max = 80000.0 : f32} : (tensor<1x4xf32>) -> tensor<1x4xf32>",
    ],
    ids=["mask", "open", "beyond"],
)
def test_numbers_beyond_half_precision_stay_finite(masked: str):
    before = IRModule.parse(f"""
func.func @main(%x: tensor<1x4xf32>, %k: tensor<4x4xf32>, %z: tensor<1x4xi1>) -> tensor<1x4xf32> {{
  %d = relay.nn.dense %x, %k {{out_dtype = f32}} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  {masked}
  %s = relay.nn.softmax %m {{axis = -1 : i64, beta = 1.0 : f32}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %s : tensor<1x4xf32>
}}""")
    feed: list[Array] = [np.ones((1, 4), "float32"), np.ones((4, 4), "float32"), np.zeros((1, 4), "bool")]
    after = ToMixedPrecision()(AttachTarget("x86_64 -mattr=+avx512fp16")(before))
    np.testing.assert_allclose(run(after, feed)[0], run(before, feed)[0])
