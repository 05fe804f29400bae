"""What threads do together, as LLVM IR: the order in which they run, copies that land late, products of a warp.

A thread's context, 120 bytes: 0 lane, 4 status, 8 site, 12 parity, 16 words of its warp, 24 shared memory, 32 which of
its bytes are written, 40 its size, 48 copies under way, 56 the first and 60 the end of them, 64 the first group and 68
the end of them, 72 ends of groups, 80 stamps of shared memory, 88 epoch, 92 thread, 96 registers that its group of
warps sees, 104 what hears of groups, 112 the epoch at its last barrier, 116 how many. Status: 0 may go on, 1 waits for
its warp, 2 for its block, 3 done, 4 waits for its group of warps, 5 for a barrier in memory, at the place whose number
is in the bits from 8 on. A stamp is of four bytes: the thread that wrote them, and its epoch then, which ends when it
makes them visible to matrix units. What a copy will write is as if not written.
"""

from __future__ import annotations

CONTEXT_BYTES = 120
SHOWN = 112
"""Where a context has the epoch at the last barrier."""
PASSED = 116
"""Where a context has the number of barriers that the thread has come to."""
THREAD_BITS = 10
"""Bits of a stamp that are the thread's number."""
GROUP_SUMS, GROUP_WORDS = 128, 256
"""Registers of a thread that products of its group change, and all that the group sees, in words."""
HEARD = -(1 << 61)
"""The number of the report that something else knows what is wrong."""
COPIES = 256
"""Copies that a thread may have under way, and groups of them."""
COPY_BYTES = 24
WARP_WORDS = 2 * 32 * 8
"""What lanes tell each other: 8 words each, of two calls in turn."""

