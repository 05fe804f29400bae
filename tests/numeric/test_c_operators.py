"""Every op that compiler `c` writes, exported, compiled without warnings, sanitized, against the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay.byoc.c.emit import ROWS
from relay.interpreters import run
from tests.numeric.c_operators import CASES, Cases
from tests.numeric.c_sources import SANITIZED, Exported
from tests.numeric.compiled_modules import equal


def check(kind: str, seed: int, folder: Path, compiler: str = "cc") -> None:
    """All cases of a kind in one program, which must compile strictly, run cleanly, and equal the interpreter."""
    net = Cases(seed)
    CASES[kind](net)
    mod = net.module()
    before = str(mod)
    program = Exported(mod, folder)
    assert str(mod) == before
    program.compile(compiler, SANITIZED)
    wanted = run(mod, net.inputs)
    results = program.run(net.inputs)
    wrong = [name for name, got, want in zip(net.results, results, wanted, strict=True) if not equal(got, want)]
    assert not wrong, f"{len(wrong)} of {len(wanted)} results differ from the interpreter's: {wrong[:20]}"


@pytest.mark.parametrize("kind", sorted(CASES))
def test_exported_operators_equal_the_interpreter(kind: str, tmp_path: Path):
    check(kind, 1, tmp_path)
