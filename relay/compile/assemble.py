"""Backends, one for each kind of target: each has the passes and the executable class of its targets. A backend is
imported only when a target of its kind is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

from xdsl.passes import ModulePass

from relay.compile.claims import Claims
from relay.compile.manifest import Signature
from relay.compile.work import Work
from relay.compile.workers import Compilation
from relay.module import IRModule
from relay.runtime import Executable
from relay.target import CpuTarget, GpuTarget, Target

T = TypeVar("T", CpuTarget, GpuTarget)
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Planned:
    """A module that has the properties that its backend needs, with the code, signature and facts from which the
    backend makes the executable."""

    module: IRModule
    code: Compilation
    described: Signature
    claims: Claims
    """The formulas of the module's kernels, for certificates."""
    progress: Progress | None = None
    """A function that is called after each compiled module, with the number of modules compiled so far and the number
    of all modules; None if progress is not reported."""
    work: Work = field(default_factory=dict[str, tuple[int, str]])
    """The multiply-accumulates of kernels and of the source model's operators, for profiles."""
    repeated: bool = False
    """Whether the code contains a function that runs the model for several blocks of rows; their number is given at run
    time."""
    length: int = 0
    """The largest length of a sequence that the code serves; 0 if no length is given at run time."""


class Backend(ABC, Generic[T]):
    """Base class: the passes and the executable for one kind of target."""

    needed: ClassVar[Sequence[str]]
    """The properties that a module must have before code is generated from it."""

    @abstractmethod
    def passes(self, target: T) -> list[ModulePass]:
        """The passes from outlined kernels to the form from which code is generated, with memory planned."""

    def prepare(self, module: IRModule, code: Compilation) -> Claims:
        """Read the formulas of a module before it is lowered, for certificates, and start the processes that will
        compile it."""
        return Claims()

    @abstractmethod
    def assemble(self, planned: Planned, target: T) -> Executable:
        """Generate code from a lowered module, which must have the properties in `self.needed`, and make an executable
        of it."""


BACKENDS: Mapping[str, str] = {
    "cpu": "relay.compile.native:Native",
    "cuda": "relay.compile.gpu:Device",
    "opencl": "relay.compile.gpu:Device",
}
"""The module and class of each backend (`module:Class`), by kind of target."""


def backend_of(target: Target) -> Backend[Any]:
    """The backend that compiles for the target."""
    module, _, name = BACKENDS[target.kind].partition(":")
    return getattr(import_module(module), name)()


def assemble(planned: Planned) -> Executable:
    """Make the executable of a module that has the properties that its backend needs."""
    target = planned.code.target
    return backend_of(target).assemble(planned, target)
