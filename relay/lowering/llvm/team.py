"""The functions of a team of threads, in LLVM IR: they are written into object code that has parallel loops.

Threads divide the iterations of a loop in units, runs of consecutive iterations. A team is memory of `TEAM` bytes and
`MEMBER` more for each thread, the caller first, in words of 8 bytes:

    0    addresses of `fork` and `begin`, of libc's `syscall`, the system call numbers of `futex` and `sched_yield`,
         the number of threads, how often an idle thread checks for work before it sleeps, and whether workers shall end
    128  the number of units that workers have completed
    256  whether a worker sleeps, or is about to
    384  (4 bytes) changes whenever sleepers are woken

and of each member:

    0    the word, the task, its context, its number of iterations, iterations per unit: all in one cache line
    64   the team, and the member's number

The word is `generation << 32 | first << 16 | end`: units `first` to `end` of the member's own share are not claimed
yet. Shares are contiguous units, the same in every loop with as many iterations, so that a thread often reads what it
wrote itself. A thread that claims units by compare-and-exchange has seen the task of this generation, and the thread
that forked waits until they are done: no thread ever accesses a task that is over. A member claims most of the rest of
its share from the front; a thread whose share is used up takes half of another member's rest from the back. So hardly
any claims collide, and all threads end together. The caller's first claim is made while it forks. The caller never
waits for a worker that did not claim anything.
"""

from __future__ import annotations

TEAM_FUNCTIONS = "relay_team_2"
"""The function that fills a table with the addresses of `fork`, `begin`, `work` and `pause`. Its number is the version
of the team's layout."""

TEAM, MEMBER = 512, 128
"""The sizes in bytes of the part of a team's memory that all threads share, which comes first, and of the part of each
thread (member)."""
MOST_UNITS = 4096
FUTEX_WAIT, FUTEX_WAKE = 128, 129
"""The futex operations for words that are private to this process."""

PAUSES = {"x86_64": ("llvm.x86.sse2.pause", "", ""), "aarch64": ("llvm.aarch64.hint", "i32 1", "i32 immarg")}
"""The intrinsic by which a waiting thread pauses, by machine, with its arguments and parameter types."""


def begin_text(team: str) -> list[str]:
    """Return the instructions at the start of an inference, which wake the team, if there is one."""
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


def team_text(triple: str, declarations: dict[str, str]) -> str:
    """Return the functions of a team for a machine, and declare the LLVM intrinsics that they use."""
    declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)"
    found = PAUSES.get(triple.split("-")[0])
    if found is None:
        return TEXT.replace("PAUSE", "")
    name, arguments, parameters = found
    declarations[name] = f"declare void @{name}({parameters})"
    return TEXT.replace("PAUSE", f"call void @{name}({arguments})")


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
  %sleepers = getelementptr i8, ptr %team, i64 256
  %seen = load atomic i64, ptr %sleepers monotonic, align 8
  %none = icmp eq i64 %seen, 0
  br i1 %none, label %end, label %some
some:
  %before = atomicrmw xchg ptr %sleepers, i64 0 seq_cst
  %gone = icmp eq i64 %before, 0
  br i1 %gone, label %end, label %wake
wake:
  %epoch = getelementptr i8, ptr %team, i64 384
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

define internal ptr @relay_team_member(ptr %team, i64 %number) #0 {{
  %members = getelementptr i8, ptr %team, i64 {TEAM}
  %offset = mul i64 %number, {MEMBER}
  %member = getelementptr i8, ptr %members, i64 %offset
  ret ptr %member
}}

define internal i64 @relay_team_claim(ptr %member, i1 %own) #0 {{
  br label %look
look:
  %word = load atomic i64, ptr %member acquire, align 8
  %high = lshr i64 %word, 16
  %first = and i64 %high, 65535
  %end = and i64 %word, 65535
  %open = icmp ult i64 %first, %end
  br i1 %open, label %some, label %none
