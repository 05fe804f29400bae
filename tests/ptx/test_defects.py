"""Defects planted in PTX that is right: the interpreter finds each, by a fault or by integers that differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tests.ptx.interpreter import run
from tests.ptx.memory import Fault
from tests.ptx.programs import Program, program

INTEGERS = "integers differ"


@dataclass(frozen=True)
class Defect:
    """An edit of a program's text: the match of a pattern by its number (None: all), what takes its place, and what the
    interpreter says then."""

    program: str
    pattern: str
    replacement: str | Callable[[re.Match[str]], str]
    number: int | None
    said: str

    def plant(self, text: str) -> str:
        """The text with the defect."""
        matches = [*re.finditer(self.pattern, text)]
        assert matches, f"the program has no {self.pattern}"
        chosen = matches if self.number is None else [matches[self.number]]
        for match in reversed(chosen):
            new = match.expand(self.replacement) if isinstance(self.replacement, str) else self.replacement(match)
            assert new != match[0]
            text = text[: match.start()] + new + text[match.end() :]
        return text


def descriptors(change: int) -> Callable[[re.Match[str]], str]:
    """A constant of a descriptor's fields with something added, as a signed number."""

    def changed(match: re.Match[str]) -> str:
        value = (int(match[2]) + change) % (1 << 64)
        return f"{match[1]}{value - (1 << 64) if value >> 63 else value}"

    return changed


def more(change: int) -> Callable[[re.Match[str]], str]:
    """The pattern's second group, a number, with something added."""
    return lambda match: f"{match[1]}{int(match[2]) + change}{match[3]}"


