"""Linux's permission to use the tile registers of x86 processors (AMX), for which each process has to ask first.

Source: Linux, Documentation/arch/x86/xstate.rst and arch/x86/include/uapi/asm/prctl.h.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache

ARCH_PRCTL, REQUEST, TILE_DATA = 158, 0x1023, 18
"""The number of the system call on x86-64, what it is asked (`ARCH_REQ_XCOMP_PERM`), and for which state."""


@cache
def granted() -> bool:
    """Ask, once: all threads, and what `fork` makes of the process, have it then. False where it is refused, the
    system does not know of it, or the processor has no such registers."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(*map(ctypes.c_long, (ARCH_PRCTL, REQUEST, TILE_DATA))) == 0
