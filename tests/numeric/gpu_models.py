"""Models built for a GPU and run on the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import relay
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.lowering.gpu.emulator import Emulator, run_model
from relay.module import IRModule
from relay.runtime import Executable
from tests.numeric.compiled_modules import Net, equal


class Emulated:
    """A model built for a GPU, whose kernels run on the CPU."""

    def __init__(self, model: str | Path | IRModule, target: str = "cuda", checked: bool = True, level: int = 0):
        self.executable: Executable = relay.build(model, target=target)
        self.emulator = Emulator(self.executable.get_source("ll"), checked, level)

    @property
    def graph(self) -> dict[str, Any]:
        """The executable's graph."""
        return self.executable.graph

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The model's own outputs; states start anew and are left out."""
        given = list(inputs)
        for row in self.graph["inputs"][len(given) :]:
            given.append(self.executable.params[row["initial"]])
        results = run_model(self.graph, self.emulator, self.executable.params, given)
        return [r for r, row in zip(results, self.graph["outputs"], strict=True) if row["kind"] == "output"]


def check(net: Net, target: str = "cuda") -> Emulated:
    """Build it for a GPU and compare all results with the interpreter's."""
    module = net.module()
    wanted, model = run(module, net.inputs), Emulated(module, target)
    results = zip(net.results, model.run(net.inputs), wanted, strict=True)
    wrong = [name for name, got, want in results if not equal(got, want)]
    assert not wrong, f"{len(wrong)} of {len(wanted)} results differ from the interpreter's: {wrong}"
    return model


def golden_of(path: Path) -> tuple[list[list[Array]], list[list[Array]]]:
    """Stored inputs of a model and what LiteRT's reference kernels made of each."""
    golden = np.load(path.parent / "golden" / f"{path.stem}.npz")
    tags = sorted({key.split("_in")[0] for key in golden.files if "_in" in key})

    def found(tag: str, kind: str) -> list[Array]:
        count = sum(key.startswith(f"{tag}_{kind}") for key in golden.files)
        return [golden[f"{tag}_{kind}{number}"] for number in range(count)]

    return [found(tag, "in") for tag in tags], [found(tag, "out") for tag in tags]
