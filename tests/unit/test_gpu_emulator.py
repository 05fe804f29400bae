"""The emulator: what a kernel does wrong is named with the kernel, the thread, and the source."""

from __future__ import annotations

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.gpu.emulator import Emulator, KernelFault
from relay.lowering.gpu.emulator.machine import aligned

COPY = """
define ptx_kernel void @copy(ptr addrspace(1) noalias nocapture align 16 dereferenceable(256) readonly %arg0, ptr addrspace(1) noalias nocapture align 16 dereferenceable(256) %arg1) nounwind "nvvm.reqntid"="64" {{
entry:
  %v1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %v2 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %v3 = mul i32 %v2, 32
  %v4 = add i32 %v3, %v1
  %v5 = sext i32 %v4 to i64
  %v6 = getelementptr inbounds i32, ptr addrspace(1) %arg0, i64 %v5
  %v7 = load {type}, ptr addrspace(1) %v6, align {align} ; operator 3 ADD
  %v8 = getelementptr inbounds i32, ptr addrspace(1) %arg1, i64 %v5
  store {type} %v7, ptr addrspace(1) %v8, align {align} ; operator 3 ADD
  ret void
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
"""  # noqa: E501


def buffers() -> list[Array]:
    given, taken = aligned(256), aligned(256)
    given.view(np.int32)[:] = np.arange(64)
    return [given, taken]


def test_runs_all_threads():
    emulator = Emulator(COPY.format(type="i32", align=4))
    given, taken = buffers()
    emulator.launch("copy", 1, 64, [given, taken])
    assert np.array_equal(given, taken)


def test_beyond_the_end_of_a_buffer():
    emulator = Emulator(COPY.format(type="i32", align=4))
    what = r"thread 32 of block 1 reads 4 bytes at byte 256 of %arg0, which has 256 \(operator 3 ADD\)"
    with pytest.raises(KernelFault, match=f"kernel copy: {what}"):
        emulator.launch("copy", 2, 64, buffers())


def test_the_last_element_is_too_wide():
    emulator = Emulator(COPY.format(type="<2 x i32>", align=4))
    with pytest.raises(KernelFault, match="thread 63 of block 0 reads 8 bytes at byte 252"):
        emulator.launch("copy", 1, 64, buffers())


def test_not_aligned_as_it_says():
    emulator = Emulator(COPY.format(type="i32", align=8))
    with pytest.raises(KernelFault, match="thread 1 of block 0 reads 4 bytes at byte 4"):
        emulator.launch("copy", 1, 64, buffers())


def test_a_wrong_access_touches_nothing():
    emulator = Emulator(COPY.format(type="i32", align=4))
    whole = aligned(512)
    with pytest.raises(KernelFault):
        emulator.launch("copy", 2, 64, [buffers()[0], whole[:256]])
    assert np.all(whole[256:] == 0xA5)


def test_launches_that_are_wrong():
    emulator = Emulator(COPY.format(type="i32", align=4))
    given, taken = buffers()
    with pytest.raises(InvalidArgument, match="kernel other: is not there; there are copy"):
        emulator.launch("other", 1, 64, [given, taken])
    with pytest.raises(KernelFault, match="kernel copy: is launched in blocks of 32; it is for 64"):
        emulator.launch("copy", 1, 32, [given, taken])
    with pytest.raises(KernelFault, match="kernel copy: is given 1 buffers; it takes 2"):
        emulator.launch("copy", 1, 64, [given])
    with pytest.raises(KernelFault, match="kernel copy: is given 128 bytes for %arg1, which has 256"):
        emulator.launch("copy", 1, 64, [given, taken[:128]])


@pytest.mark.parametrize(
    "line", ["%v9 = call i32 @llvm.nvvm.read.ptx.sreg.laneid()", "call void @llvm.nvvm.unheard.of()"]
)
def test_what_it_does_not_know(line: str):
    text = COPY.format(type="i32", align=4).replace("  ret void", f"  {line}\n  ret void")
    with pytest.raises(Unsupported, match="emulator: copy: has .*(unheard|laneid).*, which is not known"):
        Emulator(text)
