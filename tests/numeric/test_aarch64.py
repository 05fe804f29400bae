"""Code for another processor, run by an emulator: the integers are those of LiteRT's reference kernels there too."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from benchmarks import aarch64
from relay import signature
from relay.compile.manifest import describe
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, ints
from relay.frontend import import_model
from relay.interpreters import run
from relay.lowering.codegen import compile_text
from relay.lowering.llvm_ir import translate
from relay.module import IRModule
from relay.target import CpuTarget
from tests.numeric.compiled_modules import Net
from tests.numeric.litert_models import Case, Reference, T

pytestmark = pytest.mark.ci
ROOT = Path(__file__).parents[2]
SHARED = ROOT / "../shared/models"
DIGITS = ROOT / "examples" / "digits"
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
FEATURES = {"plain": {"neon"}, "dotprod": {"neon", "dotprod"}, "i8mm": {"neon", "dotprod", "i8mm"}}
FEATURES["sve2"] = FEATURES["i8mm"] | {"fullfp16", "sve", "sve2"}
FEATURES["fullfp16"], FEATURES["bf16"] = {"neon", "fullfp16"}, {"neon", "fullfp16", "bf16"}
CODES = ("plain", "dotprod", "i8mm", "sve2")
"""Features that matter for products of codes."""
MODELS = {
    "ad01_int8": "dotprod i8mm",
    "kws_int8": "dotprod i8mm",
    "resnet8_int8": "dotprod i8mm",
    "vww_96_int8": "plain i8mm",
    "mobilenet_v1_0.25_128_quant": "dotprod",
    "mobilenet_v2_1.0_224_quant": "i8mm",
    "tf2_mobilenet_v2_1.0_224_ptq": "dotprod",
    "resnet50_224_int8": "sve2",
}
"""Models, and features of the processors that code for them is run on by default."""
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
void relay_main(void **table);
static void *bytes(long size) { return aligned_alloc(64, (size + 127) / 64 * 64); }
int main(void) {
  void *constants = bytes(CONSTANTS), *arena = bytes(ARENA), *in = bytes(INPUT), *out = bytes(OUTPUT);
  void *table[] = {in, out, constants, arena, NULL};
  FILE *blob = fopen("constants.bin", "rb");
  if (fread(constants, 1, CONSTANTS, blob) != CONSTANTS) return 1;
  while (fread(in, 1, INPUT, stdin) == INPUT) {
    relay_main(table);
    fwrite(out, 1, OUTPUT, stdout);
  }
  return 0;
}
"""

needs_aarch64 = pytest.mark.skipif(
    shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None,
    reason=f"{COMPILER} or {EMULATOR} is not installed (packages gcc-aarch64-linux-gnu, qemu-user)",
)


