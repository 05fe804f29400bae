"""`llvm-ir`: writes LLVM IR text from stage 3 (`func`, `scf`, `memref`, `vector`, `arith`, `math`).

A memref is a pointer; its static type makes every address a single GEP. Memref arguments are `noalias`: the memory plan
never gives a kernel overlapping buffers of which it writes one, except those marked `relay.overlapping`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.target import Target

from relay.errors import Unsupported
from relay.lowering import externals
from relay.lowering.llvm.control import CONTROL
from relay.lowering.llvm.counters import DECLARATION, counted
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.llvm.memory import MEMORY
from relay.lowering.llvm.parallel import threaded
from relay.lowering.llvm.repeat import repeat_text
from relay.lowering.llvm.scalar import SCALAR
from relay.lowering.llvm.team import begin_text, team_text
from relay.lowering.llvm.tiles import TILES
from relay.lowering.llvm.types import type_name
from relay.lowering.program import FunctionText, Program, Units
from relay.lowering.shaped import buffer_of, size_of

ENTRY = "relay_main"
"""The symbol of the wrapper of `@main` that takes one pointer to a table of pointers."""

WRITERS: dict[str, Writer] = SCALAR | MEMORY | CONTROL | TILES
"""Functions that write an op as LLVM IR text, by the op's name, for ops that the tables of `relay.lowering.llvm.rows`
lack."""


@dataclass(frozen=True)
class LlvmIrTarget(Target):
    """Write the module as LLVM IR text (after `plan-memory`)."""

    name = "llvm-ir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(translate(module))


def program(
    module: ModuleOp,
    attributes: str = "",
    triple: str = "",
    entry: Callable[[int], str] | None = None,
    ready: Callable[[str], object] | None = None,
    counters: str = "",
    index_bits: int = 64,
    repeated: bool = False,
    apart: bool = False,
) -> Program:
    """Return the LLVM IR of the module; `attributes` are added to every function. If there are parallel loops and a
    `triple` is given, the functions of a team of threads are included. `entry` writes the public function of `@main`,
    given the number of its arguments; by default, each public function NAME gets a function `relay_NAME`. `ready` is
    called with the text of each module that can be compiled separately (see `Units`), while others are written.
    `counters`: if not empty, the triple of the machine; `@main` then counts the clock ticks of each kernel call in it
    (`llvm.counters`), and the address of the counters is the last entry of `@main`'s argument table. `index_bits`: the
    width of an index, which must be 64 if there are parallel loops. `repeated`: include a function that executes
    `@main` for a batch of inputs (`llvm.repeat`), which needs a `triple`. `apart`: each kernel is a separate module.
    Raises Unsupported for an operation other than those of loops over planned memory, such as `scf`, `memref` and
    `vector`."""
    declarations: dict[str, str] = {}
    functions: dict[str, FunctionText] = {}
    entries: list[str] = []
    numbers = {name: number for number, name in enumerate(externals.called(module))}
    forking = threaded(module)
    whole = Program(functions, entries, declarations, attributes)
    names = [op.sym_name.data for op in module.body.block.ops if isinstance(op, FuncOp)]
    units = None if ready is None else Units(whole, names, ready, apart)
    for op in module.body.block.ops:
        if not isinstance(op, FuncOp):
            raise Unsupported(f"llvm-ir: {op.name}", "is no function")
        if op.body.blocks:
            function = FunctionWriter(op, WRITERS, declarations, numbers, forking, index_bits).write()
            counts = bool(counters) and function.name == "main"
            if counts:
                function = counted(function, names, counters)
                declarations["llvm.readcyclecounter"] = DECLARATION
            functions[function.name] = function
            if units is not None:
                units.add(function)
            if op.sym_visibility is None:
                more = bool(numbers) + (op.sym_name.data in forking)
                if entry is None:
                    entries.append(by_table(op, more, op.sym_name.data in forking, counts))
                elif op.sym_name.data == "main":
                    entries.append(entry(len(op.body.block.args) + more))
    if repeated:
        main = next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
        *tensors, _, _ = (size_of(buffer_of(argument)) for argument in main.body.block.args)
        entries.append(repeat_text(ENTRY, tensors, "main" in forking))
    if (forking or repeated) and triple:
        entries.append(team_text(triple, declarations))
    if units is not None:
        units.finish()
    return whole


def translate(
    module: ModuleOp,
    attributes: str = "",
    triple: str = "",
    entry: Callable[[int], str] | None = None,
    index_bits: int = 64,
) -> str:
    """Return the LLVM IR text of the module, as one module; for the parameters see `program`."""
    return program(module, attributes, triple, entry, index_bits=index_bits).text


def by_table(function: FuncOp, more: int, forking: bool, counts: bool = False) -> str:
    """Return `@relay_NAME`, which calls the function. Its only argument is a table of addresses: of the memrefs; of the
    table of external functions, if there are any; of the team of threads, if there are parallel loops (`forking`); and
    of the counters, if the function `counts` the ticks of each call. `more`: the number of addresses after the memrefs,
    without that of the counters."""
    name, team = function.sym_name.data, len(function.body.block.args) + more - 1
    count = team + 1 + counts
    types = [type_name(argument.type) for argument in function.body.block.args]
    types += ["ptr"] * (count - len(types))
    lines = [f"define void @relay_{name}(ptr %table) #0 {{"]
    for i in range(count):
        lines.append(f"  %a{i} = getelementptr ptr, ptr %table, i64 {i}")
        lines.append(f"  %p{i} = load {types[i]}, ptr %a{i}, align 8")
    if forking:
        lines += begin_text(f"%p{team}")
    arguments = ", ".join(f"{types[i]} %p{i}" for i in range(count))
    return "\n".join([*lines, f"  call void @{name}({arguments})", "  ret void", "}"])
