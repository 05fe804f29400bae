"""The emulator where groups of four warps multiply: sums, and what a device would not forgive."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.lowering.gpu.emulator import Emulator, KernelFault
from relay.lowering.gpu.emulator.machine import aligned
from tests.unit.test_gpu_emulator_threads import BARRIER, kernel, pointer

ROWS, COLUMNS, LINE = 64, 8, 128
LAYOUT = 1 << 62 | 64 << 32
"""128-byte swizzle, 1,024 bytes from eight rows to the next."""
LEFT, RIGHT = ROWS * LINE, COLUMNS * LINE
VISIBLE = '  call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()'
COPIED = "  call void @llvm.nvvm.cp.async.wait.group(i32 0)"
MULTIPLY = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {$0, $1, $2, $3}, $4, $5, 1;"
SUMS = "{ i32, i32, i32, i32 }"
COPY = (
    "  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %target{n}, ptr addrspace(1) %source{n})\n"
    "  call void @llvm.nvvm.cp.async.commit.group()"
)


def copies() -> str:
    """Five for each thread, as shared memory has it; two threads each copy the same for the last."""
    lines = ["  %low = and i64 %mine, 1008"]
    for n in range(5):
        lines.append(f"  %at{n} = add i64 {'%mine' if n < 4 else '%low'}, {2048 * n}")
        lines.append(f"  %source{n} = getelementptr inbounds i8, ptr addrspace(1) %x, i64 %at{n}")
        lines.append(f"  %target{n} = getelementptr inbounds i8, ptr addrspace(3) @shared, i64 %at{n}")
        lines.append(COPY.format(n=n))
    return "\n".join(lines)


BODY = f"""  %t = zext i32 %tid to i64
  %mine = mul i64 %t, 16
{copies()}
{COPIED}
{VISIBLE}
{BARRIER}
  %start = ptrtoint ptr addrspace(3) @shared to i64
  %first = lshr i64 %start, 4
  %left = add i64 %first, {LAYOUT}
  %right = add i64 %left, {LEFT // 16}
  %q = call {SUMS} asm sideeffect "wgmma.fence.sync.aligned; {MULTIPLY} wgmma.commit_group.sync.aligned;", \
"=r,=r,=r,=r,l,l,0,1,2,3,~{{memory}}"(i64 %left, i64 %right, i32 0, i32 0, i32 0, i32 %tid)
  %q0 = extractvalue {SUMS} %q, 0
  %q1 = extractvalue {SUMS} %q, 1
  %q2 = extractvalue {SUMS} %q, 2
  %q3 = extractvalue {SUMS} %q, 3
  %r = call {SUMS} asm sideeffect "wgmma.wait_group.sync.aligned 0;", \
"=r,=r,=r,=r,0,1,2,3,~{{memory}}"(i32 %q0, i32 %q1, i32 %q2, i32 %q3)
  %r0 = extractvalue {SUMS} %r, 0
  %r1 = extractvalue {SUMS} %r, 1
  %r2 = extractvalue {SUMS} %r, 2
  %r3 = extractvalue {SUMS} %r, 3
  %o = getelementptr inbounds i8, ptr addrspace(1) %y, i64 %mine
  %v0 = insertelement <4 x i32> poison, i32 %r0, i64 0
  %v1 = insertelement <4 x i32> %v0, i32 %r1, i64 1
  %v2 = insertelement <4 x i32> %v1, i32 %r2, i64 2
  %v3 = insertelement <4 x i32> %v2, i32 %r3, i64 3
  store <4 x i32> %v3, ptr addrspace(1) %o, align 16 ; STORE"""


@cache
def emulated(old: str = "", new: str = "") -> Emulator:
    assert old in BODY
    body = BODY.replace(old, new, 1) if old else BODY
    return Emulator(kernel("groups", 128, [pointer("x", LEFT + RIGHT), pointer("y", 2048)], body))


def swizzled(rows: Array) -> Array:
    """Rows of 128 bytes as matrix units read them: of row r, chunk c of 16 bytes is at c xor (r mod 8)."""
    found = np.empty_like(rows)
    for r, row in enumerate(rows):
        for c in range(8):
            at = 16 * (c ^ r % 8)
            found[r, at : at + 16] = row[16 * c : 16 * c + 16]
    return found


def launch(emulator: Emulator) -> tuple[Array, Array, Array]:
    """Both factors and the words of all threads."""
    rng = np.random.default_rng(5)
    left, right = (rng.integers(0, 256, (rows, LINE), np.uint8) for rows in (ROWS, COLUMNS))
    given, found = aligned(LEFT + RIGHT), aligned(2048)
    given[:LEFT], given[LEFT:] = swizzled(left).reshape(-1), swizzled(right).reshape(-1)
    emulator.launch("groups", 1, 128, [given, found], LEFT + RIGHT)
    return left, right, found.view(np.int32).reshape(128, 4)


def test_sums_are_of_the_lanes_that_the_layout_says():
    left, right, found = launch(emulated())
    wanted = left[:, :32].view(np.int8).astype(np.int64) @ right[:, :32].astype(np.int64).T
    for thread in range(128):
        row, column = 16 * (thread // 32) + thread % 32 // 4, 2 * (thread % 4)
        for number in range(4):
            start = thread if number == 3 else 0
            assert found[thread, number] == wanted[row + 8 * (number // 2), column + number % 2] + start


def test_a_descriptor_starts_within_a_row():
    """The next 32 codes of each row are 32 bytes further on, and yet at other chunks of each."""
    left, right, found = launch(emulated(f"{LAYOUT}", f"{LAYOUT + 2}"))
    wanted = left[:, 32:64].view(np.int8).astype(np.int64) @ right[:, 32:64].astype(np.int64).T
    assert found[9, 0] == wanted[2, 2]


AGAIN = COPY.format(n=0)
STORE = "  store i32 0, ptr addrspace(3) %target0, align 4 ; EARLY"
WAIT = f"  %r = call {SUMS} asm"
FAULTS = {
    "no fence for registers": ("wgmma.fence.sync.aligned; ", "", "started without wgmma.fence"),
    "no fence for memory": (VISIBLE, "", "wrote without fence.proxy.async.shared::cta and a barrier since"),
    "no barrier": (
        f"{BARRIER}\n  %start",
        "  %start",
        "wrote without fence.proxy.async.shared::cta and a barrier since",
    ),
    "fence behind the barrier": (f"{VISIBLE}\n{BARRIER}", f"{BARRIER}\n{VISIBLE}", "and a barrier since"),
    "no wait for copies": (COPIED, "", "byte 0, which nothing has written"),
    "no commit": (" wgmma.commit_group.sync.aligned;", "", "ends with products under way"),
    "a store too early": (WAIT, f"{STORE}\n{WAIT}", "overwritten while products under way read it"),
    "a copy too early": (WAIT, f"{AGAIN}\n{WAIT}", "overwritten while products under way read it"),
    "another layout": (f"{LAYOUT}", f"{LAYOUT ^ 1 << 62}", "a layout that is not swizzled rows"),
    "a crooked start": (f"{LAYOUT}", f"{LAYOUT + 8}", "no multiple of 1024"),
    "beyond the end": (f"add i64 %left, {LEFT // 16}", f"add i64 %left, {LEFT // 16 + 64}", "which has 9216"),
    "not one descriptor": (f"add i64 %left, {LEFT // 16}", "add i64 %left, %t", "have different descriptors"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults_are_seen(what: str):
    old, new, message = FAULTS[what]
    with pytest.raises(KernelFault, match=message):
        launch(emulated(old, new))


@pytest.mark.parametrize("wait", ["wgmma.wait_group.sync.aligned 1;", "wgmma.commit_group.sync.aligned;"])
def test_registers_under_way_are_not_used(wait: str):
    with pytest.raises(KernelFault, match="uses a register that products under way change: .* insertelement"):
        emulated("wgmma.wait_group.sync.aligned 0;", wait)


def test_what_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="wgmma.mma_async.sync.aligned.m64n16k32"):
        emulated("m64n8k32", "m64n16k32")
