"""Parses the text of a target, and prints it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import replace

from relay.arguments import text
from relay.errors import InvalidArgument, Unsupported, near
from relay.target.chips import CHIPS
from relay.target.gpu import check_gpu, resolve_gpu
from relay.target.llvm_features import BASELINE, NAMES, features_of, host_cpu, implying, unknown
from relay.target.record import CpuTarget, GpuTarget, Target


def host() -> CpuTarget:
    """The target of this machine. Raises Unsupported on any but Linux on x86-64 or aarch64."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise Unsupported(f"host {sys.platform} {machine}", "native code is made for Linux on x86-64 and aarch64 only")
    return CpuTarget(*host_cpu())


CROSS: dict[str, tuple[str, frozenset[str]]] = {
    "aarch64": ("generic", frozenset({"neon"})),
    "arm": ("generic", frozenset()),
    "armv7a": ("generic", frozenset()),
    "riscv32": ("sifive-e31", frozenset({"m", "a", "c"})),
    "riscv64": ("generic-rv64", frozenset({"m", "a", "f", "d", "c"})),
    "thumbv6m": ("generic", frozenset()),
    "thumbv7m": ("cortex-m3", frozenset()),
    "thumbv7em": ("cortex-m3", frozenset({"dsp"})),
    "thumbv8m.main": ("cortex-m33", frozenset()),
    "thumbv8.1m.main": ("cortex-m55", frozenset({"dsp", "mve"})),
    "wasm32": ("generic", frozenset()),
    "x86_64": ("x86-64", frozenset({"sse2"})),
}
"""The default CPU and features by the first word of a triple. Microcontrollers need a named CPU: for a generic one,
LLVM schedules instructions without regard to the number of registers."""
SHORT = {
    "android": "aarch64-unknown-linux-android",
    "apple-m1": "aarch64-unknown-linux-gnu -mcpu=apple-m1",
    "aarch64": "aarch64-unknown-linux-gnu",
    "arm64": "aarch64-unknown-linux-gnu",
    "armv7l": "arm-unknown-linux-gnueabihf -mcpu=cortex-a7",
    "cortex-m0": "thumbv6m-none-eabi -mcpu=cortex-m0",
    "cortex-m0plus": "thumbv6m-none-eabi -mcpu=cortex-m0plus",
    "cortex-m3": "thumbv7m-none-eabi -mcpu=cortex-m3",
    "cortex-m4": "thumbv7em-none-eabi -mcpu=cortex-m4",
    "cortex-m7": "thumbv7em-none-eabi -mcpu=cortex-m7",
    "cortex-m33": "thumbv8m.main-none-eabi -mcpu=cortex-m33 -mattr=+dsp",
    "cortex-m55": "thumbv8.1m.main-none-eabi -mcpu=cortex-m55",
    "cortex-m85": "thumbv8.1m.main-none-eabi -mcpu=cortex-m85",
    "graviton2": "aarch64-unknown-linux-gnu -mcpu=neoverse-n1",
    "graviton3": "aarch64-unknown-linux-gnu -mcpu=neoverse-v1",
    "graviton4": "aarch64-unknown-linux-gnu -mcpu=neoverse-v2",
    "jetson-nano": "aarch64-unknown-linux-gnu -mcpu=cortex-a57",
    "jetson-orin": "aarch64-unknown-linux-gnu -mcpu=cortex-a78ae",
    "jetson-xavier": "aarch64-unknown-linux-gnu -mcpu=carmel",
    "pixel6": "aarch64-unknown-linux-android -mcpu=cortex-x1",
    "pixel7": "aarch64-unknown-linux-android -mcpu=cortex-x1",
    "pixel8": "aarch64-unknown-linux-android -mcpu=cortex-x3",
    "pixel9": "aarch64-unknown-linux-android -mcpu=cortex-x4",
    "riscv32": "riscv32-unknown-elf",
    "riscv64": "riscv64-unknown-linux-gnu",
    "rpi2": "arm-unknown-linux-gnueabihf -mcpu=cortex-a7",
    "rpi3": "aarch64-unknown-linux-gnu -mcpu=cortex-a53 -mattr=-aes,-sha2",
    "rpi4": "aarch64-unknown-linux-gnu -mcpu=cortex-a72 -mattr=-aes,-sha2",
    "rpi5": "aarch64-unknown-linux-gnu -mcpu=cortex-a76",
    "thumbv7em": "thumbv7em-none-eabi",
    "wasm32": "wasm32-unknown-unknown",
    "x86_64": "x86_64-unknown-linux-gnu",
}
"""The target texts that short names stand for: processors, boards, and phones (by their largest core). Raspberry Pis
are 64-bit from 3 on; 3 and 4 lack the cryptographic extension that their cores usually have."""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "armv6l": "arm", "armv7": "armv7a", "armv7l": "armv7a"}
"""Other tools' spellings of a triple's first word, and the spelling here."""
FOREIGN = ("apple", "darwin", "macos", "ios", "windows", "win32", "msvc", "cygwin", "uefi")
"""Words in a triple of systems without ELF objects, on which nothing was tested."""
NEEDING = {
    "dsp": ("thumbv7em", "thumbv8m.main", "thumbv8.1m.main"),
    "mve": ("thumbv8.1m.main",),
    "mve.fp": ("thumbv8.1m.main",),
}
"""The optional features of microcontrollers, with the architectures (first words of a triple) that can have each. They
are checked before a build, because LLVM emits the instructions for any other architecture too, or ends the process."""
HARD_FLOAT = {"arm": frozenset({"vfp4d16sp"}), "thumbv7em": frozenset({"vfp4d16sp"})}
"""LLVM's feature for the floating-point unit that a triple ending in `eabihf` implies, by the triple's first word (the
architecture). It lists only the architectures whose default CPU (in `CROSS`) has no such unit."""


