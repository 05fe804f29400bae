"""Operations of several threads, as LLVM IR: the order in which threads run, delayed copies, and a context for each
thread.

The status of a thread is 0 if it can continue, 3 if it is done, and otherwise what it waits for: 1 its warp, 2 its
block, 4 its group of warps, 5 a barrier in memory; with 5, the bits from 8 on are the number of the waiting instruction
in `Kernel.places`. Each four bytes of shared memory have a stamp: the thread that wrote them last, and the number of
its epoch at that time; a thread's next epoch begins when it makes its writes visible to matrix units. The destination
of a copy in progress counts as not written.
"""

from __future__ import annotations

import re

import numpy as np

FIELDS = {
    **dict.fromkeys("lane status site parity head tail first groups epoch thread shown passed".split(), "i32"),
    **dict.fromkeys("words shared written queue ends stamps registers listener".split(), "ptr"),
    "size": "i64",
}
"""The fields of the context that the emulator keeps for each thread, with their LLVM types. `words`: the words that the
lanes of its warp exchange; `shared`: the block's shared memory, of `size` bytes, with a flag per byte in `written`;
`queue`: asynchronous copies in progress, those with numbers from `head` to before `tail`; `ends`: for each commit group
of copies, with numbers from `first` to before `groups`, the number after its last copy; `epoch`: how often the thread
has made its writes visible to matrix units; `stamps`: for each word of shared memory, the thread that wrote it last,
and that thread's epoch at the time; `registers`: memory through which the warps of a group pass registers to
`listener`, the callback that emulates their instructions; `shown`: the thread's epoch at its last barrier; `passed`:
the number of barriers that it has passed."""
CONTEXT = np.dtype([(name, "i4" if type == "i32" else "i8") for name, type in FIELDS.items()])
"""The numpy record type of the context, a record with the fields `FIELDS` that the emulator keeps for each thread."""
FIELD = re.compile(r"  (?:(%\S+) = )?(%\w+)->(\w+)(?: = (\S+))?$", re.MULTILINE)
"""Matches field accesses: `%x = %ctx->field` reads a field of a context, `%ctx->field = %x` writes it."""
THREAD_BITS = 10
"""The number of bits of a stamp (which says for a word of shared memory what wrote it last, and when) that store the
number of the thread."""
GROUP_SUMS, GROUP_WORDS = 128, 256
"""The number of 32-bit words in which the emulator stores the sums that a thread passes to inline assembly, and the
number of all words that a thread passes: the operands that are only read follow the sums."""
HEARD = -(1 << 61)
"""The number that a kernel's error report has in place of the number of a memory access if the error was found, and is
described, by the listener: the emulator's callback for groups of warps."""
COPIES = 256
"""The most copies that a thread may have in progress, and the most groups of them."""
COPY_BYTES = 24
WARP_WORDS = 2 * 32 * 8
"""The number of words that the lanes of a warp exchange: 8 for each of 32 lanes, in two alternately used halves."""


def accesses(text: str) -> str:
    """Return LLVM IR in which accesses to fields of a thread's context, such as `%x = %ctx->field`, are replaced by
    loads and stores."""
    return FIELD.sub(access, text)


def access(found: re.Match[str]) -> str:
    """Return LLVM IR for an access to a field of a thread's context, as matched by `FIELD`: the computation of the
    field's address, and a load or store."""
    result, context, name, value = found.groups()
    at, type = f"{result or context}.{name}.at", FIELDS[name]
    place = f"  {at} = getelementptr %emulator.context, ptr {context}, i32 0, i32 {[*FIELDS].index(name)}\n"
    return place + (f"  store {type} {value}, ptr {at}" if result is None else f"  {result} = load {type}, ptr {at}")


