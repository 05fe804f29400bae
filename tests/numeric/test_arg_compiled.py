"""The index of the first extreme code, compiled: rows of every length around whole vectors, and ties."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array

TEXT = """func.func @main(%x: tensor<GIVENxTYPE>) -> tensor<REDUCEDxINDEX> {
  %0 = relay.NAME %x {axis = array<i64: AXIS>, dtype = INDEX} : (tensor<GIVENxTYPE>) -> tensor<REDUCEDxINDEX>
  func.return %0 : tensor<REDUCEDxINDEX>
}"""


def found(name: str, x: Array, axis: int, index: str) -> Array:
    """What the compiled op gives."""
    reduced = "x".join(str(size) for number, size in enumerate(x.shape) if number != axis)
    kind = {"uint8": "ui8", "int8": "i8"}[x.dtype.name]
    words = {"GIVEN": "x".join(map(str, x.shape)), "REDUCED": reduced, "TYPE": kind, "AXIS": str(axis)}
    text = TEXT
    for word, value in {**words, "INDEX": index, "NAME": name}.items():
        text = text.replace(word, value)
    return np.asarray(relay.build(relay.IRModule.parse(text)).run(x))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_the_first_extreme_code(name: str, dtype: type[np.uint8] | type[np.int8]):
    random, info = np.random.default_rng(3), np.iinfo(dtype)
    for size, axis, index in (
        (1, 2, "i32"),
        (15, 2, "i64"),
        (16, 2, "i32"),
        (21, 2, "i64"),
        (256, 2, "i32"),
        (257, 2, "i32"),
        (21, 1, "i32"),
    ):
        shape = (3, size, 4) if axis == 1 else (3, 4, size)
        for lowest in (info.min, info.max - 1, info.max):
            x = random.integers(lowest, info.max, shape, endpoint=True).astype(dtype)
            assert np.array_equal(found(name, x, axis, index), getattr(np, name)(x, axis=axis)), (size, axis, lowest)
