"""Object code for other machines, called from C and run by emulators: the integers are those of LiteRT's kernels."""

from __future__ import annotations

import os
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relay
from benchmarks import firmware
from relay import signature
from relay.byoc.c import export_c
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.runtime import load
from relay.target import host, resolve
from tests.numeric.exported import CORTEX_M, Machine, digits, golden, run, types
from tests.numeric.test_c_cortex_m import BOARD
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
WASM_LD = next((name for name in ("wasm-ld-22", "wasm-ld") if shutil.which(name)), "wasm-ld")
WASM32 = Machine("wasm32-unknown-unknown", [WASM_LD], ["node"], "lld-22, nodejs")


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
