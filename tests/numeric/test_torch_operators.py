"""Every operator of the table against PyTorch: calls recorded by `torch_recording.py`, replayed by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.frontend import from_pytorch
from relay.interpreters import run
from tests.numeric.torch_calls import CALLS, is_of
from tests.numeric.torch_cases import Case, loaded, program, targets
from tests.numeric.torch_programs import NUMBERS, archive, invoke, tensor

PATH = str(Path(__file__).parent / "torch_cases.npz")


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    return loaded(PATH)


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


@pytest.mark.parametrize("target", targets(PATH))
def test_gives_what_pytorch_gives(target: str, cases: dict[str, list[Case]]) -> None:
    assert not wrong(cases[target])


def test_core_operators_have_ten_cases(cases: dict[str, list[Case]]) -> None:
    counts = {name: sum(len(cases[target]) for target in cases if is_of(target, name)) for name in CALLS}
    assert not {name: count for name, count in counts.items() if count < 10}


@pytest.mark.parametrize("seed", range(12))
def test_sizes_that_only_a_run_knows(seed: int) -> None:
    """`sym_size`, `sym_numel`, and `empty`, of which PyTorch promises the type and the sizes only."""
    rng = np.random.default_rng(seed)
    sizes = [int(each) for each in rng.integers(1, 5, rng.integers(1, 5))]
    dtype = ("float32", "int64", "uint8", "bool")[seed % 4]
    names: list[int | str] = [f"s{axis}" if rng.random() < 0.6 else size for axis, size in enumerate(sizes)]
    axis = int(rng.integers(-len(sizes), len(sizes)))
    size, count = {"as_sym_int": {"as_name": "size"}}, {"as_sym_int": {"as_name": "count"}}
    calls = [
        invoke("aten.sym_size.int", {"self": tensor("x"), "dim": {"as_int": axis}}, "size") | {"outputs": [size]},
        invoke("aten.sym_numel.default", {"self": tensor("x")}, "count") | {"outputs": [count]},
        invoke("aten.arange.start", {"start": {"as_int": 0}, "end": size}, "steps"),
        invoke("aten.arange.start", {"start": {"as_int": 0}, "end": count}, "all"),
        invoke(
            "aten.empty.memory_format",
            {"size": {"as_sym_ints": [size["as_sym_int"], {"as_int": 2}]}, "dtype": {"as_scalar_type": NUMBERS[dtype]}},
            "empty",
        ),
    ]
    module = from_pytorch(archive(calls, {"x": (names, dtype)}, ["steps", "all", "empty"]))
    steps, every, empty = run(module, [np.zeros(sizes, dtype)])
    assert np.array_equal(steps, np.arange(sizes[axis])) and np.array_equal(every, np.arange(np.prod(sizes)))
    assert (empty.shape, empty.dtype) == ((sizes[axis], 2), dtype)
