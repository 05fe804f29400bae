"""`Compiler`: the interface of an external compiler.

A plug-in is a subclass, registered by an entry point of the group `relay.byoc` (`name = "package.module:Class"`) or by
`relay.byoc.register`. Its compiled functions are run by its loader, a function that imports nothing of the compiler: an
entry point of the group `relay.byoc.runtime` of the same name.
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
from relay.byoc.patterns.match import Refusal as Refusal  # re-exported for plug-ins
from relay.dialects.attributes import Array
from relay.target import Target
from relay.target.record import UNKNOWN


@dataclass(frozen=True, slots=True)
class Artifact:
    """The result of compiling one function, as bytes that the compiler's loader understands.

    `params` are constants that the executable stores once, by name, and passes to the loader, for compilers that do not
    put the weights into `data`. `sources` are texts for people to read, by kind ("c", "asm", ...). `device` is the
    prefix of the names of the C functions that run the artifact, with the interface that `relay.runtime.open_device`
    describes. Exported code (`Executable.export`, `export_c`) calls these functions, and is linked with the library
    that defines them; without `device`, the function cannot be exported. `workspace` is the number of bytes of scratch
    memory per call. The host's memory plan provides it as an additional, last output array of `uint8`. The array is
    aligned to 64 bytes, but only to 8 in the C of `export_c` and in code for machines without vectors. Its contents
    before and after a call are undefined.
    """

    data: bytes
    params: Mapping[str, Array] = field(default_factory=dict[str, Array])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    device: str = ""
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """What an external compiler knows about the build in which it compiles a function."""

    target: Target = UNKNOWN
    """The machine whose code calls the function; its `triple` is empty if unknown."""
    exact: bool = False
    """Whether integers must equal those of the ops' formulas, bit for bit (`relay.build(..., exact=True)`)."""
    constants: str = "bind"
    """How the constants in the function's body are stored. "vendor": all in the artifact's bytes; "bind": some may be
    stored by the executable (`Artifact.params`)."""
    own_inputs: tuple[int, ...] = ()
    own_outputs: tuple[int, ...] = ()
    """`own_inputs`: the indices of the function's arguments that in every call are results of functions of this
    compiler; `own_outputs`: the indices of results that only functions of this compiler use. The host passes on the
    memory of these tensors, of at least 8 bytes each, and never reads it, so it may hold a handle of a tensor that
    stays on the device."""


class Compiler(ABC):
    """An external compiler. Instances only hold options; every method may be called more than once, and changes no
    op that it is given, except `compile`, whose function is a copy."""

    name: ClassVar[str]
    """The compiler's name, which `annotate-target` and the function attribute `compiler` use."""
    version: ClassVar[str] = "1"
    """The version of the artifacts, stored in the executable: the loader refuses artifacts of a version that it does
    not know."""
    exact: ClassVar[bool] = True
    """Whether integers equal those of the ops' formulas, bit for bit. `exact=True` refuses compilers or pattern entries
    that are not exact; `difference` then says why as text, and `off_by` how large the errors can be."""
    difference: ClassVar[str] = ""
    extra: ClassVar[str] = ""
    """The extra of this distribution that installs the compiler's requirements, named in the error if they are
    missing."""

    faults: ClassVar[Sequence[Mapping[str, object]]] = ()
    """Sets of options, each of which makes the device fail at run time: `relay-byoc test` checks that users then get an
    error."""

    layouts: ClassVar[Sequence[str]] = ("NHWC",)
    """The layouts of images that the compiler reads; ops with other layouts, or with parameters in packed form, are not
    offered to it."""
    kernel_layouts: ClassVar[Sequence[str]] = ("OHWI", "HWOI")
    """The layouts of kernels that the compiler reads; ops with other layouts are not offered to it."""
    hoists: ClassVar[bool] = True
    """Whether the compiler supports functions whose constants are arguments (`constants=hoist`); if not, constants stay
    inside the functions."""

    def missing(self) -> str | None:
        """The missing requirements of this compiler as text; None if it can compile and run here."""
        return None

    def patterns(self) -> Sequence[Entry]:
        """The pattern table; the first entry that matches is used. Matches become `byoc.composite "NAME.entry"`."""
        return ()

    def supports(self, op: Operation) -> bool | Refusal:
        """Whether the compiler takes this single operation, which none of its patterns matched."""
        return False

    def before_annotation(self) -> Sequence[ModulePass]:
        """Passes that rewrite the module before patterns are matched (layouts, constants)."""
        return ()

    def on_functions(self) -> Sequence[ModulePass]:
        """Passes that run on a module of only this compiler's functions, after partitioning and before `compile`."""
        return ()

    def cost(self, ops: Sequence[Operation]) -> float | None:
        """The estimated time in microseconds of a region of these ops, including transfers; None if unknown."""
        return None

    def regions(self, ops: Sequence[Operation]) -> Sequence[Sequence[Operation]] | Refusal:
        """Split a region: `ops` are all its composites and single ops in program order. Each sequence returned becomes
        a region of its own (by default there is one with all ops), and ops in none of them return to the host. A
        Refusal returns all of them, with its reason."""
        return [ops]

    def off_by(self, ops: Sequence[Operation]) -> int | None:
        """The maximum error, in quantization steps, of the result of these ops computed as one kernel (a composite's
        ops, or a single op) from exact operands; None if unknown. `relay.byoc.differences` measures it."""
        return 0 if self.exact else None

    @abstractmethod
    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact | Refusal | FuncOp:
        """Compile one partitioned function: one block of `relay` and `qnn` ops, `byoc.composite`s and constants, ended
        by `func.return`, with static shapes.

        Only here the compiler sees the function as a whole, and may still refuse it: a `Refusal` returns the function
        to the host, and the report gives the reason. If `compile` returns a function of the same type, of `relay` and
        `qnn` ops, the host compiles that function instead. Raises RelayError, naming the op and its source, if it
        fails.
        """
