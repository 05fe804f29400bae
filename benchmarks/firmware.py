"""Models as firmware of Cortex-M boards, run by QEMU: `python -m benchmarks.firmware [MODEL...] [--boards NAME...]`.

Of each model two programs are made, of native code (`relay.build(model, target)`) and of exported C, compiled by
`arm-none-eabi-gcc -O2`. A row has the bytes of flash (code and constants of the model), of memory (arena and static
data), the instructions of one run, and the largest difference from the interpreter's results, which integers do not
have. With `-icount`, QEMU takes a nanosecond for each instruction; the boards' counters tick at 25 MHz, so counts are
multiples of 40. Needs `arm-none-eabi-gcc` and `qemu-system-arm` (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi,
qemu-system-arm).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import relay
from relay import signature
from relay.byoc.c import export_c
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from relay.interpreters import run as interpret

ROOT = Path(__file__).parents[1]
BOARD = ROOT / "tests" / "numeric" / "cortex_m"
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
BOARDS = {"cortex-m3": "mps2-an385", "cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500"}
"""QEMU's machine by the name of the processor, which is the target."""
KINDS = ("native", "c")
PER_TICK = 40
FLOATS = ("cortex-m4", "cortex-m7")
"""Those with a unit for floats, of which C is told, too."""
LARGEST = 1e-5
"""Of a difference of floats; integers are codes, of which one step is more."""
TIMEOUT = 900
FLASH = (".text", ".rodata", ".data", ".ARM")
MAIN = """#include <stdint.h>
#include "model.h"
#include "given.h"
void print(const char *text);
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
  volatile uint32_t *counter = (volatile uint32_t *)0x40028018;
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the unit for floats, where there is one */
  __asm__ volatile("dsb\\n isb");
  const uint32_t start = *counter;
  const int status = %(call)s;
  number(*counter - start);
%(shown)s
  return status;
}
"""


@dataclass(frozen=True)
class Row:
    """What one program takes, in bytes and instructions; `off`: the largest difference from the interpreter's results,
    as a part of the largest of each."""

    flash: int
    memory: int
    instructions: int
    off: float


def done(command: Sequence[str], folder: Path) -> str:
    """What a command prints. Raises RuntimeError where it fails."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if ended.returncode:
        raise RuntimeError(f"{command[0]}: {(ended.stderr or ended.stdout)[-2000:]}")
    return ended.stdout + ended.stderr


def row(model: Path, kind: str, processor: str) -> Row:
    """Make and run one program."""
    module = from_tflite(model)
    inputs, outputs = signature.read(module["main"])
    random = np.random.default_rng(0)
    data = [drawn(random, info.shape, info.dtype) for info in inputs]
    wanted = interpret(module, data)
    machine = ["-mthumb", f"-mcpu={processor}", "-O2", "-ffreestanding"]
    if processor in FLOATS:
        machine.append("-mfloat-abi=softfp")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arena, first, planned = "", list[str](), 0
        if kind == "c":
            export_c(module, folder, name="model")
            done(["arm-none-eabi-gcc", "-std=c99", *machine, "-ffp-contract=off", "-c", "model.c"], folder)
        else:
            executable = relay.build(module, target=processor)
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
        sections = re.findall(r"^(\.\S+)\s+(\d+)", done(["arm-none-eabi-size", "-A", "model.o"], folder), re.MULTILINE)
        flash = sum(int(size) for section, size in sections if section.startswith(FLASH))
        memory = planned + sum(int(size) for section, size in sections if section.startswith((".bss", ".data")))
        files = ["main.c", "model.o", str(BOARD / "start.c"), "-T", str(BOARD / "mps2.ld")]
        link = ["-nostartfiles", "-fno-tree-loop-distribute-patterns", "-specs=nosys.specs", "-lm", "-o", "model.elf"]
        done(["arm-none-eabi-gcc", *machine, *files, *link], folder)
        board = [
            "-M",
            BOARDS[processor],
            "-icount",
            "shift=0",
            "-nographic",
            "-semihosting-config",
            "enable=on,target=native",
        ]
        ticks, codes = done(["qemu-system-arm", *board, "-kernel", "model.elf"], folder).split()
    rest, off = bytes.fromhex(codes), 0.0
    for expected in map(np.asarray, wanted):
        result = np.frombuffer(rest[: expected.nbytes], expected.dtype).reshape(expected.shape).astype(np.float64)
        difference = np.abs(result - expected).max() / max(float(np.abs(expected.astype(np.float64)).max()), 1.0)
        off, rest = float(np.maximum(off, difference)), rest[expected.nbytes :]
    return Row(flash, memory, int(ticks) * PER_TICK, off)


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
    parser.add_argument("models", nargs="*", type=Path, default=[DIGITS], help="default: the digits")
    parser.add_argument("--boards", nargs="+", choices=[*BOARDS], default=[*BOARDS])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    given = parser.parse_args(arguments)
    if missing := [tool for tool in ("arm-none-eabi-gcc", "qemu-system-arm") if shutil.which(tool) is None]:
        print(f"{', '.join(missing)}: not installed; Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm")
        return 2
    print("| model | processor | program | flash | memory | instructions, millions | results |")
    print("|---|---|---|---|---|---|---|")
    right = True
    for model in given.models:
        for board in given.boards:
            for kind in given.kinds:
                found = row(model, kind, board)
                right &= found.off <= LARGEST
                off = "equal" if found.off == 0 else f"{'' if found.off <= LARGEST else 'DIFFERENT: '}{found.off:.1g}"
                bytes_of = f"{found.flash} | {found.memory}"
                print(
                    f"| {model.stem} | {board} | {kind} | {bytes_of} | {found.instructions / 1e6:.3f} | {off} |",
                    flush=True,
                )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
