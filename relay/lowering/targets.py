"""What code is generated for: a triple, a CPU and its features."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, replace

import llvmlite.binding as llvm

from relay.arguments import text
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.cpu_features import BASELINE, features_of, fuses, implying, unknown


@dataclass(frozen=True)
class CpuTarget:
    """A CPU as LLVM names it. Choices in lowering look at `features`, never at names of CPUs."""

    triple: str
    cpu: str
    features: frozenset[str]

    @property
    def feature_string(self) -> str:
        """`-sse4a,...,+avx2,+fma,...`, sorted: what LLVM would take the CPU to have besides is taken from it."""
        return ",".join(
            [f"-{name}" for name in sorted(self._absent())] + [f"+{name}" for name in sorted(self.features)]
        )

    def _absent(self) -> frozenset[str]:
        base, always = BASELINE.get(self.triple.partition("-")[0], (self.cpu, frozenset[str]()))
        if self.cpu == base or (self.cpu == llvm.get_host_cpu_name() and self.features >= _host_features()):
            return frozenset()
        return features_of(self.triple, self.cpu) - self.features - always

    @property
    def function_attributes(self) -> str:
        """What LLVM is told of every function: with AVX-512, to use all of it, and to align the stack: without being
        told, LLVM finds out that it spills 64 bytes at a time when it is too late to align them."""
        return '"prefer-vector-width"="512" "stackrealign"' if "avx512f" in self.features else ""

    @property
    def abi(self) -> str:
        """How functions call each other, where LLVM wants to be told."""
        if not self.triple.startswith("riscv"):
            return ""
        floats = "d" if "d" in self.features else "f" if "f" in self.features else ""
        return ("lp64" if self.triple.startswith("riscv64") else "ilp32") + floats

    @property
    def fuses(self) -> bool:
        """Whether floats of both widths are multiplied and added by one instruction: else, by calls of libm."""
        return fuses(self.features)

    @property
    def relocation(self) -> str:
        """Whether code is for any address, or for that which a linker gives it."""
        return "pic" if "linux" in self.triple else "static"


def host() -> CpuTarget:
    """The machine this runs on. Raises Unsupported elsewhere than on Linux x86-64 and aarch64."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise Unsupported(f"host {sys.platform} {machine}", "native code is made for Linux on x86-64 and aarch64 only")
    return CpuTarget(llvm.get_process_triple(), llvm.get_host_cpu_name(), _host_features())


def _host_features() -> frozenset[str]:
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


CROSS: dict[str, tuple[str, frozenset[str]]] = {
    "aarch64": ("generic", frozenset({"neon"})),
    "arm": ("generic", frozenset()),
    "riscv32": ("generic-rv32", frozenset({"m", "a", "c"})),
    "riscv64": ("generic-rv64", frozenset({"m", "a", "f", "d", "c"})),
    "thumbv6m": ("generic", frozenset()),
    "thumbv7m": ("generic", frozenset()),
    "thumbv7em": ("generic", frozenset()),
    "wasm32": ("generic", frozenset()),
    "x86_64": ("x86-64", frozenset()),
}
"""CPU and features by the first word of a triple, where a target names no others."""
SHORT = {
    "aarch64": "aarch64-unknown-linux-gnu",
    "riscv64": "riscv64-unknown-linux-gnu",
    "thumbv7em": "thumbv7em-none-eabi",
    "wasm32": "wasm32-unknown-unknown",
    "x86_64": "x86_64-unknown-linux-gnu",
}
"""The triples that the names of processors alone stand for."""
FOREIGN = ("apple", "darwin", "macos", "ios", "windows", "win32", "msvc", "cygwin", "uefi")
"""What a triple has in it of a system whose objects are not ELF, and which nothing here was tried on."""
HARD_FLOAT = frozenset({"vfp4d16sp"})
"""What an Arm triple ending in `eabihf` has at least."""


def resolve(target: str | CpuTarget) -> CpuTarget:
    """`"llvm"` is this machine; `"TRIPLE -mcpu=NAME -mattr=+a,+b"` another one, its options as LLVM spells them;
    `"cuda -arch=sm_90"` and `"opencl"` are GPUs. Of some triples the first word is enough: `"riscv64"`.

    Raises Unsupported for a triple that is not known or of Windows or macOS, InvalidArgument for other options.
    """
    if isinstance(target, CpuTarget):
        return target
    text(target, "target", 'write "llvm", or a triple')
    words = target.split()
    if words[:1] in (["cuda"], ["opencl"]):
        from relay.lowering.gpu.target import resolve_gpu  # which is made of what is here

        return resolve_gpu(target)
    if words[:1] == ["llvm"]:
        machine = host()
    else:
        machine = _of_triple(SHORT.get(words[0], words[0]) if words else "", target)
    for word in sorted(words[1:], key=lambda word: not word.startswith("-mcpu=")):
        option, _, value = word.partition("=")
        if option == "-mcpu" and value:
            machine = _with_cpu(machine, value)
        elif option == "-mattr" and value:
            machine = replace(machine, features=_changed(machine, value))
        else:
            raise InvalidArgument(
                f"target {target!r}", f"has the option {word}", "there are -mcpu=NAME and -mattr=+A,-B"
            )
    return machine


def _of_triple(triple: str, target: str) -> CpuTarget:
    """The machine of a triple. Raises Unsupported for one that is not known, or of a system that is not supported."""
    name, *system = triple.split("-")
    if any(part.lower().startswith(FOREIGN) for part in system):
        what = "is of Windows or macOS, which are not supported"
        raise Unsupported(f"target {target!r}", what, "see docs/support.md")
    if name not in CROSS or not system:
        known = ", ".join(f"{name}-..." for name in CROSS)
        hint = f'known are "llvm" (this machine), "cuda", "opencl", {", ".join(SHORT)}, and triples {known}'
        raise Unsupported(f"target {target!r}", "is not known", hint)
    cpu, features = CROSS[name]
    return CpuTarget(triple, cpu, features | HARD_FLOAT if triple.endswith("eabihf") else features)


def _with_cpu(machine: CpuTarget, cpu: str) -> CpuTarget:
    """The machine with this CPU, and what that has where LLVM can tell."""
    _check(machine.triple, cpu, "")
    first = machine.triple.partition("-")[0]
    if first not in BASELINE:
        return replace(machine, cpu=cpu)
    return replace(machine, cpu=cpu, features=CROSS[first][1] | features_of(machine.triple, cpu))


def _check(triple: str, cpu: str, changes: str) -> None:
    """Raise InvalidArgument for a processor or a feature that LLVM does not know: it ends the process, or goes on."""
    if (wrong := unknown(triple, cpu, changes)) is not None:
        name, kind = wrong
        hint = f"LLVM lists them: llc -mtriple={triple} -mcpu=help"
        raise InvalidArgument("target", f"there is no {kind} '{name}' of {triple.partition('-')[0]}", hint)


def _changed(machine: CpuTarget, changes: str) -> frozenset[str]:
    """Its features with these added and those taken away, together with what is not there without them."""
    _check(machine.triple, machine.cpu, changes)
    found = set(machine.features)
    for change in changes.split(","):
        if change[:1] not in ("+", "-") or not change[1:]:
            raise InvalidArgument("target", f"has the feature {change!r}", "write -mattr=+A,-B")
        if change[0] == "+":
            found.add(change[1:])
        else:
            found -= {change[1:], *implying(machine.triple, change[1:])}
    return frozenset(found)
