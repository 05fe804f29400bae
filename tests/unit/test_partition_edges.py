"""Partitioning at its edges: control flow, values that go straight through, names, pruning, several turns."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.interpreter import Interpreter

from relay.byoc.partitioning.annotate_external_compiler import AnnotateExternalCompiler
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.byoc.partitioning.inline_partitions import InlinePartitions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.partitioning.prune_regions import PruneRegions
from relay.byoc.patterns import Entry, is_constant, is_op, wildcard
from relay.dialects.attributes import to_numpy
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument
from relay.interpreters import register
from relay.module import IRModule
from tests.unit.partitioning_modules import (
    Known,
    T,
    arguments,
    external,
    merged,
    module,
    ops,
    partition,
    returned,
    same,
)
from tests.unit.test_annotate_target import IF, WHILE


@pytest.mark.parametrize("text", [IF, WHILE])
@pytest.mark.parametrize("go", [True, False])
def test_control_flow(known: Known, text: str, go: bool):
    """Regions in the bodies of `scf.if` and `scf.while` are functions too; xDSL's interpreter runs both modules."""
    known("x", "abs", "add")
    mod = IRModule.parse(text)
    done = PartitionGraph()(merged(mod, "x"))
    done.verify()
    assert len(external(done)) == (3 if text is IF else 2)
    given = (go, np.array([1.5, -2, 0.25, -8], np.float32))
    (wanted,), (found,) = ran(mod, given), ran(done, given)
    assert np.array_equal(np.asarray(wanted), np.asarray(found))


def ran(mod: IRModule, given: tuple[object, ...]) -> tuple[object, ...]:
    """What xDSL's own interpreter makes of `main`."""
    from xdsl.interpreters.arith import ArithFunctions  # the package takes long to import
    from xdsl.interpreters.scf import ScfFunctions

    interpreter = Interpreter(mod.op)
    register(interpreter)
    interpreter.register_implementations(ScfFunctions())
    interpreter.register_implementations(ArithFunctions())
    return interpreter.call_op("main", given)


def test_what_goes_straight_through_stays_with_the_host():
    """A region that returns its argument, its constant, one value twice, and one that nobody uses."""
    mod = IRModule.parse(f"""
func.func @main(%x: {T}) -> ({T}, {T}, {T}, {T}) {{
  %a, %b, %c, %d, %e = byoc.region "x"(%x, %x) : ({T}, {T}) -> ({T}, {T}, {T}, {T}, {T}) {{
  ^bb0(%y: {T}, %z: {T}):
    %k = relay.constant dense<1.0> : {T}
    %p = relay.add %y, %z : ({T}, {T}) -> {T}
    %q = relay.abs %z : ({T}) -> {T}
    byoc.yield %z, %k, %p, %p, %q : {T}, {T}, {T}, {T}, {T}
  }}
  func.return %a, %b, %c, %d : {T}, {T}, {T}, {T}
}}""")
    done = PartitionGraph()(mod)
    same(mod, done)
    assert ops(done) == ["constant", "call relay_x_main_0"] and external(done) == {"relay_x_main_0": ["add"]}
    assert len(done["relay_x_main_0"].body.block.args) == len(returned(done, "relay_x_main_0")) == 1


def test_regions_without_anything_are_no_function():
    mod = IRModule.parse(f"""
func.func @main(%x: {T}) -> {T} {{
  %a = byoc.region "x"(%x) : ({T}) -> {T} {{
  ^bb0(%y: {T}):
    byoc.yield %y : {T}
  }}
  %b = byoc.region "x"(%x) : ({T}) -> {T} {{
  ^bb0(%y: {T}):
    %n = relay.abs %y : ({T}) -> {T}
    byoc.yield %n : {T}
  }}
  func.return %a : {T}
}}""")
    done = PartitionGraph()(mod)
    same(mod, done)
    assert external(done) == {} and ops(done) == []


def test_a_region_without_operands_and_a_function_without_arguments():
    mod = IRModule.parse(f"""
func.func @main() -> {T} {{
  %a = byoc.region "x"() : () -> {T} {{
    %k = relay.constant dense<1.0> : {T}
    %n = relay.negative %k : ({T}) -> {T}
    byoc.yield %n : {T}
  }}
  func.return %a : {T}
}}""")
    done = PartitionGraph()(mod)
    same(mod, done)
    assert external(done) == {"relay_x_main_0": ["constant", "negative"]}
    hoisted = PartitionGraph(constants="hoist")(mod)
    same(mod, hoisted)
    assert ops(hoisted) == ["constant", "call relay_x_main_0"]


