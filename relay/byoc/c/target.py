"""The target `c` of relay-opt (`relay-opt -t c`): writes a module as C99."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from relay.byoc.c.export import code, header, read


@dataclass(frozen=True)
class CTarget(Target):
    """Write `@main` (of `relay` and `qnn` ops) as one C99 file that begins with its header."""

    name = "c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        model = read(module, "model", "main")
        output.write(code(model, header(model)))
        if model.regions.functions:
            output.write("\n" + model.regions.code(""))
