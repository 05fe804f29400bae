"""`Compiler`: what an external compiler says of itself, and what it is asked to do.

A plug-in is a subclass, made known by an entry point of the group `relay.byoc` (`name = "package.module:Class"`) or by
`relay.byoc.register`. What it compiles is run by its loader, a function that imports nothing of the compiler: an entry
point of the group `relay.byoc.runtime` of the same name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from relay.byoc.patterns import Entry
from relay.byoc.patterns.match import Refusal as Refusal  # beside Compiler
from relay.dialects.attributes import Array
from relay.target import Target
from relay.target.record import UNKNOWN


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a compiler made of one function: bytes that its loader understands.

    `params` are constants that the executable keeps once, by name, and hands to the loader: for compilers that do not
    put the weights into `data`. `sources` are texts for people to read, by kind ("c", "asm", ...). `device` is the
    prefix of the C functions that run it, those of `relay.runtime.open_device`: exported code (`Executable.export`,
    `export_c`) calls them, and is linked with the library that has them. Without it, the function cannot be exported.
    `workspace` is a number of bytes that each call computes in: the host's memory plan has them, at a multiple of 64,
    and passes them behind the outputs, as one more array of `uint8`. What they hold before and after is undefined.
    """

    data: bytes
    params: Mapping[str, Array] = field(default_factory=dict[str, Array])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    device: str = ""
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """What a function is compiled for."""

    target: Target = UNKNOWN
    """The machine whose code calls the function; its `triple` is empty where that is not known."""
    exact: bool = False
    """Whether integers must be those of the ops' formulas, bit for bit (`relay.build(..., exact=True)`)."""
    constants: str = "bind"
    """What becomes of the constants in the function's body. "vendor": all are part of the artifact's bytes; "bind":
    some may be left to the executable (`Artifact.params`)."""
    own_inputs: tuple[int, ...] = ()
    own_outputs: tuple[int, ...] = ()
    """Numbers of the arguments that in every call are results of functions of this compiler, and of the results whose
    every use is an argument of such a function. The host passes on their memory, of 8 bytes at least, and never looks
    into it: it may hold a handle of a tensor that stays on the device."""


class Compiler(ABC):
    """An external compiler. Instances hold options only; every method may be called more than once."""

    name: ClassVar[str]
    """The name that `annotate-target` and the function attribute `compiler` use."""
    version: ClassVar[str] = "1"
    """Kept in the executable: its loader refuses artifacts of a version that it does not know."""
    exact: ClassVar[bool] = True
    """Whether integers are those of the ops' formulas, bit for bit. `exact=True` refuses compilers, or pattern
    entries, that are not; `difference` then says in words why, `off_by` in numbers how far they can be off."""
    difference: ClassVar[str] = ""
    extra: ClassVar[str] = ""
    """The extra of this distribution that installs what it needs, for the error when that is missing."""

    faults: ClassVar[Sequence[Mapping[str, object]]] = ()
    """Options with each of which the device fails when it runs: `relay-byoc test` looks whether users are told."""

    layouts: ClassVar[Sequence[str]] = ("NHWC",)
    """The layouts of images that it reads; ops of others, and parameters in packed form, are not offered to it."""
    kernel_layouts: ClassVar[Sequence[str]] = ("OHWI", "HWOI")
    """The layouts of kernels that it reads, in the same way."""
    hoists: ClassVar[bool] = True
    """Whether it compiles functions whose constants are arguments (`constants=hoist`); if not, they stay bound."""

    def missing(self) -> str | None:
        """What is not installed that this compiler needs, in words; None if it can compile and run here."""
        return None

    def patterns(self) -> Sequence[Entry]:
        """The patterns it takes, the first that matches wins. Matches become `byoc.composite "NAME.entry"`."""
        return ()

    def supports(self, op: Operation) -> bool | Refusal:
        """Whether it takes this single operation, which no pattern of its took."""
        return False

    def before_annotation(self) -> Sequence[ModulePass]:
        """Passes that rewrite the module before patterns are looked for (layouts, constants)."""
        return ()

    def on_functions(self) -> Sequence[ModulePass]:
        """Passes that run on a module of this compiler's functions alone, after partitioning and before `compile`."""
        return ()

    def cost(self, ops: Sequence[Operation]) -> float | None:
        """An estimate of the microseconds that a region of these ops takes, edges included; None: not known."""
        return None

    def regions(self, ops: Sequence[Operation]) -> Sequence[Sequence[Operation]] | Refusal:
        """Split a region: `ops` are all its composites and single ops in program order; each sequence returned becomes
        a region of its own (by default all ops are one), and ops in none of them go back to the host. A Refusal, with
        the reason, gives all of them back."""
        return [ops]

    def off_by(self, ops: Sequence[Operation]) -> int | None:
        """How many codes the result of these ops, computed as one (a composite's, or a single op), may be off the
        formulas', given the same operands; None: not said. `relay.byoc.differences` measures it."""
        return 0 if self.exact else None

    @abstractmethod
    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact | Refusal | FuncOp:
        """Compile one partitioned function: one block of `relay`, `qnn` ops, `byoc.composite`s and constants, ended by
        `func.return`; static shapes.

        A `Refusal` gives it back to the host, as the report then says: it is shown whole here for the first time. A
        function of the same type, of `relay` and `qnn` ops, is compiled by the host in its place. Raises
        RelayError, naming the op and its source, for what it cannot do."""
