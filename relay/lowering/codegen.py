"""LLVM by way of llvmlite: optimises text and makes object code."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from relay.errors import Unsupported
from relay.lowering.elf.shared_object import link
from relay.store import key_of, store

if TYPE_CHECKING:
    from relay.target import Target

LINKED = ("x86_64", "aarch64")
"""Machines for which shared objects are made."""


class Machine(NamedTuple):
    """The parameters of an LLVM target machine. Worker processes unpickle it without importing the compiler."""

    triple: str
    cpu: str
    features: str
    relocation: str
    abi: str


Job = tuple[str, Machine, int]
"""The text of a module, the machine, and the optimization level."""
LLVM_LOCK = threading.RLock()
"""One thread at a time calls LLVM, and `fork` waits for it: a child has neither the thread nor what it had begun."""
_READY: list[bool] = []


def is_linked(target: Target) -> bool:
    """Whether shared objects are made for the machine."""
    words = target.triple.split("-")
    return words[0] in LINKED and "linux" in words


@dataclass(frozen=True)
class NativeCode:
    """The object code of a compiled program, in units, and its text, which is joined on request."""

    objects: tuple[bytes, ...]
    text: Callable[[], str] = field(compare=False)
    target: Target
    level: int

    @property
    def code(self) -> bytes:
        """The object code of a program that was compiled as one unit."""
        (code,) = self.objects
        return code

    @cached_property
    def ir(self) -> str:
        """The optimised LLVM IR of the whole program, made on request."""
        with LLVM_LOCK:
            return str(_optimised(self.text(), machine_of(self.target), self.level))

    def shared_object(self) -> bytes:
        """The code as Linux's loader takes it; functions called `relay_...` can be looked up. No bytes for a machine
        whose code is not linked here."""
        return link(self.objects) if is_linked(self.target) else b""

    def assembly(self) -> str:
        """The assembly of the whole program, made from its optimised LLVM IR."""
        with LLVM_LOCK:
            return _created(machine_of(self.target), self.level).emit_assembly(llvm.parse_assembly(self.ir))


def machine_of(target: Target) -> Machine:
    """A CPU's parameters for LLVM."""
    return Machine(target.llvm_triple, target.cpu, target.feature_string, target.relocation, target.abi)


def compile_text(text: str, target: Target, level: int = 3) -> NativeCode:
    """Optimise and compile LLVM IR text, or find what was made of the same text before.

    The text is our own; what LLVM refuses is a bug reported as Unsupported.
    """
    job = (text, machine_of(target), level)
    key, kept = key_of_job(job), store()
    code = None if kept is None else kept.get(key)
    if code is None:
        code = emit(job)
        if kept is not None:
            kept.put(key, code)
    return NativeCode((code,), lambda: text, target, level)


def key_of_job(job: Job) -> str:
    """The cache key of the object code of a job."""
    text, machine, level = job
    return key_of("object", text, machine.triple, machine.cpu, machine.features, llvmlite.__version__, str(level))


def emit(job: Job) -> bytes:
    """The object code of a text, optimised at a level."""
    text, machine, level = job
    with LLVM_LOCK:
        return _created(machine, level).emit_object(_optimised(text, machine, level))


def _optimised(text: str, machine: Machine, level: int) -> llvm.ModuleRef:
    """The text's module after LLVM's passes at this level."""
    _start()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise Unsupported("llvm", f"refused the generated code: {str(error).strip().splitlines()[0]}") from None
    created = _created(machine, level)
    module.triple = machine.triple
    module.data_layout = str(created.target_data)
    options = llvm.PipelineTuningOptions(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(created, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _start() -> None:
    with LLVM_LOCK:
        if not _READY:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            _READY.append(True)


def _created(machine: Machine, level: int) -> llvm.TargetMachine:
    _start()
    if machine.triple.partition("-")[0] != llvm.get_process_triple().partition("-")[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=level,
        reloc=machine.relocation,
        codemodel="default",
        abiname=machine.abi,
    )


def wait_in_fork(acquire: Callable[[], object], release: Callable[[], object]) -> None:
    """Let `fork` wait until no other thread holds a lock; parent and child give it back."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)


wait_in_fork(LLVM_LOCK.acquire, LLVM_LOCK.release)
