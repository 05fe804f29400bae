"""Models as firmware of microcontrollers, run by QEMU: `python -m benchmarks.firmware [MODEL...] [--boards NAME...]`.

`--floats-in-registers` builds boards with a unit for floats for `-mfloat-abi=hard` instead of `softfp`.

Of each model (the digits, a model of spotted words, and those of MLPerf Tiny where they are) two programs are made, of
native code (`relay.build(model, target)`) and of exported C, compiled by GCC with `-O2`. A row has the bytes of flash
(code and constants of the model), and what they should be at most (`LIMIT`), of memory (arena and static data), the
instructions of one run, and the largest difference from the interpreter's results, which integers do not have. With
`-icount`, QEMU takes a nanosecond for each instruction; counts are multiples of what passes between two ticks of a
board's timer (50 at most). Needs `arm-none-eabi-gcc`, `riscv64-unknown-elf-gcc`, `qemu-system-arm` and
`qemu-system-riscv32` (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi, gcc-riscv64-unknown-elf,
picolibc-riscv64-unknown-elf, qemu-system-arm, qemu-system-misc); boards without theirs are left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import relay
from benchmarks.speech import speech
from relay import signature
from relay.byoc.c import export_c
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from relay.interpreters import run as interpret
from relay.module import IRModule
from relay.target.resolve import SHORT
from relay.viewer.summary import summary

ROOT = Path(__file__).parents[1]
STARTS = ROOT / "tests" / "numeric" / "cortex_m"
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
MODELS = ROOT.parent / "shared" / "models"
TINY = [MODELS / f"{name}_int8.tflite" for name in ("ad01", "kws", "resnet8", "vww_96")]
SPEECH = Path("speech")
"""No file: `benchmarks.speech`."""
LIMIT = (1.15, 16 << 10)
"""Of flash: this part of a model's weights, and so many bytes more."""
KINDS = ("native", "c")
LARGEST = 1e-5
"""Of a difference of floats; integers are codes, of which one step is more."""


SOFTFP, HARD = "-mfloat-abi=softfp", "-mfloat-abi=hard"


@dataclass(frozen=True)
class Board:
    """A machine of QEMU: where its code and its data are, how often its timer ticks while QEMU runs 10^9 instructions,
    the flags of its processor, and how its programs are made and run."""

    machine: str
    code: int
    data: int
    ticks: int
    flags: Sequence[str]
    tools: tuple[str, str] = ("arm-none-eabi-gcc", "qemu-system-arm")
    start: str = "start.c"
    library: str = "-specs=nosys.specs"
    room: int = 512 << 10

    @property
    def places(self) -> list[str]:
        """Options of a linker for where code and data are, and where the stack of a program starts: after the `room`
        of its data."""
        named = {"code_at": self.code, "data_at": self.data, "room": self.room}
        return [f"-Wl,--defsym={name}={value}" for name, value in named.items()]

    @property
    def has_floats(self) -> bool:
        """Whether it has a unit for floats, and so two ways to pass floats."""
        return SOFTFP in self.flags

    def with_floats_in_registers(self) -> Board:
        """The board, whose programs pass floats in registers of the unit for floats."""
        return replace(self, flags=[HARD if flag == SOFTFP else flag for flag in self.flags])

    @property
    def missing(self) -> list[str]:
        """Its tools that are not installed."""
        return [tool for tool in self.tools if shutil.which(tool) is None]


def hard_target(processor: str) -> str:
    """The target of a processor by name, with floats passed in registers."""
    return SHORT[processor].replace("-eabi", "-eabihf")


def _cortex(name: str, machine: str, floats: bool, code: int = 0, data: int = 0x20000000, ticks: int = 25) -> Board:
    flags = ["-mthumb", f"-mcpu={name}", *([SOFTFP] if floats else [])]
    return Board(machine, code, data, ticks * 10**6, flags)


