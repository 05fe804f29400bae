"""The simulated accelerator: its integers are the interpreter's, its cycles those of the cost model; resnet8 whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import relay
from relay.byoc.systolic.codegen import generate
from relay.byoc.systolic.compiler import SystolicCompiler
from relay.byoc.systolic.isa import CLOCK, cycles
from relay.byoc.systolic.loader import Device
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.interpreters.arithmetic import quantize_multiplier
from tests.marks import ci

MODELS = Path(__file__).parents[2] / "../shared/models"
SCALES = "input_scale = 0.5 : f32, kernel_scale = 0.5 : f32"


def dense(values: Array) -> str:
    return f"dense<{values.tolist()}>"


def requantize(channels: int, rows: str, rng: np.random.Generator, rounding: str) -> str:
    """A qnn.requantize with random multipliers."""
    type = f"tensor<{rows}x{channels}x"
    fields = f"output_scale = 0.5 : f32, output_zero_point = {rng.integers(-128, 128)} : i32, out_dtype = i8"
    low, high = sorted(rng.integers(-128, 128, 2).tolist())
    bounds = rng.choice(["", f", min = {low} : i32, max = {high} : i32"])
    if rounding == "f64_away":
        real = float(rng.uniform(1e-3, 2e-2))
        multiplier, shift = quantize_multiplier(real)
        numbers = f"real_multiplier = {real!r} : f64, multiplier = {multiplier} : i32, shift = {shift} : i32"
    else:
        m, s = rng.integers(1 << 30, 1 << 31, channels), rng.integers(-9, -5, channels)
        numbers = f"multiplier = {dense(m)} : tensor<{channels}xi32>, shift = {dense(s)} : tensor<{channels}xi32>"
    return (
        f"  %q = qnn.requantize %b {{input_scale = 0.25 : f32, {fields}{bounds}, {numbers}, "
        f'rounding = "{rounding}"}} : ({type}i32>) -> {type}i8>'
    )


def product(rng: np.random.Generator) -> tuple[str, tuple[int, ...]]:
    """The text of a random convolution or dense layer with bias and requantization, and its input's shape."""
    outputs, inputs = (int(n) for n in rng.integers(1, 40, 2))
    bias = f"  %c = relay.constant {dense(rng.integers(-500, 500, outputs))} : tensor<{outputs}xi32>"
    zero = f"input_zero_point = {rng.integers(-128, 128)} : i32"
    if rng.random() < 0.3:
        zero += f", kernel_zero_point = {rng.integers(-127, 129)} : i32"
    if rng.random() < 0.3:
        batch = int(rng.integers(1, 5))
        shape, kernel, rows = (batch, inputs), (outputs, inputs), f"{batch}"
        op, extra = "qnn.dense", ""
    else:
        kh, kw, sy, sx = (int(n) for n in rng.integers(1, 4, 4))
        dy, dx = (int(n) for n in rng.integers(1, 3, 2))
        padding = [int(n) for n in rng.integers(0, 3, 4)]
        height, width = (int(n) for n in rng.integers(7, 20, 2))
        rows_out = (height + padding[0] + padding[2] - (kh - 1) * dy - 1) // sy + 1
        columns = (width + padding[1] + padding[3] - (kw - 1) * dx - 1) // sx + 1
        images = int(rng.integers(1, 3))
        shape, kernel, rows = (
            (images, height, width, inputs),
            (outputs, kh, kw, inputs),
            f"{images}x{rows_out}x{columns}",
        )
        places = f"padding = array<i64: {', '.join(map(str, padding))}>, strides = array<i64: {sy}, {sx}>"
        op, extra = "qnn.conv2d", f", {places}, dilation = array<i64: {dy}, {dx}>"
    types = [f"tensor<{'x'.join(map(str, dims))}xi8>" for dims in (shape, kernel)]
    sums, codes = (f"tensor<{rows}x{outputs}x{dtype}>" for dtype in ("i32", "i8"))
    weights = f"  %k = relay.constant {dense(rng.integers(-128, 128, kernel))} : {types[1]}"
    lines = [
        f"func.func @main(%x: {types[0]}) -> {codes} {{",
        *(weights, bias),
        f"  %a = {op} %x, %k {{{SCALES}, {zero}{extra}}} : ({', '.join(types)}) -> {sums}",
        f"  %b = relay.nn.bias_add %a, %c : ({sums}, tensor<{outputs}xi32>) -> {sums}",
        requantize(outputs, rows, rng, str(rng.choice(["tflite", "f64_away"]))),
        f"  func.return %q : {codes}\n}}",
    ]
    return "\n".join(lines), shape


