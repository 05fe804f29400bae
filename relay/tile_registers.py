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
    """Request Linux's permission to use tile registers (AMX) for this process, and return whether it was granted. It
    then holds for all threads and forked processes. Later calls return the first result without a request."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(*map(ctypes.c_long, (ARCH_PRCTL, REQUEST, TILE_DATA))) == 0
