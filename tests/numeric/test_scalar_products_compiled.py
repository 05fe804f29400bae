"""Kernels of targets without vectors, run on this machine and held against the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relay.exploration.tuning import DrawSchedules
from relay.interpreters import run
from relay.passes import PassContext, PassInstrument
from relay.target import CpuTarget, host
from tests.numeric.compiled_modules import Net
from tests.numeric.test_groups_compiled import many_groups
from tests.numeric.test_operators_compiled import convolutions, depthwise, products
from tests.numeric.test_reductions_compiled import sums_of_codes
from tests.numeric.test_schedule_attributes import many, results
from tests.numeric.test_schedules_compiled import with_outlying_weights
from tests.numeric.test_windows_compiled import windows

pytestmark = pytest.mark.ci
NETS: dict[str, Callable[[], Net]] = {
    "groups": lambda: many_groups("int8"),
    "sums": sums_of_codes,
    "weights": with_outlying_weights,
    "windows": lambda: windows("int8"),
}
FLAVOURS = ("i8", "u8", "u8_i8", "i8_i8zp", "i16", "f32")


def by_default(*default: str) -> list[object]:
    """All flavours: these by default, the others in slow runs; by default, each is somewhere."""
    return [pytest.param(f, marks=() if f in default else pytest.mark.slow) for f in FLAVOURS]


@pytest.fixture(autouse=True)
def scalars(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine without its vectors."""
    monkeypatch.setattr(CpuTarget, "has_vectors", False)


def check(net: Net) -> None:
    with PassContext(instruments=[PassInstrument()]):  # nothing that an instrument sees is taken from the cache
        net.check(host())


@pytest.mark.parametrize("name", NETS)
def test_networks(name: str):
    check(NETS[name]())


@pytest.mark.parametrize("flavour", by_default("u8_i8", "i16", "f32"))
def test_products(flavour: str):
    check(products(flavour))


@pytest.mark.parametrize("flavour", by_default("u8", "i8_i8zp", "f32"))
def test_convolutions(flavour: str):
    check(convolutions(flavour))


@pytest.mark.parametrize("flavour", by_default("i8", "i16"))
def test_depthwise_convolutions(flavour: str):
    check(depthwise(flavour))


@pytest.mark.parametrize("seed", range(2))
def test_other_tiles(seed: int):
    """Tiles and steps drawn from all that are possible."""
    net = many()
    wanted = run(net.module(), net.inputs)
    found = results(DrawSchedules(seed))
    wrong = [name for name, a, b in zip(net.results, found, wanted, strict=True) if not np.array_equal(a, b)]
    assert not wrong, f"other integers: {wrong}"