PRELUDE = (
    f"%emulator.context = type {{ {', '.join(FIELDS.values())} }}"
    + """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.resume(ptr)
declare void @llvm.coro.destroy(ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umax.i64(i64, i64)

define internal void @emulator.stop(ptr %ctx, i32 %status, i32 %site) alwaysinline {
  %ctx->status = %status
  %ctx->site = %site
  ret void
}
define internal ptr @emulator.slot(ptr %ctx, i32 %lane) alwaysinline {
  %parity = %ctx->parity
  %base = %ctx->words
  %o = mul i32 %parity, 256
  %l = mul i32 %lane, 8
  %w = add i32 %o, %l
  %r = getelementptr i32, ptr %base, i32 %w
  ret ptr %r
}
define internal ptr @emulator.own(ptr %ctx) alwaysinline {
  %lane = %ctx->lane
  %r = call ptr @emulator.slot(ptr %ctx, i32 %lane)
  ret ptr %r
}
define internal void @emulator.turn(ptr %ctx) alwaysinline {
  %parity = %ctx->parity
  %other = xor i32 %parity, 1
  %ctx->parity = %other
  ret void
}
define internal ptr @emulator.shared(ptr %p, ptr %ctx, i64 %width, i64 %mask, i1 %writes, i64 %number, ptr %report)
  noinline {
  %base = %ctx->shared
  %size = %ctx->size
  %limit = sub i64 %size, %width
  %small = icmp slt i64 %limit, 0
  %most = select i1 %small, i64 0, i64 %limit
  %q = call ptr @emulator.check(ptr %p, ptr %base, i64 %most, i64 %mask, i64 %number, ptr %report)
  %right = icmp eq ptr %q, %p
  %fine = icmp eq i1 %small, false
  %inside = and i1 %right, %fine
  br i1 %inside, label %known, label %end
known:
  %written = %ctx->written
  %a = ptrtoint ptr %p to i64
  %b = ptrtoint ptr %base to i64
  %offset = sub i64 %a, %b
  %first = getelementptr i8, ptr %written, i64 %offset
  br i1 %writes, label %mark, label %look
mark:
  call void @emulator.mark(ptr %ctx, ptr %p, i64 %width, i8 1)
  ret ptr %p
look:
  %i = phi i64 [ 0, %known ], [ %i1, %more ]
  %at = getelementptr i8, ptr %first, i64 %i
  %there = load i8, ptr %at
  %missing = icmp eq i8 %there, 0
  br i1 %missing, label %unwritten, label %more
more:
  %i1 = add i64 %i, 1
  %again = icmp ult i64 %i1, %width
  br i1 %again, label %look, label %end
unwritten:
  %hole = add i64 %offset, %i
  %negative = sub i64 0, %number
  call void @emulator.tell(i64 %negative, i64 %hole, ptr %report)
  br label %end
end:
  ret ptr %q
}
define internal void @emulator.tell(i64 %number, i64 %detail, ptr %report) {
  %before = load i64, ptr %report
  %first = icmp eq i64 %before, 0
  br i1 %first, label %tell, label %end
tell:
  store i64 %number, ptr %report
  %second = getelementptr i64, ptr %report, i64 1
  store i64 %detail, ptr %second
  br label %end
end:
  ret void
}
define internal void @emulator.mark(ptr %ctx, ptr %to, i64 %width, i8 %value) noinline {
  %base = %ctx->shared
  %size = %ctx->size
  %a = ptrtoint ptr %to to i64
  %b = ptrtoint ptr %base to i64
  %offset = sub i64 %a, %b
  %end = add i64 %offset, %width
  %begins = icmp ult i64 %offset, %size
  %ends = icmp ule i64 %end, %size
  %inside = and i1 %begins, %ends
  br i1 %inside, label %known, label %out
known:
  %written = %ctx->written
  %first = getelementptr i8, ptr %written, i64 %offset
  call void @llvm.memset.p0.i64(ptr %first, i8 %value, i64 %width, i1 false)
  %stamps = %ctx->stamps
  %epoch = %ctx->epoch
  %thread = %ctx->thread
  %high = shl i32 %epoch, 10
  %new = or i32 %high, %thread
  br label %word
word:
  %i = phi i64 [ %offset, %known ], [ %i4, %word ]
  %n = lshr i64 %i, 2
  %at = getelementptr i32, ptr %stamps, i64 %n
  store i32 %new, ptr %at
  %i4 = add i64 %i, 4
  %more = icmp ult i64 %i4, %end
  br i1 %more, label %word, label %out
out:
  ret void
}
define internal void @emulator.visible(ptr %ctx) {
  %epoch = %ctx->epoch
  %next = add i32 %epoch, 1
  %ctx->epoch = %next
  ret void
}
define internal void @emulator.show(ptr %ctx) {
  %epoch = %ctx->epoch
  %ctx->shown = %epoch
  %count = %ctx->passed
  %more = add i32 %count, 1
  %ctx->passed = %more
  ret void
}
define internal void @emulator.group(ptr %ctx, i32 %place, ptr %report) {
  %thread = %ctx->thread
  %number = and i32 %thread, 127
  %first = icmp eq i32 %number, 0
  br i1 %first, label %say, label %end
say:
  call void @emulator.say(ptr %ctx, i32 %place, ptr %report)
  br label %end
end:
  ret void
}
define internal void @emulator.say(ptr %ctx, i32 %place, ptr %report) {
  %thread = %ctx->thread
  %listener = %ctx->listener
  %answer = call i32 %listener(i32 %place, i32 %thread)
  %wrong = icmp ne i32 %answer, 0
  br i1 %wrong, label %tell, label %end
tell:
  call void @emulator.tell(i64 -2305843009213693952, i64 0, ptr %report)
  br label %end
end:
  ret void
}
define internal ptr @emulator.register(ptr %ctx, i32 %word) alwaysinline {
  %registers = %ctx->registers
  %at = getelementptr i32, ptr %registers, i32 %word
  ret ptr %at
}
define internal void @emulator.copy(ptr %ctx, ptr %to, ptr %from, i32 %size, i32 %width) noinline {
  %tail = %ctx->tail
  %next = add i32 %tail, 1
  %ctx->tail = %next
  %queue = %ctx->queue
  %slot = and i32 %tail, 255
  %e = getelementptr [24 x i8], ptr %queue, i32 %slot
  store ptr %to, ptr %e
  %e1 = getelementptr i8, ptr %e, i64 8
  store ptr %from, ptr %e1
  %e2 = getelementptr i8, ptr %e, i64 16
  store i32 %size, ptr %e2
  %e3 = getelementptr i8, ptr %e, i64 20
  store i32 %width, ptr %e3
  %bytes = zext i32 %width to i64
  call void @emulator.mark(ptr %ctx, ptr %to, i64 %bytes, i8 0)
  ret void
}
define internal void @emulator.commit(ptr %ctx) noinline {
  %tail = %ctx->tail
  %group = %ctx->groups
  %next = add i32 %group, 1
  %ctx->groups = %next
  %ends = %ctx->ends
  %slot = and i32 %group, 255
  %at = getelementptr i32, ptr %ends, i32 %slot
  store i32 %tail, ptr %at
  ret void
}
define internal void @emulator.wait(ptr %ctx, i32 %left) noinline {
entry:
  %group = %ctx->groups
  %ends = %ctx->ends
  %queue = %ctx->queue
  br label %groups
groups:
  %first = %ctx->first
  %under = sub i32 %group, %first
  %enough = icmp sle i32 %under, %left
  br i1 %enough, label %done, label %open
open:
  %slot = and i32 %first, 255
  %at = getelementptr i32, ptr %ends, i32 %slot
  %end = load i32, ptr %at
  br label %copies
copies:
  %head = %ctx->head
  %over = icmp eq i32 %head, %end
  br i1 %over, label %close, label %one
one:
  %which = and i32 %head, 255
  %e = getelementptr [24 x i8], ptr %queue, i32 %which
  %to = load ptr, ptr %e
  %e1 = getelementptr i8, ptr %e, i64 8
  %from = load ptr, ptr %e1
  %e2 = getelementptr i8, ptr %e, i64 16
  %size32 = load i32, ptr %e2
  %size = zext i32 %size32 to i64
  %e3 = getelementptr i8, ptr %e, i64 20
  %width32 = load i32, ptr %e3
  %width = zext i32 %width32 to i64
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %width, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  call void @emulator.mark(ptr %ctx, ptr %to, i64 %width, i8 1)
  %h1 = add i32 %head, 1
  %ctx->head = %h1
  br label %copies
close:
  %f1 = add i32 %first, 1
  %ctx->first = %f1
  br label %groups
done:
  ret void
}
define internal i1 @emulator.step(ptr %handles, ptr %contexts, i32 %first, i32 %end, ptr %report) {
entry:
  br label %lane
lane:
  %i = phi i32 [ %first, %entry ], [ %i1, %same ]
  %ctx = getelementptr %emulator.context, ptr %contexts, i32 %i
  %sp = getelementptr i8, ptr %ctx, i64 4
  %status = load i32, ptr %sp
  %over = icmp eq i32 %status, 3
  br i1 %over, label %compare, label %resume
resume:
  %hp = getelementptr ptr, ptr %handles, i32 %i
  %handle = load ptr, ptr %hp
  call void @llvm.coro.resume(ptr %handle)
  %wrong = load i64, ptr %report
  %bad = icmp ne i64 %wrong, 0
  br i1 %bad, label %stop, label %compare
compare:
  %ctx0 = getelementptr %emulator.context, ptr %contexts, i32 %first
  %sp0 = getelementptr i8, ptr %ctx0, i64 4
  %now = load i64, ptr %sp, align 4
  %now0 = load i64, ptr %sp0, align 4
  %equal = icmp eq i64 %now, %now0
  br i1 %equal, label %same, label %apart
same:
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, %end
  br i1 %more, label %lane, label %done
apart:
  %site = %ctx->site
  %long = zext i32 %site to i64
  call void @emulator.tell(i64 -4611686018427387904, i64 %long, ptr %report)
  br label %stop
stop:
  %where = getelementptr i64, ptr %report, i64 2
  %thread = zext i32 %i to i64
  store i64 %thread, ptr %where
  ret i1 false
done:
  ret i1 true
}
"""
)
"""Functions for all kernels. Threads of a warp run one after the other up to where they synchronise, and must all wait
at the same place. Copies to shared memory are done when they are waited for, not before."""
