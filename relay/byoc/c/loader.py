"""Loads and runs functions compiled by `c` as shared objects of this process. Imports nothing of the compiler.

Artifacts are native code: load an executable that contains one only if you trust its origin enough to run a program
from there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from tempfile import NamedTemporaryFile

import numpy as np

from relay.byoc.c.artifact import Header, machine_of, read
from relay.errors import InvalidArgument, Malformed
from relay.runtime.external import Native
from relay.runtime.memory import Array, Form, address, aligned_bytes


class Context(ctypes.Structure):
    """The structure `relay_context` of the C file."""

    _fields_ = [("busy", ctypes.c_int32), ("arena", ctypes.c_void_p), ("constants", ctypes.c_void_p)]


def load(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
) -> Native:
    """Load a function: the entry point `relay.byoc.runtime`. Several threads may call the function at once.

    Raises Malformed for bytes that are no artifact, InvalidArgument if this machine cannot run it.
    """
    where = f"external function {symbol}"
    header, code = read(artifact, where)
    check_machine(header, code, where)
    library = opened(code, where)
    try:
        function = getattr(library, header.symbol)
    except AttributeError:
        raise Malformed(where, f"the code has no function {header.symbol}", "build the module again") from None
    for name in header.constants:
        if name not in params:
            raise InvalidArgument(f"params['{name}']", f"is missing; {where} needs it")
    constants = [np.require(params[name], requirements=["C", "A"]) for name in header.constants]
    table = (ctypes.c_void_p * max(len(constants), 1))(*map(address, constants))
    arena = aligned_bytes(header.arena)
    context = Context(0, address(arena), ctypes.addressof(table))
    keep = library, constants, table, arena, context
    start = ctypes.cast(function, ctypes.c_void_p).value or 0
    return Native(start, ctypes.addressof(context), keep, alignment=1)


def check_machine(header: Header, code: bytes, where: str) -> None:
    """Raise InvalidArgument if the code is for another architecture, or for CPU features that this machine lacks."""
    with open("/proc/self/exe", "rb") as process:
        here = machine_of(process.read(20))
    if machine_of(code) != here:
        raise InvalidArgument(where, f"is code for {machine_of(code)}; this process runs on {here}")
    if header.features:
        import llvmlite.binding as llvm

        here = {name for name, there in llvm.get_host_cpu_features().items() if there}
        if missing := sorted({*header.features} - here):
            raise InvalidArgument(where, f"needs CPU features that are not here: {', '.join(missing)}")


def opened(code: bytes, where: str) -> ctypes.CDLL:
    """Load the shared object into this process, where it stays until the process ends. Raises Malformed."""
    with NamedTemporaryFile(prefix="relay-c-", suffix=".so") as file:
        file.write(code)
        file.flush()
        try:
            return ctypes.CDLL(file.name, os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise Malformed(where, f"the code cannot be loaded: {error}") from None
