"""Every op that compiler `c` writes, exported, compiled without warnings, sanitized, against the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.interpreters import run
from tests.conftest import Cases as Numbers
from tests.numeric.c_operators import CASES, Cases
from tests.numeric.c_sources import SANITIZED, Exported
from tests.numeric.compiled_modules import equal

pytestmark = pytest.mark.ci
PLAIN = ("-O0",)
OFTEN = ("movement", "recurrent")
"""Kinds that are sanitized in every run of the tests; the others in the slow ones: sanitizers treble what it takes to
compile a program."""


def check(kind: str, seed: int, folder: Path, compiler: str = "cc", flags: tuple[str, ...] = SANITIZED) -> None:
    """All cases of a kind in one program, which must compile strictly, run cleanly, and equal the interpreter."""
    net = Cases(seed)
    CASES[kind](net)
    mod = net.module()
    program = Exported(mod, folder)
    program.compile(compiler, flags)
    wanted = run(mod, net.inputs)
    results = program.run(net.inputs)
    wrong = [name for name, got, want in zip(net.results, results, wanted, strict=True) if not equal(got, want)]
    assert not wrong, f"{len(wrong)} of {len(wanted)} results differ from the interpreter's: {wrong[:20]}"


@pytest.mark.parametrize("kind", sorted(CASES))
def test_exported_operators_equal_the_interpreter(kind: str, tmp_path: Path):
    check(kind, 1, tmp_path, flags=SANITIZED if kind in OFTEN else PLAIN)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(CASES) - set(OFTEN)))
def test_sanitized_operators_equal_the_interpreter(kind: str, tmp_path: Path):
    check(kind, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("kind", sorted(CASES))
def test_optimised_operators_equal_the_interpreter(kind: str, compiler: str, tmp_path: Path):
    check(kind, 2, tmp_path, compiler, ("-O3", "-march=native"))


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", sorted(CASES))
def test_more_operators_equal_the_interpreter(kind: str, tmp_path: Path, cases: Numbers):
    for number in cases(20):
        (tmp_path / str(number)).mkdir()
        check(kind, 10 + number, tmp_path / str(number))
