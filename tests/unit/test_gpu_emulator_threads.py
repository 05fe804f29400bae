"""The emulator where threads wait for each other: barriers, shared memory, copies that land late, products."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.lowering.gpu.emulator import Emulator, KernelFault
from relay.lowering.gpu.emulator.machine import aligned


def pointer(name: str, size: int) -> str:
    return f"ptr addrspace(1) noalias nocapture align 16 dereferenceable({size}) %{name}"


def kernel(name: str, threads: int, parameters: list[str], body: str) -> str:
    head = f'define ptx_kernel void @{name}({", ".join(parameters)}) nounwind "nvvm.reqntid"="{threads}" {{'
    return f"""@shared = external addrspace(3) global [0 x i8], align 128
{head}
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
{body}
  ret void
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
"""


BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
REVERSE = f"""  %i = zext i32 %tid to i64
  %p = getelementptr inbounds i32, ptr addrspace(1) %x, i64 %i
  %v = load i32, ptr addrspace(1) %p, align 4 ; REVERSE
  %s = getelementptr inbounds i32, ptr addrspace(3) @shared, i64 %i
  store i32 %v, ptr addrspace(3) %s, align 4 ; REVERSE
{BARRIER}
  %j = sub i64 95, %i
  %t = getelementptr inbounds i32, ptr addrspace(3) @shared, i64 %j
  %w = load i32, ptr addrspace(3) %t, align 4 ; REVERSE
  store i32 %w, ptr addrspace(1) %p, align 4 ; REVERSE"""


emulated = cache(Emulator)
"""What one test compiled, others run."""


def reverse(body: str = REVERSE) -> Emulator:
    return emulated(kernel("reverse", 96, [pointer("x", 384)], body))


def numbers() -> Array:
    found = aligned(384)
    found.view(np.int32)[:] = np.arange(96)
    return found


def test_threads_exchange_through_shared_memory():
    x = numbers()
    reverse().launch("reverse", 1, 96, [x], 384)
    assert np.array_equal(x.view(np.int32), np.arange(96)[::-1])


def test_a_missing_barrier():
    emulator = reverse(REVERSE.replace(BARRIER, ""))
    what = r"kernel reverse: thread 0 of block 0 reads 4 bytes of shared memory at byte 380, which nothing has written"
    with pytest.raises(KernelFault, match=rf"{what} \(REVERSE\)"):
        emulator.launch("reverse", 1, 96, [numbers()], 384)


def test_too_little_shared_memory():
    with pytest.raises(KernelFault, match="thread 95 of block 0 writes 4 bytes at byte 380 of shared .* has 380"):
        reverse().launch("reverse", 1, 96, [numbers()], 380)


@pytest.mark.slow
def test_shared_memory_is_that_of_one_block():
    """What a block wrote, the next has not."""
    late = REVERSE.replace("store i32 %v, ptr addrspace(3)", "store i32 %v, ptr addrspace(3)", 1)
    skipping = late.replace(
        "  %s = getelementptr",
        "  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n  %z = icmp eq i32 %b, 0\n"
        "  br i1 %z, label %first, label %others\nfirst:\n  %s = getelementptr",
    ).replace(BARRIER, f"  br label %others\nothers:\n{BARRIER}")
    with pytest.raises(KernelFault, match="thread 0 of block 1 reads 4 bytes of shared memory"):
        reverse(skipping).launch("reverse", 2, 96, [numbers()], 384)


@pytest.mark.parametrize("threads, last", [("%tid, 3", 3), ("%tid, 64", 64)])
def test_a_barrier_that_not_all_reach(threads: str, last: int):
    body = f"""  %few = icmp ult i32 {threads}
  br i1 %few, label %wait, label %end
wait:
{BARRIER}
  br label %end
end:"""
    with pytest.raises(KernelFault, match=f"thread {last} of block 0 waits at another place .*: the end of the kernel"):
        reverse(body).launch("reverse", 1, 96, [numbers()], 384)


def test_two_barriers_that_are_not_the_same():
    body = f"""  %few = icmp ult i32 %tid, 5
  br i1 %few, label %here, label %there
