"""Large windows become smaller windows of smaller windows, with the same largest elements."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context

from relay.dialects.relay import MaxPool2dOp
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.simplify import Simplify


def pool(size: tuple[int, int], cells: tuple[int, int], padding: tuple[int, ...], kind: str) -> IRModule:
    """A pool of an image of 2 channels."""
    (h, w), (top, left, bottom, right) = size, padding
    result = (h + top + bottom - cells[0] + 1, w + left + right - cells[1] + 1)
    x, y = f"tensor<1x{h}x{w}x2x{kind}>", f"tensor<1x{result[0]}x{result[1]}x2x{kind}>"
    properties = f"pool_size = array<i64: {cells[0]}, {cells[1]}>, padding = array<i64: {', '.join(map(str, padding))}>"
    return IRModule.parse(
        f"""func.func @main(%x: {x}) -> {y} {{
          %r = relay.nn.max_pool2d %x {{{properties}}} : ({x}) -> {y}
          func.return %r : {y}
        }}"""
    )


def cells_of(mod: IRModule) -> list[tuple[int, ...]]:
    """The sizes of the windows, in order."""
    return [tuple(side for side, _, _ in op.windows()) for op in mod.op.walk() if isinstance(op, MaxPool2dOp)]


def simplified(mod: IRModule) -> IRModule:
    """What `simplify` makes of it."""
    Simplify().apply(Context(), mod.op)
    mod.verify()
    return mod


@pytest.mark.parametrize("kind", ["f32", "i8"])
def test_the_same_largest_elements_for_all_paddings(kind: str):
    rng = np.random.default_rng(0)
    split = 0
    for _ in range(50):
        cells = (int(rng.integers(1, 15)), int(rng.integers(1, 15)))
        size = (int(rng.integers(1, 17)), int(rng.integers(1, 17)))
        top, bottom = (int(n) for n in rng.integers(0, cells[0], 2))
        left, right = (int(n) for n in rng.integers(0, cells[1], 2))
        if size[0] + top + bottom < cells[0] or size[1] + left + right < cells[1]:
            continue
        x = (-rng.integers(1, 120, (1, *size, 2))).astype("float32" if kind == "f32" else "int8")
        wanted = run(pool(size, cells, (top, left, bottom, right), kind), [x])[0]
        mod = simplified(pool(size, cells, (top, left, bottom, right), kind))
        split += len(cells_of(mod)) > 1
        np.testing.assert_array_equal(run(mod, [x])[0], wanted)
    assert split > 8


def test_thirteen_cells_are_three_times_five():
    assert cells_of(simplified(pool((13, 13), (13, 13), (6, 6, 6, 6), "f32"))) == [(5, 5)] * 3
    assert cells_of(simplified(pool((20, 20), (3, 9), (1, 4, 1, 4), "f32"))) == [(3, 5), (1, 5)]


def test_what_would_read_more_stays():
    for size, cells, padding in (((13, 13), (13, 13), (0, 0, 0, 0)), ((9, 9), (5, 5), (2, 2, 2, 2))):
        assert cells_of(simplified(pool(size, cells, padding, "f32"))) == [cells]
    spread = pool((17, 17), (9, 9), (0, 0, 0, 0), "f32").to_text().replace("9x9x2", "5x5x2")
    strided = spread.replace("pool_size", "strides = array<i64: 2, 2>, pool_size", 1)
    assert cells_of(simplified(IRModule.parse(strided))) == [(9, 9)]