some:
  %pt = getelementptr i8, ptr %member, i64 8
  %task = load atomic ptr, ptr %pt monotonic, align 8
  %pc = getelementptr i8, ptr %member, i64 16
  %context = load atomic ptr, ptr %pc monotonic, align 8
  %pn = getelementptr i8, ptr %member, i64 24
  %count = load atomic i64, ptr %pn monotonic, align 8
  %pu = getelementptr i8, ptr %member, i64 32
  %unit = load atomic i64, ptr %pu monotonic, align 8
  call void @llvm.prefetch.p0(ptr %context, i32 0, i32 3, i32 1)
  %left = sub i64 %end, %first
  %most = call i64 @relay_team_part(i64 %left)
  %more = add i64 %left, 1
  %half = lshr i64 %more, 1
  %take = select i1 %own, i64 %most, i64 %half
  %shifted = shl i64 %take, 16
  %rising = add i64 %word, %shifted
  %falling = sub i64 %word, %take
  %new = select i1 %own, i64 %rising, i64 %falling
  %pair = cmpxchg ptr %member, i64 %word, i64 %new acq_rel acquire
  %ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %ours, label %run, label %look
run:
  %back = sub i64 %end, %take
  %from = select i1 %own, i64 %first, i64 %back
  call void @relay_team_run(ptr %task, ptr %context, i64 %count, i64 %unit, i64 %from, i64 %take)
  ret i64 %take
none:
  ret i64 0
}}

define internal i64 @relay_team_part(i64 %left) #0 {{
  %thrice = mul i64 %left, 3
  %above = add i64 %thrice, 3
  %take = lshr i64 %above, 2
  ret i64 %take
}}

define internal void @relay_team_run(ptr %task, ptr %context, i64 %count, i64 %unit, i64 %from, i64 %take) #0 {{
  %to = add i64 %from, %take
  %begin = mul i64 %from, %unit
  %stop = mul i64 %to, %unit
  %behind = icmp ugt i64 %stop, %count
  %limit = select i1 %behind, i64 %count, i64 %stop
  call void %task(ptr %context, i64 %begin, i64 %limit)
  ret void
}}

define internal i64 @relay_team_share(ptr %team, i64 %number) noinline #0 {{
entry:
  %pn = getelementptr i8, ptr %team, i64 40
  %threads = load i64, ptr %pn, align 8
  %member = call ptr @relay_team_member(ptr %team, i64 %number)
  br label %own
own:
  %sum = phi i64 [ 0, %entry ], [ %sum1, %own ]
  %claimed = call i64 @relay_team_claim(ptr %member, i1 true)
  %sum1 = add i64 %sum, %claimed
  %again = icmp ne i64 %claimed, 0
  br i1 %again, label %own, label %others
others:
  %sum2 = phi i64 [ %sum1, %own ], [ %sum3, %steal ], [ %sum2, %following ]
  %k = phi i64 [ 1, %own ], [ %k, %steal ], [ %next, %following ]
  %open = icmp ult i64 %k, %threads
  br i1 %open, label %steal, label %end
steal:
  %at = add i64 %number, %k
  %wrapped = sub i64 %at, %threads
  %behind = icmp uge i64 %at, %threads
  %which = select i1 %behind, i64 %wrapped, i64 %at
  %other = call ptr @relay_team_member(ptr %team, i64 %which)
  %stolen = call i64 @relay_team_claim(ptr %other, i1 false)
  %sum3 = add i64 %sum2, %stolen
  %some = icmp ne i64 %stolen, 0
  br i1 %some, label %others, label %following
following:
  %next = add i64 %k, 1
  br label %others
end:
  ret i64 %sum2
}}

