"""Finds the features of this processor, by LLVM's names but without LLVM, so that code that needs others is never run.

Linux lists the features in /proc/cpuinfo under its own names. The correspondence of names below was taken from Linux's
arch/x86/include/asm/cpufeatures.h and arch/arm64/kernel/cpuinfo.c, and from LLVM's lists of features.
"""

from __future__ import annotations

from functools import cache

from relay.tile_registers import granted

CPUINFO = "/proc/cpuinfo"
TILES = "amx-tile"

SPELLINGS = {
    "64bit": "lm",
    "bmi": "bmi1",
    "crc32": "sse4_2",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand",
    "sahf": "lahf_lm",
    "sha": "sha_ni",
    "sse3": "pni",
    "x87": "fpu",
    # AArch64
    "complxnum": "fcma",
    "crc": "crc32",
    "dotprod": "asimddp",
    "fp-armv8": "fp",
    "fp16fml": "asimdfhm",
    "fullfp16": "asimdhp",
    "jsconv": "jscvt",
    "lse": "atomics",
    "neon": "asimd",
    "rcpc": "lrcpc",
    "rdm": "asimdrdm",
}
"""Feature names of Linux that differ from LLVM's by more than punctuation."""

UNUSED = frozenset(
    """
    cldemote clflushopt clwb clzero enqcmd fsgsbase hreset invpcid kl lwp movdir64b movdiri mwaitx pconfig perfmon pku
    prefetchi prefetchwt1 ptwrite ras rdpid rdpru rdseed rtm serialize sgx shstk ssbs tsxldtrk uintr waitpkg wbnoinvd
    widekl xsave xsavec xsaveopt xsaves
    """.split()
)
"""Features that compiled arithmetic never uses."""


@cache
def flags() -> frozenset[str]:
    """The features that Linux reports for this processor; empty if it reports none."""
    return frozenset(_cpuinfo_value("flags", "Features").split())


def model() -> str:
    """Linux's name of this processor."""
    return " ".join(_cpuinfo_value(name) for name in ("vendor_id", "cpu family", "model", "stepping", "CPU part"))


def _cpuinfo_value(*names: str) -> str:
    """The value of the first line of /proc/cpuinfo with one of these names; empty if there is none."""
    try:
        with open(CPUINFO) as file:
            text = file.read()
    except OSError:
        return ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return ""


def lacks(features: frozenset[str]) -> list[str]:
    """The features, by LLVM's names, among `features` that this processor lacks, sorted. Tile registers (AMX) count as
    lacking, too, if the system does not let this process use them; this function requests the permission."""
    there = {_letters(flag) for flag in flags()}
    if TILES in features and not granted():
        there -= {_letters(TILES)}
    return sorted(feature for feature in features - UNUSED if _letters(SPELLINGS.get(feature, feature)) not in there)


def _letters(name: str) -> str:
    """The name of a feature without punctuation, which LLVM and Linux place differently."""
    return "".join(filter(str.isalnum, name))
