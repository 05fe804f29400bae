"""Certificates: the digits' machine code is checked, planted defects are found, what cannot be checked is said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from bisect import bisect_right
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from benchmarks.planted_defects import with_constants
from relay.errors import InvalidArgument, Malformed, RelayError
from relay.interpreters import arithmetic, evaluate
from relay.module import IRModule
from relay.runtime import DynamicExecutable, archive
from relay.runtime.memory import Array
from relay.validation import Part, certify, formulas
from relay.validation.claims import ARENA, Call, Place, Program, read
from relay.validation.contraction import Product
from relay.validation.emulator import emulator_of
from relay.validation.lookup import Lookup
from relay.validation.machine_code import Kernel, Machine, functions_of, offsets
from relay.validation.plan import contradictions
from relay.validation.sums import Sums

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
MODELS = ROOT.parent / "shared" / "models"
X86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="kernels are called by themselves on x86-64 only")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certificates") / "digits.relay"
    relay.build(DIGITS).save(path)
    return path


@pytest.mark.ci
@X86
def test_the_page_certifies_the_digits():
    page = (ROOT / "docs" / "certificates.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "every kernel checked (10 kernels" in done.stdout
    assert "not checked:" not in done.stdout and "wrong:" not in done.stdout
    for kind in ("rescale of 32 channels", "weights of 32 channels", "the memory plan", "below 2^-8"):
        assert kind in done.stdout


@pytest.mark.ci
@X86
def test_planted_defects_are_found(saved: Path):
    command = [sys.executable, "-m", "benchmarks.planted_defects", str(saved), "--count", "1", "--seed", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "found 1 of 1" in done.stdout


@X86
@pytest.mark.slow
@pytest.mark.parametrize(("model", "count", "seed"), (("digits", 68, 11), ("kws", 66, 12), ("resnet8", 66, 13)))
def test_two_hundred_planted_defects_are_found(model: str, count: int, seed: int, tmp_path: Path):
    path = DIGITS if model == "digits" else MODELS / f"{model}_int8.tflite"
    if not path.exists():
        pytest.skip("shared models are not here")
    relay.build(path).save(tmp_path / "model.relay")
    command = [sys.executable, "-m", "benchmarks.planted_defects", str(tmp_path / "model.relay")]
    done = subprocess.run(
        [*command, "--count", str(count), "--seed", str(seed)], cwd=ROOT, capture_output=True, text=True
    )
    assert f"found {count} of {count}" in done.stdout, done.stdout


@X86
@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted([*MODELS.glob("*.tflite"), *MODELS.glob("onnx/*.onnx")]), ids=lambda path: path.stem
)
def test_models_are_certified(path: Path):
    exe, integers = relay.build(path), re.search("int8|quant|ptq|qdq|qoperator", path.stem)
    if isinstance(exe, DynamicExecutable):
        integers = None  # products of two tensors that are computed, as attention has, are not checked
        sizes = {each.name: [max(each.minimum, each.multiple)] for each in exe.interface.symbols}
        try:
            exe.prepare(**sizes)
        except RelayError as error:
            pytest.skip(f"needs other sizes than {sizes}: {error}")
    report = exe.certify()
    assert not report.wrong, str(report)
    assert not integers or report.levels["not checked"] < len(report.parts) // 4, str(report)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits for a machine that this one, an x86-64, is not."""
    path = tmp_path_factory.mktemp("certificates") / "other.relay"
    relay.build(DIGITS, "aarch64-unknown-linux-gnu").save(path)
    return path