here:
{BARRIER}
  br label %end
there:
{BARRIER}
  br label %end
end:"""
    with pytest.raises(KernelFault, match="thread 5 of block 0 waits at another place .*: kernel reverse: call"):
        reverse(body).launch("reverse", 1, 96, [numbers()], 384)


COPY = "  call void @llvm.nvvm.cp.async.cg.shared.global.16"
WAIT = "  call void @llvm.nvvm.cp.async.wait.group(i32 0)"
LDMATRIX = "@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
WORDS = "{ i32, i32, i32, i32 }"


def product(kind: str = "s8") -> str:
    """C[16, 8] = A[16, 32] B[8, 32]^T by one warp."""
    lines = [
        "%chunk = shl i32 %tid, 4",
        "%a = getelementptr inbounds i8, ptr addrspace(1) %A, i32 %chunk",
        "%sa = getelementptr inbounds i8, ptr addrspace(3) @shared, i32 %chunk",
        f"{COPY.strip()}(ptr addrspace(3) %sa, ptr addrspace(1) %a)",
        "call void @llvm.nvvm.cp.async.commit.group()",
        "%half = icmp ult i32 %tid, 16",
        "%size = select i1 %half, i32 16, i32 0",
        "%b = getelementptr inbounds i8, ptr addrspace(1) %B, i32 %chunk",
        "%behind = add i32 %chunk, 512",
        "%sb = getelementptr inbounds i8, ptr addrspace(3) @shared, i32 %behind",
        f"{COPY.strip()}.s(ptr addrspace(3) %sb, ptr addrspace(1) %b, i32 %size)",
        "call void @llvm.nvvm.cp.async.commit.group()",
        WAIT.strip(),
        BARRIER.strip(),
        "%row = and i32 %tid, 15",
        "%k = lshr i32 %tid, 4",
        "%row32 = shl i32 %row, 5",
        "%k16 = shl i32 %k, 4",
        "%ao = add i32 %row32, %k16",
        "%ap = getelementptr inbounds i8, ptr addrspace(3) @shared, i32 %ao",
        f"%am = call {WORDS} {LDMATRIX}(ptr addrspace(3) %ap)",
        "%n = and i32 %tid, 7",
        "%n32 = shl i32 %n, 5",
        "%kb = lshr i32 %tid, 3",
        "%kb1 = and i32 %kb, 1",
        "%kb16 = shl i32 %kb1, 4",
        "%bo = add i32 %n32, %kb16",
        "%bo512 = add i32 %bo, 512",
        "%bp = getelementptr inbounds i8, ptr addrspace(3) @shared, i32 %bo512",
        f"%bm = call {WORDS} {LDMATRIX}(ptr addrspace(3) %bp)",
        *(f"%a{n} = extractvalue {WORDS} %am, {n}" for n in range(4)),
        *(f"%b{n} = extractvalue {WORDS} %bm, {n}" for n in range(2)),
        f"%c = call {WORDS} @llvm.nvvm.mma.m16n8k32.row.col.{kind}(i32 %a0, i32 %a1, i32 %a2, i32 %a3, "
        "i32 %b0, i32 %b1, i32 7, i32 7, i32 7, i32 7)",
        "%g = lshr i32 %tid, 2",
        "%t = and i32 %tid, 3",
        "%g8 = shl i32 %g, 3",
        "%t2 = shl i32 %t, 1",
        "%place = add i32 %g8, %t2",
    ]
    for n in range(4):
        offset = n % 2 + 64 * (n // 2)
        lines += [
            f"%c{n} = extractvalue {WORDS} %c, {n}",
            f"%o{n} = add i32 %place, {offset}",
            f"%p{n} = getelementptr inbounds i32, ptr addrspace(1) %C, i32 %o{n}",
            f"store i32 %c{n}, ptr addrspace(1) %p{n}, align 4",
        ]
    body = "\n".join(f"  {line}" for line in lines)
    return kernel("product", 32, [pointer("A", 512), pointer("B", 256), pointer("C", 512)], body)


def run_product(text: str, kind: str = "s8") -> tuple[Array, Array]:
    """What the kernel computes, and what it should."""
    rng = np.random.default_rng(3)
    left, _, right = kind.partition(".")
    dtypes = {"s8": np.int8, "u8": np.uint8}
    a, b, c = aligned(512), aligned(256), aligned(512)
    a[:], b[:] = rng.integers(0, 256, 512), rng.integers(0, 256, 256)
    emulated(text).launch("product", 1, 32, [a, b, c], 1024)
    x = a.view(dtypes[left]).reshape(16, 32).astype(np.int32)
    y = b.view(dtypes[right or left]).reshape(8, 32).astype(np.int32)
    return c.view(np.int32).reshape(16, 8), x @ y.T + 7


@pytest.mark.parametrize("kind", ["s8", *(pytest.param(k, marks=pytest.mark.slow) for k in ("u8", "s8.u8", "u8.s8"))])
def test_a_warp_multiplies(kind: str):
    found, wanted = run_product(product(kind), kind)
    assert np.array_equal(found, wanted)


def test_copies_land_when_they_are_waited_for():
    with pytest.raises(KernelFault, match="thread 0 of block 0 reads 16 bytes of shared memory at byte 0, which"):
        run_product(product().replace(WAIT, ""))


@pytest.mark.slow
def test_groups_of_copies_land_in_their_order():
    with pytest.raises(KernelFault, match="reads 16 bytes of shared memory at byte 512, which nothing has written"):
        run_product(product().replace("wait.group(i32 0)", "wait.group(i32 1)"))


def test_a_copy_beyond_the_end_of_a_buffer():
    with pytest.raises(KernelFault, match="thread 16 of block 0 copies from bytes at byte 256 of %B, which has 256"):
        run_product(product().replace("i32 16, i32 0", "i32 16, i32 16"))


def test_lanes_that_are_exchanged_are_seen():
    found, wanted = run_product(product().replace("i32 %a1, i32 %a2", "i32 %a2, i32 %a1"))
    assert not np.array_equal(found, wanted)


@pytest.mark.slow
def test_lanes_must_multiply_together():
    text = product().replace(
        "  %am = call",
        "  %low = icmp ult i32 %tid, 8\n  br i1 %low, label %one, label %two\none:\n"
        "  br label %two\ntwo:\n  %am = call",
    )
    apart = text.replace("one:\n", f"one:\n{BARRIER}\n")
    with pytest.raises(KernelFault, match="thread 8 of block 0 waits at another place .*ldmatrix"):
        run_product(apart)


SHUFFLE = """  %a = mul i32 %tid, 10
  %o = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %a, i32 5, i32 31)"""
STORE_O = """  %i = zext i32 %tid to i64
  %p = getelementptr inbounds i32, ptr addrspace(1) %x, i64 %i
  store i32 %o, ptr addrspace(1) %p, align 4 ; SWAP"""


def test_lanes_read_each_others_numbers():
    text = kernel("swap", 64, [pointer("x", 256)], f"{SHUFFLE}\n{STORE_O}")
    x = aligned(256)
    Emulator(text).launch("swap", 1, 64, [x])
    assert np.array_equal(x.view(np.int32), (np.arange(64) ^ 5) * 10)


def test_a_shuffle_that_a_lane_skips_is_seen():
    body = f"""  %few = icmp ult i32 %tid, 40
  br i1 %few, label %some, label %rest
some:
{SHUFFLE}
{STORE_O}
  br label %rest
rest:"""
    with pytest.raises(KernelFault, match="waits at another place"):
        Emulator(kernel("swap", 64, [pointer("x", 256)], body)).launch("swap", 1, 64, [aligned(256)])
