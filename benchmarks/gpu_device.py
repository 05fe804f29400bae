"""What a GPU of NVIDIA's can do at most, measured: launches, graphs, copies, matrix units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from relay.lowering.gpu.codegen import compile_kernels
from relay.lowering.gpu.target import GpuTarget, resolve_gpu
from relay.runtime.cuda_driver import PROCESSORS, CudaDriver

ROUNDS = 7
"""How often something is timed: the median counts."""
MACS = 16 * 8 * 32
"""Multiply-adds of one `mma.sync` m16n8k32."""
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


def limits(driver: CudaDriver, largest: int, turns: int) -> Iterator[tuple[str, float, str]]:
    """What it can do at most, by name, with the unit. `largest`: bytes of the largest copy."""
    target: GpuTarget = resolve_gpu("cuda")
    blocks = 2 * driver.attribute(PROCESSORS)
    with driver:
        clock = Clock(driver)
        module = driver.load(compile_kernels(f"{EMPTY}\n{peak_text(turns)}", target).code)
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
        clock.close()
        driver.free_host(host)
        for each in memory:
            driver.free(each)
        driver.unload(module)
