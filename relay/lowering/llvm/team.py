"""The functions of a team of threads, in LLVM IR: written into object code that has parallel loops.

A team is `TEAM_BYTES` of memory, in parts a cache line or more apart; every number has 8 bytes:

    0    addresses of `fork` and `begin`, of libc's `syscall`, the numbers of the calls `futex` and `sched_yield`,
         how many threads there are, how often one that has nothing to do looks again before it sleeps, and whether
         workers shall end
    128  the word, the task, its context, its number of turns, turns per unit
    256  units done
    384  whether a worker sleeps, or is about to
    512  (4 bytes) changes whenever sleepers are woken

The word is `generation << 32 | first << 16 | end`: units `first` to `end` are not claimed yet. Who claims some by
compare-and-exchange has seen the task of this generation, and the one who forked waits until they are done: nobody
ever touches a task that is over. The caller claims from the front, workers from the back, each a part of what is
left that gets smaller: neighbouring units mostly stay on one thread, from one loop to the next, and all end together.
The caller never waits for a worker that did not claim anything.
"""

from __future__ import annotations

TEAM_FUNCTIONS = "relay_team_1"
"""Fills a table with the addresses of `fork`, `begin`, `work` and `pause`. The number is that of a team's form."""

MOST_UNITS = 4096
FUTEX_WAIT, FUTEX_WAKE = 128, 129
"""Of this process only."""

PAUSES = {"x86_64": ("llvm.x86.sse2.pause", "", ""), "aarch64": ("llvm.aarch64.hint", "i32 1", "i32 immarg")}
"""What a waiting thread does, by machine: an intrinsic, its arguments, its parameters."""


def begin_text(team: str) -> list[str]:
    """Instructions at the start of a run: wakes the team, if there is one."""
    return [
        f"  %alone = icmp eq ptr {team}, null",
        "  br i1 %alone, label %run, label %wake",
        "wake:",
        f"  %at = getelementptr ptr, ptr {team}, i64 1",
        "  %begin = load ptr, ptr %at, align 8",
        f"  call void %begin(ptr {team})",
        "  br label %run",
        "run:",
    ]


def team_text(triple: str) -> str:
    """The functions of a team, for a machine."""
    found = PAUSES.get(triple.split("-")[0])
    pause, declared = "", ""
    if found is not None:
        name, arguments, parameters = found
        pause, declared = f"call void @{name}({arguments})", f"declare void @{name}({parameters})"
    return f"{TEXT.replace('PAUSE', pause)}{declared}"


