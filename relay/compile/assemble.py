"""What compiles for a kind of target: a row for each, whose passes and executables no other kind's build imports."""

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
    """A module that has what its backend needs, and what its executable is made with."""

    module: IRModule
    code: Compilation
    described: Signature
    claims: Claims
    """The formulas of its kernels, for certificates."""
    progress: Progress | None = None
    """Told how much of the code is compiled."""
    work: Work = field(default_factory=dict[str, tuple[int, str]])
    """That of the source's operators, for profiles."""
    repeated: bool = False
    """See `Recipe.repeated`."""
    length: int = 0
    """See `Recipe.length`."""


class Backend(ABC, Generic[T]):
    """The passes and the executables of a kind of target."""

    needed: ClassVar[Sequence[str]]
    """Properties that a module must have for code to be made of it."""

    @abstractmethod
    def passes(self, target: T) -> list[ModulePass]:
        """The passes from kernels to the form that code is generated from, with memory planned."""

    def prepare(self, module: IRModule, code: Compilation) -> Claims:
        """The formulas of a module that is about to be lowered, for certificates; starts what will compile it."""
        return Claims()

    @abstractmethod
    def assemble(self, planned: Planned, target: T) -> Executable:
        """The executable of a module that has what is `needed`."""


BACKENDS: Mapping[str, str] = {
    "cpu": "relay.compile.native:Native",
    "cuda": "relay.compile.gpu:Device",
    "opencl": "relay.compile.gpu:Device",
}
"""Modules and classes by the kind of the target."""


def backend_of(target: Target) -> Backend[Any]:
    """What compiles for the target."""
    module, _, name = BACKENDS[target.kind].partition(":")
    return getattr(import_module(module), name)()


def assemble(planned: Planned) -> Executable:
    """The executable of a module that has what its backend needs."""
    target = planned.code.target
    return backend_of(target).assemble(planned, target)