BOARDS = {
    "cortex-m0": _cortex("cortex-m0", "mps2-an385", floats=False),
    "cortex-m3": _cortex("cortex-m3", "mps2-an385", floats=False),
    "cortex-m4": _cortex("cortex-m4", "mps2-an386", floats=True),
    "cortex-m7": _cortex("cortex-m7", "mps2-an500", floats=True),
    "cortex-m33": _cortex("cortex-m33", "mps2-an505", True, 0x10000000, 0x38000000, 20),
    "cortex-m55": _cortex("cortex-m55", "mps3-an547", True, ticks=32),
    "riscv32": Board(
        "virt",
        0x80000000,
        0x80400000,
        10**9,
        ["-march=rv32imac", "-mabi=ilp32"],
        ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
        "start_riscv.c",
        "-specs=picolibc.specs",
    ),
}
"""By the name of the target. QEMU's only board with a Cortex-M0 has too little memory for most models: a Cortex-M3 runs
its code, and traps accesses that are not aligned, as a Cortex-M0 does."""
MODELS_HERE = [DIGITS, SPEECH, *(path for path in TINY if path.exists())]
TIMEOUT = 900
FLASH = (".text", ".rodata", ".srodata", ".data", ".sdata", ".ARM.ex")
MEMORY = (".bss", ".sbss", ".data", ".sdata")
MAIN = """#include <stdint.h>
#include "model.h"
#include "given.h"
void print(const char *text);
void start_ticks(void);
uint32_t ticks(void);
%(arena)s
static void number(uint32_t value) {
  char text[12];
  int at = 11;
  text[at] = 0;
  do text[--at] = '0' + value %% 10; while (value /= 10);
  print(text + at);
  print(" ");
}
static void show(const void *data, uint32_t size) {
  static const char digits[] = "0123456789abcdef";
  for (const uint8_t *byte = data; size > 0; --size, ++byte) {
    const char text[] = {digits[*byte >> 4], digits[*byte & 15], 0};
    print(text);
  }
}
int main(void) {
  start_ticks();
  const int status = %(call)s;
  number(ticks());
%(shown)s
  return status;
}
"""


@dataclass(frozen=True)
class Row:
    """What one program takes, in bytes and instructions; `limit`: of flash; `off`: the largest difference from the
    interpreter's results, as a part of the largest of each."""

    flash: int
    limit: int
    memory: int
    instructions: int
    off: float


