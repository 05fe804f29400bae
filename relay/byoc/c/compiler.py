"""The plug-in `c`: a compiler to C99, compiled by the system's C compiler; exact for integers, on any machine."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc.c import artifact, host, toolchain
from relay.byoc.c.emit import emit, refusal
from relay.byoc.compiler import Artifact, BuildInfo, Compiler, Refusal
from relay.byoc.entries import taken
from relay.byoc.partitioning.scope import CONSTANTS
from relay.errors import Unsupported


@dataclass(frozen=True)
class CCompiler(Compiler):
    """Every op of `relay` and `qnn` with static shapes and integers, f32 or f64; integers are those of the formulas."""

    name: ClassVar[str] = "c"

    cc: str = ""
    """The C compiler's command; default: `RELAY_CC`, else cc, gcc or clang."""
    flags: str = "-O3"
    """Its flags. The default makes code for every machine of this kind."""
    native: bool = False
    """Make code for this very CPU (`-march=native`); the executable then runs on CPUs that have its features."""
    embed: bool = False
    """Put all weights into the code instead of the executable's constants, as `constants="vendor"` has it do. C
    compilers take long for that."""

    def missing(self) -> str | None:
        return None if toolchain.find(self.cc) else f"{toolchain.missing(self.cc)}; set RELAY_CC or the option cc"

    def supports(self, op: Operation) -> bool | Refusal:
        return taken(refusal(op))

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact | Refusal:
        try:
            program = emit(function)
        except Unsupported as error:
            return Refusal(str(error))
        symbol = symbol_of(function)
        outside = [] if self.embed or CONSTANTS in function.attributes else host.outside(program)
        text = host.text(program, symbol, outside)
        flags = [*shlex.split(self.flags), *["-march=native"] * self.native]
        features = sorted(cpu_features()) if self.native else []
        header = artifact.Header(symbol, program.arena, [c.name for c in outside], features)
        code = toolchain.shared_object(text, flags, self.cc, build.target.triple)
        return Artifact(artifact.write(header, code), {c.name: c.array for c in outside}, {"c": text})


def symbol_of(function: FuncOp) -> str:
    """The name that native code calls the function by."""
    symbol = function.attributes.get("global_symbol")
    return symbol.data if isinstance(symbol, StringAttr) else function.sym_name.data


def cpu_features() -> frozenset[str]:
    """What this machine's CPU can do, by LLVM's names."""
    from relay.target import host as here

    return here().features
