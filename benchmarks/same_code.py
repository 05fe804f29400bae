"""Whether a change of the compiler changes the code it makes: `python -m benchmarks.same_code record FILE`, then
`python -m benchmarks.same_code compare FILE` on the changed tree.

For each model (the digits, and those of a folder given by `--models`) and target, one sha256 of the object code, of the
graph and of the constants. All targets are named, so the host does not matter, as long as LLVM's version is the same.
Unchanged LLVM IR finds its object code in the object store, so that a comparison takes little more than the passes.
`compare` prints each artifact that differs or is missing, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import cast

import numpy as np

import relay
from relay.errors import RelayError
from relay.passes.context import PassContext
from relay.passes.instruments import PassInstrument
from relay.runtime import Executable

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "examples" / "digits"
MODELS = ROOT.parent / "shared" / "models"
TARGETS = {
    "avx512vnni": "x86_64-unknown-linux-gnu -mcpu=cascadelake",
    "avx2": "x86_64-unknown-linux-gnu -mcpu=haswell",
    "sse2": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu -mattr=+dotprod",
    "cortex-m4": "thumbv7em-none-eabi",
    "riscv64": "riscv64-unknown-linux-gnu",
    "sm_80": "cuda -arch=sm_80",
    "sm_90a": "cuda -arch=sm_90a",
    "opencl": "opencl",
}
"""A target for each kind of code, by a short name."""
DEFAULT = ("avx512vnni",)

Sums = dict[str, str]
"""sha256 by the part of an artifact: code, graph, constants; or `refused` with the message of the error."""


def sums(model: Path, target: str) -> Sums:
    """What a model's artifact for a target consists of."""
    try:
        with PassContext(instruments=[PassInstrument()]):  # nothing that an instrument sees is taken from the cache
            executable = relay.build(model, target)
        return {
            "code": sha256(code_of(executable)).hexdigest(),
            **({} if executable.library.artifacts else constants_of(executable)),
        }
    except RelayError as error:
        return {"refused": str(error).replace(str(model), model.name)}


def code_of(executable: Executable) -> bytes:
    """The shared object or the kernels' text; where there is neither, the exported object file."""
    if executable.library.code:
        return executable.library.code
    with tempfile.TemporaryDirectory() as folder:
        executable.export(folder)
        return b"".join(path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.suffix == ".o")


def constants_of(executable: Executable) -> Sums:
    """Sums of the graph and of the constants by name."""
    graph, _, params = executable
    constants = sha256()
    for name in sorted(params):
        constants.update(f"{name} {params[name].dtype} {params[name].shape}".encode())
        constants.update(np.ascontiguousarray(params[name]).data)
    return {"graph": sha256(graph.encode()).hexdigest(), "constants": constants.hexdigest()}


def _task(task: tuple[str, Path, str]) -> tuple[str, Sums]:
    name, model, target = task
    return name, sums(model, target)


def recorded(models: Sequence[Path], targets: Sequence[str], jobs: int) -> Iterator[tuple[str, Sums]]:
    """The sums of every model for every target, by `model target`."""
    tasks = [(f"{model.stem} {target}", model, TARGETS[target]) for model in models for target in targets]
    if jobs == 1:
        yield from map(_task, tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_task, tasks)


def differences(found: Mapping[str, Sums], expected: Mapping[str, Sums]) -> list[str]:
    """One line for each artifact that is not as it was, or was not recorded."""
    lines: list[str] = []
    for name, new in found.items():
        old = expected.get(name)
        if old is None:
            lines.append(f"{name}: was not recorded")
        elif old != new:
            parts = [part for part in old | new if old.get(part) != new.get(part)]
            lines.append(f"{name}: not as recorded: {', '.join(parts)}")
    return lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_code", description=__doc__)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path, help="JSON file of the recorded sums")
    parser.add_argument("--models", type=Path, default=MODELS, help="a folder of .tflite files")
    parser.add_argument("--only", nargs="+", default=[""], help="models whose names contain one of these words")
    parser.add_argument("--targets", nargs="+", choices=[*TARGETS, "all"], default=DEFAULT)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args(arguments)
    models = [
        path
        for path in [*sorted(DIGITS.glob("*.tflite")), *sorted(given.models.glob("*.tflite"))]
        if any(word in path.stem for word in given.only)
    ]
    targets = [*TARGETS] if "all" in given.targets else given.targets
    found: dict[str, Sums] = {}
    for name, new in recorded(models, targets, given.jobs):
        found[name] = new
        print(name, *(f"{part} {value[:12]}" for part, value in new.items()), flush=True)
    if given.action == "record":
        given.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        return 0
    lines = differences(found, cast("dict[str, Sums]", json.loads(given.file.read_text())))
    print(*(lines or [f"all {len(found)} artifacts are byte-identical"]), sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
