"""`Emulator`: kernels compiled for the host, one launch after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import llvmlite.binding as llvm
import numpy as np

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.lowering.codegen import compile_text
from relay.lowering.gpu.emulator.faults import KernelFault
from relay.lowering.gpu.emulator.text import symbol, translate
from relay.lowering.targets import host

EFFORT = 2
"""LLVM's optimization level."""
LAUNCHER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
REPORT = 128
"""Bytes: which access, its offset, the thread; then room for what a wrong access reads or writes."""


class Emulator:
    """Runs kernels from their LLVM IR text. `checked`: every access must be in its buffer, and aligned."""

    def __init__(self, text: str, checked: bool = True):
        self.translation = translate(text, checked)
        code = compile_text(self.translation.text, host(), EFFORT).code
        self.compiler = llvm.create_lljit_compiler()
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for kernel in self.translation.kernels:
            builder.export_symbol(symbol(kernel))
        self.library = builder.link(self.compiler, "kernels")

    def launch(self, kernel: str, blocks: int, threads: int, buffers: Sequence[Array]) -> None:
        """Run all threads of a launch; buffers are arrays of bytes that start at multiples of 64.

        Raises KernelFault for an access that is wrong, InvalidArgument for a launch that is.
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
        table = (ctypes.c_uint64 * max(len(buffers), 1))(*(buffer.ctypes.data for buffer in buffers))
        report = np.zeros(REPORT // 8, np.int64)
        function = LAUNCHER(self.library[symbol(kernel)])
        function(ctypes.addressof(table), blocks, report.ctypes.data)
        if report[0]:
            access = self.translation.accesses[int(report[0]) - 1]
            block, thread = divmod(int(report[2]), threads)
            what = f"thread {thread} of block {block} {access.what} at byte {int(report[1])} of {access.buffer}"
            raise KernelFault(f"kernel {kernel}", f"{what}, which has {access.size} ({access.source})")
