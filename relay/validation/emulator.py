"""Run code of another machine with qemu's user mode. The program is the artifact's shared object with a few added
instructions, which map the memory shared with this process, and then run the entry point whenever a byte arrives on
stdin.

This works for code that needs neither libraries nor relocations; other code is not run.
"""

from __future__ import annotations

import mmap
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from relay.runtime.memory import ALIGNMENT, Array

BASE = 1 << 33
"""The address at which the emulated process maps the memory that it shares with this process, which holds the tensors
of a call."""
PAGE = 1 << 16
HEADER = struct.Struct("<IIQQQQQQ")
"""The header of an ELF segment: type, flags, offset, virtual and physical address, size in the file and in memory,
alignment."""
LOAD, DYNAMIC, STACK = 1, 2, 0x6474E551
NEEDED, RELA, REL, RELR, JMPREL = 1, 7, 17, 36, 23
MMAP, READ, WRITE, EXIT = 222, 63, 64, 93
"""The numbers of Linux system calls on AArch64."""


def is_emulated(triple: str) -> bool:
    """Whether `relay certify` can run code for a target triple under an emulator on this machine, provided that the
    emulator is installed."""
    return triple.startswith("aarch64-") and "linux" in triple and sys.platform == "linux"


def emulator_of(triple: str) -> str | None:
    """The path of the emulator that runs code for a triple; None if none is installed or the triple is not
    supported."""
    if not is_emulated(triple):
        return None
    return shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")


class SharedMemory:
    """Arrays in memory shared with the emulated process, and a table of their addresses in that process."""

    def __init__(self, sizes: Sequence[int]):
        starts, at = list[int](), PAGE
        for size in sizes:
            starts.append(at)
            at += -(-size // ALIGNMENT) * ALIGNMENT
        self.size = -(-at // PAGE) * PAGE
        self.file = os.memfd_create("relay-emulated")
        os.ftruncate(self.file, self.size)
        whole = np.frombuffer(mmap.mmap(self.file, self.size), np.uint8)
        self.arrays: list[Array] = [whole[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        table = np.array([*(BASE + start for start in starts), 0], np.uint64)
        whole[ALIGNMENT : ALIGNMENT + table.nbytes] = table.view(np.uint8)


def put(register: int, value: int) -> list[int]:
    """The AArch64 instructions, as 32-bit words, that load the 64-bit constant `value` into general register number
    `register`."""
    parts = [(value >> 16 * n & 0xFFFF, n) for n in range(4)]
    words = [0xF2800000 | n << 21 | part << 5 | register for part, n in parts if part and n]
    return [0xD2800000 | (value & 0xFFFF) << 5 | register, *words]


def system(call: int, *arguments: int) -> list[int]:
    """The AArch64 instructions, as 32-bit words, of the system call number `call` with constant arguments."""
    words = [word for register, value in enumerate(arguments) for word in put(register, value)]
    return [*words, *put(8, call), 0xD4000001]


def program(code: bytes, entry: int, memory: SharedMemory) -> bytes | None:
    """The shared object with start code added, in a segment that replaces its GNU_STACK program header. None if it has
    no such header, or needs a dynamic loader."""
    (table,), (size, count) = struct.unpack_from("<Q", code, 32), struct.unpack_from("<HH", code, 54)
    rows = [HEADER.unpack_from(code, table + number * size) for number in range(count)]
    free = [number for number, row in enumerate(rows) if row[0] == STACK]
    for row in rows:
        if row[0] == DYNAMIC:
            tags = {struct.unpack_from("<Q", code, row[2] + at)[0] for at in range(0, row[5], 16)}
            if tags & {NEEDED, RELA, REL, RELR, JMPREL}:
                return None
    if not free:
        return None
    address = -(-max(row[3] + row[6] for row in rows if row[0] == LOAD) // PAGE) * PAGE
    begin = system(MMAP, BASE, memory.size, 3, mmap.MAP_SHARED | 0x10, memory.file, 0)
    loop = [*system(READ, 0, BASE, 1), 0xF100041F]  # compare the number of bytes read with 1
    call = put(0, BASE + ALIGNMENT)
    after = system(WRITE, 1, BASE, 1)
    done = len(call) + 1 + len(after) + 1
    words = [*begin, *loop, 0x54000001 | (done + 1) << 5, *call]
    words.append(0x94000000 | (entry - address) // 4 - len(words) & 0x3FFFFFF)
    words += after
    words.append(0x14000000 | len(begin) - len(words) & 0x3FFFFFF)
    words += system(EXIT, 0)
    start = struct.pack(f"<{len(words)}I", *words)
    image = bytearray(code) + bytes(-len(code) % PAGE)
    HEADER.pack_into(image, table + free[0] * size, LOAD, 5, len(image), address, address, len(start), len(start), PAGE)
    struct.pack_into("<Q", image, 24, address)
    return bytes(image) + start


class Process:
    """A program under an emulator, which runs its entry point whenever the object is called."""

    def __init__(self, emulator: str, image: bytes, memory: SharedMemory, seconds: int):
        self.seconds = seconds
        self.file = os.memfd_create("relay-program")
        os.write(self.file, image)
        path = f"/proc/{os.getpid()}/fd/{self.file}"
        self.process = subprocess.Popen(
            [emulator, "-cpu", "max", path],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[memory.file],
        )

    def __call__(self) -> None:
        """Run the entry point. If the code crashes or exceeds its time, this process ends by the same signal, as if the
        code had run in it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        ended = signal.SIGALRM
        try:
            self.process.stdin.write(b"\1")
            if select.select([self.process.stdout], [], [], self.seconds)[0]:
                if self.process.stdout.read(1):
                    return
                ended = signal.Signals(abs(self.process.wait()) & 127 or signal.SIGSEGV)
        except BrokenPipeError:
            ended = signal.SIGSEGV
        self.process.kill()
        signal.signal(ended, signal.SIG_DFL)
        os.kill(os.getpid(), ended)

    def close(self) -> None:
        """End the emulated process."""
        self.process.kill()
        self.process.wait()
        os.close(self.file)
