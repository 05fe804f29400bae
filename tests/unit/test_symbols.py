"""Named sizes on a function: kept, read again, verified, and given by `dynamic-to-static`."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context

from relay import symbols
from relay.dialects.op import shape
from relay.errors import InvalidArgument, Malformed
from relay.module import IRModule
from relay.symbols import Symbol
from relay.tools.relay_opt import main as relay_opt
from relay.transforms.dynamic_to_static import DynamicToStatic

TEXT = """func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %z: tensor<2x?xf32>) -> tensor<?x4xf32> {
  %r = relay.add %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %r : tensor<?x4xf32>
}"""
BATCH = Symbol("batch", ((0, 0), (1, 0)), 2, 16, 2)


def test_symbols_are_kept_in_text():
    mod = IRModule.parse(TEXT)
    wanted = [BATCH, Symbol("time", ((2, 1),))]
    symbols.write(mod["main"], wanted)
    again = IRModule.parse(mod.to_text())
    assert symbols.read(again["main"]) == wanted
    assert symbols.read(IRModule.parse(TEXT)["main"]) == []


def test_a_symbol_is_one_size():
    mod = IRModule.parse(TEXT)
    symbols.write(mod["main"], [BATCH])
    DynamicToStatic(sizes=(6, 3)).apply(Context(), mod.op)
    assert [shape(arg) for arg in mod["main"].body.block.args] == [(6, 4), (6, 4), (2, 3)]
    assert symbols.SYMBOLS not in mod["main"].attributes
    for size in (1, 3, 18):
        again = IRModule.parse(TEXT)
        symbols.write(again["main"], [BATCH])
        with pytest.raises(InvalidArgument, match=f"size batch: is {size}; it is from 2 to 16, a multiple of 2"):
            DynamicToStatic(sizes=(size, 3)).apply(Context(), again.op)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("3 : i64", "is no array"),
        ("[3 : i64]", "has no name"),
        ('[{name = "n"}]', "its places are no list of argument and axis"),
        ('[{name = "n", places = [array<i64: 0>]}]', "its places are no list of argument and axis"),
        ('[{name = "n", places = [array<i64: 0, 1>]}]', "axis 1 of argument 0 is no size of its own"),
        ('[{name = "n", places = [array<i64: 3, 0>]}]', "axis 0 of argument 3 is no size of its own"),
        ('[{name = "n", places = [array<i64: 0, 0>, array<i64: 0, 0>]}]', "axis 0 of argument 0 is no size of its own"),
        ('[{name = "n", places = [array<i32: 0, 0>]}]', "its places are no list of argument and axis"),
        ('[{name = "n", places = [array<f32: 0.0, 0.0>]}]', "its places are no list of argument and axis"),
        ('[{name = "", places = [array<i64: 0, 0>]}]', "has an empty name"),
        ('[{name = "n", places = [array<i64: 0, 0>], most = 4 : i64}]', "n: has the key most"),
        ('[{name = "n", places = [array<i64: 0, 0>], minimum = "a"}]', "minimum is no number of type i64"),
        ('[{name = "n", places = [array<i64: 0, 0>], maximum = 4 : i8}]', "maximum is no number of type i64"),
        ('[{name = "n", places = [array<i64: 0, 0>], minimum = 0 : i64}]', "no size is from 0 and a multiple of 1"),
        (
            '[{name = "n", places = [array<i64: 0, 0>], minimum = 5 : i64, maximum = 7 : i64, multiple = 4 : i64}]',
            "no size is from 5 to 7 and a multiple of 4",
        ),
        (
            '[{name = "n", places = [array<i64: 0, 0>]}, {name = "n", places = [array<i64: 1, 0>]}]',
            "has a name twice",
        ),
    ],
)
def test_what_is_no_symbol(rows: str, said: str):
    text = TEXT.replace("-> tensor<?x4xf32> {", f"-> tensor<?x4xf32> attributes {{relay.symbols = {rows}}} {{", 1)
    with pytest.raises(Malformed, match=f"function main, relay.symbols.*{said}"):
        IRModule.parse(text)


@pytest.mark.parametrize("sizes", [{"n": 4}, "6", (6, "3"), (6, 0), None])
def test_what_are_no_sizes(sizes: tuple[int, ...]):
    with pytest.raises(InvalidArgument, match="dynamic-to-static: sizes are .* for 3 unknown ones; give one positive"):
        DynamicToStatic(sizes=sizes).apply(Context(), IRModule.parse(TEXT).op)


def test_relay_opt_verifies_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "x.mlir"
    file.write_text(TEXT.replace(" {\n", " attributes {relay.symbols = 3 : i64} {\n", 1))
    assert relay_opt([str(file)]) == 1
    assert "function main, relay.symbols: is no array" in capsys.readouterr().err