def done(command: Sequence[str], folder: Path) -> str:
    """What a command prints. Raises RuntimeError where it fails."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if ended.returncode:
        raise RuntimeError(f"{command[0]}: {(ended.stderr or ended.stdout)[-2000:]}")
    return ended.stdout + ended.stderr


def read(model: Path) -> IRModule:
    """The module of a file, or the model of spotted words."""
    return speech() if model == SPEECH else from_tflite(model)


def row(model: Path, kind: str, processor: str, hard: bool = False) -> Row:
    """Make and run one program; `hard`: with floats passed in registers."""
    module, board, target = read(model), BOARDS[processor], processor
    if hard and board.has_floats:
        board, target = board.with_floats_in_registers(), hard_target(processor)
    inputs, outputs = signature.read(module["main"])
    random = np.random.default_rng(0)
    data = [drawn(random, info.shape, info.dtype) for info in inputs]
    wanted = interpret(module, data)
    gcc, qemu = board.tools
    machine = [*board.flags, "-O2", "-ffreestanding"]
    limit = int(LIMIT[0] * summary(module).weight_bytes) + LIMIT[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arena, first, planned = "", list[str](), 0
        if kind == "c":
            export_c(module, folder, name="model")
            done([gcc, "-std=c99", *machine, board.library, "-ffp-contract=off", "-c", "model.c"], folder)
        else:
            executable = relay.build(module, target=target)
            executable.export(folder, "model")
            arena, first = "static _Alignas(MODEL_ARENA_ALIGNMENT) unsigned char arena[MODEL_ARENA_BYTES];", ["arena"]
            planned = int(executable.graph["arena_bytes"])
        given = [_array(f"static const unsigned char given_{n}[]", array) for n, array in enumerate(data)]
        sizes = [prod(info.shape) * info.dtype.itemsize for info in outputs]
        found = [f"static unsigned char out_{n}[{size}] __attribute__((aligned(8)));" for n, size in enumerate(sizes)]
        (folder / "given.h").write_text("\n".join([*given, *found]) + "\n")
        names = [
            *first,
            *(f"(void *)given_{n}" for n in range(len(data))),
            *(f"(void *)out_{n}" for n in range(len(sizes))),
        ]
        shown = "\n".join(f"  show(out_{n}, sizeof out_{n});" for n in range(len(sizes)))
        call = f"model_run({', '.join(names)})"
        (folder / "main.c").write_text(MAIN % {"arena": arena, "call": call, "shown": shown})
        sections = re.findall(
            r"^(\.\S+)\s+(\d+)", done([gcc.replace("gcc", "size"), "-A", "model.o"], folder), re.MULTILINE
        )
        flash = sum(int(size) for section, size in sections if section.startswith(FLASH))
        memory = planned + sum(int(size) for section, size in sections if section.startswith(MEMORY))
        files = ["main.c", "model.o", str(STARTS / board.start), "-T", str(STARTS / "mps2.ld")]
        link = ["-nostartfiles", "-fno-tree-loop-distribute-patterns", board.library, "-lm", "-o", "model.elf"]
        done([gcc, *machine, *files, *board.places, *link], folder)
        options = ["-icount", "shift=0", "-nographic", "-semihosting-config", "enable=on,target=native"]
        options += ["-bios", "none"] if board.machine == "virt" else []
        ticks, codes = done([qemu, "-M", board.machine, *options, "-kernel", "model.elf"], folder).split()
    rest, off = bytes.fromhex(codes), 0.0
    for expected in map(np.asarray, wanted):
        result = np.frombuffer(rest[: expected.nbytes], expected.dtype).reshape(expected.shape).astype(np.float64)
        difference = np.abs(result - expected).max() / max(float(np.abs(expected.astype(np.float64)).max()), 1.0)
        off, rest = float(np.maximum(off, difference)), rest[expected.nbytes :]
    return Row(flash, limit, memory, int(ticks) * 10**9 // board.ticks, off)


def drawn(random: np.random.Generator, shape: Sequence[int], type: np.dtype[Any]) -> Array:
    """Numbers of a type."""
    if type.kind == "f":
        return random.random(shape).astype(type)
    info = np.iinfo(type)
    return random.integers(info.min, info.max, shape, type, endpoint=True)


def _array(name: str, array: Array) -> str:
    """An array's bytes as C."""
    return f"{name} __attribute__((aligned(8))) = {{{','.join(map(str, array.tobytes()))}}};"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.firmware", description=__doc__, allow_abbrev=False)
    parser.add_argument("models", nargs="*", type=Path, default=MODELS_HERE, help="files, or 'speech'")
    parser.add_argument("--boards", nargs="+", choices=[*BOARDS], default=[*BOARDS])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--floats-in-registers", action="store_true", help="-mfloat-abi=hard")
    given = parser.parse_args(arguments)
    if absent := [str(model) for model in given.models if str(model) != "speech" and not model.is_file()]:
        parser.error(f"{absent[0]}: is not there")
    boards = [name for name in given.boards if not BOARDS[name].missing]
    for name in sorted({*given.boards} - {*boards}):
        print(f"{name}: {', '.join(BOARDS[name].missing)} not installed", file=sys.stderr)
    if not boards:
        return 2
    print("| model | processor | program | flash | limit | memory | instructions, millions | results |")
    print("|---|---|---|---|---|---|---|---|")
    right = True
    for model in given.models:
        for board in boards:
            for kind in given.kinds:
                found = row(model, kind, board, given.floats_in_registers)
                right &= found.off <= LARGEST
                off = "equal" if found.off == 0 else f"{'' if found.off <= LARGEST else 'DIFFERENT: '}{found.off:.1g}"
                bytes_of = f"{found.flash} | {found.limit} | {found.memory}"
                print(
                    f"| {model.stem} | {board} | {kind} | {bytes_of} | {found.instructions / 1e6:.3f} | {off} |",
                    flush=True,
                )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