def test_hoisting_takes_constants_out_of_composites(known: Known):
    known("x", entries=[Entry("bias", wildcard() + is_constant())])
    mod = module("k = constant 2.0\na = add x k\nb = add a k\nreturn b")
    done = PartitionGraph(constants="hoist")(merged(mod, "x"))
    same(mod, done)
    assert ops(done) == ["constant", "call relay_x_main_0"]
    assert external(done) == {"relay_x_main_0": ["x.bias[add]", "x.bias[add]"]}


def test_further_partitioning_leaves_what_is_there(known: Known):
    """A second compiler's turn: other functions, names that go on, and the first one's stay."""
    known("a", "add")
    known("b", "abs")
    mod = module("s = add x x\nt = abs s\nu = exp t\nv = add u t\nreturn v")
    first = partition(mod, "a")
    done = partition(first, "b")
    assert external(done) == {"relay_a_main_0": ["add"], "relay_a_main_1": ["add"], "relay_b_main_0": ["abs"]}
    assert str(PartitionGraph()(done)) == str(done)
    known("a", "exp")
    assert "relay_a_main_2" in external(partition(done, "a"))


def test_names(known: Known):
    known("x", "abs")
    mod = merged(module("a = abs x\nreturn a"), "x")
    assert list(external(PartitionGraph(mod_name="model")(mod))) == ["model_x_main_0"]
    (name,) = external(PartitionGraph()(mod))
    assert PartitionGraph()(mod)[name].attributes["global_symbol"] == StringAttr(name)
    with pytest.raises(InvalidArgument, match="partition-graph: mod_name is 'a b'; give it one word"):
        PartitionGraph(mod_name="a b")(mod)
    with pytest.raises(
        InvalidArgument, match="partition-graph: constants is 'share'; it is 'bind', 'hoist' or 'vendor'"
    ):
        PartitionGraph(constants="share")(mod)


def test_composites_of_the_host_are_dissolved(known: Known):
    known("x", entries=[Entry("abs", is_op("abs")(wildcard()))])
    mod = module("a = abs x\nreturn a")
    assert ops(PartitionGraph()(MergeComposite("x")(mod))) == ["abs"]


def test_functions_of_compilers_are_not_given_to_others(known: Known):
    """They are not matched, not annotated, and their attribute `compiler` stays."""
    known("a", "abs")
    known("b", supports=lambda op: True)
    first = partition(module("t = abs x\nreturn t"), "a")
    assert external(partition(first, "b")) == {"relay_a_main_0": ["abs"]}


def test_partitions_of_a_compiled_module_cannot_be_inlined(known: Known):
    known("x", "abs")
    done = CompileExternal()(partition(module("t = abs x\nreturn t"), "x"))
    with pytest.raises(InvalidArgument, match="function relay_x_main_0: is compiled already"):
        InlinePartitions()(done)


def test_what_is_pruned_is_the_host_s(known: Known):
    """Small regions go back, others stay; a compiler that says infinite takes nothing; nobody else is looked at."""
    known("a", "abs", "add", cost=lambda ops: float("inf") if len(ops) == 1 else 1.0)
    known("b", "exp")
    mod = module("p = abs x\nq = add p p\nr = exp q\ns = abs r\nreturn s")
    regions = merged(mod, "a", "b")
    assert ops(PruneRegions(compute=False)(regions)) == ["a[abs, add]", "b[exp]", "abs"]
    assert ops(PruneRegions(compute=False, min_ops=2)(regions)) == ["a[abs, add]", "exp", "abs"]
    assert ops(PruneRegions(min_ops=9, targets="b")(regions)) == ["a[abs, add]", "exp", "a[abs]"]
    assert ops(PruneRegions()(regions)) == ["abs", "add", "exp", "abs"]
    same(mod, PruneRegions(min_ops=2)(regions))


def test_constants_are_shared_not_copied(known: Known):
    """The copies in several functions are of one memory."""
    known("x", "add")
    mod = module("k = constant 1.0\na = add x k\nb = exp a\nc = add b k\nreturn c")
    done = partition(mod, "x")
    memory = {to_numpy(op.value).ctypes.data for op in done.op.walk() if isinstance(op, ConstantOp)}
    assert len(memory) == 1 and len(arguments(done)) == 1


@pytest.mark.parametrize("choose", ["order", "cost", "measured"])
def test_without_compilers_nothing_is_annotated(choose: str):
    """Also where the host cannot say what the module costs, as its sizes are not known."""
    text = "%r = relay.negative %x : (tensor<?xf32>) -> tensor<?xf32>\nfunc.return %r : tensor<?xf32>"
    mod = IRModule.parse(f"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{\n{text}\n}}")
    assert str(AnnotateExternalCompiler(choose=choose)(mod)) == str(mod)
