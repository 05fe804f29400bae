"""What a model's kernels should take on a GPU, by arithmetic: `python -m benchmarks.gpu_expected [options] MODEL`.

No device is asked, and nothing here is measured: the table is what a run on a device is to confirm or refute. A row is
a call of @main: its product, the tiles that were chosen for it, how many (with parts of the depth), turns of the
busiest multiprocessor, and time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects import func

import relay
from relay.frontend import from_onnx, from_tflite
from relay.lowering.bufferize import Bufferize
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.gpu.matrix import Matrix
from relay.lowering.gpu.schedule_gpu import FunctionScheduler
from relay.lowering.gpu.strategies.products import Products, ProductSchedule
from relay.lowering.gpu.tiles import GroupTile, TurnTile
from relay.lowering.plan_memory import size_of
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.shaped import is_buffer
from relay.passes import Pipeline
from relay.target import GpuTarget, resolve_gpu

CLOCKS = {"sm_80": (1.41e9, 1.6e12), "sm_90": (1.755e9, 3.0e12), "sm_90a": (1.755e9, 3.0e12)}
"""Clocks, as the maker tells them, and bytes of memory that copies reach, in a second: A100 and H100."""


@dataclass(frozen=True)
class Row:
    """A call, its product if it has one, its launches, and what it should take."""

    name: str
    product: Matrix | None
    launches: int
    seconds: float

    def text(self, target: GpuTarget) -> str:
        """The row of the table."""
        time = f"{self.launches} | {1e6 * self.seconds:.1f} |"
        if (m := self.product) is None:
            return f"| {self.name} | | | | | | {time}"
        each = -(-m.blocks // target.processors)
        waves = -(-each // min(each, m.tile.resident(target.costs)))
        unit = ", turns" if isinstance(m.tile, TurnTile) else ", wgmma" if isinstance(m.tile, GroupTile) else ""
        unit += f", {m.tile.slices} slices" if m.tile.slices > 1 else ""
        sizes = f"{m.rows} x {m.columns} x {m.depth} | {m.tile.rows} x {m.tile.columns}{unit} | {m.splits}"
        return f"| {self.name} | {sizes} | {m.blocks} | {waves} | {time}"


def rows(path: Path, target: GpuTarget, name: str, batch: int) -> Iterator[Row]:
    """The calls of a model's @main, in order."""
    read = from_onnx if path.suffix == ".onnx" else from_tflite
    module = relay.optimize(read(path, batch=batch), name)
    module = Pipeline([RelayToLinalg(), ExpandApplyScale(), Bufferize()])(module)
    clock, memory = CLOCKS[target.cpu]
    functions = {f.sym_name.data: f for f in module.op.body.block.ops if isinstance(f, func.FuncOp)}
    known: dict[str, tuple[Matrix | None, int, int]] = {}
    costs = target.costs
    for call in module["main"].body.block.ops:
        if not isinstance(call, func.CallOp):
            continue
        callee = call.callee.string_value()
        if callee not in known:
            known[callee] = launches_of(functions[callee], call, target)
        m, clocks, launches = known[callee]
        bytes = sum(size_of(value.type) for value in call.arguments if is_buffer(value.type))
        work = clocks if m is not None else bytes / (costs.processors * costs.memory_bandwidth)
        waits = (1 if m is not None else launches) * costs.launch
        yield Row(callee, m, launches, max(work / clock, bytes / memory) + waits / clock)


def launches_of(function: func.FuncOp, call: func.CallOp, target: GpuTarget) -> tuple[Matrix | None, int, int]:
    """The product of a function that matrix units compute, if it has one, the clocks that it takes with all of its
    launches but one, and how many launches the function has."""
    product, clocks, launches = None, 0, 0
    for strategy, schedule in FunctionScheduler(function, [call], target).decide().values():
        launches += 1
        if isinstance(strategy, Products) and isinstance(schedule, ProductSchedule):
            product, clocks = strategy.tiled(schedule), schedule.cycles
            launches += (product.splits > 1) + (product.gathered is not None)
    return product, clocks, launches


def table(path: Path, name: str, batch: int) -> Iterator[str]:
    """The table of a model."""
    target = resolve_gpu(name)
    yield "| call | rows x columns x depth | tile | parts | tiles | waves | launches | expected, µs |"
    yield "|---|---|---|---|---|---|---|---|"
    found = list(rows(path, target, name, batch))
    yield from (row.text(target) for row in found)
    total = sum(row.seconds for row in found)
    yield f"| all | | | | | | {sum(row.launches for row in found)} | {1e6 * total:.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda -arch=sm_90a")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("model", type=Path)
    arguments = parser.parse_args()
    for line in table(arguments.model, arguments.target, arguments.batch):
        print(line)


if __name__ == "__main__":
    main()
