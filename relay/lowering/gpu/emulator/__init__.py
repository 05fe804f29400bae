"""Kernels of a GPU on the CPU: the same LLVM IR that becomes PTX, with every access to memory checked.

`Emulator(text)` takes what `executable.get_source("ll")` gives for `target="cuda"`; `run_model` runs all launches of a
model. Wrong accesses raise `KernelFault`, which names the kernel, the thread, and the operator that the access is of.
"""

from __future__ import annotations

from relay.lowering.gpu.emulator.faults import KernelFault
from relay.lowering.gpu.emulator.machine import Emulator
from relay.lowering.gpu.emulator.model import run_model

__all__ = ["Emulator", "KernelFault", "run_model"]
