"""What a GPU of NVIDIA's can do at most, measured: launches, graphs, copies, matrix units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from relay.lowering.gpu.codegen import compile_kernels
from relay.lowering.gpu.warpgroup_products import VISIBLE, WAIT, constraints, description, products_text
from relay.runtime.cuda_driver import PROCESSORS, CudaDriver
from relay.target import GpuTarget

ROUNDS = 7
"""How often something is timed: the median counts."""
MACS = 16 * 8 * 32
"""Multiply-adds of one `mma.sync` m16n8k32."""
GROUP_MACS = 64 * 256 * 32
"""Multiply-adds of one `wgmma` m64n256k32."""
GROUPS_OF_A_BLOCK, FACTORS, TOGETHER = 2, (64 + 256) * 128, 4
"""Of the loop that only multiplies so: groups of four warps, bytes of both factors, products under one wait."""
ACCUMULATORS, WARPS = 8, 8
SUMS = "{ i32, i32, i32, i32 }"

HEAD = (
    "define ptx_kernel void @{name}(ptr addrspace(1) noalias align 64 dereferenceable({size}) %arg0) nounwind "
    '"nvvm.reqntid"="{threads}" {{'
)
EMPTY = HEAD.format(name="empty", size=4, threads=32) + "\nentry:\n  ret void\n}"


class Clock:
    """Times what is asked for in a stream, by marks of the device."""

    def __init__(self, driver: CudaDriver):
        self.driver = driver
        self.stream = driver.stream()
        self.marks = driver.event(timing=True), driver.event(timing=True)

    def microseconds(self, action: Callable[[], object], times: int = 20) -> float:
        """The time of an action in this stream: done once, then so many times in each round."""
        driver, found = self.driver, list[float]()
        action()
        for _ in range(ROUNDS):
            driver.record(self.marks[0], self.stream)
            for _ in range(times):
                action()
            driver.record(self.marks[1], self.stream)
            driver.wait_event(self.marks[1])
            found.append(1e3 * driver.elapsed(*self.marks) / times)
        return median(found)

    def graph_of(self, action: Callable[[], object], times: int = 20) -> float:
        """The time of an action, so many of which are one graph: without what a launch costs the host."""
        driver = self.driver
        driver.begin(self.stream)
        for _ in range(times):
            action()
        graph = driver.end(self.stream)
        try:
            return self.microseconds(lambda: driver.replay(graph, self.stream), 3) / times
        finally:
            driver.free_graph(graph)

    def close(self) -> None:
        """Give back what it has."""
        self.driver.free_stream(self.stream)
        for mark in self.marks:
            self.driver.free_event(mark)


def peak_text(turns: int) -> str:
    """LLVM IR of `@peak`: each warp multiplies matrices of codes in registers, and nothing else."""
    every = range(ACCUMULATORS)
    name = "@llvm.nvvm.mma.m16n8k32.row.col.s8"
    words = ", ".join(["i32 %w"] * 6)
    lines = [
        f"declare {SUMS} {name}({', '.join(['i32'] * 10)})",
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        HEAD.format(name="peak", size=4 * 32 * WARPS, threads=32 * WARPS),
        "entry:",
        "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "  %place = getelementptr i32, ptr addrspace(1) %arg0, i32 %t",
        "  %w = load i32, ptr addrspace(1) %place, align 4",
        "  br label %turn",
        "turn:",
        "  %i = phi i32 [ 0, %entry ], [ %next, %turn ]",
        *(f"  %s{k}_{n} = phi i32 [ {k}, %entry ], [ %r{k}_{n}, %turn ]" for k in every for n in range(4)),
    ]
    for k in every:
        sums = ", ".join(f"i32 %s{k}_{n}" for n in range(4))
        lines.append(f"  %m{k} = call {SUMS} {name}({words}, {sums})")
        lines += [f"  %r{k}_{n} = extractvalue {SUMS} %m{k}, {n}" for n in range(4)]
    lines += ["  %next = add i32 %i, 1", f"  %more = icmp ult i32 %next, {turns}"]
    lines += ["  br i1 %more, label %turn, label %end", "end:"]
    total = "%r0_0"
    for number, value in enumerate(f"%r{k}_{n}" for k in every for n in range(4)):
        lines.append(f"  %x{number} = xor i32 {total}, {value}")
        total = f"%x{number}"
    lines += [f"  store i32 {total}, ptr addrspace(1) %place, align 4", "  ret void", "}"]
    return "\n".join(lines)


def group_peak_text(turns: int) -> str:
    """LLVM IR of `@group_peak`: each group of four warps multiplies matrices of codes in shared memory, and nothing
    else."""
    threads, sums = 128 * GROUPS_OF_A_BLOCK, range(128)
    struct = f"{{ {', '.join(['i32'] * 128)} }}"
    barrier = "@llvm.nvvm.barrier.cta.sync.aligned.all"
    lines = [
        "@shared = external addrspace(3) global [0 x i8], align 1024",
        f"declare void {barrier}(i32)",
        HEAD.format(name="group_peak", size=4 * 32 * WARPS, threads=threads),
        "entry:",
        "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "  %place = getelementptr i32, ptr addrspace(1) %arg0, i32 %t",
        "  %w = load i32, ptr addrspace(1) %place, align 4",
        "  br label %fill",
        "fill:",
        "  %f = phi i32 [ %t, %entry ], [ %f1, %fill ]",
        "  %at = getelementptr i32, ptr addrspace(3) @shared, i32 %f",
        "  store i32 %w, ptr addrspace(3) %at, align 4",
        f"  %f1 = add i32 %f, {threads}",
        f"  %left = icmp ult i32 %f1, {FACTORS // 4}",
        "  br i1 %left, label %fill, label %filled",
        "filled:",
        f'  call void asm sideeffect "{VISIBLE}", "~{{memory}}"()',
        f"  call void {barrier}(i32 0)",
        "  %start = ptrtoint ptr addrspace(3) @shared to i64",
        "  %unit = lshr i64 %start, 4",
    ]
    for number in range(TOGETHER):
        lines.append(f"  %a{number} = add i64 %unit, {description(128) + 2 * number}")
        lines.append(f"  %b{number} = add i64 %unit, {description(128) + 2 * number + 64 * 128 // 16}")
    lines += ["  br label %turn", "turn:", "  %i = phi i32 [ 0, %filled ], [ %next, %turn ]"]
    lines += [f"  %s{n} = phi i32 [ 0, %filled ], [ %r{n}, %turn ]" for n in sums]
    words = ", ".join(f"i64 %a{n}, i64 %b{n}" for n in range(TOGETHER))
    text, ties = products_text(256, "s8", "s8", TOGETHER), constraints(128, 2 * TOGETHER)
    given = ", ".join(f"i32 %s{n}" for n in sums)
    lines.append(f'  %m = call {struct} asm sideeffect "{text}", "{ties}"({words}, {given})')
    lines += [f"  %r{n} = extractvalue {struct} %m, {n}" for n in sums]
    lines.append(f'  call void asm sideeffect "{WAIT.format(left=1)}", "~{{memory}}"()')
    lines += ["  %next = add i32 %i, 1", f"  %more = icmp ult i32 %next, {turns}"]
    lines += ["  br i1 %more, label %turn, label %end, !llvm.loop !0", "end:"]
    given = ", ".join(f"i32 %r{n}" for n in sums)
    lines.append(f'  %e = call {struct} asm sideeffect "{WAIT.format(left=0)}", "{constraints(128, 0)}"({given})')
    total = "0"
    for n in sums:
        lines.append(f"  %e{n} = extractvalue {struct} %e, {n}")
        lines.append(f"  %x{n} = xor i32 {total}, %e{n}")
        total = f"%x{n}"
    lines += [f"  store i32 {total}, ptr addrspace(1) %place, align 4", "  ret void", "}"]
    lines += ["!0 = distinct !{!0, !1}", '!1 = !{!"llvm.loop.unroll.disable"}']
    return "\n".join(lines)


def limits(driver: CudaDriver, largest: int, turns: int, target: GpuTarget) -> Iterator[tuple[str, float, str]]:
    """What it can do at most, by name, with the unit. `largest`: bytes of the largest copy."""
    blocks = 2 * driver.attribute(PROCESSORS)
    groups = target.warpgroups
    with driver:
        clock = Clock(driver)
        texts = [EMPTY, peak_text(turns), *([group_peak_text(turns)] if groups else [])]
        module = driver.load(compile_kernels("\n".join(texts), target).code)
        empty, peak = (driver.function(module, name, 0) for name in ("empty", "peak"))
        memory = [driver.allocate(max(largest, 4 * 32 * WARPS)) for _ in range(2)]
        host = driver.allocate_host(largest)
        driver.upload(memory[0], host, min(largest, 4 * 32 * WARPS), clock.stream)

        def launch() -> None:
            driver.launch(empty, (1, 1, 1), (32, 1, 1), 0, clock.stream, memory[:1])

        yield "launch", clock.microseconds(launch, 100), "us"
        yield "launch in a graph", clock.graph_of(launch, 100), "us"
        size = largest
        to, start = memory
        while size >= max(largest >> 6, 1 << 10):

            def copied(size: int = size) -> None:
                driver.copy(to, start, size, clock.stream)

            rate = 2 * size / clock.microseconds(copied)
            yield f"copy on the device, {size >> 10} KiB (read and write)", rate / 1e3, "GB/s"
            size >>= 3
        for name, copy in (("to the device", driver.upload), ("to the host", driver.download)):
            ends = (memory[0], host) if copy == driver.upload else (host, memory[0])
            rate = largest / clock.microseconds(lambda copy=copy, ends=ends: copy(*ends, largest, clock.stream), 3)
            yield f"copy {name}", rate / 1e3, "GB/s"
        time = clock.microseconds(
            lambda: driver.launch(peak, (blocks, 1, 1), (32 * WARPS, 1, 1), 0, clock.stream, memory[:1]), 3
        )
        yield "int8 by mma.sync", 2 * blocks * WARPS * ACCUMULATORS * turns * MACS / time / 1e6, "TOPS"
        if groups:
            function, threads = driver.function(module, "group_peak", FACTORS), 128 * GROUPS_OF_A_BLOCK
            time = clock.microseconds(
                lambda: driver.launch(function, (blocks, 1, 1), (threads, 1, 1), FACTORS, clock.stream, memory[:1]), 3
            )
            work = 2 * blocks * GROUPS_OF_A_BLOCK * TOGETHER * turns * GROUP_MACS
            yield "int8 by wgmma", work / time / 1e6, "TOPS"
        clock.close()
        driver.free_host(host)
        for each in memory:
            driver.free(each)
        driver.unload(module)
