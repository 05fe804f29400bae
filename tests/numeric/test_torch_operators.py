"""Every operator of the table against PyTorch: calls recorded by `torch_recording.py`, replayed by the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.frontend import from_pytorch
from relay.interpreters import run
from tests.numeric.torch_calls import CALLS
from tests.numeric.torch_cases import Case, loaded, program

CASES = loaded(str(Path(__file__).parent / "torch_cases.npz"))


def differ(found: Array, wanted: Array) -> str:
    """What is wrong with a result; empty for nothing. Floats are within 1e-5 of the largest one."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(found, wanted) else f"{found} is not {wanted}"
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    finite = wanted[np.isfinite(wanted)]
    room = {2: 2e-3, 4: 1e-5, 8: 1e-5}[wanted.dtype.itemsize] * max(np.abs(finite).max(initial=0.0), 1e-3)
    with np.errstate(invalid="ignore"):
        same |= np.abs(found - wanted) <= room
    return "" if same.all() else f"{found[~same][:4]} is not {wanted[~same][:4]}"


def wrong(cases: Sequence[Case]) -> list[str]:
    """The cases that give something else, in one program."""
    with np.errstate(all="ignore"):
        results = run(from_pytorch(program(cases)), [array for case in cases for array in case.inputs])
    found: list[str] = []
    place = 0
    for case in cases:
        own = results[place : place + len(case.results)]
        place += len(case.results)
        said = [why for got, want in zip(own, case.results, strict=True) if (why := differ(np.asarray(got), want))]
        if said:
            found.append(f"{case.target} {case.arguments} of {case.kinds()}: {said[0]}")
    return found


@pytest.mark.parametrize("target", sorted(CASES))
def test_gives_what_pytorch_gives(target: str) -> None:
    assert not wrong(CASES[target])


def test_core_operators_have_ten_cases() -> None:
    counts = Counter(target.split(".")[1] for target, cases in CASES.items() for _ in cases)
    assert not {name: counts[name] for name in CALLS if counts[name] < 10}
