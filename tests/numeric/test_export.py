"""Object code for other machines, called from C and run by emulators: the integers are those of LiteRT's kernels."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import relay
from benchmarks import firmware
from benchmarks.speech import speech
from relay import signature
from relay.byoc.c import export_c
from relay.byoc.c.emit import constants_of
from relay.dialects.attributes import Array, to_numpy
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.interpreters import run as run_module
from relay.lowering.c_interface import TYPES
from relay.runtime import Executable, load
from relay.target import host, resolve
from tests.numeric.compiled_modules import Net
from tests.numeric.test_c_cortex_m import BOARD
from tests.numeric.test_models_interpreted import MODELS
from tests.numeric.test_operators_compiled import FLAVOURS
from tests.unit.test_build import DATA, DENSE, DIGITS

pytestmark = pytest.mark.ci
LINUX = """
#include "relay_model.h"
#include <stdio.h>
static _Alignas(RELAY_MODEL_ARENA_ALIGNMENT) unsigned char arena[RELAY_MODEL_ARENA_BYTES];
static INPUT in[RELAY_MODEL_INPUT_0_COUNT];
static OUTPUT out[RELAY_MODEL_OUTPUT_0_COUNT];
int main(void) {
  if (relay_model_run(arena + 1, in, out) != -1) return 2;
  while (fread(in, sizeof in, 1, stdin) == 1) {
    if (relay_model_run(arena, in, out)) return 1;
    fwrite(out, sizeof out, 1, stdout);
  }
  return 0;
}
"""
ADD = """func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = relay.add %x, %x : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  func.return %0 : tensor<1024xf32>
}
"""
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
ODD = """
#include <stdio.h>
#include "odd.h"
static _Alignas(ODD_ARENA_ALIGNMENT) unsigned char arena[ODD_ARENA_BYTES];
int main(void) {
  const uint8_t a[] = {1, 0, 1};
  const int16_t b[] = {-5, 5, 0};
  const int64_t c[] = {-6000000000, 0, 0};
  const double d[] = {0.25, 0, 0};
  uint8_t o[3];
  int16_t p[3];
  int64_t q[3];
  double r[3];
  float s[3];
  if (odd_run(arena, a, b, c, d, odd_initial_4, o, p, q, r, s)) return 1;
  printf("%d %d %d %d %d %lld %g ", o[0], o[1], o[2], p[0], p[1], (long long)q[0], r[0]);
  printf("%.1f %.1f %.1f\\n", s[0], s[1], s[2]);
  return 0;
}
"""
WASM = """
const fs = require("fs");
const [, , file, arena, input, output, count] = process.argv;
let all;
const bytes = (at, size) => new Uint8Array(all.buffer, at, size);
const env = {  // what a C library has
  round: (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5),
  memset: (to, value, size) => (bytes(to, size).fill(value), to),
  memcpy: (to, from, size) => (bytes(to, size).set(bytes(from, size)), to),
};
WebAssembly.instantiate(fs.readFileSync(file), { env }).then(({ instance }) => {
  const { memory, relay_model_run, __heap_base } = instance.exports;
  all = memory;
  const start = Math.ceil(__heap_base.value / 64) * 64, of = (size) => Math.ceil(+size / 64) * 64;
  const [inAt, outAt] = [start + of(arena), start + of(arena) + of(input)];
  memory.grow(Math.ceil((outAt + of(output)) / 65536));
  const given = fs.readFileSync(0), found = [];
  for (let i = 0; i < +count; ++i) {
    new Uint8Array(memory.buffer).set(given.subarray(i * +input, (i + 1) * +input), inAt);
    if (relay_model_run(start, inAt, outAt)) process.exit(1);
    found.push(Buffer.from(new Uint8Array(memory.buffer, outAt, +output)));
  }
  fs.writeSync(1, Buffer.concat(found));
});
"""


@dataclass(frozen=True)
class Machine:
    """A target, and the programs that link and run code for it."""

    target: str
    linker: Sequence[str]
    emulator: Sequence[str]
    packages: str

    def skip(self) -> None:
        for program in (self.linker[0], self.emulator[0]):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed (Debian: {self.packages})")
        if "v=true" in " ".join(self.emulator):
            version = subprocess.run([self.emulator[0], "--version"], capture_output=True, text=True).stdout
            if int(version.split("version ")[1].split(".")[0]) < 8:
                pytest.skip("QEMU 7 ends in an assertion of its own at vector instructions of RISC-V")


def user(name: str, options: str = "", cpu: str = "") -> Machine:
    packages, cpu = f"gcc-{name}-linux-gnu, qemu-user", cpu or ("max" if name == "aarch64" else "")
    emulator = [f"qemu-{name}", *(["-cpu", cpu] if cpu else [])]
    return Machine(f"{name}-linux-gnu{options}", [f"{name}-linux-gnu-gcc"], emulator, packages)


MACHINES = {
    "aarch64": user("aarch64"),
    "aarch64+i8mm": user("aarch64", " -mattr=+dotprod,+i8mm"),
    "riscv64": user("riscv64"),
    **{f"riscv64+v, {n} bits": user("riscv64", " -mattr=+v", f"rv64,v=true,vlen={n}") for n in (128, 512)},
    "x86_64": Machine("x86_64-linux-gnu", ["gcc"], ["env"], "gcc"),
}
CORTEX_M = Machine(
    "thumbv7em-none-eabi", ["arm-none-eabi-gcc"], ["qemu-system-arm"], "gcc-arm-none-eabi, qemu-system-arm"
)
WASM_LD = next((name for name in ("wasm-ld-22", "wasm-ld") if shutil.which(name)), "wasm-ld")
WASM32 = Machine("wasm32-unknown-unknown", [WASM_LD], ["node"], "lld-22, nodejs")


def golden(name: str, count: int) -> tuple[Path, Array, Array]:
    """A model with some of its inputs, and the outputs they have."""
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    stored = np.load(MODELS / "golden" / f"{name}.npz")
    tags = sorted({key.split("_in")[0] for key in stored.files if "_in" in key})[:count]
    return path, np.stack([stored[f"{tag}_in0"] for tag in tags]), np.stack([stored[f"{tag}_out0"] for tag in tags])


def digits(count: int) -> tuple[Path, Array, Array]:
    return DIGITS, DATA["int8_images"][:count, None], DATA["int8_out"][:count].reshape(count, 1, 10)


def types(executable: Executable) -> list[str]:
    names = (("INPUT", executable.inputs[0]), ("OUTPUT", executable.outputs[0]))
    return [f"-D{name}={TYPES[spec.dtype.name]}" for name, spec in names]


def run(command: Sequence[str], folder: Path, data: bytes = b"") -> bytes:
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    return done.stdout


def on_linux(machine: Machine, model: tuple[Path, Array, Array], folder: Path) -> None:
    machine.skip()
    path, inputs, expected = model
    executable = relay.build(path, target=machine.target)
    kinds = [file.name.removeprefix("relay_model") for file in executable.export(folder)]
    assert kinds == [".o", ".h", ".md", ".cmake"]
    (folder / "main.c").write_text(LINUX)
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-static", "-O1"]
    run([*machine.linker, *strict, *types(executable), "main.c", "relay_model.o", "-lm", "-o", "model"], folder)
    found = np.frombuffer(run([*machine.emulator, "./model"], folder, inputs.tobytes()), executable.outputs[0].dtype)
    assert np.array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("machine", MACHINES)
def test_digits_on_linux(machine: str, tmp_path: Path):
    on_linux(MACHINES[machine], digits(20), tmp_path)


def test_digits_on_armv7a(tmp_path: Path):
    """Android's environment of 32 bits, under an emulator of user programs: newlib's read and write by semihosting."""
    gcc = ["arm-none-eabi-gcc", "-marm", "-march=armv7-a+simd", "-mfloat-abi=softfp", "--specs=rdimon.specs"]
    packages = "gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-user"
    machine = Machine("armv7a-linux-androideabi24", gcc, ["qemu-arm", "-cpu", "cortex-a15"], packages)
    on_linux(machine, digits(5), tmp_path)


ELF32, ELF64 = 1, 2
EM_ARM, EM_X86_64, EM_AARCH64 = 40, 62, 183
EF_ARM_EABI_VER5 = 0x05000000


@pytest.mark.parametrize(
    ("target", "bits", "machine", "flags", "read"),
    [
        ("armv7a-linux-androideabi", ELF32, EM_ARM, EF_ARM_EABI_VER5, "armv7a-unknown-linux-androideabi"),
        ("armv7a-linux-androideabi24", ELF32, EM_ARM, EF_ARM_EABI_VER5, "armv7a-unknown-linux-androideabi24"),
        ("aarch64-linux-android24", ELF64, EM_AARCH64, 0, "aarch64-unknown-linux-android24"),
        ("x86_64-linux-android", ELF64, EM_X86_64, 0, "x86_64-unknown-linux-android"),
    ],
)
def test_triples_of_android(target: str, bits: int, machine: int, flags: int, read: str, tmp_path: Path):
    """As its NDK writes them, with or without a version: what LLVM reads says that the system is Android."""
    executable = relay.build(relay.IRModule.parse(DENSE), target=target)
    executable.export(tmp_path, "net", "o")
    executable.export(tmp_path, "net", "a")
    code = (tmp_path / "net.o").read_bytes()
    assert (code[:4], code[4], code[5]) == (b"\x7fELF", bits, 1)
    assert struct.unpack_from("<HH", code, 16) == (1, machine)
    assert struct.unpack_from("<I", code, 36 if bits == ELF32 else 48) == (flags,)
    assert code in (tmp_path / "libnet.a").read_bytes()
    assert resolve(target).llvm_triple == read


PROJECT = """cmake_minimum_required(VERSION 3.16)
project(program C CXX)
include(digits/digits.cmake)
add_executable(program main.%s)
target_link_libraries(program PRIVATE digits)
"""
PROGRAM = """#include "digits.h"
#include <stdio.h>
static int8_t in[DIGITS_INPUT_0_COUNT], out[DIGITS_OUTPUT_0_COUNT];
%s
int main(void) {
  if (fread(in, sizeof in, 1, stdin) != 1 || %s) return 1;
  return fwrite(out, sizeof out, 1, stdout) != 1;
}
"""
ARENA = "%s(DIGITS_ARENA_ALIGNMENT) static unsigned char arena[DIGITS_ARENA_BYTES];"


@pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("g++") is None, reason="Debian: cmake, make, g++")
@pytest.mark.parametrize(
    ("kind", "language"), [("c", "c"), ("o", "c"), ("o", "cpp"), ("a", "c"), ("a", "cpp"), ("so", "c"), ("so", "cpp")]
)
def test_exports_are_libraries_for_cmake(kind: str, language: str, tmp_path: Path):
    if kind == "c":
        export_c(relay.frontend.from_tflite(DIGITS), tmp_path / "digits", "digits")
        program = PROGRAM % ("", "digits_run(in, out)")
    else:
        relay.build(DIGITS).export(tmp_path / "digits", "digits", kind)
        arena = ARENA % ("_Alignas" if language == "c" else "alignas")
        program = PROGRAM % (arena, "digits_run(arena, in, out)")
    (tmp_path / f"main.{language}").write_text(program)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT % language)
    run(["cmake", "-B", "build", "-G", "Unix Makefiles", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"], tmp_path)
    run(["cmake", "--build", "build"], tmp_path)
    found = run(["build/program"], tmp_path, DATA["int8_images"][0].tobytes())
    assert np.array_equal(np.frombuffer(found, np.int8), DATA["int8_out"][0].reshape(-1))
    readme = next((tmp_path / "digits").glob("*.md")).read_text()
    assert all(f"`{name}`" in readme for name in ("input_0", "output_0"))


def program_of(readme: Path) -> tuple[str, list[str]]:
    """The program that a README shows, and the flags that compile it."""
    text = readme.read_text()
    (program,) = re.findall(r"^```c\n(#include.*?)^```$", text, re.MULTILINE | re.DOTALL)
    flags = re.search(r"^Compile programs with `(.*)`\.$", text, re.MULTILINE)
    return program, flags[1].split() if flags else []


BARE = {
    **{name: (name, name) for name in firmware.BOARDS},
    "cortex-m4, hard": ("cortex-m4", "thumbv7em-none-eabihf -mcpu=cortex-m4"),
    "cortex-m55, hard": ("cortex-m55", "thumbv8.1m.main-none-eabihf -mcpu=cortex-m55"),
    "no unit for floats": ("cortex-m4", "thumbv7em-none-eabi"),
}


@pytest.mark.parametrize("name", BARE)
def test_the_program_of_a_readme_for_a_board(name: str, tmp_path: Path):
    """The flags are those that the README tells and that the library for CMake has; nothing else makes it link."""
    processor, target = BARE[name]
    board = firmware.BOARDS[processor]
    if board.missing:
        pytest.skip(f"{', '.join(board.missing)} not installed")
    relay.build(DIGITS, target=target).export(tmp_path, "digits")
    program, flags = program_of(tmp_path / "digits.md")
    (tmp_path / "main.c").write_text(program)
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-O1"]
    gcc, qemu = board.tools
    run([gcc, *flags, *strict, "-c", "main.c"], tmp_path)
    files = ["main.o", "digits.o", str(BOARD / board.start), "-T", str(BOARD / "mps2.ld")]
    run([gcc, *flags, "-O1", *files, *board.places, "-nostartfiles", board.library, "-lm", "-o", "program"], tmp_path)
    options = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "program"]
    run([qemu, "-M", board.machine, *(["-bios", "none"] if board.machine == "virt" else []), *options], tmp_path)
    library = (tmp_path / "digits.cmake").read_text()
    assert all(f"target_{kind}_options(digits INTERFACE {' '.join(flags)})" in library for kind in ("compile", "link"))
    symbols = run([gcc.replace("gcc", "nm"), "-u", "-j", "digits.o"], tmp_path).decode().split()
    assert (
        f"The code calls {', '.join(f'`{symbol}`' for symbol in sorted(symbols))}."
        in (tmp_path / "digits.md").read_text()
    )


STATE = """func.func @main(%x: tensor<3xf32>, %s: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = relay.add %x, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = relay.tanh %0 : (tensor<3xf32>) -> tensor<3xf32>
  func.return %1, %0 : tensor<3xf32>, tensor<3xf32>
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("how", ["o", "a", "c"])
@pytest.mark.parametrize("states", [False, True])
def test_the_program_of_a_readme_for_this_machine(how: str, states: bool, tmp_path: Path):
    module = relay.frontend.from_tflite(DIGITS)
    if states:
        module = relay.IRModule.parse(STATE)
        inputs, outputs = signature.read(module["main"])
        inputs[1], outputs[1] = (replace(each, kind="state", name="s") for each in (inputs[1], outputs[1]))
        signature.write(module["main"], [inputs[0], replace(inputs[1], initial=np.ones(3, np.float32))], outputs)
    if how == "c":
        export_c(module, tmp_path, "net")
    else:
        relay.build(module).export(tmp_path, "net", how)
    program, flags = program_of(tmp_path / "net.md")
    assert flags == [] and ("net_stream_step" in program) == states
    (tmp_path / "main.c").write_text(program)
    strict = ["gcc", "-std=c99" if how == "c" else "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    library = {"o": "net.o", "a": "libnet.a", "c": "net.c"}[how]
    run([*strict, "main.c", library, "-lm", "-o", "main"], tmp_path)
    run(["./main"], tmp_path)
    if how == "o":
        symbols = run(["nm", "-u", "-j", "net.o"], tmp_path).decode().split()
        listed = ", ".join(f"`{symbol}`" for symbol in sorted(symbols)) or "no function of a library"
        assert f"The code calls {listed}." in (tmp_path / "net.md").read_text()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="Debian: cmake, make")
def test_a_library_for_cmake_has_the_flags_of_its_processor(tmp_path: Path):
    """A project that knows nothing of the processor but how its programs start."""
    CORTEX_M.skip()
    board, target = firmware.BOARDS["cortex-m4"], firmware.hard_target("cortex-m4")
    relay.build(DIGITS, target=target).export(tmp_path / "digits", "digits", "a")
    program, _ = program_of(tmp_path / "digits" / "digits.md")
    (tmp_path / "main.c").write_text(program)
    start = f"target_sources(program PRIVATE {BOARD}/start.c)\ntarget_link_options(program PRIVATE "
    link = f"-nostartfiles -specs=nosys.specs -T {BOARD}/mps2.ld {' '.join(board.places)})\n"
    (tmp_path / "CMakeLists.txt").write_text((PROJECT % "c").replace(" CXX", "") + start + link)
    bare = ["-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"]
    compiler = f"-DCMAKE_C_COMPILER={shutil.which(CORTEX_M.linker[0])}"
    run(["cmake", "-B", "build", "-G", "Unix Makefiles", *bare, compiler], tmp_path)
    run(["cmake", "--build", "build"], tmp_path)
    options = ["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "build/program"]
    run([*CORTEX_M.emulator, "-M", board.machine, *options], tmp_path)


@pytest.mark.parametrize("kind", ["a", "so"])
def test_libraries_for_aarch64(kind: str, tmp_path: Path):
    machine = MACHINES["aarch64"]
    machine.skip()
    relay.build(DIGITS, target=machine.target).export(tmp_path, "digits", kind)
    (tmp_path / "main.c").write_text(PROGRAM % (ARENA % "_Alignas", "digits_run(arena, in, out)"))
    run([*machine.linker, "main.c", "-L.", "-ldigits", "-Wl,-rpath,.", "-o", "program"], tmp_path)
    root = ["-L", "/usr/aarch64-linux-gnu"]
    found = run([*machine.emulator, *root, "./program"], tmp_path, DATA["int8_images"][0].tobytes())
    assert np.array_equal(np.frombuffer(found, np.int8), DATA["int8_out"][0].reshape(-1))


def test_libraries_that_are_not_made(tmp_path: Path):
    board = relay.build(DIGITS, target="cortex-m4")
    with pytest.raises(relay.RelayError, match=r"no shared library for thumbv7em-none-eabi is made; write a static"):
        board.export(tmp_path, "digits", "so")
    with pytest.raises(relay.RelayError, match="the kind 'dll' is not known; known are o, a, so"):
        board.export(tmp_path, "digits", "dll")


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["resnet8_int8", "kws_int8", "mobilenet_v1_0.25_128_quant"])
def test_models_on_linux(name: str, machine: str, tmp_path: Path):
    on_linux(MACHINES[machine], golden(name, 2), tmp_path)


def needed(folder: Path) -> set[str]:
    """Functions of libraries that an exported object calls, as its README has them."""
    return {*re.findall("`(\\w+)`", (folder / "relay_model.md").read_text().split("The code calls ")[1].split("\n")[0])}


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


def on_wasm(model: tuple[Path, Array, Array], folder: Path) -> None:
    WASM32.skip()
    path, inputs, expected = model
    executable = relay.build(path, target=WASM32.target)
    executable.export(folder)
    (folder / "main.js").write_text(WASM)
    run(
        [
            *WASM32.linker,
            "--no-entry",
            "--allow-undefined",
            "--export=relay_model_run",
            "--export=__heap_base",
            "relay_model.o",
            "-o",
            "model.wasm",
        ],
        folder,
    )
    sizes = [executable.graph["arena_bytes"], inputs[0].nbytes, expected[0].nbytes, len(inputs)]
    data = run([*WASM32.emulator, "main.js", "model.wasm", *map(str, sizes)], folder, inputs.tobytes())
    assert np.array_equal(np.frombuffer(data, executable.outputs[0].dtype).reshape(expected.shape), expected)


def test_digits_on_web_assembly(tmp_path: Path):
    on_wasm(digits(5), tmp_path)


@pytest.mark.slow
def test_a_model_on_web_assembly(tmp_path: Path):
    on_wasm(golden("resnet8_int8", 2), tmp_path)


NAMES = ["a*\\ #error", "/* \u00f6 \u202e\n#error", "**//", "*/ \ud7ff ??/", "s", "s_out"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_header_of_odd_names_and_every_type(tmp_path: Path):
    types = ["i1", "i16", "i64", "f64", "f32"]
    values = [f"tensor<3x{type}>" for type in types]
    adds = [f"  %r{n} = relay.maximum %a{n}, %a{n} : ({type}, {type}) -> {type}" for n, type in enumerate(values)]
    module = relay.IRModule.parse(
        f"func.func @main({', '.join(f'%a{n}: {type}' for n, type in enumerate(values))}) -> ({', '.join(values)}) {{\n"
        + "\n".join(adds)
        + f"\n  func.return {', '.join(f'%r{n}' for n in range(5))} : {', '.join(values)}\n}}\n"
    )
    inputs, outputs = signature.read(module["main"])
    inputs = [replace(info, name=name) for info, name in zip(inputs, NAMES, strict=False)]
    inputs[4] = replace(inputs[4], kind="state", initial=np.array([1.5, -2, 3], np.float32))
    outputs = [replace(info, name=name) for info, name in zip(outputs, NAMES[1:], strict=True)]
    signature.write(module["main"], inputs, outputs)
    relay.build(module).export(tmp_path, "odd")
    (tmp_path / "main.c").write_text(ODD)
    strict = ["gcc", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    run([*strict, "main.c", "odd.o", "-lm", "-o", "main"], tmp_path)
    assert run(["./main"], tmp_path) == b"1 0 1 -5 5 -6000000000 0.25 1.5 -2.0 3.0\n"


def test_a_header_says_that_tile_registers_are_asked_for(tmp_path: Path):
    for cpu, asks in (("sapphirerapids", True), ("icelake-server", False)):
        relay.build(DIGITS, target=f"x86_64-unknown-linux-gnu -mcpu={cpu}").export(
            tmp_path, name := cpu.replace("-", "_")
        )
        assert ("syscall(SYS_arch_prctl, 0x1023, 18)" in (tmp_path / f"{name}.h").read_text()) == asks


def test_a_type_that_c_does_not_have(tmp_path: Path):
    text = "func.func @main(%x: tensor<3xf16>) -> tensor<3xf16> {\n  func.return %x : tensor<3xf16>\n}\n"
    with pytest.raises(Unsupported, match="export: input_0: is float16, which C does not have; cast it to f32"):
        relay.build(relay.IRModule.parse(text)).export(tmp_path)


def test_code_for_another_machine_is_not_run_here(tmp_path: Path):
    executable = relay.build(relay.IRModule.parse(DENSE), target="aarch64-linux-gnu")
    with pytest.raises(InvalidArgument, match="run: is code for aarch64-linux-gnu; this machine is"):
        executable.run(np.zeros((2, 3), np.int8))
    executable.save(tmp_path / "model")
    with pytest.raises(InvalidArgument, match="model: is code for aarch64-linux-gnu"):
        load(tmp_path / "model")
    with pytest.raises(Unsupported, match="no shared object for riscv64-linux-gnu is made; export"):
        relay.build(relay.IRModule.parse(DENSE), target="riscv64-linux-gnu").save(tmp_path / "other")
    with pytest.raises(InvalidArgument, match="no identifier of C"):
        executable.export(tmp_path, "my model")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="cannot be made"):
        executable.export(tmp_path / "file")


def test_what_was_loaded_cannot_be_exported(tmp_path: Path):
    executable = relay.build(relay.IRModule.parse(DENSE))
    executable.save(tmp_path / "model")
    with pytest.raises(Unsupported, match="build it again"):
        load(tmp_path / "model").export(tmp_path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("vulkan", "target 'vulkan': is not known"),
        ("arm", "target 'arm': is not known"),
        ("", "target '': is not known"),
        ("aarch64-linux-gnu -O3", "has the option -O3"),
        ("llvm -mattr=avx2", "has the feature 'avx2'"),
        ("llvm -mcpu=", "has the option -mcpu="),
        ("llvm -mcpu=abacus", "there is no processor 'abacus' of x86_64"),
        ("aarch64-linux-gnu -mattr=+abacus", "there is no feature 'abacus' of aarch64"),
    ],
)
def test_targets_that_are_not_known(target: str, message: str):
    with pytest.raises(RelayError) as caught:
        relay.build(DIGITS, target=target)
    assert message in str(caught.value)


def test_a_feature_that_is_taken_away_is_not_used():
    """LLVM thinks that the CPU has it, and is told that it has not."""
    module, cpu = relay.IRModule.parse(ADD), "x86_64-linux-gnu -mcpu=cascadelake"
    texts = [relay.build(module, target=target).get_source("asm") for target in (cpu, f"{cpu} -mattr=-avx512f")]
    assert ["zmm" in text for text in texts] == [True, False] and "ymm" in texts[1]


def test_features_of_a_cpu_are_told():
    """A saved file says what its code needs: it may need all that the CPU has."""
    cascadelake = resolve("x86_64-linux-gnu -mcpu=cascadelake")
    assert {"avx2", "fma", "avx512f", "avx512vnni", "popcnt"} <= cascadelake.features
    assert "avx512fp16" not in cascadelake.features
    less = resolve("x86_64-linux-gnu -mattr=-avx512f,+avx512bf16 -mcpu=cascadelake")
    assert {name for name in less.features if name.startswith("avx512")} == {"avx512bf16"}
    assert "-avx512vl" in less.feature_string and "-sse2" not in less.feature_string
    assert {"dotprod", "lse", "neon"} <= resolve("aarch64-linux-gnu -mcpu=cortex-a76").features
    assert resolve("aarch64-linux-gnu").features == {"neon"}
    assert host().feature_string == ",".join(f"+{name}" for name in sorted(host().features))


def test_fewer_features_of_this_machine():
    executable = relay.build(DIGITS, target="llvm -mattr=-avx512vnni,-avxvnni")
    image = DATA["int8_images"][:1]
    assert np.array_equal(np.asarray(executable.run(image)).reshape(-1), DATA["int8_out"][0].reshape(-1))
    assert os.environ["RELAY_CACHE_DIR"] == "off"


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
    arrays = [to_numpy(row.data["value"]) for row in constants_of(module.op).values()]
    assert {"int8", "int16", "int32"} == {array.dtype.name for array in arrays}
    assert all(np.abs(array.astype(np.int64)).max() >= 1 << 15 for array in arrays if array.dtype == np.int32)