TEXT = f"""
define void @{TEAM_FUNCTIONS}(ptr %table) #0 {{
  store ptr @relay_team_fork, ptr %table, align 8
  %p1 = getelementptr ptr, ptr %table, i64 1
  store ptr @relay_team_begin, ptr %p1, align 8
  %p2 = getelementptr ptr, ptr %table, i64 2
  store ptr @relay_team_work, ptr %p2, align 8
  %p3 = getelementptr ptr, ptr %table, i64 3
  store ptr @relay_team_pause, ptr %p3, align 8
  ret void
}}

define internal void @relay_team_begin(ptr %team) #0 {{
  %sleepers = getelementptr i8, ptr %team, i64 384
  %seen = load atomic i64, ptr %sleepers seq_cst, align 8
  %none = icmp eq i64 %seen, 0
  br i1 %none, label %end, label %some
some:
  %before = atomicrmw xchg ptr %sleepers, i64 0 seq_cst
  %gone = icmp eq i64 %before, 0
  br i1 %gone, label %end, label %wake
wake:
  %epoch = getelementptr i8, ptr %team, i64 512
  %old = atomicrmw add ptr %epoch, i32 1 seq_cst
  call void @relay_team_call(ptr %team, i64 24, ptr %epoch, i64 {FUTEX_WAKE}, i64 2147483647)
  br label %end
end:
  ret void
}}

define internal void @relay_team_call(ptr %team, i64 %which, ptr %word, i64 %operation, i64 %value) noinline #0 {{
  %at = getelementptr i8, ptr %team, i64 16
  %syscall = load ptr, ptr %at, align 8
  %n = getelementptr i8, ptr %team, i64 %which
  %number = load i64, ptr %n, align 8
  %r = call i64 (i64, ...) %syscall(i64 %number, ptr %word, i64 %operation, i64 %value, i64 0, i64 0, i64 0)
  ret void
}}

define internal i64 @relay_team_claim(ptr %team, i1 %front) #0 {{
  %at = getelementptr i8, ptr %team, i64 128
  br label %look
look:
  %word = load atomic i64, ptr %at acquire, align 8
  %high = lshr i64 %word, 16
  %first = and i64 %high, 65535
  %end = and i64 %word, 65535
  %open = icmp ult i64 %first, %end
  br i1 %open, label %some, label %none
some:
  %pt = getelementptr i8, ptr %team, i64 136
  %task = load atomic ptr, ptr %pt monotonic, align 8
  %pc = getelementptr i8, ptr %team, i64 144
  %context = load atomic ptr, ptr %pc monotonic, align 8
  %pn = getelementptr i8, ptr %team, i64 152
  %count = load atomic i64, ptr %pn monotonic, align 8
  %pu = getelementptr i8, ptr %team, i64 160
  %unit = load atomic i64, ptr %pu monotonic, align 8
  %ps = getelementptr i8, ptr %team, i64 40
  %threads = load i64, ptr %ps, align 8
  %left = sub i64 %end, %first
  %thrice = mul i64 %left, 3
  %parts = shl i64 %threads, 2
  %share = udiv i64 %thrice, %parts
  %few = icmp eq i64 %share, 0
  %take = select i1 %few, i64 1, i64 %share
  %shifted = shl i64 %take, 16
  %rising = add i64 %word, %shifted
  %falling = sub i64 %word, %take
  %new = select i1 %front, i64 %rising, i64 %falling
  %pair = cmpxchg ptr %at, i64 %word, i64 %new acq_rel acquire
  %ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %ours, label %run, label %look
run:
  %back = sub i64 %end, %take
  %from = select i1 %front, i64 %first, i64 %back
  %to = add i64 %from, %take
  %begin = mul i64 %from, %unit
  %stop = mul i64 %to, %unit
  %behind = icmp ugt i64 %stop, %count
  %limit = select i1 %behind, i64 %count, i64 %stop
  call void %task(ptr %context, i64 %begin, i64 %limit)
  %pd = getelementptr i8, ptr %team, i64 256
  %done = atomicrmw add ptr %pd, i64 %take acq_rel
  ret i64 1
none:
  ret i64 0
}}

define internal void @relay_team_fork(ptr %team, ptr %task, ptr %context, i64 %count) #0 {{
entry:
  %more = add i64 %count, {MOST_UNITS - 1}
  %unit = udiv i64 %more, {MOST_UNITS}
  %rounded = add i64 %count, %unit
  %less = sub i64 %rounded, 1
  %units = udiv i64 %less, %unit
  %pd = getelementptr i8, ptr %team, i64 256
  store atomic i64 0, ptr %pd monotonic, align 8
  %pt = getelementptr i8, ptr %team, i64 136
  store atomic ptr %task, ptr %pt monotonic, align 8
  %pc = getelementptr i8, ptr %team, i64 144
  store atomic ptr %context, ptr %pc monotonic, align 8
  %pn = getelementptr i8, ptr %team, i64 152
  store atomic i64 %count, ptr %pn monotonic, align 8
  %pu = getelementptr i8, ptr %team, i64 160
  store atomic i64 %unit, ptr %pu monotonic, align 8
  %at = getelementptr i8, ptr %team, i64 128
  %word = load atomic i64, ptr %at monotonic, align 8
  %high = lshr i64 %word, 32
  %next = add i64 %high, 1
  %generation = shl i64 %next, 32
  %new = or i64 %generation, %units
  store atomic i64 %new, ptr %at seq_cst, align 8
  call void @relay_team_begin(ptr %team)
  br label %work
work:
  %claimed = call i64 @relay_team_claim(ptr %team, i1 true)
  %again = icmp ne i64 %claimed, 0
  br i1 %again, label %work, label %join
join:
  %spins = phi i64 [ 0, %work ], [ %following, %wait ], [ %following, %yield ]
  %done = load atomic i64, ptr %pd acquire, align 8
  %over = icmp eq i64 %done, %units
  br i1 %over, label %end, label %wait
wait:
  PAUSE
  %following = add i64 %spins, 1
  %pb = getelementptr i8, ptr %team, i64 48
  %bound = load i64, ptr %pb, align 8
  %long = icmp ugt i64 %following, %bound
  br i1 %long, label %yield, label %join
yield:
  call void @relay_team_call(ptr %team, i64 32, ptr null, i64 0, i64 0)
  br label %join
end:
  ret void
}}

define internal ptr @relay_team_work(ptr %team) #0 {{
entry:
  %at = getelementptr i8, ptr %team, i64 128
  %ps = getelementptr i8, ptr %team, i64 56
  %pb = getelementptr i8, ptr %team, i64 48
  %sleepers = getelementptr i8, ptr %team, i64 384
  %epoch = getelementptr i8, ptr %team, i64 512
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ 0, %claim ], [ %following, %idle ], [ 0, %sleep ], [ 0, %unsleep ]
  %word = load atomic i64, ptr %at acquire, align 8
  %high = lshr i64 %word, 16
  %first = and i64 %high, 65535
  %end = and i64 %word, 65535
  %open = icmp ult i64 %first, %end
  br i1 %open, label %claim, label %none
claim:
  %claimed = call i64 @relay_team_claim(ptr %team, i1 false)
  br label %look
none:
  %stop = load atomic i64, ptr %ps acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %idle
idle:
  PAUSE
  %following = add i64 %spins, 1
  %bound = load i64, ptr %pb, align 8
  %long = icmp ugt i64 %following, %bound
  br i1 %long, label %tired, label %look
tired:
  %before = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %now = load atomic i32, ptr %epoch seq_cst, align 4
  %last = load atomic i64, ptr %at seq_cst, align 8
  %same = icmp eq i64 %last, %word
  br i1 %same, label %tireder, label %unsleep
tireder:
  %stop2 = load atomic i64, ptr %ps seq_cst, align 8
  %go = icmp eq i64 %stop2, 0
  br i1 %go, label %sleep, label %unsleep
sleep:
  %value = zext i32 %now to i64
  call void @relay_team_call(ptr %team, i64 24, ptr %epoch, i64 {FUTEX_WAIT}, i64 %value)
  br label %look
unsleep:
  br label %look
leave:
  ret ptr null
}}

define internal void @relay_team_pause(ptr %job) #0 {{
entry:
  %count = load i64, ptr %job, align 8
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %word = load atomic i64, ptr %job acquire, align 8
  PAUSE
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
