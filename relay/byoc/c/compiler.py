"""The plug-in `c`: generates C99 and compiles it with the system's C compiler; integers are exact, on any machine."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay import target
from relay.artifact import symbol_of
from relay.byoc.c import artifact, host, toolchain
from relay.byoc.c.emit import emit, refusal
from relay.byoc.compiler import Artifact, BuildInfo, Compiler, Refusal
from relay.byoc.entries import taken
from relay.byoc.partitioning.scope import CONSTANTS
from relay.errors import Unsupported


@dataclass(frozen=True)
class CCompiler(Compiler):
    """Compiles every op of `relay` and `qnn` with static shapes on integers, f32 or f64; integer results equal the
    formulas."""

    name: ClassVar[str] = "c"

    cc: str = ""
    """The command of the C compiler; by default `RELAY_CC`, or else cc, gcc or clang."""
    flags: str = "-O3"
    """The flags of the C compiler. The default generates code for every machine of the architecture."""
    native: bool = False
    """Generate code for the CPU of this machine (`-march=native`); the executable then only runs on CPUs with its
    features."""
    embed: bool = False
    """Put all weights into the C code as arrays instead of storing them as constants of the executable. The C compiler
    then takes much longer. A partition with `constants="vendor"` always does so."""

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
        features = sorted(target.host().features) if self.native else []
        header = artifact.Header(symbol, program.arena, [c.name for c in outside], features)
        code = toolchain.shared_object(text, flags, self.cc, build.target.triple)
        return Artifact(artifact.write(header, code), {c.name: c.array for c in outside}, {"c": text})