COSTS, CHANGES = "-costs=", "-mattr="
SPELLED: dict[str, Target] = {}
"""Targets whose text `spelled` has made: parsing such a text again in this process needs no check by LLVM."""


def resolve(target: str | Target) -> Target:
    """Parse the text of a target. `"llvm"` is this machine; `"TRIPLE -mcpu=NAME -mattr=+a,+b"` another one, with LLVM's
    options; `"cuda -arch=sm_90"` and `"opencl"` are GPUs. Some have short names: `"riscv64"`, `"rpi4"` (`SHORT`). For
    each, `-costs=NAME=NUMBER,...` sets measured costs in place of estimates (`with_costs`).

    Raises Unsupported for an unknown triple, and for Windows and macOS, InvalidArgument for other options.
    """
    if isinstance(target, Target):
        return target
    text(target, "target", 'write "llvm", or a triple')
    if (known := SPELLED.get(target)) is not None:
        return known
    words = target.split()
    costs = [word for word in words if word.startswith(COSTS)]
    given = [_cost(part) for word in costs for part in word.removeprefix(COSTS).split(",")]
    once([name for name, _ in given], "cost", target)
    changes = [part for word in words if word.startswith(CHANGES) for part in word.removeprefix(CHANGES).split(",")]
    once([change[1:] for change in changes if change], "feature", target)
    options = [word.partition("=")[0] for word in words[1:] if not word.startswith((COSTS, CHANGES))]
    once(options, "option", target)
    return _machine(target, [word for word in words if word not in costs]).with_costs(dict(given))


def once(names: Sequence[str], kind: str, target: str) -> None:
    """Raise InvalidArgument if a name occurs twice."""
    if twice := [name for number, name in enumerate(names) if name in names[:number]]:
        raise InvalidArgument(f"target {target!r}", f"has the {kind} {twice[0]} twice", "name each once")


def _cost(written: str) -> tuple[str, float]:
    """Parse a cost: `fork=3000`."""
    name, _, number = written.partition("=")
    try:
        return name, float(number)
    except ValueError:
        what = f"has the cost {written!r}" if written else f"names no cost behind {COSTS} or a comma"
        raise InvalidArgument("target", what, "write -costs=fork=3000,issue_width=4.5") from None


def _machine(target: str, words: Sequence[str]) -> Target:
    """The target that the words of a text describe."""
    if words[:1] in (["cuda"], ["opencl"]):
        return resolve_gpu(target, words)
    if words[:1] == ["llvm"]:
        machine = host()
    else:
        words = [*SHORT.get(words[0], words[0]).split(), *words[1:]] if words else [""]
        machine = _of_triple(words[0], target)
    for word in sorted(words[1:], key=lambda word: not word.startswith("-mcpu=")):
        option, _, value = word.partition("=")
        if option == "-mcpu" and value:
            machine = _with_cpu(machine, value)
        elif option == "-mattr" and value:
            machine = replace(machine, features=_changed(machine, value))
        else:
            hint = "there are -mcpu=NAME and -mattr=+A,-B"
            if option == "-mfloat-abi":
                hint = f"the triple says it, as in thumbv7em-none-eabihf (hard) and thumbv7em-none-eabi; {hint}"
            raise InvalidArgument(f"target {target!r}", f"has the option {word}", hint)
    _check_arm(machine, f"target {target!r}")
    return machine


