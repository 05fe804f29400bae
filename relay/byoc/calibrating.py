"""Recording of the tensors at the boundaries of partitions, for vendors whose compilers calibrate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from relay.byoc.partitioning.scope import COMPILER, blocks, functions, partitioned
from relay.dialects import byoc
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.interpreters import MEANINGS, check_inputs
from relay.interpreters.func import Machine
from relay.module import IRModule


@dataclass(frozen=True)
class Edges:
    """The inputs and outputs of a partition in one run."""

    compiler: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def calibration(
    mod: IRModule | ModuleOp, inputs: Sequence[Array] | Mapping[str, Array], function: str = "main"
) -> dict[str, list[Edges]]:
    """Run a function of the module in the interpreter, and record the inputs and outputs of each partition.

    The result maps the name of each partitioned function, or `FUNCTION region K` before `partition-graph`, to a list
    with one `Edges` per run of the partition, in order, which is empty for a partition that did not run.

    Raises InvalidArgument if the module is annotated but its regions are not formed, and any error of the interpreter.
    """
    module = mod.op if isinstance(mod, IRModule) else mod
    recorder = Recorder(IRModule(module))
    block = recorder.body(function)
    arguments = check_inputs(recorder.functions[function], inputs)
    with np.errstate(all="ignore"):
        recorder.block(block, arguments)
    return recorder.found


class Recorder(Machine):
    """An interpreter that records the inputs and outputs of regions and external functions."""

    def __init__(self, mod: IRModule):
        super().__init__(mod.functions, MEANINGS)
        self.names: dict[Operation, str] = {}
        for function in functions(mod.op):
            before = len(self.names)
            for block in blocks(function):
                for op in block.ops:
                    if isinstance(op, byoc.Boundary):
                        hint = "run merge-compiler-regions or partition-graph first"
                        raise InvalidArgument("calibration", "the module is annotated, but has no regions yet", hint)
                    if isinstance(op, byoc.RegionOp):
                        self.names[op] = f"{function.sym_name.data} region {len(self.names) - before}"
        names = [name for name, function in mod.functions.items() if partitioned(function)]
        self.found: dict[str, list[Edges]] = {name: [] for name in (*self.names.values(), *names)}

    def op(self, op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
        results = super().op(op, operands)
        name, compiler = self.names.get(op), None
        if isinstance(op, byoc.RegionOp):
            compiler = op.compiler
        elif isinstance(op, CallOp) and op.callee.string_value() in self.found:
            name = op.callee.string_value()
            compiler = self.functions[name].attributes[COMPILER]
        if name is not None and isinstance(compiler, StringAttr):
            copies = tuple(map(np.array, operands)), tuple(map(np.array, results))
            self.found[name].append(Edges(compiler.data, *copies))
        return results
