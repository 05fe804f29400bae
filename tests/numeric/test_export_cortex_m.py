"""Object code for Cortex-M boards, run by emulators: the integers of LiteRT's kernels, and of the interpreter."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relay
from benchmarks import firmware
from benchmarks.speech import speech
from relay import signature
from relay.dialects.attributes import Array, to_numpy
from relay.interpreters import run as run_module
from relay.lowering.plan_memory import planned_rows
from tests.numeric.compiled_modules import Net
from tests.numeric.exported import CORTEX_M, digits, golden, needed, run, types
from tests.numeric.test_c_cortex_m import BOARD
from tests.numeric.test_operators_compiled import FLAVOURS
from tests.unit.test_build import DIGITS

pytestmark = pytest.mark.ci
CORTEX = """
#include "relay_model.h"
#include "given.h"
void print(const char *text);
static _Alignas(RELAY_MODEL_ARENA_ALIGNMENT) unsigned char arena[RELAY_MODEL_ARENA_BYTES];
static OUTPUT out[RELAY_MODEL_OUTPUT_0_COUNT];
int main(void) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char *byte = (const unsigned char *)out;
  for (int i = 0; i < COUNT; ++i) {
    if (relay_model_run(arena, given[i], out)) return 1;
    for (unsigned at = 0; at < sizeof out; ++at) {
      const char text[] = {digits[byte[at] >> 4], digits[byte[at] & 15], 0};
      print(text);
    }
  }
  return 0;
}
"""


def on_cortex(
    name: str, model: tuple[Path | relay.IRModule, Array, Array], folder: Path, *, hard: bool = False
) -> None:
    CORTEX_M.skip()
    board = firmware.BOARDS[name]
    path, inputs, expected = model
    executable = relay.build(path, target=firmware.hard_target(name) if hard else name)
    executable.export(folder)
    board = board.with_floats_in_registers() if hard else board
    (folder / "main.c").write_text(CORTEX)
    rows = ",\n".join("{" + ",".join(map(str, row.reshape(-1).tolist())) + "}" for row in inputs)
    given = f"static const INPUT given[COUNT][RELAY_MODEL_INPUT_0_COUNT] = {{{rows}}};\n"
    (folder / "given.h").write_text(f"#define COUNT {len(inputs)}\n{given}")
    files = ["main.c", "relay_model.o", str(BOARD / "start.c"), "-T", str(BOARD / "mps2.ld")]
    machine = [*board.flags, *board.places, "-O2", "-ffreestanding", "-nostartfiles", "-specs=nosys.specs"]
    run([*CORTEX_M.linker, *machine, *types(executable), *files, "-lm", "-o", "model.elf"], folder)
    options = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "model.elf"]
    done = subprocess.run(
        [*CORTEX_M.emulator, "-M", board.machine, *options], cwd=folder, capture_output=True, timeout=500
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    data = bytes.fromhex((done.stdout or done.stderr).decode().strip())
    assert np.array_equal(np.frombuffer(data, executable.outputs[0].dtype).reshape(expected.shape), expected)


def drawn(module: relay.IRModule, count: int) -> tuple[relay.IRModule, Array, Array]:
    """A module of one input with random ones, and what the interpreter makes of them."""
    (info,), _ = signature.read(module["main"])
    random = np.random.default_rng(0)
    data = [firmware.drawn(random, info.shape, info.dtype) for _ in range(count)]
    return module, np.stack(data), np.stack([np.asarray(run_module(module, [each])[0]) for each in data])


@pytest.mark.parametrize(
    ("model", "called"),
    [
        (lambda: digits(3), {"__clzsi2"}),
        (lambda: drawn(speech(), 2), {"__clzsi2"}),
    ],
    ids=["digits", "speech"],
)
def test_models_on_a_cortex_m0(
    model: Callable[[], tuple[Path | relay.IRModule, Array, Array]],
    called: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """It has no products of 64 bits, and no function is called for them."""
    board = replace(firmware.BOARDS["cortex-m0"], machine="microbit", room=16 << 10)
    monkeypatch.setitem(firmware.BOARDS, "cortex-m0", board)
    on_cortex("cortex-m0", model(), tmp_path)
    assert needed(tmp_path) - {"memcpy", "memset"} == called


DECIMAL = """func.func @main(%x: tensor<1x256xi32>) -> tensor<1x256xi8> {
  %0 = qnn.requantize %x {input_scale = 7.5e-6 : f32, output_scale = 0.05 : f32, output_zero_point = 9 : i32,
    min = -128 : i32, max = 127 : i32, out_dtype = i8, multiplier = 1319413953 : i32, shift = -12 : i32,
    rounding = "f64_away", real_multiplier = 0.00015 : f64} : (tensor<1x256xi32>) -> tensor<1x256xi8>
  func.return %0 : tensor<1x256xi8>
}
"""


@pytest.mark.parametrize("board", ["cortex-m3", "cortex-m4"])
def test_halves_of_a_decimal_scale_on_a_cortex_m(board: str, tmp_path: Path):
    """Products that are exactly between two integers, which float64 rounds to halves or to less, and those beside."""
    halves = np.arange(10000, 860000, 20000)
    x = np.concatenate([halves, -halves, halves - 1, 1 - halves, halves + 1, [0, 2**31 - 1, -(2**31)]]).astype(np.int32)
    data = np.resize(x, (1, 1, 256))
    product = data[0] * 0.00015
    whole = np.trunc(product)
    away = whole + np.sign(product) * (np.abs(product - whole) >= 0.5)
    wanted = np.clip(away + 9, -128, 127).astype(np.int8)
    on_cortex(board, (relay.IRModule.parse(DECIMAL), data, wanted[None]), tmp_path)
    assert needed(tmp_path) <= {"memcpy", "memset"}


def test_accesses_that_are_not_aligned_are_found_where_a_cortex_m3_stands_in(tmp_path: Path):
    CORTEX_M.skip()
    (tmp_path / "main.c").write_text("int data[2];\nint main(void) { return *(volatile int *)((char *)data + 1); }\n")
    board = firmware.BOARDS["cortex-m0"]
    machine = [*board.flags, *board.places, "-nostartfiles", "-specs=nosys.specs"]
    files = ["main.c", str(BOARD / "start.c"), "-T", str(BOARD / "mps2.ld")]
    run([*CORTEX_M.linker, *machine, *files, "-o", "a"], tmp_path)
    options = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "a"]
    done = subprocess.run(
        [*CORTEX_M.emulator, "-M", board.machine, *options], cwd=tmp_path, capture_output=True, timeout=100
    )
    assert done.returncode == 1 and b"fault" in done.stdout + done.stderr


def test_digits_on_a_cortex_m4(tmp_path: Path):
    on_cortex("cortex-m4", digits(3), tmp_path)


MOD = """func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = relay.cast %x {dtype = f64} : (tensor<5xf32>) -> tensor<5xf64>
  %1 = relay.multiply %0, %0 : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  %2 = relay.cast %1 {dtype = f32} : (tensor<5xf64>) -> tensor<5xf32>
  %3 = relay.mod %x, %2 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %3 : tensor<5xf32>
}
"""


@pytest.mark.parametrize("hard", [False, True], ids=["softfp", "hard"])
@pytest.mark.parametrize("name", [name for name, board in firmware.BOARDS.items() if board.has_floats])
def test_floats_are_passed_as_the_triple_says(name: str, hard: bool, tmp_path: Path):
    """`fmodf` of libm gets them as the triple says, GCC's functions for doubles always in registers for integers;
    programs of the other interface are not linked with the object."""
    data = np.random.default_rng(0).uniform(-4, 4, (2, 5)).astype(np.float32)
    wanted = np.fmod(data, (data.astype(np.float64) ** 2).astype(np.float32))
    on_cortex(name, (relay.IRModule.parse(MOD), data, wanted), tmp_path, hard=hard)
    assert "fmodf" in needed(tmp_path)
    attributes = run(["arm-none-eabi-readelf", "-A", "relay_model.o"], tmp_path).decode()
    assert ("Tag_ABI_VFP_args: VFP registers" in attributes) == hard
    other = firmware.BOARDS[name] if hard else firmware.BOARDS[name].with_floats_in_registers()
    (tmp_path / "main.c").write_text("float get(void) { return 1; }\n")
    link = [CORTEX_M.linker[0], *other.flags, "-nostartfiles", "-Wl,-e,get", "main.c", "relay_model.o", "-lm"]
    done = subprocess.run([*link, "-o", "other"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "VFP register arguments" in done.stderr


@pytest.mark.parametrize(
    ("flavour", "board", "instruction"),
    [
        ("i8", "cortex-m4", "smlad"),
        ("u8_i8", "cortex-m4", "smlad"),
        ("i8_i8zp", "cortex-m4", ""),  # weights of 9 bits
        ("i8", "cortex-m55", "vmlava"),
        ("u8_i8", "cortex-m55", "vmlava"),
    ],
)
def test_sums_of_codes_on_a_cortex_m(flavour: str, board: str, instruction: str, tmp_path: Path):
    """Runs of words, of vectors and of others, strides, padding, groups, and outputs that leave remainders."""
    net = Net(3)
    data, kernel, zero_points = FLAVOURS[flavour]
    x = net.argument(net.numbers(data, 1, 9, 7, 4))
    for outputs, taps, stride, groups in ((12, 3, 1, 1), (10, 3, 2, 1), (16, 1, 1, 2), (8, 3, 1, 4), (7, 3, 2, 1)):
        channels = (4, 12, 10, 16, 8)[len(net.results)]
        weights = net.constant(net.numbers(kernel, outputs, taps, taps, channels // groups))
        pad = (taps // 2,) * 4
        strides = (stride, stride)
        sums = net.conv2d(x, weights, strides=strides, padding=pad, groups=groups, zero_points=zero_points)
        x = net.requantize(sums, outputs, data)
        net.result(str(outputs), x)
    for name in list(net.results)[:-1]:
        del net.results[name]
    module = net.module()
    (wanted,) = run_module(module, net.inputs)
    text = relay.build(module, target=board).get_source("asm")
    assert [name for name in ("vmlava", "smlad") if name in text][:1] == [instruction] * bool(instruction)
    on_cortex(board, (module, net.inputs[0][None], wanted[None]), tmp_path)


TINY = ("ad01_int8", "kws_int8", "resnet8_int8", "vww_96_int8")
QUICK = {("kws_int8", "cortex-m7"), ("kws_int8", "cortex-m33"), ("kws_int8", "cortex-m55"), ("ad01_int8", "cortex-m55")}


@pytest.mark.parametrize(
    ("name", "board"),
    [
        pytest.param(name, board, marks=[] if (name, board) in QUICK else pytest.mark.slow)
        for name in TINY
        for board in firmware.BOARDS
        if board.startswith("cortex")
    ],
)
def test_models_on_a_cortex_m(name: str, board: str, tmp_path: Path):
    """The outputs of LiteRT's reference kernels; with a unit for floats, programs pass floats in its registers."""
    on_cortex(board, golden(name, 1), tmp_path, hard=firmware.BOARDS[board].has_floats)


