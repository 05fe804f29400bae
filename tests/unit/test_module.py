"""IRModule: made of functions; structural equality and hash."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import pytest

import relay
from relay.errors import InvalidArgument, Malformed
from relay.module import IRModule
from tests.unit.pass_modules import DIGITS, ROOT, small

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {a = {b = 1 : i32, c = 2 : i32}, z = 3 : i32} {
  %y = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %r = relay.add %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
SAME = (
    TEXT.replace("%y", "%other"),
    TEXT.replace("b = 1 : i32, c = 2 : i32", "c = 2 : i32, b = 1 : i32"),
    TEXT.replace("a = {b = 1 : i32, c = 2 : i32}, z = 3 : i32", "z = 3 : i32, a = {b = 1 : i32, c = 2 : i32}"),
)
OTHER = (
    TEXT.replace("relay.negative", "relay.abs"),
    TEXT.replace("%y, %x :", "%x, %y :"),
    TEXT.replace("4xf32", "5xf32"),
    TEXT.replace("c = 2", "c = 3"),
    TEXT.replace("@main", "@other"),
)


def test_a_module_of_functions():
    functions = small().functions
    mod = IRModule({"first": functions["main"], "second": functions["main"]})
    mod.verify()
    assert list(mod) == ["first", "second"] and list(IRModule({})) == [] and list(small()) == ["main"]
    with pytest.raises(InvalidArgument, match="function main: 3 is no FuncOp; a function is a func.func"):
        IRModule(cast(Any, {"main": 3}))


@pytest.mark.parametrize("text", SAME)
def test_structurally_equal(text: str):
    one, other = IRModule.parse(TEXT), IRModule.parse(text)
    assert one.structurally_equal(other) and one.structural_hash() == other.structural_hash()


@pytest.mark.parametrize("text", OTHER)
def test_structurally_different(text: str):
    one, other = IRModule.parse(TEXT), IRModule.parse(text)
    assert not one.structurally_equal(other.op) and one.structural_hash() != other.structural_hash()


def test_weights_count_and_the_process_does_not():
    mod = relay.frontend.from_tflite(DIGITS)
    other = mod.clone()
    name, weight = next((n, w) for n, w in mod.weights.items() if w.nbytes > 1024)
    other.replace_weights({name: weight + 1})
    assert not mod.structurally_equal(other) and mod.structural_hash() != other.structural_hash()
    program = f"import relay; print(relay.frontend.from_tflite({str(DIGITS)!r}).structural_hash())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == mod.structural_hash()


def test_a_region_that_does_not_end():
    with pytest.raises(Malformed, match="^<text>:3:1: an operation, a block or '}' is expected$"):
        IRModule.parse("func.func @f() {\n  func.return\n")
