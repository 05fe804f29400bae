"""The class `Emulator` compiles kernels for the host and executes one launch after the other; `run_model` executes a
whole model on it: upload, all launches, download."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.codegen import compile_text
from relay.lowering.gpu.emulator.bulk import Mapped
from relay.lowering.gpu.emulator.faults import KernelFault
from relay.lowering.gpu.emulator.text import symbol, translate
from relay.lowering.gpu.emulator.threads import work_of
from relay.lowering.gpu.emulator.warp import HEARD
from relay.lowering.gpu.emulator.warpgroups import Warpgroups
from relay.lowering.gpu.tensor_maps import MAP_BYTES
from relay.target import host

LAUNCHER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
LISTENER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
ALIGNMENT = 1024
APART = -(1 << 62)
"""The value of a report's first number if the fault is that threads which should wait together wait at different
instructions."""
REPORT = 128
"""The size in bytes of the report that emulated code writes on a fault such as an invalid memory access: the number of
the access in the code, its offset, the thread and the block. The rest is memory that invalid accesses use instead."""


class Emulator:
    """Executes kernels from their LLVM IR text. `checked`: every access must be in its buffer, and aligned; this is
    always checked in kernels with groups of warps, whose products depend on which shared memory was written. `level`:
    LLVM's optimization level; at level 0, kernels compile in a quarter of the time of level 2. Kernels with groups of
    warps always use level 0: they have many registers, so LLVM would take longer to optimize them than they run, since
    their products are interpreted."""

    def __init__(self, text: str, checked: bool = True, level: int = 0):
        self.translation = translate(text, checked)
        grouped = any(kernel.places for kernel in self.translation.kernels.values())
        code = compile_text(self.translation.text, host(), 0 if grouped else level).code
        llvm.initialize_native_target()  # cached code may come from another process
        llvm.initialize_native_asmprinter()
        self.compiler = llvm.create_lljit_compiler()
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for kernel in self.translation.kernels:
            builder.export_symbol(symbol(kernel))
        self.library = builder.link(self.compiler, "kernels")

    def launch(
        self,
        kernel: str,
        blocks: int,
        threads: int,
        buffers: Sequence[Array],
        shared: int = 0,
        maps: Mapping[int, Mapped] | None = None,
    ) -> None:
        """Execute all threads of a launch; buffers are arrays of bytes aligned to 64, `shared` the bytes of each
        block's shared memory. `maps`: for those of `buffers` that are tensor maps, the matrices that they
        describe, by the buffer's index.

        Raises KernelFault for a wrong access, for threads that wait at different places, and for reading shared memory
        before it is written; InvalidArgument for an unknown kernel.
        """
        known = self.translation.kernels.get(kernel)
        if known is None:
            raise InvalidArgument(
                f"kernel {kernel}", "is not there", f"there are {', '.join(self.translation.kernels)}"
            )
        if threads != known.threads:
            raise KernelFault(f"kernel {kernel}", f"is launched in blocks of {threads}; it is for {known.threads}")
        if len(buffers) != len(known.parameters):
            raise KernelFault(f"kernel {kernel}", f"is given {len(buffers)} buffers; it takes {len(known.parameters)}")
        for (name, size), buffer in zip(known.parameters, buffers, strict=True):
            if buffer.nbytes < size:
                raise KernelFault(f"kernel {kernel}", f"is given {buffer.nbytes} bytes for {name}, which has {size}")
        work = [aligned(size) for size in work_of(threads, shared)] if known.together else []
        report = np.zeros(REPORT // 8, np.int64)
        function = LAUNCHER(self.library[symbol(kernel)])
        mapped = {buffers[number].ctypes.data: matrix for number, matrix in (maps or {}).items()}
        groups = Warpgroups(work, known.places, threads, shared, mapped) if known.places else None
        listener = LISTENER(groups.notify) if groups is not None else LISTENER()
        with_work = table(work, ctypes.cast(listener, ctypes.c_void_p).value or 0)
        given = table(buffers)
        function(ctypes.addressof(given), blocks, report.ctypes.data, ctypes.addressof(with_work), shared)
        if report[0]:
            error = None if groups is None else groups.error
            raise KernelFault(f"kernel {kernel}", self.explain(report, shared, error)) from error

    def explain(self, report: Array, shared: int, error: Exception | None) -> str:
        """Return the message for the fault that a report describes. `shared`: the bytes of shared memory; `error`: the
        fault of a group of warps, if there is one."""
        number, detail, thread, block = (int(word) for word in report[:4])
        where = f"thread {thread} of block {block}"
        if number == HEARD:
            return f"{where}: {error}"
        if number == APART:
            site = self.translation.sites[detail - 1] if detail else "the end of the kernel"
            return f"{where} waits at another place than the threads before it: {site}"
        access = self.translation.accesses[abs(number) - 1]
        source = f" ({access.source})" if access.source else ""
        if number < 0:
            return f"{where} {access.what} of shared memory at byte {detail}, which nothing has written{source}"
        if access.size is None:
            return f"{where} {access.what} at byte {detail} of shared memory, which has {shared}{source}"
        return f"{where} {access.what} at byte {detail} of {access.buffer}, which has {access.size}{source}"


def table(arrays: Sequence[Array], *more: int) -> ctypes.Array[ctypes.c_uint64]:
    """Return a C array of 64-bit words: the addresses of the arrays, followed by the further arguments."""
    return (ctypes.c_uint64 * max(len(arrays) + len(more), 1))(*(array.ctypes.data for array in arrays), *more)


def aligned(size: int) -> Array:
    """Return bytes as a driver allocates them: with arbitrary contents, aligned to 1,024."""
    raw = np.full(size + 2 * ALIGNMENT, 0xA5, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def memory_of(graph: Mapping[str, Any], params: Mapping[str, Array], inputs: Sequence[Array]) -> list[Array]:
    """Return the memory of each argument of @main: inputs, outputs, constants, arena."""
    found: list[Array] = []
    for value in inputs:
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        found.append(aligned(flat.size))
        found[-1][:] = flat
    for row in graph["outputs"]:
        found.append(aligned(prod(row["shape"]) * np.dtype(row["dtype"]).itemsize))
    constants = aligned(int(graph["constants_bytes"]))
    for row in graph["constants"]:
        flat = np.ascontiguousarray(params[row["name"]]).reshape(-1).view(np.uint8)
        constants[row["offset"] : row["offset"] + flat.size] = flat
    return [*found, constants, aligned(int(graph["device"]["arena_bytes"]))]


def run_model(
    graph: Mapping[str, Any], emulator: Emulator, params: Mapping[str, Array], inputs: Sequence[Array]
) -> list[Array]:
    """Return the outputs of a model that was built for a GPU, from its graph, kernels and constants. States are inputs,
    too. Raises Unsupported if the host has work between launches."""
    if "steps" in graph["device"]:
        raise Unsupported("run_model", "the host decides, or calls functions, between the model's launches")
    memory = memory_of(graph, params, inputs)
    for row in graph["device"]["launches"]:
        buffers: list[Array] = [memory[slot][offset:] for slot, offset in row["arguments"]]
        maps = {int(map["argument"]): Mapped(buffers[int(map["argument"])], map) for map in row.get("maps", ())}
        for number in maps:
            buffers[number] = aligned(MAP_BYTES)
        emulator.launch(row["kernel"], row["grid"][0], row["block"][0], buffers, row["shared"], maps)
    first = len(inputs)
    return [
        memory[first + number].view(row["dtype"]).reshape(row["shape"]).copy()
        for number, row in enumerate(graph["outputs"])
    ]