def accelerated(mod: relay.IRModule) -> relay.IRModule:
    """The module, all of it in one function of the accelerator."""
    parted = relay.build_external_compiler(mod, target="systolic")
    external = [f for f in parted.functions.values() if f.attributes.get("compiler") == StringAttr("systolic")]
    assert len(external) == 1, str(parted.partition_report())
    return parted


def check(mod: relay.IRModule, inputs: list[Array]) -> None:
    """The program's integers are the interpreter's, the estimate is within a tenth of its cycles."""
    parted = accelerated(mod)
    function = next(f for f in parted.functions.values() if "compiler" in f.attributes)
    program = generate(function)
    (wanted,) = run(mod, inputs)
    got = np.zeros(wanted.shape, np.int8)
    workspace = [np.empty(program.workspace, np.uint8)] if program.workspace else []
    Device(program.pack(), "f", {}, [], [])(inputs, [got, *workspace])
    np.testing.assert_array_equal(got, wanted)
    taken = sum(map(cycles, program.code))
    estimate = SystolicCompiler().cost([op for op in function.body.block.ops if op.results])
    assert estimate is not None and abs(estimate * CLOCK / taken - 1) < 0.1


def check_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text, shape = product(rng)
    check(relay.IRModule.parse(text), [rng.integers(-128, 128, shape).astype(np.int8)])


@pytest.mark.parametrize("seed", [*range(4), *ci(range(4, 12))])
def test_products(seed: int) -> None:
    check_product(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 100))
def test_many_products(seed: int) -> None:
    check_product(seed)


@pytest.mark.parametrize("shape", [(1, 5, 7, 3), (2, 30), (1, 90, 100, 16)])
def test_sums(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape))
    type = f"tensor<{'x'.join(map(str, shape))}xi8>"
    text = f"""
    func.func @main(%x: {type}, %y: {type}) -> {type} {{
      %s = qnn.add %x, %y {{lhs_scale = 0.04 : f32, lhs_zero_point = -128 : i32, rhs_scale = 0.1 : f32,
        rhs_zero_point = 4 : i32, output_scale = 0.1 : f32, output_zero_point = -17 : i32, left_shift = 20 : i32,
        lhs_multiplier = 1623821475 : i32, lhs_shift = -2 : i32, rhs_multiplier = 1073741824 : i32,
        rhs_shift = 0 : i32, multiplier = 1098017566 : i32, shift = -17 : i32, max = 100 : i32}}
        : ({type}, {type}) -> {type}
      func.return %s : {type}
    }}"""
    inputs: list[Array] = [rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2)]
    check(relay.IRModule.parse(text), inputs)


@pytest.mark.parametrize("shape", [(1, 8, 8, 64), (2, 3, 5, 20)])
def test_averages_and_their_reshape(shape: tuple[int, ...]) -> None:
    n, h, w, c = shape
    text = f"""
    func.func @main(%x: tensor<{n}x{h}x{w}x{c}xi8>) -> tensor<{n}x{c}xi8> {{
      %p = relay.nn.avg_pool2d %x {{pool_size = array<i64: {h}, {w}>, strides = array<i64: {h}, {w}>}}
        : (tensor<{n}x{h}x{w}x{c}xi8>) -> tensor<{n}x1x1x{c}xi8>
      %r = relay.reshape %p {{newshape = array<i64: {n}, {c}>}} : (tensor<{n}x1x1x{c}xi8>) -> tensor<{n}x{c}xi8>
      func.return %r : tensor<{n}x{c}xi8>
    }}"""
    check(relay.IRModule.parse(text), [np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)])


@pytest.mark.parametrize("shape", [(1, 10), (3, 200)])
def test_softmax(shape: tuple[int, ...]) -> None:
    type = f"tensor<{shape[0]}x{shape[1]}xi8>"
    text = f"""
    func.func @main(%x: {type}) -> {type} {{
      %s = qnn.softmax %x {{beta = 1.0 : f32, input_scale = 0.1 : f32, multiplier = 1476210432 : i32,
        shift = 24 : i32}} : ({type}) -> {type}
      func.return %s : {type}
    }}"""
    check(relay.IRModule.parse(text), [np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)])


