"""`erase_dead` and `CallGraph`: what counts as dead, and who gives what for an argument."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

import relay
from relay.lowering.call_graph import CallGraph
from relay.transforms.dead_ops import erase_dead

TEXT = """
func.func private @opaque(i32) -> i32
func.func private @kernel(%a: i32, %b: i32) -> i32 {
  func.return %a : i32
}
func.func @main(%x: i32) -> i32 {
  %c = arith.constant 1 : i32
  %unused = arith.constant 2 : i32
  %sum = arith.addi %x, %c : i32
  %twice = arith.muli %sum, %sum : i32
  %buffer = memref.alloc() : memref<4xi32>
  %view = memref.subview %buffer[0] [2] [1] : memref<4xi32> to memref<2xi32, strided<[1]>>
  %called = func.call @opaque(%x) : (i32) -> i32
  %r = func.call @kernel(%x, %c) : (i32, i32) -> i32
  %s = func.call @kernel(%c, %c) : (i32, i32) -> i32
  func.return %r : i32
}
"""


def parsed() -> tuple[ModuleOp, dict[str, FuncOp]]:
    module = relay.IRModule.parse(TEXT).op
    return module, {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def names(function: FuncOp) -> list[str]:
    return [op.name for op in function.body.block.ops]


def test_ops_that_only_dead_ops_use_are_dead_but_calls_and_terminators_are_not():
    module, functions = parsed()
    erase_dead(module.walk())
    assert names(functions["main"]) == ["arith.constant", "func.call", "func.call", "func.call", "func.return"]


def test_what_an_erased_op_read_is_looked_at_though_it_was_not_given():
    _, functions = parsed()
    (twice,) = [op for op in functions["main"].walk() if isinstance(op, arith.MuliOp)]
    erase_dead([twice])
    assert "arith.addi" not in names(functions["main"])
    assert names(functions["main"]).count("arith.constant") == 2


def test_ops_of_other_kinds_stay():
    _, functions = parsed()
    erase_dead(functions["main"].walk(), arith.ConstantOp)
    assert names(functions["main"]).count("arith.constant") == 1
    assert "arith.muli" in names(functions["main"])


def test_a_call_graph_has_what_every_call_gives_for_an_argument():
    module, functions = parsed()
    graph = CallGraph(module.walk())
    first, second = functions["kernel"].args
    calls = [op for op in functions["main"].walk() if isinstance(op, CallOp)]
    assert list(graph.of(functions["kernel"])) == calls[1:]
    assert list(graph.of(functions["main"])) == []
    assert graph.given(second) == [call.arguments[1] for call in calls[1:]]
    assert graph.constants(first) is None
    assert graph.constants(functions["main"].args[0]) is None
    (constant,) = set(graph.constants(second) or [])
    assert constant.name == "arith.constant"
