"""Queries LLVM about x86-64 and AArch64 CPUs: the features of each, and which feature implies which.

LLVM's C interface does not answer such questions, but its inliner does: it inlines a function into another one only if
the caller's CPU and features include all that the callee's require. So test functions with the CPUs and features in
question are compiled, and the answers follow from which calls are inlined.
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
"""The CPU that code for an architecture can always assume, and the features that cannot be removed from it."""
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
"""The features, by architecture, that compiled arithmetic can use."""


@cache
def host_cpu() -> tuple[str, str, frozenset[str]]:
    """The triple, CPU and features of this machine; those of AMX only if the system lets this process use them."""
    import llvmlite.binding as llvm

    features = frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)
    if "amx-tile" in features and not granted():
        features = frozenset(name for name in features if not name.startswith("amx-"))
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


EXTENSIONS = frozenset({"dsp", "mve"})
"""Optional features of a Cortex-M: a target's feature list decides about them, whatever LLVM assumes for its CPU."""


def absent(triple: str, cpu: str, features: frozenset[str]) -> frozenset[str]:
    """The features, among `NAMES` and `EXTENSIONS`, that LLVM would use on the CPU, but that `features` lacks."""
    if triple.startswith("thumbv"):
        return EXTENSIONS - features
    base, always = BASELINE.get(triple.partition("-")[0], (cpu, frozenset[str]()))
    _, here, available = host_cpu()
    if cpu == base or (cpu == here and features >= available):
        return frozenset()
    return features_of(triple, cpu) - features - always


@cache
def features_of(triple: str, cpu: str) -> frozenset[str]:
    """The features, among `NAMES`, that LLVM uses on a CPU by default; empty for architectures that are not listed.

    Cached: LLVM takes 30 ms for it, and every module of a build for a named CPU needs it three times.
    """
    names = _names(triple)
    return frozenset(_inlined(triple, [((cpu, ""), (cpu, name), name) for name in names]))


@cache
def implying(triple: str, feature: str) -> frozenset[str]:
    """The features, among `NAMES` and `EXTENSIONS`, that need this one."""
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
    """A name that LLVM does not know and its kind (CPU or feature); None if it knows all.

    LLVM reports it only on the standard error stream, and may misbehave afterwards, so this runs in another process.
    """
    try:
        done = subprocess.run([sys.executable, "-c", ASK, triple, cpu, features], capture_output=True, text=True)
    except OSError:
        return None
    found = UNKNOWN.search(done.stderr)
    return None if found is None else (found[1], found[2])


@lru_cache(maxsize=64)
def computes_floats(triple: str, cpu: str, features: str) -> bool:
    """Whether LLVM adds floats by an instruction, and not by a call of Arm's run-time library."""
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
"""The CPU and the one additional feature (or "") of a small function that is compiled only to see whether LLVM would
inline it."""


def _inlined(triple: str, asked: Sequence[tuple[Function, Function, str]]) -> list[str]:
    """The names of those triples (caller, callee, name) for which LLVM inlines the callee, because the caller's CPU and
    feature include all that the callee requires."""
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
