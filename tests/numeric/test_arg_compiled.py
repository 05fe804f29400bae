"""The index of the first extreme code or float, compiled: rows of every length around whole vectors, and ties."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.compile.pipeline import default_pipeline
from relay.runtime import Executable

TEXT = """func.func @main(%x: tensor<GIVENxTYPE>) -> tensor<REDUCEDxINDEX> {
  %0 = relay.NAME %x {axis = array<i64: AXIS>, dtype = INDEX} : (tensor<GIVENxTYPE>) -> tensor<REDUCEDxINDEX>
  func.return %0 : tensor<REDUCEDxINDEX>
}"""


def compiled(name: str, dtype: str, shape: tuple[int, ...], axis: int, index: str) -> Executable:
    """The op of one shape."""
    reduced = "x".join(str(size) for number, size in enumerate(shape) if number != axis)
    kind = {"uint8": "ui8", "int8": "i8", "float32": "f32"}[dtype]
    words = {"GIVEN": "x".join(map(str, shape)), "REDUCED": reduced, "TYPE": kind, "AXIS": str(axis)}
    text = TEXT
    for word, value in {**words, "INDEX": index, "NAME": name}.items():
        text = text.replace(word, value)
    return relay.build(relay.IRModule.parse(text))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.uint8, "argmax"),
        pytest.param(np.uint8, "argmin", marks=pytest.mark.ci),
        pytest.param(np.int8, "argmax", marks=pytest.mark.ci),
        (np.int8, "argmin"),
    ],
)
def test_the_first_extreme_code(dtype: type[np.uint8] | type[np.int8], name: str):
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
        executable = compiled(name, info.dtype.name, shape, axis, index)
        for lowest in (info.min, info.max - 1, info.max):
            x = random.integers(lowest, info.max, shape, endpoint=True).astype(dtype)
            assert np.array_equal(np.asarray(executable.run(x)), getattr(np, name)(x, axis=axis)), (size, axis, lowest)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(
    "size", [pytest.param(size, marks=() if size in (15, 257) else pytest.mark.ci) for size in (15, 16, 21, 256, 257)]
)
def test_the_first_extreme_float(name: str, size: int):
    """Infinities, both zeros and numbers next to each other; what is no number is never better than another."""
    random, worst = np.random.default_rng(size), np.float32(-np.inf if name == "argmax" else np.inf)
    special = np.array([0.0, -0.0, 1e-45, -1e-45, 1.0, np.nextafter(np.float32(1), np.float32(2)), -1.0], np.float32)
    extreme = np.array([np.inf, -np.inf, np.nan, 3.4e38, -3.4e38], np.float32)
    rows = [random.choice(special[:2], (9, size)), random.choice(special, (9, size)), random.choice(extreme, (9, size))]
    alike = [np.full((1, size), number, np.float32) for number in extreme]
    x = np.concatenate([*rows, *alike, random.standard_normal((9, size)).astype(np.float32)])
    wanted = getattr(np, name)(np.where(np.isnan(x), worst, x), axis=1)
    assert np.array_equal(np.asarray(compiled(name, "float32", x.shape, 1, "i64").run(x)), wanted)


def test_codes_and_floats_are_compared_as_integers():
    for kind, wide in (("i8", "i16"), ("f32", "i64")):
        words = {"GIVEN": "4x21", "REDUCED": "4", "TYPE": kind, "AXIS": "1", "INDEX": "i32", "NAME": "argmax"}
        text = TEXT
        for word, value in words.items():
            text = text.replace(word, value)
        mod = relay.IRModule.parse(text)
        default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(mod)
        assert f"vector<16x{wide}>" in str(mod) and "maxsi" in str(mod)
