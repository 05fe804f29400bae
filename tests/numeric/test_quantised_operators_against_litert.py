"""Quantised operators against LiteRT's reference kernels: equal integers, of the interpreter and compiled.

A model that the reference takes and we refuse is a failure. What was tried, refused and equal is printed per kind.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes.util import find_library

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.interpreters import qnn_functions
from tests.conftest import Cases
from tests.numeric.litert_comparison import compare_many
from tests.numeric.litert_product_cases import QUANTISED

FUNCTIONS = {"exp": "expf", "erfc": "erfcf", "expm1": "expm1f", "log": "logf", "tanh": "tanhf"}
"""Functions of `qnn_functions` that are correctly rounded, and what LiteRT calls instead."""
KINDS = [pytest.param(kind, dtype, id=f"{kind}-{dtype}") for kind, dtype in sorted(QUANTISED)]
FIRST = {kind: dtype for kind, dtype in sorted(QUANTISED, reverse=True)}
"""Of each kind, what is built: builds take time; with -m fuzz all are."""
QUICK = ("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "FULLY_CONNECTED", "LOGISTIC", "MUL", "PAD", "SOFTMAX")
BUILT = [
    pytest.param(kind, dtype, marks=() if kind in QUICK else pytest.mark.ci, id=f"{kind}-{dtype}")
    for kind, dtype in sorted(FIRST.items())
]


def of_libm(library: ctypes.CDLL, name: str) -> Callable[[Array], Array]:
    """A function of floats of the C library, number by number."""
    function = library[name]
    function.restype, function.argtypes = ctypes.c_float, (ctypes.c_float,)

    def each(x: Array) -> Array:
        numbers = np.asarray(x, np.float32)
        return np.array([function(v) for v in numbers.reshape(-1).tolist()], np.float32).reshape(numbers.shape)

    return each


@pytest.fixture(autouse=True)
def functions_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteRT's tables are made by the machine's libm, whose functions may be off by one place: so are ours here."""
    use_functions_of_this_machine(monkeypatch)


def use_functions_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    name = find_library("m")
    if name is not None:
        library = ctypes.CDLL(name)
        for ours, theirs in FUNCTIONS.items():
            monkeypatch.setattr(qnn_functions, ours, of_libm(library, theirs))


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_quantised_operator_equals_litert(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    make, name = QUANTISED[kind, dtype], f"{kind} {dtype}"
    compare_many(name, lambda rng: make(rng, kind, dtype), range(4), 0, built=False)


@pytest.mark.parametrize(("kind", "dtype"), BUILT)
def test_quantised_operator_equals_litert_compiled(kind: str, dtype: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    make = QUANTISED[kind, dtype]
    compare_many(f"{kind} {dtype}", lambda rng: make(rng, kind, dtype), range(1), 1, built=True)


@pytest.mark.fuzz
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_many_quantised_operators_equal_litert(kind: str, dtype: str, cases: Cases) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    make = QUANTISED[kind, dtype]
    compare_many(f"{kind} {dtype}", lambda rng: make(rng, kind, dtype), cases(200), 2, built=True)
