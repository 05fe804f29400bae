"""LiteRT's kernels on AArch64 under the counter of `benchmarks.aarch64`, which has our rows:

    python -m benchmarks.aarch64_litert ROOT MODEL... [--cpus NAME...]

ROOT is a system for AArch64 with Python 3 and its libraries, and, in `ROOT/site`, the wheels of ai-edge-litert and
numpy (docs/deployment.md says how to make one). A row has the instructions and cycles of one run of one thread: those
of `RUNS` runs more than one, by that many. Strings are hashed alike in both processes; what Python does besides differs
by some thousand instructions. LiteRT reads in /proc and /sys what the processor is, and ends where that is another
machine's: ROOT gets files of one processor.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.aarch64 import Block, blocks_of, build_plugin, cycles, missing


@dataclass(frozen=True)
class Processor:
    """A CPU as QEMU names it, with its number among Arm's and what Linux says that it has."""

    emulated: str
    part: int
    features: str


FIRST = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
DOTS = f"{FIRST} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
CPUS = {
    "cortex-a53": Processor("cortex-a53", 0xD03, FIRST),
    "cortex-a55": Processor("cortex-a76", 0xD05, DOTS),
    "cortex-a76": Processor("cortex-a76", 0xD0B, DOTS),
    "neoverse-n1": Processor("neoverse-n1", 0xD0C, DOTS),
    "neoverse-v1": Processor("max,sme=off,sve-max-vq=1", 0xD40, DOTS),
}
"""By LLVM's name; QEMU 7 has no Cortex-A55, but a Cortex-A76 has its features; it has no Neoverse V1, but a processor
of all features."""
RUNS, LARGE = (3, 40), 600_000
"""Runs that are counted of models of so many bytes and more, and of smaller ones."""
PROGRAM = """import sys
sys.path.insert(0, sys.argv[1])
import numpy
from ai_edge_litert.interpreter import Interpreter
interpreter, random = Interpreter(sys.argv[2], num_threads=1), numpy.random.default_rng(0)
interpreter.allocate_tensors()
for row in interpreter.get_input_details():
    floats = row["dtype"] == numpy.float32
    numbers = random.normal(size=row["shape"]) if floats else random.integers(0, 128, row["shape"])
    interpreter.set_tensor(row["index"], numbers.astype(row["dtype"]))
for _ in range(int(sys.argv[3])):
    interpreter.invoke()
"""


def describe(root: Path, processor: Processor) -> None:
    """Let the system have one processor of this kind."""
    rows = {"processor": 0, "Features": processor.features, "CPU implementer": "0x41", "CPU architecture": 8}
    rows |= {"CPU variant": "0x1", "CPU part": hex(processor.part), "CPU revision": 1}
    cpus = root / "sys/devices/system/cpu"
    (cpus / "cpu0/topology").mkdir(parents=True, exist_ok=True)
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/cpuinfo").write_text("".join(f"{name}\t: {value}\n" for name, value in rows.items()) + "\n")
    topology = [f"cpu0/topology/{name}" for name in ("physical_package_id", "cluster_cpus_list", "core_siblings_list")]
    for name in ("possible", "present", "online", "kernel_max", *topology):
        (cpus / name).write_text("0\n")


def counted(root: Path, processor: Processor, model: Path, runs: int) -> Counter[tuple[str, ...]]:
    """How often each block ran in a process of so many runs; equal code is one block wherever it was loaded."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        build_plugin(folder)
        (folder / "program.py").write_text(PROGRAM)
        python = next(root.glob("usr/bin/python3.*"))
        command = ["qemu-aarch64", "-cpu", processor.emulated, "-L", str(root), "-plugin", "./plugin.so", str(python)]
        command += ["program.py", str(root / "site"), str(model.resolve()), str(runs)]
        environment: Mapping[str, str] = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"}
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=900, check=True)
        found = Counter[tuple[str, ...]]()
        for block in blocks_of(folder):
            found[block.code] += block.runs
    return found


def of_a_run(root: Path, cpu: str, model: Path) -> tuple[float, float | None]:
    """Instructions and cycles of one run."""
    runs = RUNS[model.stat().st_size < LARGE]
    found = counted(root, CPUS[cpu], model, 1 + runs)
    found.subtract(counted(root, CPUS[cpu], model, 1))
    instructions = sum(number * len(code) for code, number in found.items()) / runs
    taken = cycles([Block(0, number, code) for code, number in found.items() if number > 0], cpu)
    return instructions, None if taken is None else taken / runs


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.aarch64_litert", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--cpus", nargs="+", choices=CPUS, default=[*CPUS])
    given = parser.parse_args(arguments)
    if what := missing():
        print(what)
        return 2
    root = given.root.resolve()
    print("| model | CPU | instructions, millions | cycles, millions |")
    print("|---|---|---|---|")
    for cpu in given.cpus:
        describe(root, CPUS[cpu])
        counted(root, CPUS[cpu], given.models[0], 1)  # Python compiles its modules, once
        for model in given.models:
            instructions, taken = of_a_run(root, cpu, model)
            cells = (model.stem, cpu, f"{instructions / 1e6:.3f}", "" if taken is None else f"{taken / 1e6:.3f}")
            print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
