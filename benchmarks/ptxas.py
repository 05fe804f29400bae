"""What NVIDIA's assembler makes of the kernels of models: `python -m benchmarks.ptxas MODEL.tflite ...` prints a table,
for `--batch` images at once and the `--chips` that are named. With `--kernels`, a row for each launch: instructions of
machine code, and how many blocks a processor of an H100 has at once.

`ptxas` is part of CUDA, and of the package `nvidia-cuda-nvcc` of PyPI; `nvdisasm`, which prints machine code, is in
`nvidia-cuda-nvdisasm`. No GPU is needed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import relay

CHIPS = ("sm_80", "sm_90", "sm_90a")
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:, used \d+ barriers)?(.*)")
SHARED = re.compile(r"(\d+) bytes smem")
SECTION = re.compile(r"\.text\.(\w+):")
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
REGISTERS, SHARED_BYTES, THREADS, BLOCKS, PROCESSORS = 1 << 16, 228 << 10, 2048, 32, 132
"""Of a processor of an H100, and how many it has (CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability")."""
RESERVED = 1 << 10
"""Bytes of shared memory that the system takes for each block."""


@dataclass(frozen=True)
class Kernel:
    """A kernel as the assembler tells it: bytes but for the registers."""

    name: str
    chip: str
    registers: int
    stack: int
    spills: int
    shared: int


def find_ptxas() -> str | None:
    """The assembler's path: of the system, or of the Python package in this environment."""
    return find_tool("ptxas")


def find_tool(name: str) -> str | None:
    """The path of one of CUDA's tools."""
    if (found := shutil.which(name)) is not None:
        return found
    places = Path(sysconfig.get_path("purelib")).glob(f"nvidia/*/bin/{name}")
    return next((str(path) for path in places), None)


def instructions(ptx: str, chip: str, tool: str, disassembler: str) -> dict[str, int]:
    """How many instructions of machine code each kernel has, those that do nothing left out."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"{folder}/kernels.cubin"
        subprocess.run([tool, f"-arch={chip}", "-", "-o", code], input=ptx, text=True, check=True)
        text = subprocess.run([disassembler, "-c", code], capture_output=True, text=True, check=True).stdout
    found: dict[str, int] = {}
    name = ""
    for line in text.splitlines():
        if (section := SECTION.match(line)) is not None:
            name = section[1]
            found[name] = 0
        elif (one := INSTRUCTION.match(line)) is not None and one[1] != "NOP":
            found[name] += 1
    return found


def resident(registers: int, threads: int, shared: int) -> int:
    """Blocks that a processor of an H100 has at once."""
    by_registers = REGISTERS // (-(-registers // 8) * 8 * threads)
    return min(by_registers, SHARED_BYTES // (shared + RESERVED), THREADS // threads, BLOCKS)


def kernels(path: Path, tool: str, disassembler: str, batch: int, chip: str) -> Iterator[str]:
    """A row for each kernel of a model, as it is launched first."""
    yield "| kernel | threads | blocks | registers | shared, bytes | instructions | blocks of a processor | waves |"
    yield "|---|---|---|---|---|---|---|---|"
    executable = relay.build(path, target=f"cuda -arch={chip}", batch=batch)
    text = executable.get_source("ptx")
    found = {kernel.name: kernel for kernel in assemble(text, chip, tool)}
    counts = instructions(text, chip, tool, disassembler)
    launches: dict[str, Any] = {}
    for row in executable.graph["device"]["launches"]:
        launches.setdefault(row["kernel"], row)
    for name, row in launches.items():
        (blocks, _, _), (threads, _, _) = row["grid"], row["block"]
        registers, shared = found[name].registers, found[name].shared + row["shared"]
        together = resident(registers, threads, shared)
        numbers = [threads, blocks, registers, shared, counts[name], together]
        yield f"| {name} | {' | '.join(map(str, numbers))} | {blocks / (together * PROCESSORS):.2f} |"


def assemble(ptx: str, chip: str, tool: str) -> list[Kernel]:
    """The kernels of a module, in the order of the assembler's. Raises CalledProcessError if it refuses one."""
    command = [tool, f"-arch={chip}", "-v", "-", "-o", "/dev/null"]
    done = subprocess.run(command, input=ptx, capture_output=True, text=True, check=True)
    return list(parse(done.stdout + done.stderr))


def parse(text: str) -> Iterator[Kernel]:
    """Kernels in what `ptxas -v` prints."""
    name = chip = ""
    stack = spills = 0
    for line in text.splitlines():
        if (entry := ENTRY.search(line)) is not None:
            name, chip = entry[1], entry[2]
        elif (numbers := SPILLS.search(line)) is not None:
            stack, spills = int(numbers[1]), int(numbers[2]) + int(numbers[3])
        elif (used := USED.search(line)) is not None and name:
            shared = SHARED.search(used[2])
            yield Kernel(name, chip, int(used[1]), stack, spills, int(shared[1]) if shared else 0)
            name = ""


def table(models: Sequence[Path], tool: str, batch: int, chips: Sequence[str]) -> Iterator[str]:
    """A row for each model and chip."""
    yield (
        "| model | chip | kernels | by matrix units | launches | registers, at most | stack, bytes | spills, bytes "
        "| shared, bytes, at most |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for path in models:
        for chip in chips:
            executable = relay.build(path, target=f"cuda -arch={chip}", batch=batch)
            text = executable.get_source("ptx")
            found = assemble(text, chip, tool)
            launches = executable.graph["device"]["launches"]
            numbers = [
                len(found),
                sum("mma.sync" in kernel or "wgmma" in kernel for kernel in text.split(".entry ")),
                len(launches),
                max(kernel.registers for kernel in found),
                max(kernel.stack for kernel in found),
                sum(kernel.spills for kernel in found),
                max(max(kernel.shared for kernel in found), *(row["shared"] for row in launches)),
            ]
            images = f", {batch} images" if batch > 1 else ""
            yield f"| {path.stem}{images} | {chip} | {' | '.join(map(str, numbers))} |"


def main() -> None:
    """Print the table of the models that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--chips", nargs="+", default=CHIPS)
    parser.add_argument("--kernels", action="store_true", help="a row for each kernel, for the last of the chips")
    parser.add_argument("models", nargs="+", type=Path)
    arguments = parser.parse_args()
    tool, disassembler = find_ptxas(), find_tool("nvdisasm")
    if tool is None:
        sys.exit("ptxas: is not installed; pip install nvidia-cuda-nvcc")
    if arguments.kernels:
        if disassembler is None:
            sys.exit("nvdisasm: is not installed; pip install nvidia-cuda-nvdisasm")
        for path in arguments.models:
            for line in kernels(path, tool, disassembler, arguments.batch, arguments.chips[-1]):
                print(line, flush=True)
        return
    for line in table(arguments.models, tool, arguments.batch, arguments.chips):
        print(line, flush=True)


if __name__ == "__main__":
    main()