DESCRIPTOR = r"(add\.s64 \t%rd\d+, %rd\d+, )(46116862\d{11})"
"""Mode 1 of swizzling, 1024 bytes from 8 rows to the next."""
COORDINATES = r"\[map, \{(%r\d+), (%r\d+)\}\]"
PARITY = r"(shr\.u64 \t%rd\d+, %rd\d+, )(2)(;\s+cvt\.u32[^\n]*\s+// begin[^\n]*\s+\{ \.reg \.pred)"
"""Step over stages."""
BORDER = r"(setp\.gt\.u64 \t%p\d+, %rd\d+, )(1[56])(;)"
"""The last row or column of the image."""
A_FRAGMENT = r"(mma\.sync\S+\s+\{[^}]*\},\s+\{%r\d+), (%r\d+), (%r\d+)"
WAIT = r"\{ \.reg \.pred done;[^}]*\}"
ARRIVE = r"mbarrier\.arrive\.shared\S* _, [^;]*;"
ARRIVALS = r"(mbarrier\.init[^;]* )(4)(;)"
SHORTER = r"(add\.s64 \t%rd\d+, %rd\d+, )(-9223371\d{12})"
"""Mode 2 of swizzling, 512 bytes from 8 rows to the next."""
ROWS = "no multiple|on its way|not written"
WINDOW = r"(\[map, \{%r\d+, )(%r\d+), (%r\d+)"
"""Channel, column and row."""
BORDER_NUMBER = r"(setp\.gt\.u16 \t%p\d+, %rs\d+, )(7)(;)"
"""From the last column of windows on."""
DEFECTS: dict[str, Defect] = {
    # matrix units of groups, whose tiles the device copies
    "wrong swizzle mode": Defect("tma", DESCRIPTOR, descriptors(2 << 62), None, "the pattern starts at no multiple"),
    "wrong stride of 8 rows": Defect("tma", DESCRIPTOR, descriptors(64 << 32), None, "on its way"),
    "stride that cuts the pattern": Defect("tma", DESCRIPTOR, descriptors(1 << 32), 0, "no multiple of the pattern"),
    "product of the wrong depth": Defect("tma", DESCRIPTOR, descriptors(2), 0, INTEGERS),
    "missing barrier before a tile is overwritten": Defect("tma", r"bar\.sync\s+0;", "", 1, "may still read"),
    "missing barrier after mbarriers are made": Defect("tma", r"bar\.sync\s+0;", "", 0, "another thread made"),
    "missing fence of registers": Defect("tma", r"wgmma\.fence\S*;", "", 0, "since the last wgmma.fence"),
    "missing fence of mbarriers": Defect("tma", r"fence\.proxy\.async\S*;", "", 0, "no fence made visible"),
    "missing fence of maps": Defect("tma", r"fence\.proxy\.tensormap[^;]*;", "", 0, "without fence.proxy.tensormap"),
    "missing wait for products": Defect("tma", r"wgmma\.wait_group\S* 0;", "", 0, "which a product under way changes"),
    "missing commit of products": Defect("tma", r"wgmma\.commit_group\S*;", "", -1, "a product under way reads"),
    "missing wait for a tile": Defect("tma", WAIT, "", 0, "on its way|without waiting"),
    "wrong parity of an mbarrier": Defect("tma", PARITY, more(-1), 0, "on its way"),
    "wrong tensor coordinate": Defect("tma", r"(mov\.b32 \t%r\d+, )(128)(;)", more(-64), 0, INTEGERS),
    "tensor coordinates exchanged": Defect("tma", COORDINATES, r"[map, {\2, \1}]", 2, INTEGERS),
    "wrong number of bytes": Defect("tma", r"(expect_tx[^;]* )(\d+)(;)", more(16), 0, "0 arrivals and 16 bytes"),
    "wrong number of arrivals": Defect("tma", r"(mbarrier\.init[^;]* )(1)(;)", more(1), 0, "1 arrivals and 0 bytes"),
    # of groups that take turns, with a warp that asks for copies
    "missing wait for the turn": Defect("turns", WAIT, "", 0, "not written"),
    "missing wait for a free stage": Defect("turns", WAIT, "", 2, "more arrivals"),
    "stage given free before its products": Defect(
        "turns", r"wait_group\S* 1;", "wait_group.sync.aligned 2;", 0, "may still"
    ),
    "stage that is never given free": Defect("turns", ARRIVE, "", 0, "1 arrivals"),
    "turn that is never given": Defect("turns", ARRIVE, "", 1, "4 arrivals"),
    "stage given free by three warps": Defect("turns", ARRIVALS, more(-1), 0, "may still"),
    "turn given by three warps": Defect("turns", ARRIVALS, more(-1), -1, "midst of a phase"),
    "too many registers": Defect("turns", r"(setmaxnreg\.inc\S* )(240)(;)", more(16), 0, "setmaxnreg"),
    # of windows that the device finds
    "taps exchanged": Defect("windows", r"\{across, down\}", "{down, across}", 0, INTEGERS),
    "windows from another column": Defect("windows", WINDOW, r"\1\3, \3", 0, INTEGERS),
    "numbers of another border": Defect("windows", BORDER_NUMBER, more(-1), None, INTEGERS),
    "wrong swizzle of shorter rows": Defect("windows-of-few-channels", SHORTER, descriptors(1 << 62), None, ROWS),
    # of groups that copy by themselves
    "missing fence of the proxy": Defect("cp.async", r"fence\.proxy\.async\S*;", "", 0, "without fence.proxy.async"),
    "wait for one group too few": Defect("cp.async", r"(cp\.async\.wait_group\s+)(1)(;)", more(1), 0, "on its way"),
    "missing barrier of copies": Defect("cp.async", r"bar\.sync\s+0;", "", 0, "without a barrier"),
    # of single warps
    "wrong swizzle of a copy": Defect("warps", r"xor\.b64", "or.b64", 0, f"two threads|another|on its way|{INTEGERS}"),
    "wrong fragment index": Defect("warps", A_FRAGMENT, r"\1, \3, \2", 0, INTEGERS),
    "missing barrier": Defect("warps", r"bar\.sync\s+0;", "", 0, "without a barrier since"),
    "missing barrier before slices write": Defect("slices", r"bar\.sync\s+0;", "", -2, "may still read"),
    "missing barrier before slices are added": Defect("slices", r"bar\.sync\s+0;", "", -1, "without a barrier since"),
    "missing wait for copies": Defect("warps", r"cp\.async\.wait_group\s+\d+;", "", 0, "on its way"),
    "missing commits": Defect("digits", r"cp\.async\.commit_group;", "", None, "on its way"),
    "border off by one": Defect("warps", BORDER, more(-1), None, INTEGERS),
}

DEFAULT = (
    "wrong swizzle mode",
    "missing barrier before a tile is overwritten",
    "missing fence of registers",
    "missing commit of products",
    "wrong parity of an mbarrier",
    "missing wait for copies",
    "border off by one",
)
"""Those of the default tests."""
OFTEN = (
    "wrong stride of 8 rows",
    "missing wait for products",
    "wrong tensor coordinate",
    "missing wait for the turn",
    "stage given free before its products",
    "stage given free by three warps",
    "missing fence of the proxy",
    "wrong fragment index",
)
"""Those with `-m ci`: the others are found as fast, and are too many."""


def found(given: Program, text: str) -> str:
    """What the interpreter says of a text."""
    try:
        results = run(given.executable, given.inputs, text)[0]
    except Fault as fault:
        return str(fault)
    return "" if all(np.array_equal(*pair) for pair in zip(results, given.wanted, strict=True)) else INTEGERS


MARKS = {**dict.fromkeys(DEFAULT, ()), **dict.fromkeys(OFTEN, pytest.mark.ci)}


@pytest.mark.parametrize("name", [pytest.param(n, marks=MARKS.get(n, pytest.mark.slow)) for n in DEFECTS])
def test_a_defect_is_found(name: str):
    defect = DEFECTS[name]
    given = program(defect.program)
    said = found(given, defect.plant(given.executable.get_source("ptx")))
    assert re.search(defect.said, said), said
