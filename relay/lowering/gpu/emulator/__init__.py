"""An emulator of GPU kernels on the CPU: it executes the same LLVM IR that becomes PTX, and checks every memory access.

`Emulator(text)` takes the text that `executable.get_source("ll")` returns for `target="cuda"`; `run_model` executes all
launches of a model. Wrong accesses raise `KernelFault`, which names the kernel, the thread, and the operator of the
access.
"""

from __future__ import annotations

from relay.lowering.gpu.emulator.faults import KernelFault
from relay.lowering.gpu.emulator.machine import Emulator, run_model

__all__ = ["Emulator", "KernelFault", "run_model"]
