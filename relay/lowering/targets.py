"""What code is generated for: a triple, a CPU and its features."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

import llvmlite.binding as llvm

from relay.errors import Unsupported


@dataclass(frozen=True)
class CpuTarget:
    """A CPU as LLVM names it. Choices in lowering look at `features`, never at names of CPUs."""

    triple: str
    cpu: str
    features: frozenset[str]

    @property
    def feature_string(self) -> str:
        """`+avx2,+fma,...`, sorted."""
        return ",".join(f"+{name}" for name in sorted(self.features))

    @property
    def function_attributes(self) -> str:
        """What LLVM is told of every function: with AVX-512, to use all of it, and to align the stack: without being
        told, LLVM finds out that it spills 64 bytes at a time when it is too late to align them."""
        return '"prefer-vector-width"="512" "stackrealign"' if "avx512f" in self.features else ""


def host() -> CpuTarget:
    """The machine this runs on. Raises Unsupported elsewhere than on Linux x86-64 and aarch64."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise Unsupported(f"host {sys.platform} {machine}", "native code is made for Linux on x86-64 and aarch64 only")
    found = llvm.get_host_cpu_features()
    features = frozenset(name for name, there in found.items() if there)
    return CpuTarget(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def resolve(target: str | CpuTarget) -> CpuTarget:
    """`"llvm"` is this machine."""
    if isinstance(target, CpuTarget):
        return target
    if target == "llvm":
        return host()
    raise Unsupported(f"target {target!r}", "is not known", 'the known one is "llvm": native code for this machine')