def run_on_aarch64(model: Path | IRModule, features: set[str], inputs: Array, folder: Path) -> Array:
    """The output for each input of a model of one of each."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = CpuTarget("aarch64-unknown-linux-gnu", "generic", frozenset(features))
    mod = model if isinstance(model, IRModule) else import_model(model, {})
    given, results = signature.read(mod["main"])
    default_pipeline(machine).apply(mod)
    code = compile_text(translate(mod.op), machine).code
    graph, params = describe(mod, machine, given, results)
    blob = np.zeros(graph["constants_bytes"], np.uint8)
    for row in graph["constants"]:
        array = np.ascontiguousarray(params[row["name"]]).reshape(-1).view(np.uint8)
        blob[row["offset"] : row["offset"] + array.size] = array
    (folder / "constants.bin").write_bytes(blob.tobytes())
    (folder / "model.o").write_bytes(code)
    (folder / "main.c").write_text(MAIN)
    (result,) = results
    sizes = {
        "CONSTANTS": blob.size,
        "ARENA": graph["arena_bytes"],
        "INPUT": inputs[0].nbytes,
        "OUTPUT": int(np.prod(result.shape)) * result.dtype.itemsize,
    }
    defined = [f"-D{name}={size}" for name, size in sizes.items()]
    link = [COMPILER, "-static", "-O1", *defined, "main.c", "model.o", "-lm", "-o", "model"]
    built = subprocess.run(link, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    emulated = [EMULATOR, "-cpu", "max", "./model"]
    done = subprocess.run(emulated, cwd=folder, input=inputs.tobytes(), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, result.dtype).reshape(len(inputs), *result.shape)


def disassembled(folder: Path) -> str:
    """The code that ran."""
    return aarch64.done(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", "model.o"], folder)


@needs_aarch64
@pytest.mark.parametrize("features", CODES)
def test_digits_are_those_of_x86(features: str, tmp_path: Path):
    data = np.load(DIGITS / "digits_test.npz")
    images = np.ascontiguousarray(data["int8_images"][:50])
    found = run_on_aarch64(DIGITS / "digits_int8.tflite", FEATURES[features], images, tmp_path)
    assert np.array_equal(found.reshape(50, -1), data["int8_out"][:50].reshape(50, -1))


@needs_aarch64
@pytest.mark.parametrize(
    ("name", "features"),
    [
        pytest.param(name, features, marks=[] if features in often.split() else pytest.mark.slow)
        for name, often in MODELS.items()
        for features in CODES
    ],
)
def test_models_are_those_of_litert(name: str, features: str, tmp_path: Path):
    """All inputs of the small models, one of the large ones; and no number is converted alone."""
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    golden = np.load(SHARED / "golden" / f"{name}.npz")
    tags = sorted({key.split("_in")[0] for key in golden.files if "_in" in key})
    tags = tags[:1] if "224" in name else tags
    inputs = np.stack([golden[f"{tag}_in0"] for tag in tags])
    found = run_on_aarch64(path, FEATURES[features], inputs, tmp_path)
    assert np.array_equal(found, np.stack([golden[f"{tag}_out0"] for tag in tags]).reshape(found.shape))
    assert aarch64.CONVERSION.findall(disassembled(tmp_path)) == []


@needs_aarch64
@pytest.mark.parametrize(
    ("features", "dtype", "weights", "zero"),
    [
        pytest.param("dotprod", "int8", "int8", 0, marks=pytest.mark.slow),  # the digits by default
        ("plain", "int8", "int8", 0),
        ("plain", "uint8", "uint8", 130),
        ("dotprod", "uint8", "uint8", 130),
        ("dotprod", "uint8", "int8", 0),
        ("i8mm", "int8", "int8", 0),
        pytest.param("i8mm", "uint8", "uint8", 130, marks=pytest.mark.slow),
        ("i8mm", "uint8", "int8", 0),
        pytest.param("sve2", "uint8", "int8", 0, marks=pytest.mark.slow),
    ],
)
def test_convolutions_are_those_of_the_interpreter(features: str, dtype: str, weights: str, zero: int, tmp_path: Path):
    """Steps that end inside of a register, one pixel that is left, weights that do not fit, sums of data; depthwise:
    borders, five rows of taps, strides and dilation."""
    net, parts = Net(3), list[SSAValue]()
    image = net.argument(net.numbers(dtype, 1, 7, 5, 28))
    for outputs, size, spread in ((40, 1, 100), (17, 3, 100), (70, 1, 127), (3, 2, 120)):
        kernel = net.rng.integers(-spread, spread, (outputs, size, size, 28)) + zero
        kernel[0, 0, 0, :2] = np.clip(255 * (zero > 0), -128, 255), -128 * (zero == 0)
        sums = net.conv2d(image, net.constant(kernel.astype(weights)), zero_points=(3, zero))
        codes = net.requantize(sums, outputs, "int8")
        parts.append(net.add(relay.ReshapeOp, [codes], {"newshape": ints([-1])}))
    depthwise = ((2, 2, (2, 2), (0, 1, 1, 0), 1), (3, 3, (1, 1), (1, 1, 1, 1), 1), (5, 3, (1, 1), (0, 0, 0, 0), 1))
    for rows, columns, strides, padding, step in (*depthwise, (3, 1, (1, 1), (2, 0, 2, 0), 2)):
        kernel = net.rng.integers(-120, 120, (rows, columns, 28, 1)) + zero
        kernel[:2, 0, :2] = np.clip(255 * (zero > 0), -128, 255)
        sums = net.conv2d(
            image, net.constant(kernel.astype(weights)), strides=strides, padding=padding, dilation=(step, 1),
            groups=28, depthwise=True, zero_points=(3, zero),
        )  # fmt: skip
        codes = net.requantize(sums, 28, "int8")
        parts.append(net.add(relay.ReshapeOp, [codes], {"newshape": ints([-1])}))
    net.result("all", net.add(relay.ConcatenateOp, parts, {"axis": IntegerAttr(0, i64)}))
    mod = net.module()
    (wanted,) = run(mod, net.inputs)
    found = run_on_aarch64(mod, FEATURES[features], net.inputs[0][None], tmp_path)
    assert np.array_equal(found[0], wanted)


@needs_aarch64
@pytest.mark.parametrize("low", [None, 0])
@pytest.mark.parametrize(("rounding", "shifts"), [("tflite", (0, -31)), ("tflite", (-7, -7)), ("upward", (-1, -31))])
def test_rescales_are_the_formula_in_integers_of_any_size(
    rounding: str, shifts: tuple[int, int], low: int | None, tmp_path: Path
):
    random, channels = np.random.default_rng(5), 37
    shift = random.integers(shifts[1], shifts[0], channels, endpoint=True)
    multiplier = random.integers(1 << 30, 1 << 31, channels)
    multiplier[::3] = 1 << 30  # halves are frequent
    x = random.integers(-(1 << 31), 1 << 31, (24, channels))
    x[::2] >>= random.integers(0, 31, (12, channels))
    x[4:6] = [[-(1 << 31)], [(1 << 31) - 1]]
    x[6:20] = np.arange(-7, 7)[:, None] * (1 << np.clip(-shift - 1, 0, 27)) << (multiplier == 1 << 30)
    clip = "" if low is None else "{a_min = 0 : i32, a_max = 255 : i32}"
    full, numbers = f"tensor<{x.shape[0]}x{channels}xi32>", f"tensor<{channels}xi32>"
    mod = IRModule.parse(
        f"""func.func @main(%x: {full}) -> {full} {{
          %m = relay.constant dense<{multiplier.tolist()}> : {numbers}
          %s = relay.constant dense<{shift.tolist()}> : {numbers}
          %r = relay.fixed_point_multiply %x, %m, %s {{rounding = "{rounding}"}}
            : ({full}, {numbers}, {numbers}) -> {full}
          {f"%c = relay.clip %r {clip} : ({full}) -> {full}" if clip else ""}
          func.return {"%c" if clip else "%r"} : {full}
        }}"""
    )

    def reference(x: int, multiplier: int, shift: int) -> int:
        """In Python's integers, as gemmlowp has it: SaturatingRoundingDoublingHighMul, RoundingDivideByPOT."""
        if rounding == "upward":
            return (x * multiplier + (1 << (30 - shift))) >> (31 - shift)
        wrapped = ((x << max(shift, 0)) + (1 << 31)) % (1 << 32) - (1 << 31)
        high, right = (wrapped * multiplier + (1 << 30)) >> 31, max(-shift, 0)
        size = (abs(high) + (1 << right >> 1)) >> right
        return -size if high < 0 else size

    wanted = [[reference(*map(int, row)) for row in zip(line, multiplier, shift, strict=True)] for line in x]
    wanted = np.array(wanted) if low is None else np.clip(wanted, 0, 255)
    found = run_on_aarch64(mod, FEATURES["plain"], x.astype(np.int32)[None], tmp_path)
    assert np.array_equal(found[0], wanted)
    assert "i32 = 37" in str(mod.op.attributes["relay.rescale"])