define internal void @relay_team_fork(ptr %team, ptr %task, ptr %context, i64 %count) #0 {{
entry:
  %more = add i64 %count, {MOST_UNITS - 1}
  %unit = udiv i64 %more, {MOST_UNITS}
  %rounded = add i64 %count, %unit
  %less = sub i64 %rounded, 1
  %units = udiv i64 %less, %unit
  %pd = getelementptr i8, ptr %team, i64 128
  store atomic i64 0, ptr %pd monotonic, align 8
  %ps = getelementptr i8, ptr %team, i64 40
  %threads = load i64, ptr %ps, align 8
  %caller = call ptr @relay_team_member(ptr %team, i64 0)
  %word = load atomic i64, ptr %caller monotonic, align 8
  %high = lshr i64 %word, 32
  %generation = add i64 %high, 1
  %stamp = shl i64 %generation, 32
  %last = sub i64 %threads, 1
  br label %deal
deal:
  %number = phi i64 [ %last, %entry ], [ %before, %dealt ]
  %end = phi i64 [ %units, %entry ], [ %first, %dealt ]
  %product = mul i64 %number, %units
  %above = add i64 %product, %last
  %first = udiv i64 %above, %threads
  %member = call ptr @relay_team_member(ptr %team, i64 %number)
  %pt = getelementptr i8, ptr %member, i64 8
  store atomic ptr %task, ptr %pt monotonic, align 8
  %pc = getelementptr i8, ptr %member, i64 16
  store atomic ptr %context, ptr %pc monotonic, align 8
  %pn = getelementptr i8, ptr %member, i64 24
  store atomic i64 %count, ptr %pn monotonic, align 8
  %pu = getelementptr i8, ptr %member, i64 32
  store atomic i64 %unit, ptr %pu monotonic, align 8
  %ours = icmp eq i64 %number, 0
  %part = call i64 @relay_team_part(i64 %end)
  %from = select i1 %ours, i64 %part, i64 %first
  %shifted = shl i64 %from, 16
  %range = or i64 %shifted, %end
  %new = or i64 %stamp, %range
  store atomic i64 %new, ptr %member release, align 8
  br i1 %ours, label %begin, label %dealt
dealt:
  %before = sub i64 %number, 1
  br label %deal
begin:
  call void @relay_team_begin(ptr %team)
  call void @relay_team_run(ptr %task, ptr %context, i64 %count, i64 %unit, i64 0, i64 %part)
  %rest = call i64 @relay_team_share(ptr %team, i64 0)
  %mine = add i64 %part, %rest
  %theirs = sub i64 %units, %mine
  br label %join
join:
  %spins = phi i64 [ 0, %begin ], [ %following, %wait ], [ %following, %yield ]
  %done = load atomic i64, ptr %pd acquire, align 8
  %over = icmp eq i64 %done, %theirs
  br i1 %over, label %joined, label %wait
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
joined:
  ret void
}}

define internal ptr @relay_team_work(ptr %member) #0 {{
entry:
  %pm = getelementptr i8, ptr %member, i64 64
  %team = load ptr, ptr %pm, align 8
  %pk = getelementptr i8, ptr %member, i64 72
  %number = load i64, ptr %pk, align 8
  %pd = getelementptr i8, ptr %team, i64 128
  %ps = getelementptr i8, ptr %team, i64 56
  %pb = getelementptr i8, ptr %team, i64 48
  %sleepers = getelementptr i8, ptr %team, i64 256
  %epoch = getelementptr i8, ptr %team, i64 384
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ 0, %share ], [ 0, %tell ], [ %following, %idle ], [ 0, %sleep ], [ 0, %unsleep ]
  %word = load atomic i64, ptr %member acquire, align 8
  %high = lshr i64 %word, 16
  %first = and i64 %high, 65535
  %end = and i64 %word, 65535
  %open = icmp ult i64 %first, %end
  br i1 %open, label %share, label %none
share:
  %claimed = call i64 @relay_team_share(ptr %team, i64 %number)
  %some = icmp ne i64 %claimed, 0
  br i1 %some, label %tell, label %look
tell:
  %done = atomicrmw add ptr %pd, i64 %claimed acq_rel
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
  %last = load atomic i64, ptr %member seq_cst, align 8
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