def _check_arm(machine: CpuTarget, where: str) -> None:
    """Raise InvalidArgument if the target is a microcontroller with a feature that its architecture never has; if it
    passes floats in registers, but has no unit for floats or may not use it; or if it has vectors (MVE) together with
    `soft-float`, which forbids their registers."""
    first = machine.triple.partition("-")[0]
    for name, others in NEEDING.items():
        if first.startswith("thumb") and name in machine.features and first not in others:
            raise InvalidArgument(where, f"has {name}, which no {first} has", f"it is of {', '.join(others)}")
    if machine.has("soft-float", "mve"):
        hint = "write -mattr=+soft-float,-mve"
        raise InvalidArgument(where, "has mve, which needs what soft-float takes away", hint)
    if machine.floats_in_registers and not machine.computes_floats:
        what = f"passes floats in registers (eabihf), and {machine.cpu} has no unit for floats, or may not use it"
        hint = f"write {machine.triple.removesuffix('hf')}, or name a processor that has one"
        raise InvalidArgument(where, what, hint)


def names() -> list[str]:
    """The names of targets that are accepted in place of a triple."""
    return ["llvm", "cuda", "opencl", *SHORT]


def spelled(target: Target) -> str:
    """The text of a target, from which `resolve` makes an equal target. For this machine's own processor the text is
    `llvm`, which means another processor on another machine. Raises InvalidArgument for a GPU that no text
    describes."""
    costs = ",".join(f"{name}={repr(number).removesuffix('.0')}" for name, number in target.measured)
    words = [_spelled(replace(target, measured=())), *([COSTS + costs] if costs else [])]
    found = " ".join(words)
    if words[0] != "llvm":
        SPELLED[found] = target
    return found


def _spelled(target: Target) -> str:
    if isinstance(target, GpuTarget):
        return _spelled_gpu(target)
    if (target.triple, target.cpu, target.features) == host_cpu():
        return "llvm"
    known = _generic(target.triple)
    cpu, features = known.cpu, known.features
    words = [target.triple]
    if target.cpu != cpu:
        words.append(f"-mcpu={target.cpu}")
        features = _features_of(target.triple, target.cpu)
    gone = sorted(features - target.features)
    left = features.difference(gone, *(implying(target.triple, name) for name in gone))
    changes = [f"-{name}" for name in gone] + [f"+{name}" for name in sorted(target.features - left)]
    return " ".join([*words, *([f"-mattr={','.join(changes)}"] if changes else [])])


def _spelled_gpu(target: GpuTarget) -> str:
    check_gpu(target, "target")
    if target.kind == "opencl":
        return " ".join([target.kind, *(f"-mattr=+{name}" for name in sorted(target.features))])
    unused = ",".join(f"-{name}" for name in sorted(CHIPS[target.cpu].features - target.features))
    words = [target.kind, f"-arch={target.cpu}"]
    words += [f"-matmul={target.matmul}"] if target.matmul else []
    return " ".join([*words, *([f"-mattr={unused}"] if unused else [])])


def _of_triple(triple: str, target: str) -> CpuTarget:
    """The target of a triple. Raises Unsupported for an unknown triple, or an unsupported system."""
    name, *system = triple.split("-")
    if any(part.lower().startswith(FOREIGN) for part in system):
        what = "is of Windows or macOS, which are not supported"
        raise Unsupported(f"target {target!r}", what, "see docs/support.md")
    if name not in CROSS or not system:
        known = ", ".join(f"{name}-..." for name in CROSS)
        hint = f'known are "llvm" (this machine), "cuda", "opencl", {", ".join(SHORT)}, and triples {known}'
        if name in MACHINES:
            hint = f'write "{"-".join([MACHINES[name], *system])}"{f" or {name}" if name in SHORT else ""}; {hint}'
        if alike := near(triple.lower(), names(), 0.5):
            hint = f"did you mean {' or '.join(alike)}? {hint}"
        raise Unsupported(f"target {target!r}", "is not known", hint)
    return _generic(triple)


