"""Kernels written by hand: how threads part and meet, and what they must not do."""

from __future__ import annotations

import numpy as np
import pytest

from relay.dialects.attributes import Array
from tests.ptx.interpreter import Interpreter
from tests.ptx.memory import Fault, GlobalMemory
from tests.ptx.parser import PtxError

HEAD = """
.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 shared[];
.visible .entry k(
	.param .u64 .ptr .global .align 16 k_param_0,
	.param .u64 .ptr .global .align 16 k_param_1
)
.reqntid 64
{
	.reg .pred %p<9>;
	.reg .b32 %r<99>;
	.reg .b64 %rd<99>;
	ld.param.b64 %rd1, [k_param_0];
	ld.param.b64 %rd2, [k_param_1];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mad.lo.s32 %r3, %r2, 64, %r1;
	mul.wide.u32 %rd3, %r3, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	mul.wide.u32 %rd6, %r1, 4;
	mov.b64 %rd7, shared;
	add.s64 %rd8, %rd7, %rd6;
	xor.b64 %rd9, %rd6, 128;
	add.s64 %rd10, %rd7, %rd9;
"""


def run(body: str, blocks: int = 3) -> Array:
    """What a kernel makes of the numbers from 0 on, one for each thread."""
    interpreter = Interpreter.of(f"{HEAD}{body}\nret;\n}}")
    given = np.arange(blocks * 64, dtype=np.uint32)
    memory = GlobalMemory([given, np.zeros_like(given)])
    interpreter.launch("k", blocks, 64, 256, [memory.address(0), memory.address(1)], memory)
    return memory.bytes(1, given.nbytes).view(np.uint32)


def test_threads_part_and_meet():
    """The way of the odd ones is written behind the place where all meet, and jumps back."""
    found = run("""
        ld.global.b32 %r4, [%rd4];
        and.b32 %r5, %r4, 1;
        setp.eq.b32 %p1, %r5, 1;
        @%p1 bra $odd;
        add.s32 %r6, %r4, 1000;
        bra.uni $met;
        $odd: mul.lo.s32 %r6, %r4, 3;
        bra.uni $met;
        $far: mov.u32 %r7, 0;
        $met: shfl.sync.bfly.b32 %r8, %r6, 1, 31, -1;
        st.global.b32 [%rd5], %r8;
    """)
    number = np.arange(192) ^ 1
    assert np.array_equal(found, np.where(number % 2, number * 3, number + 1000))


def test_a_loop_of_as_many_turns_as_the_thread_says():
    """What follows the loop is written before its body."""
    found = run("""
        and.b32 %r4, %r1, 7;
        mov.u32 %r5, 0;
        bra.uni $body;
        $after: shfl.sync.idx.b32 %r6, %r5, 7, 31, -1;
        st.global.b32 [%rd5], %r6;
        bra.uni $end;
        $body: add.s32 %r5, %r5, 1;
        setp.lt.u32 %p1, %r5, %r4;
        @%p1 bra $body;
        bra.uni $after;
        $end: mov.u32 %r7, 0;
    """)
    assert (found == 7).all()


def test_scopes_have_registers_and_labels_of_their_own():
    found = run("""
        { .reg .b32 x; mov.u32 x, 5; again: add.s32 x, x, 1; setp.lt.u32 %p1, x, 9; @%p1 bra again; mov.b32 %r9, x; }
        { .reg .b32 x; mov.u32 x, 70; again: add.s32 x, x, 1; setp.lt.u32 %p1, x, 75; @%p1 bra again;
          add.s32 %r9, %r9, x; }
        st.global.b32 [%rd5], %r9;
    """)
    assert (found == 84).all()


EXCHANGE = "st.shared.b32 [%rd8], %r3;\nbar.sync 0;\nld.shared.b32 %r4, [%rd10];\nst.global.b32 [%rd5], %r4;"
COPY = """
    cp.async.ca.shared.global [%rd8], [%rd4], 4;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.b32 %r4, [%rd10];
    st.global.b32 [%rd5], %r4;
"""


@pytest.mark.parametrize("body", [EXCHANGE, COPY])
def test_what_is_right_is_no_fault(body: str):
    assert np.array_equal(run(body), np.arange(192) ^ 32)


@pytest.mark.parametrize(
    "body, message",
    [
        (EXCHANGE.replace("bar.sync 0;", ""), "reads what another thread wrote"),
        (f"{EXCHANGE}\nst.shared.b32 [%rd8], %r3;", "another thread may still read"),
        (EXCHANGE.replace("%rd8], %r3", "%rd7], %r3"), "two threads write to one place"),
        (EXCHANGE.replace("st.shared.b32 [%rd8], %r3;", ""), "was not written"),
        (EXCHANGE.replace("[%rd10]", "[%rd10+256]"), "outside of what the launch asked for"),
        (EXCHANGE.replace("[%rd10]", "[%rd7+2]"), "no multiple"),
        (EXCHANGE.replace("bar.sync 0;", "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0;"), "another thread wrote"),
        ("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0;", "others never come to"),
        (EXCHANGE.replace("bar.sync 0;", "setp.lt.u32 %p1, %r1, 31;\n@%p1 bar.sync 0;"), "some threads of a warp"),
        (EXCHANGE.replace("[%rd5]", "[%rd5+4]"), "outside of its buffer"),
        (EXCHANGE.replace("[%rd5]", "[%rd2]"), "two threads write to one place|where another thread wrote"),
        (f"{EXCHANGE}\nld.global.nc.b32 %r5, [%rd5];", "as constant"),
        (EXCHANGE.replace("%r4;", "%r5;"), "before it is written"),
        (COPY.replace("bar.sync 0;", ""), "reads what another thread wrote"),
        (COPY.replace("cp.async.wait_group 0;", ""), "on its way"),
        (COPY.replace("cp.async.commit_group;", ""), "on its way"),
        (COPY.replace("wait_group 0", "wait_group 1"), "on its way"),
        ("cp.async.ca.shared.global [%rd8], [%rd4], 4;", "no one waited for"),
    ],
)
def test_what_is_wrong_is_a_fault(body: str, message: str):
    with pytest.raises(Fault, match=message):
        run(body)


@pytest.mark.parametrize(
    "body, message",
    [
        ("sin.approx.f32 %r4, %r1;\natom.global.add.u32 %r4, [%rd4], %r1;", "atom.global.add.u32, sin.approx.f32"),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r4}, {%r1}, {%r1}, {%r4};", "not in the subset: mma"),
        ("fma.rm.f32 %r4, %r1, %r1, %r1;", "not in the subset: fma.rm"),
        ("bar.sync 1;", "not in the subset: bar.sync"),
        ("ld.local.b32 %r4, [%rd4];", "not in the subset: ld.local.b32"),
    ],
)
def test_what_is_not_known_is_one_error(body: str, message: str):
    with pytest.raises(PtxError, match=message):
        run(body)
