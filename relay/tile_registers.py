"""Linux's permission to use the tile registers of x86 processors (AMX), which each process has to request first.

Source: Linux, Documentation/arch/x86/xstate.rst and arch/x86/include/uapi/asm/prctl.h.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache

ARCH_PRCTL, REQUEST, TILE_DATA = 158, 0x1023, 18
"""The number of the system call on x86-64, its operation (`ARCH_REQ_XCOMP_PERM`), and the number of the requested
state."""


@cache
def granted() -> bool:
    """Request the permission once; it then holds for all threads and forked processes. Returns False if it is refused,
    the system does not know it, or the processor has no tile registers."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(*map(ctypes.c_long, (ARCH_PRCTL, REQUEST, TILE_DATA))) == 0
