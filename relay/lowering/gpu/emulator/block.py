"""The scheduling of a block's warps, as LLVM IR: they run alternately, each as far as it can.

A warp stops at an instruction that needs its whole group of four warps, at a barrier in memory that does not let it
continue yet, and at a barrier of the whole block; then the others run. If no warp can continue, a fault is reported:
warps at different barriers, or a barrier that is never completed.
"""

from __future__ import annotations

BLOCK = """
define internal i1 @emulator.same(ptr %contexts, i32 %first, i32 %end) {
entry:
  %ctx0 = getelementptr %emulator.context, ptr %contexts, i32 %first
  %sp0 = getelementptr i8, ptr %ctx0, i64 4
  %now0 = load i64, ptr %sp0, align 4
  br label %warp
warp:
  %w = phi i32 [ %first, %entry ], [ %w1, %same ]
  %ctx = getelementptr %emulator.context, ptr %contexts, i32 %w
  %sp = getelementptr i8, ptr %ctx, i64 4
  %now = load i64, ptr %sp, align 4
  %equal = icmp eq i64 %now, %now0
  br i1 %equal, label %same, label %apart
same:
  %w1 = add i32 %w, 32
  %more = icmp ult i32 %w1, %end
  br i1 %more, label %warp, label %all
apart:
  ret i1 false
all:
  ret i1 true
}
define internal void @emulator.release(ptr %contexts, i32 %first, i32 %end) {
entry:
  br label %warp
warp:
  %w = phi i32 [ %first, %entry ], [ %w1, %warp ]
  %ctx = getelementptr %emulator.context, ptr %contexts, i32 %w
  %ctx->status = 0
  %w1 = add i32 %w, 32
  %more = icmp ult i32 %w1, %end
  br i1 %more, label %warp, label %done
done:
  ret void
}
define internal i1 @emulator.block(ptr %handles, ptr %contexts, i32 %threads, ptr %report) {
entry:
  br label %round
round:
  br label %warp
warp:
  %w = phi i32 [ 0, %round ], [ %w1, %next ]
  %moved = phi i1 [ false, %round ], [ %moved1, %next ]
  %wanted = add i32 %w, 32
  %short = icmp ult i32 %threads, %wanted
  %end = select i1 %short, i32 %threads, i32 %wanted
  %ctx = getelementptr %emulator.context, ptr %contexts, i32 %w
  %before = %ctx->status
  %kind = and i32 %before, 255
  switch i32 %kind, label %next [
    i32 0, label %again
    i32 5, label %ask
  ]
ask:
  %place = lshr i32 %before, 8
  %listener = %ctx->listener
  %answer = call i32 %listener(i32 %place, i32 %w)
  switch i32 %answer, label %wrong [
    i32 0, label %again
    i32 2, label %next
  ]
again:
  %fine = call i1 @emulator.step(ptr %handles, ptr %contexts, i32 %w, i32 %end, ptr %report)
  br i1 %fine, label %look, label %stop
look:
  %status = %ctx->status
  switch i32 %status, label %next [
    i32 1, label %again
    i32 4, label %group
  ]
group:
  %base = and i32 %w, -128
  %most = add i32 %base, 128
  %few = icmp ult i32 %threads, %most
  %last = select i1 %few, i32 %threads, i32 %most
  %met = call i1 @emulator.same(ptr %contexts, i32 %base, i32 %last)
  br i1 %met, label %meet, label %next
meet:
  call void @emulator.release(ptr %contexts, i32 %base, i32 %last)
  br label %next
next:
  %moved1 = phi i1 [ %moved, %warp ], [ %moved, %ask ], [ true, %look ], [ true, %group ], [ true, %meet ]
  %w1 = add i32 %w, 32
  %more = icmp ult i32 %w1, %threads
  br i1 %more, label %warp, label %all
all:
  br i1 %moved1, label %round, label %still
still:
  %every = call i1 @emulator.same(ptr %contexts, i32 0, i32 %threads)
  br i1 %every, label %alike, label %search
alike:
  %state = %contexts->status
  switch i32 %state, label %stuck [
    i32 2, label %barrier
    i32 3, label %right
  ]
barrier:
  call void @emulator.release(ptr %contexts, i32 0, i32 %threads)
  br label %round
search:
  %v = phi i32 [ 0, %still ], [ %v1, %on ]
  %vctx = getelementptr %emulator.context, ptr %contexts, i32 %v
  %vstate = %vctx->status
  %vkind = and i32 %vstate, 255
  %asks = icmp eq i32 %vkind, 5
  br i1 %asks, label %stuck, label %on
on:
  %v1 = add i32 %v, 32
  %vmore = icmp ult i32 %v1, %threads
  br i1 %vmore, label %search, label %first
first:
  %u = phi i32 [ 32, %on ], [ %u1, %first ]
  %u1 = add i32 %u, 32
  %alone = call i1 @emulator.same(ptr %contexts, i32 0, i32 %u1)
  br i1 %alone, label %first, label %apart
apart:
  %uctx = getelementptr %emulator.context, ptr %contexts, i32 %u
  %site = %uctx->site
  %long = zext i32 %site to i64
  call void @emulator.tell(i64 -4611686018427387904, i64 %long, ptr %report)
  br label %where
stuck:
  %at = phi i32 [ 0, %alike ], [ %v, %search ]
  %slistener = %contexts->listener
  %said = call i32 %slistener(i32 -1, i32 %at)
  br label %wrong
wrong:
  %who = phi i32 [ %w, %ask ], [ %at, %stuck ]
  call void @emulator.tell(i64 -2305843009213693952, i64 0, ptr %report)
  br label %where
where:
  %thread = phi i32 [ %u, %apart ], [ %who, %wrong ]
  %named = getelementptr i64, ptr %report, i64 2
  %wide = zext i32 %thread to i64
  store i64 %wide, ptr %named
  br label %stop
right:
  ret i1 true
stop:
  ret i1 false
}
"""