def _generic(triple: str) -> CpuTarget:
    """The target of a triple without a named CPU."""
    first = triple.partition("-")[0]
    machine = CpuTarget(triple, *CROSS.get(first, ("", frozenset[str]())))
    floats = HARD_FLOAT.get(first, frozenset()) if machine.floats_in_registers else frozenset[str]()
    return replace(machine, features=machine.features | floats)


def _with_cpu(machine: CpuTarget, cpu: str, where: str = "target") -> CpuTarget:
    """The target with this CPU (also a name in `SHORT`) and, where LLVM can tell, its features. Raises InvalidArgument
    for a CPU of another architecture."""
    first, words = machine.triple.partition("-")[0], SHORT.get(cpu, "").split()
    options = {word.partition("=")[0]: word.partition("=")[2] for word in words[1:]}
    if options and (other := words[0].partition("-")[0]) != first:
        raise InvalidArgument(where, f"has the CPU {cpu}, which is of {other}, not of {first}", f'write "{cpu}"')
    if first.startswith("thumb") and not options and cpu != "generic":
        known = [name for name, words in SHORT.items() if words.startswith(f"{first}-") and "-mcpu=" in words]
        what = f"has the CPU {cpu!r}, which is not known of {first}"
        raise InvalidArgument(where, what, f"known are {', '.join(['generic', *known])}")
    named = options.get("-mcpu", cpu)
    _check(machine.triple, named, "", where)
    machine = replace(machine, cpu=named, features=_features_of(machine.triple, named))
    return replace(machine, features=_changed(machine, options["-mattr"])) if "-mattr" in options else machine


def _features_of(triple: str, cpu: str) -> frozenset[str]:
    """The features of a named CPU, as far as LLVM knows them."""
    first = triple.partition("-")[0]
    return CROSS[first][1] | (features_of(triple, cpu) if first in BASELINE else frozenset[str]())


def _check(triple: str, cpu: str, changes: str, where: str = "target") -> None:
    """Raise InvalidArgument for a CPU or feature that LLVM does not know: LLVM would end the process, or ignore the
    name."""
    first = triple.partition("-")[0]
    names = {change[1:] for change in changes.split(",") if change}
    if cpu == CROSS[first][0] and names <= {*NAMES.get(first, "").split()}:
        return
    if (wrong := unknown(triple, cpu, changes)) is not None:
        name, kind = wrong
        hint = f"LLVM lists them: llc -mtriple={triple} -mcpu=help"
        raise InvalidArgument(where, f"there is no {kind} '{name}' of {triple.partition('-')[0]}", hint)


def check_cpu(target: CpuTarget, where: str) -> None:
    """Raise InvalidArgument for an unknown triple, CPU or feature."""
    try:
        known = _of_triple(target.triple, target.triple)
    except Unsupported as error:
        raise InvalidArgument(where, f"has triple = {target.triple!r}, which {error.what}", error.hint) from None
    here = host_cpu()
    if (target.triple, target.cpu) == here[:2] and target.features <= here[2]:
        return
    if target.cpu != known.cpu:
        _with_cpu(known, target.cpu, where)
    _check(target.triple, target.cpu, ",".join(f"+{name}" for name in sorted(target.features - known.features)), where)
    _check_arm(target, where)


def _changed(machine: CpuTarget, changes: str) -> frozenset[str]:
    """The machine's features after these additions and removals, including removals of features that depend on a
    removed one."""
    _check(machine.triple, machine.cpu, changes)
    found = set(machine.features)
    for change in changes.split(","):
        if change[:1] not in ("+", "-") or not change[1:]:
            raise InvalidArgument("target", f"has the feature {change!r}", "write -mattr=+A,-B")
        if change[0] == "+":
            found.add(change[1:])
        elif machine.triple.startswith(("arm", "thumb")) and change[1:] not in found:
            hint = "+soft-float leaves the unit for floats alone; else name a CPU without it"
            raise InvalidArgument("target", f"has {change}, and {machine.cpu} is not known to have it", hint)
        else:
            found -= {change[1:], *implying(machine.triple, change[1:])}
    return frozenset(found)