@pytest.mark.ci
@X86
def test_what_is_for_another_machine_is_not_checked(other: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    report = certify(other)
    assert report.exit_status == 2 and not report.ok and not report.wrong
    assert "not checked: it is code for aarch64-unknown-linux-gnu" in str(report)
    assert "qemu's user mode, which would run it, is not installed" in str(report)


@pytest.mark.ci
@X86
def test_code_of_another_machine_that_calls_libraries_is_not_checked():
    """Concatenation copies by `memmove`: no emulated process has a C library."""
    if emulator_of("aarch64-unknown-linux-gnu") is None:
        pytest.skip("qemu-user is not installed")
    module = relay.IRModule.parse("""func.func @main(%x: tensor<4x4096xi8>) -> tensor<4x8192xi8> {
      %y = relay.concatenate %x, %x {axis = 1 : i64} : (tensor<4x4096xi8>, tensor<4x4096xi8>) -> tensor<4x8192xi8>
      func.return %y : tensor<4x8192xi8>
    }""")
    report = certify(relay.build(module, "aarch64-unknown-linux-gnu").to_bytes())
    assert report.exit_status == 2 and not report.wrong
    assert "not checked: its code calls functions of the C library" in str(report)


@pytest.mark.ci
@X86
def test_code_of_another_machine_is_checked_under_an_emulator(other: Path):
    if emulator_of("aarch64-unknown-linux-gnu") is None:
        pytest.skip("qemu-user is not installed")
    report = certify(other, bits=1)
    assert report.ok and "under qemu-aarch64" in report.target
    saved = archive.saved(archive.read(other)[0], "digits", here=False)
    code, (start, _) = bytearray(saved.code), functions_of(saved.code)["conv2d_1"]
    at = next(at + start - base for base, at, size in offsets(saved.code) if base <= start < base + size)
    code[at : at + 4] = b"\xc0\x03\x5f\xd6"  # it returns at once
    broken = certify(archive.pack(saved._replace(code=bytes(code))), bits=1, first=True)
    assert "1 conv2d_1: " in broken.wrong[0] and "results differ" in broken.wrong[0]


def test_a_file_without_claims_loads_and_is_not_checked(saved: Path, tmp_path: Path):
    graph, library, params = relay.runtime.load(saved)
    relay.runtime.create(graph, library, params).save(tmp_path / "old.relay")
    loaded = relay.runtime.load(tmp_path / "old.relay")
    assert "the file claims no formulas" in str(loaded.certify())


def forged(saved: Path, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The file with other claims."""
    parts = archive.saved(archive.read(saved)[0], "digits")
    text = json.loads(zlib.decompress(parts.claims))
    change(text)
    return archive.pack(parts._replace(claims=zlib.compress(json.dumps(text).encode())))


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another version": (lambda text: text.update(version=9), "claims of version 9; this checker knows 1 and 2"),
    "no programs": (lambda text: text["programs"].clear(), "the claims cannot be read"),
    "a call too few": (lambda text: text["calls"].pop(), "which no kernel wrote"),
    "kernels change places": (lambda text: text["calls"].reverse(), "the calls in the code are not those"),
    "memory of nobody": (lambda text: text["calls"][0]["results"][0].update(arena=1 << 40), "wrong"),
    "memory before the arena": (lambda text: text["calls"][0]["results"][0].update(arena=-64), "wrong"),
    "another formula": (lambda text: text["programs"]["conv2d_0"]["rows"][0].update(formula="magic"), "magic"),
    "values of nobody": (lambda text: text["programs"]["conv2d_0"]["rows"][1].update(operands=[77, 78]), "not checked"),
    "another bias": (
        lambda text: [array.update(data="AAAA" + array["data"][4:]) for array in text["arrays"].values()],
        "wrong",
    ),
    "fewer rows": (lambda text: text["programs"]["conv2d_0"]["rows"].pop(), "wrong"),
}


WHOLE = ("a call too few", "another formula", "values of nobody")
"""What is refused after all else was checked."""


@X86
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.ci if n in WHOLE else ()) for n in FORGERIES])
def test_forged_claims_are_refused(saved: Path, name: str):
    change, message = FORGERIES[name]
    report = certify(forged(saved, change), bits=1, first=True)
    assert not report.ok and message in str(report)
    assert "Traceback" not in str(report)


def test_damaged_files_end_in_one_error(saved: Path):
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 1
    for broken in (bytes(data), bytes(data[:-9]), b"", b"no executable"):
        with pytest.raises(Malformed):
            certify(broken)
    with pytest.raises(InvalidArgument):
        certify(saved.parent / "no file")


@X86
def test_the_report_is_json_and_a_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    module = IRModule.parse(BRANCHES.replace("BRANCH", ""))
    report = certify(relay.build(module, "aarch64-unknown-linux-gnu").to_bytes())
    assert json.loads(report.to_json())["parts"][0]["findings"][0]["kind"] == "not checked"
    assert "<title>Certificate of &lt;bytes&gt;</title>" in report.to_html()


def test_formulas_agree_with_the_interpreter():
    rng = np.random.default_rng(3)
    x = rng.integers(-(1 << 31), 1 << 31, 100000)
    multiplier = rng.integers(1 << 30, 1 << 31, x.size)
    shift = rng.integers(-31, 31, x.size)
    for rounding in ("tflite", "tflite_single", "upward", "tonearest"):
        values = x[None], multiplier[None], shift[None]
        found = formulas.call("fixed_point_multiply", {"rounding": rounding, "axis": -1}, values)[0]
        wanted = arithmetic.multiply_by_quantized_multiplier(*values, rounding).astype(np.int32)
        np.testing.assert_array_equal(found, wanted)
    sums = rng.integers(1, 1 << 31, 100000)
    for found, wanted in zip(
        formulas.call("fixed_point_reciprocal", {}, [sums]), arithmetic.reciprocal(sums), strict=True
    ):
        np.testing.assert_array_equal(found, wanted.astype(np.int32))


def test_results_are_looked_up_by_the_steps_of_each_channel():
    low, high = np.array([-1000, 5, -7]), np.array([90000, 5000, 7])
    edges = np.array([[-2000, 6, 100], [-900, 6, 100], [40, 2000, 100], [77000, 2001, 100]])
    found = Lookup(edges, np.array([-128, -3, 0, 5, 127]), low, high, np.dtype(np.int8))
    sums = np.random.default_rng(4).integers(low, high + 1, (5000, 3))
    near = np.clip(np.concatenate([edges, edges - 1, [low, high]]), low, high)
    for each in (sums, near):
        passed = (edges[:, None] <= each[None]).sum(axis=0)
        np.testing.assert_array_equal(found(each), np.array([-128, -3, 0, 5, 127])[passed])


@X86
def test_random_amounts_show_differences_with_the_probability_that_is_claimed(saved: Path):
    data = archive.unpack(archive.aligned(saved.read_bytes()), "digits")
    claimed = read(data.claims)
    call = next(each for each in claimed.calls if each.program.rows[0].parameters.get("depthwise"))
    kernel = Kernel(Machine(data, claimed, 60), call)
    product = Product(kernel, Part("kernel", ""), np.random.default_rng(5))
    product.find_start()
    product.read_weights()
    sums = Sums(product)
    sums.region = sums.regions()
    rng = np.random.default_rng(6)
    spread = sums.region.spread
    values = sums.centred(sums.two_colors(spread))
    extent = (spread + 1) >> 1
    first, size, seen = sums.amounts(values, spread, extent)
    states = np.append(rng.integers(0, 2, product.flat.shape[0]), 2)
    windows = sums.sums(sums.patterns(states)[0], values)
    assert (seen[sums.tested] > 0).all()
    for channel in np.flatnonzero(sums.tested).tolist():
        amounts = range(int(first[channel]), int(first[channel] + size[channel]))
        steps: list[int] = sums.steps[: sums.count[channel], channel].tolist()
        for each in np.unique(windows[:, channel])[:5].tolist():
            for low in (0, -int(extent[channel])):  # steps in (sum, sum + D], for both signs of D
                shown = [
                    bisect_right(steps, each + amount + low + int(extent[channel]))
                    > bisect_right(steps, each + amount + low)
                    for amount in amounts
                ]
                assert sum(shown) >= (seen[channel] - 1e-12) * len(shown)


def test_two_colours_show_a_difference_as_often_as_sums_says():
    """Of random wrong coefficients: over both colours of each pixel and the signs of channels, a difference is seen a
    quarter as often as one of two spreads, or more often; where one channel is summed, half as often as one spread."""
    rng, spread, widest, narrowest = np.random.default_rng(1), 7, 150, 120
    for case in range(200):
        inputs, pixels, turns = 1 if case % 2 else 4, 3, int(rng.integers(1, 9))
        wrong = rng.integers(-3, 4, (pixels, inputs)) * (rng.random((pixels, inputs)) < 0.4)
        wrong[0, 0] = rng.choice([-40, -1, 1, 2])
        middle: Array = rng.integers(-50, 50) + wrong * rng.integers(-9, 9, inputs)

        def seen(difference: Array, turns: int = turns) -> Array:
            return 1 - (1 - np.minimum(np.abs(difference), narrowest) / widest) ** turns

        signs = [(1,)] if inputs == 1 else list(product((1, -1), repeat=inputs))
        found = [
            seen(middle.sum() + spread / 2 * (wrong * np.array(sign) * np.array(colors)[:, None]).sum())
            for sign in signs
            for colors in product((1, -1), repeat=pixels)
        ]
        least = seen(np.array(spread)) / 2 if inputs == 1 else seen(np.array(2 * spread)) / 4
        assert np.mean(found) >= least - 1e-12


def test_plans_that_contradict_themselves_are_seen():
    def reads(number: int, read: Place, write: Place) -> Call:
        program, kernel = Program((), (), (), {}, {}), f"k{number}"
        return Call(number, kernel, kernel, program, {}, {}, {}, {0: read}, (write,), (), (), (), {}, "")

    given, first, second = Place(0, 0, 64), Place(ARENA, 0, 64), Place(ARENA, 32, 64)
    sound = [reads(0, given, first), reads(1, first, Place(ARENA, 128, 64))]
    assert contradictions(sound, [given], []) == []
    over = [reads(0, given, first), reads(1, given, second), reads(2, first, Place(1, 0, 64))]
    assert "k2 reads 64 bytes at 0 of the arena" in contradictions(over, [given], [])[0]
    assert "k1 writes where it reads" in contradictions([sound[0], reads(1, first, second)], [given], [])[0]


def test_results_of_sums_are_those_of_a_table_where_it_is_too_large(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(8)
    low, high = np.array([-3000, -10, 5]), np.array([9000, 12, 5])
    edges: Array = np.sort(rng.integers(-4000, 10000, (9, 3)), axis=0)
    values: Array = np.sort(rng.integers(-128, 128, 10))
    sums: Array = rng.integers(low, high + 1, (4000, 3))
    found = Lookup(edges, values, low, high, np.dtype(np.int8))
    monkeypatch.setattr("relay.validation.lookup.MOST_SUMS", 0)
    buckets = Lookup(edges, values, low, high, np.dtype(np.int8))
    assert found.direct is not None and buckets.direct is None
    np.testing.assert_array_equal(found(sums), buckets(sums))
    some = np.array([0, 2])
    np.testing.assert_array_equal(found(sums[:, some], some), buckets(sums)[:, some])


@pytest.mark.parametrize("dtype", (np.uint8, np.int8, np.float32))
def test_resizing_agrees_with_the_interpreter(dtype: type[np.generic]):
    x: Array = np.random.default_rng(9).integers(0, 100, (1, 5, 4, 2)).astype(dtype)
    kind = {"uint8": "ui8", "int8": "i8", "float32": "f32"}[np.dtype(dtype).name]
    for size, flag in product(((9, 11), (3, 4), (1, 1)), ("", "align_corners", "half_pixel_centers")):
        flags = f"{flag} = true, " if flag else ""
        text = (
            f"func.func @main(%x: tensor<1x5x4x2x{kind}>) -> tensor<1x{size[0]}x{size[1]}x2x{kind}> {{"
            f"%r = relay.image.resize2d %x {{{flags}size = array<i64: {size[0]}, {size[1]}>}} : "
            f"(tensor<1x5x4x2x{kind}>) -> tensor<1x{size[0]}x{size[1]}x2x{kind}>\n"
            f"func.return %r : tensor<1x{size[0]}x{size[1]}x2x{kind}> }}"
        )
        (op,) = (op for op in IRModule.parse(text).op.walk() if op.name == "relay.image.resize2d")
        (wanted,) = evaluate(op, [x])
        (found,) = formulas.call("image.resize2d", {"method": "linear", "size": size, flag: True}, [x])
        np.testing.assert_array_equal(found.astype(dtype), wanted)


WIDE = {
    "16 bits": ("3x7xi16", "5x7xi8", "3x5xi32", "nn.dense %x, %w"),
    "8 bits": ("3x7xi8", "5x7xi8", "3x5xi32", "nn.dense %x, %w"),
    "groups": ("1x4x5x4xi8", "6x3x3x2xi8", "1x2x3x6xi32", "nn.conv2d %x, %w {groups = 2 : i64}"),
}


@X86
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "8 bits" else pytest.mark.ci) for n in WIDE])
def test_products_with_wide_results_are_certified(name: str):
    data, kernel, result, product = WIDE[name]
    shape = [int(size) for size in kernel.split("x")[:-1]]
    weights = np.random.default_rng(1).integers(-127, 128, shape).tolist()
    module = IRModule.parse(
        f"func.func @main(%x: tensor<{data}>) -> tensor<{result}> {{"
        f"%w = relay.constant dense<{weights}> : tensor<{kernel}>\n"
        f"%r = relay.{product} : (tensor<{data}>, tensor<{kernel}>) -> tensor<{result}>\n"
        f"func.return %r : tensor<{result}> }}"
    )
    exe = relay.build(module)
    report = exe.certify()
    assert report.ok and f"weights of {shape[0]} channels" in str(report) and "below 2^-64" in str(report)
    saved = archive.saved(archive.read(exe.to_bytes())[0], "product")
    assert saved.constants is not None
    constants = saved.constants.copy()
    constants[int(np.flatnonzero(constants)[0])] ^= 1
    wrong = certify(archive.pack(with_constants(saved, constants)), first=True).wrong
    assert wrong and wrong[0].startswith("0 ")


@X86
def test_kernels_that_share_their_code_are_certified():
    """Layers that differ in scales and zero points: one function, which is called with the numbers of each."""
    lines, rng = list[str](), np.random.default_rng(2)
    for number, (multiplier, zero_point) in enumerate(
        [(1400000000, 3), (1800000000, -7), (1500000000, 5), (1600000000, 9)]
    ):
        weights = rng.integers(-127, 128, (32, 32)).tolist()
        scales = f"input_scale = 1.0 : f32, input_zero_point = {zero_point} : i32, kernel_scale = 1.0 : f32"
        after = f"output_scale = 1.0 : f32, output_zero_point = {-zero_point} : i32, multiplier = {multiplier} : i32"
        lines += (
            f"%w{number} = relay.constant dense<{weights}> : tensor<32x32xi8>",
            f"%s{number} = qnn.dense %x{number}, %w{number} {{{scales}}} : "
            "(tensor<4x32xi8>, tensor<32x32xi8>) -> tensor<4x32xi32>",
            f"%x{number + 1} = qnn.requantize %s{number} {{input_scale = 1.0 : f32, {after}, shift = -7 : i32, "
            "out_dtype = i8} : (tensor<4x32xi32>) -> tensor<4x32xi8>",
        )
    lines.append("func.return %x4 : tensor<4x32xi8>")
    body = "\n".join(lines)
    exe = relay.build(IRModule.parse(f"func.func @main(%x0: tensor<4x32xi8>) -> tensor<4x32xi8> {{{body}}}"))
    calls = read(archive.saved(archive.read(exe.to_bytes())[0], "layers").claims).calls
    assert len({call.code for call in calls}) < len({call.kernel for call in calls})
    report = exe.certify()
    assert report.ok and len(report.parts) == len(calls) + 1, str(report)


@X86
def test_floats_are_compared_with_bounds():
    module = IRModule.parse(
        "func.func @main(%x: tensor<5x9xf32>) -> tensor<5x9xf32> {"
        "%s = relay.sigmoid %x : (tensor<5x9xf32>) -> tensor<5x9xf32>\n"
        "%r = relay.nn.softmax %s {beta = 1.0 : f32} : (tensor<5x9xf32>) -> tensor<5x9xf32>\n"
        "func.return %r : tensor<5x9xf32> }"
    )
    report = relay.build(module).certify()
    assert report.ok and "compared: 64 runs with random numbers; floats are off by" in str(report)


BRANCHES = """func.func @main(%x: tensor<40x50xi8>, %state: tensor<40x50xi8>, %flag: tensor<i1>)
    -> (tensor<40x50xi8>, tensor<40x50xi8>) {
  %largest = relay.maximum %x, %state : (tensor<40x50xi8>, tensor<40x50xi8>) -> tensor<40x50xi8>
  BRANCH
  func.return %largest, %x : tensor<40x50xi8>, tensor<40x50xi8>
}"""
BRANCH = """%yes = tensor.extract %flag[] : tensor<i1>
  %chosen = scf.if %yes -> (tensor<40x50xi8>) {
    %least = relay.minimum %x, %state : (tensor<40x50xi8>, tensor<40x50xi8>) -> tensor<40x50xi8>
    scf.yield %least : tensor<40x50xi8>
  } else {
    scf.yield %x : tensor<40x50xi8>
  }"""


@X86
def test_tensors_that_the_entry_point_copies_are_followed():
    exe = relay.build(IRModule.parse(BRANCHES.replace("BRANCH", "")))
    report = exe.certify(bits=1)
    assert report.ok and "proved: the memory plan" in str(report) and "give together" in str(report)
    parts = archive.saved(archive.read(exe.to_bytes())[0], "copies")
    text = json.loads(zlib.decompress(parts.claims))
    text["moves"][0]["from"]["argument"] = 1
    wrong = certify(archive.pack(parts._replace(claims=zlib.compress(json.dumps(text).encode()))), bits=1).wrong
    assert wrong == ["all: output 1 of a run is not that of all formulas together"]


@X86
def test_beside_branches_and_loops_kernels_are_checked():
    text = BRANCHES.replace("BRANCH", BRANCH).replace("return %largest, %x", "return %largest, %chosen")
    report = relay.build(IRModule.parse(text)).certify(bits=1)
    assert not report.wrong and not report.ok
    assert report.unchecked["it is called in a branch or a loop"] == 1 and report.levels["proved"] == 1
    assert "there are branches or loops beside kernels" in str(report)


FLOAT_PRODUCTS = {
    "dense": ("3x40xf32", "10x40xf32", "3x10xf32", "nn.dense", ""),
    "padded": ("1x6x5x12xf32", "8x3x3x12xf32", "1x6x5x8xf32", "nn.conv2d", ", padding = array<i64: 1, 1, 1, 1>"),
    "groups": ("1x4x5x4xf32", "6x3x3x2xf32", "1x2x3x6xf32", "nn.conv2d", ", groups = 2"),
    "depthwise": ("1x5x6x8xf32", "3x3x8x1xf32", "1x3x4x8xf32", "nn.conv2d", ', kernel_layout = "HWOI", groups = 8'),
}


@X86
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "padded" else pytest.mark.ci) for name in FLOAT_PRODUCTS]
)
def test_products_of_floats_are_compared_with_projections(name: str):
    data, kernel, result, product, options = FLOAT_PRODUCTS[name]
    rng = np.random.default_rng(7)
    shape, channels = [int(size) for size in kernel.split("x")[:-1]], int(result.split("x")[-2])
    weights, bias = (rng.normal(0, 0.5, size).astype(np.float32).tolist() for size in (shape, channels))
    taken, given = f"tensor<{data}>, tensor<{kernel}>", f"tensor<{result}>"
    module = IRModule.parse(
        f"func.func @main(%x: tensor<{data}>) -> {given} {{"
        f"%w = relay.constant dense<{weights}> : tensor<{kernel}>\n"
        f"%b = relay.constant dense<{bias}> : tensor<{channels}xf32>\n"
        f"%s = relay.{product} %x, %w {{out_dtype = f32{options}}} : ({taken}) -> {given}\n"
        f"%t = relay.nn.bias_add %s, %b {{axis = -1}} : ({given}, tensor<{channels}xf32>) -> {given}\n"
        f"%r = relay.clip %t {{a_min = -3.0 : f32, a_max = 4.0 : f32}} : ({given}) -> {given}\n"
        f"func.return %r : {given} }}"
    )
    exe = relay.build(module)
    report = exe.certify()
    assert report.ok and report.levels["compared"] == 1 and "did not change" not in str(report), str(report)
    saved = archive.saved(archive.read(exe.to_bytes())[0], "product")
    assert saved.constants is not None
    floats = np.flatnonzero(saved.constants.view(np.float32))
    for place in rng.choice(floats, 4, replace=False):
        constants = saved.constants.copy()
        constants.view(np.float32)[place] += np.float32(0.005)
        wrong = certify(archive.pack(with_constants(saved, constants)), first=True).wrong
        assert wrong and "not" in wrong[0]
