"""Models on AArch64, run by QEMU: `python -m benchmarks.aarch64 [MODEL...] [--targets TEXT...] [--kernels N]`.

A row has the bytes of the object file's code and constants, the instructions of one run, its cycles where the target
names a CPU, the conversions between floats and general registers that are in the code, and whether the integers are
the interpreter's. With `--kernels`, the kernels that take most of the instructions follow. Instructions are counted by
a plugin of QEMU, by blocks as they run; cycles are those of llvm-mca for each block, repeated, which knows no caches
and no wrong guesses of branches. `benchmarks.aarch64_litert` has LiteRT's. Needs
`aarch64-linux-gnu-gcc` and `qemu-aarch64`, a C compiler for this machine, for cycles `llvm-mca` and `llvm-mc` (Debian:
gcc-aarch64-linux-gnu, qemu-user, gcc, llvm-22).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

import relay
from benchmarks.firmware import DIGITS, done, drawn
from relay import signature
from relay.errors import RelayError
from relay.frontend import from_tflite
from relay.interpreters import run as interpret
from relay.target import CpuTarget, resolve

TARGETS = ("aarch64", "aarch64 -mattr=+dotprod", "aarch64 -mattr=+dotprod,+i8mm")
TOOLS = ("aarch64-linux-gnu-gcc", "qemu-aarch64", "gcc")
MEASURED = 0.98
"""Cycles are measured of blocks that have this part of the instructions."""
REPEATED = 50
"""Times that llvm-mca runs a block."""
CONVERSION = re.compile(r"\t([us]cvtf\t[hsd]\d+, [wx]|fcvt[a-z]+\t[wx]\d+, [hsd])")
"""Of one number, from a general register or into one."""
PLUGIN = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* The part of qemu-plugin.h, version 1, that is needed; distributions do not install it. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*ended)(qemu_plugin_id_t, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, ended, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
int qemu_plugin_version = 1;
struct block { uint64_t address, runs; size_t size; struct block *next; uint32_t code[]; };
static struct block *blocks;
static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  const size_t size = qemu_plugin_tb_n_insns(tb);
  struct block *block = calloc(1, sizeof *block + size * sizeof *block->code);
  block->address = qemu_plugin_tb_vaddr(tb), block->size = size, block->next = blocks, blocks = block;
  for (size_t n = 0; n < size; ++n)
    block->code[n] = *(const uint32_t *)qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, n));
  qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &block->runs, 1);
}
static void end(qemu_plugin_id_t id, void *data) {
  FILE *file = fopen("blocks.txt", "w");
  for (const struct block *block = blocks; block; block = block->next) {
    fprintf(file, "%llu %llu", (unsigned long long)block->address, (unsigned long long)block->runs);
    for (size_t n = 0; n < block->size; ++n) fprintf(file, " %08x", block->code[n]);
    fprintf(file, "\\n");
  }
  fclose(file);
}
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv) {
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, end, NULL);
  return 0;
}
"""
MAIN = """#include <stdint.h>
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES + 1];
%(buffers)s
int main(void) {
  FILE *file = fopen("given.bin", "rb");
%(reads)s
  const int status = model_run(%(names)s);
%(writes)s
  return status;
}
"""


@dataclass(frozen=True)
class Row:
    """What one model takes; `kernels`: instructions by function; `cycles`: None where the target names no CPU that
    llvm-mca knows; `equal`: its integers are the interpreter's."""

    bytes: int
    conversions: int
    kernels: Counter[str]
    cycles: float | None
    equal: bool


@dataclass(frozen=True)
class Block:
    """Instructions without a branch but at their end, in hexadecimal, and how often they ran."""

    address: int
    runs: int
    code: tuple[str, ...]

    @property
    def instructions(self) -> int:
        return self.runs * len(self.code)


