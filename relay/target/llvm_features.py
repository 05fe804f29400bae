"""What LLVM knows of CPUs of x86-64 and AArch64, asked of LLVM itself: which features one has, which imply another.

Its C interface does not tell; but it inlines a function into another only where the callee needs no feature that the
caller lacks, and does so for every pair of CPU and features that it can be asked about.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache, lru_cache

from relay.tile_registers import granted

BASELINE = {
    "aarch64": ("generic", frozenset({"fp-armv8", "neon"})),
    "x86_64": ("x86-64", frozenset({"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"})),
}
"""The CPU that code for a machine may always expect, and what nobody can take from it."""
NAMES = {
    "aarch64": """
        aes bf16 complxnum crc dotprod fp16fml fullfp16 i8mm jsconv lse rcpc rdm sha2 sha3 sm4 sve sve2
    """,
    "x86_64": """
        adx aes amx-bf16 amx-int8 amx-tile avx avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f
        avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vl avx512vnni avx512vpopcntdq avxvnni bmi bmi2 crc32 cx16
        f16c fma fma4 gfni lzcnt movbe pclmul popcnt rdrnd sahf sha sse3 sse4.1 sse4.2 sse4a ssse3 tbm vaes vpclmulqdq
        xop
    """,
}
"""Features by machine that compiled arithmetic can come to use."""


@cache
def host_cpu() -> tuple[str, str, frozenset[str]]:
    """Triple, CPU and all features of the machine this runs on; those of AMX if the system lets this process use it."""
    import llvmlite.binding as llvm

    features = frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)
    if "amx-tile" in features and not granted():
        features = frozenset(name for name in features if not name.startswith("amx-"))
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


EXTENSIONS = frozenset({"dsp", "mve"})
"""What a Cortex-M may have or not: a target's features say it, whatever LLVM takes its CPU to have."""


def absent(triple: str, cpu: str, features: frozenset[str]) -> frozenset[str]:
    """The features, of `NAMES` and `EXTENSIONS`, that LLVM would use on the CPU, and that are not among `features`."""
    if triple.startswith("thumbv"):
        return EXTENSIONS - features
    base, always = BASELINE.get(triple.partition("-")[0], (cpu, frozenset[str]()))
    _, here, available = host_cpu()
    if cpu == base or (cpu == here and features >= available):
        return frozenset()
    return features_of(triple, cpu) - features - always


@cache
def features_of(triple: str, cpu: str) -> frozenset[str]:
    """The features, of `NAMES`, that LLVM uses on a CPU without being told; none for machines that are not there.

    Kept: LLVM takes 30 ms to answer, and every module of a build for a named CPU asks three times.
    """
    names = _names(triple)
    return frozenset(_inlined(triple, [((cpu, ""), (cpu, name), name) for name in names]))


@cache
def implying(triple: str, feature: str) -> frozenset[str]:
    """The features, of `NAMES` and `EXTENSIONS`, that are not there without this one."""
    names = _names(triple)
    if not names:
        return frozenset({"mve"} if feature == "dsp" else ())
    base, _ = BASELINE[triple.partition("-")[0]]
    return frozenset(_inlined(triple, [((base, name), (base, feature), name) for name in names if name != feature]))


ASK = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2], features=sys.argv[3])
"""
UNKNOWN = re.compile(r"'[+-]?([^']*)' is not a recognized (processor|feature)")


@lru_cache(maxsize=64)
def unknown(triple: str, cpu: str, features: str) -> tuple[str, str] | None:
    """A name that LLVM does not know, and what it is no name of; None if it knows all.

    LLVM writes that to the standard error stream and goes on, some way, so another process is asked.
    """
    try:
        done = subprocess.run([sys.executable, "-c", ASK, triple, cpu, features], capture_output=True, text=True)
    except OSError:
        return None
    found = UNKNOWN.search(done.stderr)
    return None if found is None else (found[1], found[2])


@lru_cache(maxsize=64)
def computes_floats(triple: str, cpu: str, features: str) -> bool:
    """Whether LLVM adds floats by an instruction, and calls no function of Arm's interface for it."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly("define float @sum(float %x) {\n  %y = fadd float %x, %x\n  ret float %y\n}")
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    module.triple, module.data_layout = triple, str(machine.target_data)
    return "__aeabi_fadd" not in machine.emit_assembly(module)


def _names(triple: str) -> list[str]:
    return NAMES.get(triple.partition("-")[0], "").split()


Function = tuple[str, str]
"""A function is compiled for a CPU and one more feature."""


def _inlined(triple: str, asked: Sequence[tuple[Function, Function, str]]) -> list[str]:
    """The names of those (caller, callee, name) where the caller has all that the callee needs."""
    if not asked:
        return []
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    lines: list[str] = []
    for number, (caller, callee, _) in enumerate(asked):
        lines += [
            f"define i32 @callee{number}(i32 %x) #{2 * number} {{\n  %y = add i32 %x, 1\n  ret i32 %y\n}}",
            f"define i32 @caller{number}(i32 %x) #{2 * number + 1} {{",
            f"  %y = call i32 @callee{number}(i32 %x)\n  ret i32 %y\n}}",
            _attributes(2 * number, *callee),
            _attributes(2 * number + 1, *caller),
        ]
    module = llvm.parse_assembly("\n".join(lines))
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=1)
    module.triple, module.data_layout = triple, str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=1))
    builder.getModulePassManager().run(module, builder)
    text = str(module)
    return [name for number, (_, _, name) in enumerate(asked) if f"call i32 @callee{number}(" not in text]


def _attributes(number: int, cpu: str, feature: str) -> str:
    more = f' "target-features"="+{feature}"' if feature else ""
    return f'attributes #{number} = {{ "target-cpu"="{cpu}"{more} }}'