@needs_aarch64
@pytest.mark.skipif(shutil.which("gcc") is None, reason="the plugin that counts is compiled by gcc")
def test_instructions_are_counted_and_no_number_is_converted_alone(capsys: pytest.CaptureFixture[str]):
    assert aarch64.main(["--targets", "rpi4"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    millions, cycles, conversions, integers = line.split(" | ")[3:]
    assert 0.02 < float(millions) < 0.045 and conversions == "0" and integers == "equal |"
    assert not shutil.which("llvm-mca-22") or 0.3 < float(cycles) / float(millions) < 2


@needs_aarch64
@pytest.mark.skipif(shutil.which("gcc") is None, reason="the plugin that counts is compiled by gcc")
@pytest.mark.parametrize(
    "target",
    [
        "pixel8",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("android", "rpi3", "jetson-orin", "apple-m1")),
    ],
)
def test_objects_for_boards_and_phones_give_the_integers(target: str):
    assert aarch64.row(aarch64.DIGITS, target).equal


@needs_aarch64
def test_floats_are_close(tmp_path: Path):
    data = np.load(DIGITS / "digits_test.npz")
    images = np.ascontiguousarray(data["images"][:20], np.float32)
    found = run_on_aarch64(DIGITS / "digits_float.tflite", FEATURES["plain"], images, tmp_path)
    np.testing.assert_allclose(found.reshape(20, -1), data["float_out"][:20].reshape(20, -1), atol=1e-5)


HALF = re.compile(r"\t(?:f\w+|[su]cvtf|bf\w+)\t.*\bh\d+\b|<__(?:extend|trunc)\w+>")
"""A number of 16 bits by itself: computed, converted, or given to a function of the C compiler's library."""


@needs_aarch64
@pytest.mark.parametrize(
    ("dtype", "features"),
    [("float16", "plain"), ("float16", "fullfp16"), ("bfloat16", "plain"), ("bfloat16", "bf16")],
)
def test_halves_are_reals_rounded_and_never_computed_alone(dtype: str, features: str, tmp_path: Path):
    """Elementwise operations are rounded once each; products sum in float32 or better, and are rounded once."""
    net, parts, wanted = Net(7), list[SSAValue](), list[Array]()
    kind = np.dtype(dtype if dtype == "float16" else ml_dtypes.bfloat16)

    def numbers(*shape: int) -> Array:
        return net.rng.uniform(-1, 1, shape).astype(kind)

    def rounded(reals: Array) -> Array:
        return reals.astype(kind).astype(np.float64)

    def result(value: SSAValue, reals: Array) -> None:
        parts.append(net.add(relay.ReshapeOp, [value], {"newshape": ints([-1])}))
        wanted.append(reals.reshape(-1))

    arrays = [numbers(*shape) for shape in ((1, 9, 7, 24), (24, 3, 3, 24), (3, 3, 24, 1), (22, 24), (24,))]
    image, kernel, column, matrix, factor = net.argument(arrays[0]), *map(net.constant, arrays[1:])
    x, k, c, m, f = (array.astype(np.float64) for array in arrays)
    product = net.add(relay.MultiplyOp, [image, factor], {})
    result(net.add(relay.AddOp, [product, image], {}), rounded(rounded(x * f) + x))
    result(net.add(relay.SqrtOp, [net.add(relay.AbsOp, [image], {})], {}), rounded(np.sqrt(np.abs(x))))
    exact = sum(array.size for array in wanted)
    windows, out = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (0, 1)), {"out_dtype": element_type(kind)}
    each = {"kernel_layout": StringAttr("HWOI"), "groups": IntegerAttr(24, i64)}
    convolved = net.add(relay.Conv2dOp, [image, kernel], {**out, "kernel_layout": StringAttr("OHWI")})
    apart = net.add(relay.Conv2dOp, [image, column], out | each)
    sums, sums_apart = np.einsum("yxcij,oijc->yxo", windows, k), np.einsum("yxcij,ijc->yxc", windows, c[..., 0])
    result(convolved, sums)
    result(apart, sums_apart)
    result(net.add(relay.MaximumOp, [convolved, apart], {}), np.maximum(sums, sums_apart))
    rows = net.add(relay.ReshapeOp, [image], {"newshape": ints([63, 24])})
    result(net.add(relay.DenseOp, [rows, matrix], out), x.reshape(63, 24) @ m.T)
    net.result("all", net.add(relay.ConcatenateOp, parts, {"axis": IntegerAttr(0, i64)}))
    (found,) = run_on_aarch64(net.module(), FEATURES[features], net.inputs[0][None], tmp_path)
    reals, expected = found.astype(np.float64), np.concatenate(wanted)
    assert np.array_equal(reals[:exact], expected[:exact])
    unit = 2.0**-10 if dtype == "float16" else 2.0**-7
    np.testing.assert_allclose(reals[exact:], expected[exact:], rtol=unit, atol=1e-6)
    assert HALF.findall(disassembled(tmp_path)) == []


@needs_aarch64
def test_tables_are_read_by_their_instructions(tmp_path: Path):
    pytest.importorskip("ai_edge_litert")
    case = Case("TANH", [T([1, 300], "int8", 0.02, 3)], [T([1, 300], "int8", 1 / 128)], version=2)
    path = tmp_path / "tanh.tflite"
    path.write_bytes(case.model())
    codes = np.arange(300, dtype=np.int16).astype(np.int8).reshape(1, 1, 300)
    found = run_on_aarch64(path, FEATURES["plain"], codes, tmp_path)
    assert np.array_equal(found[0], Reference(case.model()).run([codes[0]])[0])