def test_resnet8_runs_whole(tmp_path: Path) -> None:
    path = MODELS / "resnet8_int8.tflite"
    if not path.exists():
        pytest.skip("resnet8_int8 is not here")
    parted = accelerated(relay.frontend.from_tflite(path))
    relay.build(parted).save(tmp_path / "resnet8.relay")
    exe = relay.runtime.load(tmp_path / "resnet8.relay")
    golden = np.load(MODELS / "golden" / "resnet8_int8.npz")
    names = [name.removesuffix("_in0") for name in golden.files if name.endswith("_in0")]
    assert names
    for name in names:
        np.testing.assert_array_equal(exe.run(golden[f"{name}_in0"]), golden[f"{name}_out0"])
    function = next(f for f in parted.functions.values() if "compiler" in f.attributes)
    taken = sum(map(cycles, generate(function).code))
    estimate = SystolicCompiler().cost([op for op in function.body.block.ops if op.results])
    assert estimate is not None and abs(estimate * CLOCK / taken - 1) < 0.1


def visual_wake_words() -> relay.IRModule:
    path = MODELS / "vww_96_int8.tflite"
    if not path.exists():
        pytest.skip("vww_96_int8 is not here")
    return relay.build_external_compiler(relay.frontend.from_tflite(path), target="systolic")


def test_mobilenet_partitions_and_says_why_the_rest_stays() -> None:
    parted = visual_wake_words()
    assert "groups would leave most of the array idle" in str(parted.partition_report())
    assert sum("compiler" in function.attributes for function in parted.functions.values()) == 14


@pytest.mark.slow
def test_mobilenet_runs_in_parts() -> None:
    executable = relay.build(visual_wake_words())
    golden = np.load(MODELS / "golden" / "vww_96_int8.npz")
    name = next(name for name in golden.files if name.endswith("_in0"))
    np.testing.assert_array_equal(executable.run(golden[name]), golden[name.replace("_in0", "_out0")])


@pytest.mark.parametrize(
    ("op", "type", "reason"),
    [
        ("relay.nn.avg_pool2d %x {pool_size = array<i64: 2, 2>}", "1x4x4x8xi8", "whole images only"),
        ("relay.nn.avg_pool2d %x {pool_size = array<i64: 4, 4>}", "1x4x4x8xf32", "averages int8"),
        ("relay.nn.max_pool2d %x {pool_size = array<i64: 4, 4>}", "1x4x4x8xi8", "no instructions for"),
    ],
)
def test_what_it_does_not_take_stays_on_the_host(op: str, type: str, reason: str) -> None:
    size = "1x3x3" if "2, 2" in op else "1x1x1"
    result = f"tensor<{size}{type.removeprefix('1x4x4')}>"
    mod = relay.IRModule.parse(f"""
    func.func @main(%x: tensor<{type}>) -> {result} {{
      %p = {op} : (tensor<{type}>) -> {result}
      func.return %p : {result}
    }}""")
    parted = relay.build_external_compiler(mod, target="systolic")
    assert list(parted.functions) == ["main"]
    assert reason in str(parted.partition_report())


@pytest.mark.parametrize(
    ("type", "dtype"),
    [
        ("ui8", "u1"),
        *(pytest.param(*each, marks=pytest.mark.ci) for each in (("f32", "f4"), ("i32", "i4"), ("i16", "i2"))),
    ],
)
def test_reshapes_of_other_numbers_stay_with_the_host(type: str, dtype: str) -> None:
    text = f"""func.func @main(%x: tensor<2x3x{type}>) -> tensor<6x{type}> {{
  %0 = relay.reshape %x {{newshape = array<i64: 6>}} : (tensor<2x3x{type}>) -> tensor<6x{type}>
  func.return %0 : tensor<6x{type}>
}}"""
    module = relay.IRModule.parse(text)
    parted = relay.build_external_compiler(module, target="systolic", exact=True)
    x = np.arange(1, 7).reshape(2, 3).astype(dtype)
    found = relay.build(parted).run(x)
    assert isinstance(found, np.ndarray) and np.array_equal(found, x.reshape(6))
    assert "the accelerator holds int8" in str(parted.partition_report())