PRELUDE = """
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
  %s = getelementptr i8, ptr %ctx, i64 4
  store i32 %status, ptr %s
  %t = getelementptr i8, ptr %ctx, i64 8
  store i32 %site, ptr %t
  ret void
}
define internal ptr @emulator.slot(ptr %ctx, i32 %lane) alwaysinline {
  %pp = getelementptr i8, ptr %ctx, i64 12
  %parity = load i32, ptr %pp
  %bp = getelementptr i8, ptr %ctx, i64 16
  %base = load ptr, ptr %bp
  %o = mul i32 %parity, 256
  %l = mul i32 %lane, 8
  %w = add i32 %o, %l
  %r = getelementptr i32, ptr %base, i32 %w
  ret ptr %r
}
define internal ptr @emulator.own(ptr %ctx) alwaysinline {
  %lane = load i32, ptr %ctx
  %r = call ptr @emulator.slot(ptr %ctx, i32 %lane)
  ret ptr %r
}
define internal void @emulator.turn(ptr %ctx) alwaysinline {
  %pp = getelementptr i8, ptr %ctx, i64 12
  %parity = load i32, ptr %pp
  %other = xor i32 %parity, 1
  store i32 %other, ptr %pp
  ret void
}
define internal ptr @emulator.shared(ptr %p, ptr %ctx, i64 %width, i64 %mask, i1 %writes, i64 %number, ptr %report)
  noinline {
  %bp = getelementptr i8, ptr %ctx, i64 24
  %base = load ptr, ptr %bp
  %zp = getelementptr i8, ptr %ctx, i64 40
  %size = load i64, ptr %zp
  %limit = sub i64 %size, %width
  %small = icmp slt i64 %limit, 0
  %most = select i1 %small, i64 0, i64 %limit
  %q = call ptr @emulator.check(ptr %p, ptr %base, i64 %most, i64 %mask, i64 %number, ptr %report)
  %right = icmp eq ptr %q, %p
  %fine = icmp eq i1 %small, false
  %inside = and i1 %right, %fine
  br i1 %inside, label %known, label %end
known:
  %wp = getelementptr i8, ptr %ctx, i64 32
  %written = load ptr, ptr %wp
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
  %bp = getelementptr i8, ptr %ctx, i64 24
  %base = load ptr, ptr %bp
  %zp = getelementptr i8, ptr %ctx, i64 40
  %size = load i64, ptr %zp
  %a = ptrtoint ptr %to to i64
  %b = ptrtoint ptr %base to i64
  %offset = sub i64 %a, %b
  %end = add i64 %offset, %width
  %begins = icmp ult i64 %offset, %size
  %ends = icmp ule i64 %end, %size
  %inside = and i1 %begins, %ends
  br i1 %inside, label %known, label %out
known:
  %wp = getelementptr i8, ptr %ctx, i64 32
  %written = load ptr, ptr %wp
  %first = getelementptr i8, ptr %written, i64 %offset
  call void @llvm.memset.p0.i64(ptr %first, i8 %value, i64 %width, i1 false)
  %sp = getelementptr i8, ptr %ctx, i64 80
  %stamps = load ptr, ptr %sp
  %ep = getelementptr i8, ptr %ctx, i64 88
  %epoch = load i32, ptr %ep
  %tp = getelementptr i8, ptr %ctx, i64 92
  %thread = load i32, ptr %tp
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
  %ep = getelementptr i8, ptr %ctx, i64 88
  %epoch = load i32, ptr %ep
  %next = add i32 %epoch, 1
  store i32 %next, ptr %ep
  ret void
}
define internal void @emulator.show(ptr %ctx) {
  %ep = getelementptr i8, ptr %ctx, i64 88
  %epoch = load i32, ptr %ep
  %sp = getelementptr i8, ptr %ctx, i64 112
  store i32 %epoch, ptr %sp
  %bp = getelementptr i8, ptr %ctx, i64 116
  %count = load i32, ptr %bp
  %more = add i32 %count, 1
  store i32 %more, ptr %bp
  ret void
}
define internal void @emulator.group(ptr %ctx, i32 %place, ptr %report) {
  %tp = getelementptr i8, ptr %ctx, i64 92
  %thread = load i32, ptr %tp
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
  %tp = getelementptr i8, ptr %ctx, i64 92
  %thread = load i32, ptr %tp
  %lp = getelementptr i8, ptr %ctx, i64 104
  %listener = load ptr, ptr %lp
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
  %rp = getelementptr i8, ptr %ctx, i64 96
  %registers = load ptr, ptr %rp
  %at = getelementptr i32, ptr %registers, i32 %word
  ret ptr %at
}
define internal void @emulator.copy(ptr %ctx, ptr %to, ptr %from, i32 %size, i32 %width) noinline {
  %tp = getelementptr i8, ptr %ctx, i64 60
  %tail = load i32, ptr %tp
  %next = add i32 %tail, 1
  store i32 %next, ptr %tp
  %qp = getelementptr i8, ptr %ctx, i64 48
  %queue = load ptr, ptr %qp
  %slot = and i32 %tail, 255
  %o = mul i32 %slot, 24
  %e = getelementptr i8, ptr %queue, i32 %o
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
  %tp = getelementptr i8, ptr %ctx, i64 60
  %tail = load i32, ptr %tp
  %gp = getelementptr i8, ptr %ctx, i64 68
  %group = load i32, ptr %gp
  %next = add i32 %group, 1
  store i32 %next, ptr %gp
  %ep = getelementptr i8, ptr %ctx, i64 72
  %ends = load ptr, ptr %ep
  %slot = and i32 %group, 255
  %at = getelementptr i32, ptr %ends, i32 %slot
  store i32 %tail, ptr %at
  ret void
}
define internal void @emulator.wait(ptr %ctx, i32 %left) noinline {
entry:
  %hp = getelementptr i8, ptr %ctx, i64 56
  %fp = getelementptr i8, ptr %ctx, i64 64
  %gp = getelementptr i8, ptr %ctx, i64 68
  %ep = getelementptr i8, ptr %ctx, i64 72
  %qp = getelementptr i8, ptr %ctx, i64 48
  %group = load i32, ptr %gp
  %ends = load ptr, ptr %ep
  %queue = load ptr, ptr %qp
  br label %groups
groups:
  %first = load i32, ptr %fp
  %under = sub i32 %group, %first
  %enough = icmp sle i32 %under, %left
  br i1 %enough, label %done, label %open
open:
  %slot = and i32 %first, 255
  %at = getelementptr i32, ptr %ends, i32 %slot
  %end = load i32, ptr %at
  br label %copies
copies:
  %head = load i32, ptr %hp
  %over = icmp eq i32 %head, %end
  br i1 %over, label %close, label %one
one:
  %which = and i32 %head, 255
  %o = mul i32 %which, 24
  %e = getelementptr i8, ptr %queue, i32 %o
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
  store i32 %h1, ptr %hp
  br label %copies
close:
  %f1 = add i32 %first, 1
  store i32 %f1, ptr %fp
  br label %groups
done:
  ret void
}
define internal i1 @emulator.step(ptr %handles, ptr %contexts, i32 %first, i32 %end, ptr %report) {
entry:
  br label %lane
lane:
  %i = phi i32 [ %first, %entry ], [ %i1, %same ]
  %o = mul i32 %i, 120
  %ctx = getelementptr i8, ptr %contexts, i32 %o
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
  %o0 = mul i32 %first, 120
  %ctx0 = getelementptr i8, ptr %contexts, i32 %o0
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
  %st = getelementptr i8, ptr %ctx, i64 8
  %site = load i32, ptr %st
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
"""Threads of a warp run one after the other up to where they wait for each other, and must all wait at the same place.
Copies to shared memory land when they are waited for, not before."""
