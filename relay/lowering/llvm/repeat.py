"""`@relay_repeat`: the entry point for a number of batch elements that is known only at run time.

Inputs and outputs of the elements are contiguous, so that element i of a tensor is at i times its size in bytes. The
function takes the address of a table of 8-byte words:

    0    the number of batch elements
    1    the team of threads, or null
    2    the number of arenas, and the bytes from one to the next
    4    the next element that no thread has taken, and the end of those that threads take (written by this function)
    6    addresses of inputs, outputs, the constants and the first arena, as `@relay_main` takes them

With a team, as many threads as there are arenas take element after element, each with its own arena, and compute it
alone. The elements that remain after an equal share for each thread, if they are at most half as many as threads, are
computed one after the other by all threads; if `@main` has no parallel loops, threads take them like the others.
"""

from __future__ import annotations

from collections.abc import Sequence

REPEAT = "relay_repeat"
TEAM, ARENAS, STRIDE, NEXT, END, TENSORS = range(1, 7)
"""The indices of words in the table that is the argument of `@relay_repeat`: the team of threads, the number of arenas,
the bytes from one arena to the next, the next batch element that no thread has taken, the end of those that threads
take, and the first of the tensors' addresses. Word 0 is the number of batch elements."""


def repeat_text(entry: str, sizes: Sequence[int], forking: bool) -> str:
    """Return the LLVM IR of `@relay_repeat`, which calls the function `entry` once for each element of a batch.
    `sizes`: bytes of each input and output of one element; `forking`: `entry` takes a team of threads after the
    arena."""
    arenas = TENSORS + len(sizes) + 1
    return f"{_block(entry, sizes, forking)}\n{_turns(arenas)}\n{_whole(arenas, forking)}"


def _block(entry: str, sizes: Sequence[int], forking: bool) -> str:
    """Return the function that calls the entry for one batch element: it offsets the tensors' addresses by their
    sizes."""
    own = len(sizes) + 2 + forking
    block = [
        f"define internal void @{REPEAT}_block(ptr %table, i64 %i, ptr %arena, ptr %team) #0 {{",
        f"  %own = alloca [{own} x ptr], align 8",
    ]
    for number, size in enumerate([*sizes, 0]):
        block += [
            f"  %a{number} = getelementptr ptr, ptr %table, i64 {TENSORS + number}",
            f"  %b{number} = load ptr, ptr %a{number}, align 8",
            f"  %o{number} = mul i64 %i, {size}",
            f"  %p{number} = getelementptr i8, ptr %b{number}, i64 %o{number}",
        ]
    values = [*(f"%p{number}" for number in range(len(sizes) + 1)), "%arena", *["%team"] * forking]
    for number, value in enumerate(values):
        block += [
            f"  %d{number} = getelementptr ptr, ptr %own, i64 {number}",
            f"  store ptr {value}, ptr %d{number}, align 8",
        ]
    block += [f"  call void @{entry}(ptr %own)", "  ret void", "}"]
    return "\n".join(block)


def _turns(arenas: int) -> str:
    """Return the function that each thread runs: it takes batch elements until none is left."""
    return f"""define internal void @{REPEAT}_turns(ptr %table, i64 %from, i64 %to) #0 {{
entry:
  %pn = getelementptr i64, ptr %table, i64 {NEXT}
  %pe = getelementptr i64, ptr %table, i64 {END}
  %end = load i64, ptr %pe, align 8
  %pa = getelementptr ptr, ptr %table, i64 {arenas}
  %arenas = load ptr, ptr %pa, align 8
  %pb = getelementptr i64, ptr %table, i64 {STRIDE}
  %stride = load i64, ptr %pb, align 8
  br label %turns
turns:
  %turn = phi i64 [ %from, %entry ], [ %following, %done ]
  %more = icmp ult i64 %turn, %to
  br i1 %more, label %start, label %over
start:
  %offset = mul i64 %turn, %stride
  %arena = getelementptr i8, ptr %arenas, i64 %offset
  br label %take
take:
  %i = atomicrmw add ptr %pn, i64 1 monotonic
  %open = icmp ult i64 %i, %end
  br i1 %open, label %run, label %done
run:
  call void @{REPEAT}_block(ptr %table, i64 %i, ptr %arena, ptr null)
  br label %take
done:
  %following = add i64 %turn, 1
  br label %turns
over:
  ret void
}}
"""


def _whole(arenas: int, forking: bool) -> str:
    """Return `@relay_repeat` itself: it divides the batch among threads, and computes the remaining elements itself."""
    shared = "select i1 %many, i64 %count, i64 %even" if forking else "add i64 %count, 0"
    return f"""define void @{REPEAT}(ptr %table) #0 {{
entry:
  %count = load i64, ptr %table, align 8
  %pt = getelementptr ptr, ptr %table, i64 {TEAM}
  %team = load ptr, ptr %pt, align 8
  %pa = getelementptr ptr, ptr %table, i64 {arenas}
  %arena = load ptr, ptr %pa, align 8
  %alone = icmp eq ptr %team, null
  br i1 %alone, label %rest, label %together
together:
  %ps = getelementptr i8, ptr %team, i64 40
  %threads = load i64, ptr %ps, align 8
  %pl = getelementptr i64, ptr %table, i64 {ARENAS}
  %room = load i64, ptr %pl, align 8
  %few = icmp ult i64 %room, %threads
  %turns = select i1 %few, i64 %room, i64 %threads
  %left = urem i64 %count, %turns
  %even = sub i64 %count, %left
  %twice = shl i64 %left, 1
  %many = icmp ugt i64 %twice, %turns
  %shared = {shared}
  %none = icmp eq i64 %shared, 0
  br i1 %none, label %rest, label %fork
fork:
  %pn = getelementptr i64, ptr %table, i64 {NEXT}
  store i64 0, ptr %pn, align 8
  %pe = getelementptr i64, ptr %table, i64 {END}
  store i64 %shared, ptr %pe, align 8
  call void @relay_team_fork(ptr %team, ptr @{REPEAT}_turns, ptr %table, i64 %turns)
  br label %rest
rest:
  %first = phi i64 [ 0, %entry ], [ 0, %together ], [ %shared, %fork ]
  br label %look
look:
  %i = phi i64 [ %first, %rest ], [ %next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %over
one:
  call void @{REPEAT}_block(ptr %table, i64 %i, ptr %arena, ptr %team)
  %next = add i64 %i, 1
  br label %look
over:
  ret void
}}
"""