@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55", "riscv32"])
@pytest.mark.parametrize("name", [pytest.param("ad01_int8", marks=pytest.mark.slow), "digits", "speech"])
def test_integers_need_no_arithmetic_of_a_library(name: str, target: str, tmp_path: Path):
    model = speech() if name == "speech" else DIGITS if name == "digits" else golden(name, 1)[0]
    relay.build(model, target=target).export(tmp_path)
    assert needed(tmp_path) <= {"memcpy", "memset"}


def test_firmware_is_smaller_and_takes_fewer_instructions_than_before(capsys: pytest.CaptureFixture[str]):
    """Native code of the digits took 38,580 bytes and 436,000 instructions on a Cortex-M3 when vectors were split."""
    CORTEX_M.skip()
    assert firmware.main([str(DIGITS), "--boards", "cortex-m3"]) == 0
    for row in capsys.readouterr().out.splitlines()[-2:]:
        flash, _, memory, millions, results = row.strip("| ").split(" | ")[3:]
        assert (results, int(flash) < 10_000, int(memory) < 3200, float(millions) < 0.35) == ("equal", True, True, True)


def test_firmware_of_riscv32(capsys: pytest.CaptureFixture[str]):
    """Native code has the interpreter's integers, keeps the limit of flash, and takes fewer instructions than C."""
    if missing := firmware.BOARDS["riscv32"].missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    assert firmware.main([str(DIGITS), "--boards", "riscv32"]) == 0
    native, c = (row.strip("| ").split(" | ")[3:] for row in capsys.readouterr().out.splitlines()[-2:])
    assert native[4] == c[4] == "equal"
    assert int(native[0]) <= int(native[1])
    assert float(native[3]) < float(c[3])


def test_firmware_of_floats(capsys: pytest.CaptureFixture[str]):
    """Nothing is called that C libraries of microcontrollers do not have, with and without a unit for floats."""
    CORTEX_M.skip()
    assert firmware.main([str(DIGITS.with_name("digits_float.tflite")), "--boards", "cortex-m3", "cortex-m7"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_no_constant_has_wider_numbers_than_it_needs_where_flash_is_scarce():
    module = relay.optimize(
        relay.frontend.from_tflite(DIGITS), "cortex-m3", pipeline=relay.default_pipeline("cortex-m3")
    )
    arrays = [to_numpy(row["value"]) for row in planned_rows(module.op, "relay.constants")]
    assert {"int8", "int16", "int32"} == {array.dtype.name for array in arrays}
    assert all(np.abs(array.astype(np.int64)).max() >= 1 << 15 for array in arrays if array.dtype == np.int32)