def build_plugin(folder: Path) -> None:
    """Write `plugin.so`, which writes `blocks.txt` where QEMU runs."""
    (folder / "plugin.c").write_text(PLUGIN)
    done(["gcc", "-O2", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so"], folder)


def missing() -> str:
    """What must be installed first; empty where all is there."""
    tools = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"{', '.join(tools)}: not installed; Debian: gcc-aarch64-linux-gnu qemu-user gcc" if tools else ""


def blocks_of(folder: Path) -> list[Block]:
    """What the plugin wrote."""
    lines = (line.split() for line in (folder / "blocks.txt").read_text().splitlines())
    return [Block(int(address), int(runs), tuple(code)) for address, runs, *code in lines]


def cycles(blocks: Iterable[Block], cpu: str) -> float | None:
    """What the blocks take on a CPU as LLVM models it, each behind itself: of those with most of the instructions
    (`MEASURED`), and as much for each of the others. None without llvm-mca, or where it does not know the CPU or an
    instruction."""
    tools = [next(filter(None, map(shutil.which, (f"{name}-22", name))), None) for name in ("llvm-mc", "llvm-mca")]
    disassembler, analyzer = tools
    if disassembler is None or analyzer is None:
        return None
    found = sorted(blocks, key=lambda block: -block.instructions)
    total, hot = sum(block.instructions for block in found), list[Block]()
    while found and sum(block.instructions for block in hot) < MEASURED * total:
        hot.append(found.pop(0))
    codes = sorted({code for block in hot for code in block.code})
    lines = [" ".join(f"0x{byte:02x}" for byte in int(code, 16).to_bytes(4, "little")) for code in codes]
    words = [disassembler, "-triple=aarch64", "-mattr=+all", "-disassemble"]
    done = subprocess.run(words, input="\n".join(lines), capture_output=True, text=True, check=True)
    shown = [line for line in done.stdout.splitlines() if line.strip() and not line.strip().startswith(".")]
    if len(shown) != len(codes):
        return None
    texts = dict(zip(codes, shown, strict=True))
    regions = [["# LLVM-MCA-BEGIN", *(texts[code] for code in block.code), "# LLVM-MCA-END"] for block in hot]
    words = [analyzer, "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+all", f"-iterations={REPEATED}"]
    words += ["-skip-unsupported-instructions=any", "-resource-pressure=false", "-instruction-info=false"]
    text = "\n".join(line for region in regions for line in region) + "\n"
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    taken = [int(number) / REPEATED for number in re.findall(r"^Total Cycles: +(\d+)", done.stdout, re.MULTILINE)]
    if len(taken) != len(hot):
        return None
    sums = sum(number * block.runs for number, block in zip(taken, hot, strict=True))
    return sums * total / sum(block.instructions for block in hot)


def row(model: Path, target: str) -> Row:
    """Make and run one program."""
    module = from_tflite(model)
    inputs, outputs = signature.read(module["main"])
    random = np.random.default_rng(0)
    data = [drawn(random, info.shape, info.dtype) for info in inputs]
    wanted = interpret(module, data)
    sizes = [[prod(info.shape) * info.dtype.itemsize for info in infos] for infos in (inputs, outputs)]
    given, found = ([f"{name}_{n}" for n in range(len(s))] for name, s in zip(("in", "out"), sizes, strict=True))
    buffers = [
        f"static _Alignas(64) unsigned char {name}[{size}];"
        for names, of in ((given, sizes[0]), (found, sizes[1]))
        for name, size in zip(names, of, strict=True)
    ]
    reads = [f"  if (fread({name}, sizeof {name}, 1, file) != 1) return 2;" for name in given]
    writes = [f"  fwrite({name}, sizeof {name}, 1, stdout);" for name in found]
    parts = {"buffers": buffers, "reads": reads, "writes": writes}
    names = ", ".join(["arena", *(f"(void *){name}" for name in (*given, *found))])
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        relay.build(module, target=target).export(folder, "model")
        (folder / "main.c").write_text(MAIN % ({k: "\n".join(v) for k, v in parts.items()} | {"names": names}))
        (folder / "given.bin").write_bytes(b"".join(np.ascontiguousarray(array).tobytes() for array in data))
        build_plugin(folder)
        done(["aarch64-linux-gnu-gcc", "-static", "-O2", "main.c", "model.o", "-lm", "-o", "model"], folder)
        command = ["qemu-aarch64", "-cpu", "max", "-plugin", "./plugin.so", "./model"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, timeout=900, check=True)
        kernels = by_function(folder, blocks_of(folder))
        sections = done(["aarch64-linux-gnu-size", "-A", "model.o"], folder)
        text = done(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", "model.o"], folder)
    flash = sum(int(size) for size in re.findall(r"^\.(?:text|rodata|data)\S*\s+(\d+)", sections, re.MULTILINE))
    expected = b"".join(np.asarray(array).tobytes() for array in wanted)
    cpu = resolve(target).cpu
    taken = None if cpu == "generic" else cycles((block for blocks in kernels.values() for block in blocks), cpu)
    counts = Counter({name: sum(block.instructions for block in blocks) for name, blocks in kernels.items()})
    return Row(flash, len(CONVERSION.findall(text)), counts, taken, ended.stdout == expected)


def by_function(folder: Path, blocks: Iterable[Block]) -> dict[str, list[Block]]:
    """The blocks of each function of the model's object file."""
    kernels = {line.split()[-1] for line in done(["aarch64-linux-gnu-nm", "model.o"], folder).splitlines()}
    symbols = [
        line.split() for line in done(["aarch64-linux-gnu-nm", "-n", "--defined-only", "model"], folder).splitlines()
    ]
    symbols = [(int(address, 16), name) for address, kind, name in symbols if kind in "tTwW"]
    starts, found = [address for address, _ in symbols], dict[str, list[Block]]()
    for block in blocks:
        place = bisect_right(starts, block.address) - 1
        if place >= 0 and (name := symbols[place][1]) in kernels:
            found.setdefault(name, []).append(block)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aarch64", description=__doc__, allow_abbrev=False)
    parser.add_argument("models", nargs="*", type=Path, default=[DIGITS], help="default: the digits")
    parser.add_argument("--targets", nargs="+", default=[*TARGETS])
    parser.add_argument("--kernels", type=int, default=0, help="list so many kernels of each")
    given = parser.parse_args(arguments)
    if absent := [str(model) for model in given.models if not model.is_file()]:
        parser.error(f"{absent[0]}: is not there")
    for target in given.targets:
        try:
            machine = resolve(target)
        except RelayError as error:
            parser.error(str(error))
        if not isinstance(machine, CpuTarget) or not machine.triple.startswith("aarch64"):
            parser.error(f"{target}: is no machine of AArch64")
    if what := missing():
        print(what)
        return 2
    print("| model | target | bytes | instructions, millions | cycles, millions | conversions | integers |")
    print("|---|---|---|---|---|---|---|")
    right = True
    for model in given.models:
        for target in given.targets:
            found = row(model, target)
            right &= found.equal
            total, equal = found.kernels.total(), "equal" if found.equal else "DIFFERENT"
            taken = "not known" if found.cycles is None else f"{found.cycles / 1e6:.3f}"
            cells = (model.stem, target, found.bytes, f"{total / 1e6:.3f}", taken, found.conversions, equal)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            for name, number in found.kernels.most_common(given.kernels):
                print(f"  {name}: {number / 1e6:.3f}, {number / total:.1%}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
