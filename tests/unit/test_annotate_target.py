"""What `annotate-target` marks: the cases of Relay's own tests, and those it got wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import BoolAttr, TensorType, f32, i8
from xdsl.ir import Operation

import relay
from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.patterns import Entry, is_constant, is_op, wildcard
from relay.dialects import byoc
from relay.module import IRModule
from tests.unit.partitioning_modules import Known, function, listing, module, ops, same, short

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
FLOATS4 = "tensor<4xf32>"
IF = """func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.if %c -> (tensor<4xf32>) {
    %k = relay.constant dense<1.0> : tensor<4xf32>
    %z = relay.negative %k : (tensor<4xf32>) -> tensor<4xf32>
    %b = relay.add %a, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  %s = relay.abs %r : (tensor<4xf32>) -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}"""
WHILE = """func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = scf.while (%go = %c, %v = %x) : (i1, tensor<4xf32>) -> (i1, tensor<4xf32>) {
    %w = relay.abs %v : (tensor<4xf32>) -> tensor<4xf32>
    scf.condition(%go) %go, %w : i1, tensor<4xf32>
  } do {
  ^bb0(%go: i1, %v: tensor<4xf32>):
    %stop = arith.constant false
    %w = relay.add %v, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %stop, %w : i1, tensor<4xf32>
  }
  func.return %r#1 : tensor<4xf32>
}"""


def annotate(mod: IRModule, *targets: str) -> IRModule:
    """The module after the pass, which computes the same."""
    done = AnnotateTarget(targets)(mod)
    same(mod, done)
    return done


def bodies(mod: IRModule) -> list[list[str]]:
    """The listing of every block, outer ones first."""
    return [listing(block) for op in mod.op.walk() for region in op.regions for block in region.blocks]


def test_extern_dnnl(known: Known):
    """Exact begins and ends: a value that two ops use has one end, and a begin for each of them. (Relay had two
    ends.)"""
    known("x", "abs", "add")
    done = annotate(module("a = abs x\nb = clip a\nr = add a b\nreturn r"), "x")
    assert ops(done) == ["begin x", "abs", "end x", "clip", "begin x", "begin x", "add", "end x"]
    _, absolute, end, clip, left, right, add, _ = body(done)
    assert end.operands[0].owner is absolute and clip.operands[0].owner is end
    assert [value.owner for value in add.operands] == [left, right]
    assert left.operands[0].owner is end and right.operands[0].owner is clip


def body(mod: IRModule) -> list[Operation]:
    """The ops of `main` without the return."""
    return list(mod["main"].body.block.ops)[:-1]


def test_extern_dnnl_mobilenet(known: Known):
    """A whole model: every op that is taken is between its begins and ends, and no other is."""
    conv = is_op("qnn.conv2d", "qnn.dense")(wildcard(), is_constant())
    known("x", entries=[Entry("conv", is_op("qnn.requantize")(is_op("nn.bias_add")(conv, is_constant())))])
    done = AnnotateTarget("x")(MergeComposite("x")(relay.frontend.from_tflite(DIGITS)))
    done.verify()
    taken = [op for op in body(done) if isinstance(op, byoc.CompositeOp)]
    assert len(taken) > 2 and sum(isinstance(op, byoc.CompilerEndOp) for op in body(done)) == len(taken)
    for op in taken:
        assert all(isinstance(value.owner, byoc.CompilerBeginOp) for value in op.operands)
        assert all(isinstance(use.operation, byoc.CompilerEndOp) for result in op.results for use in result.uses)


def test_multiple_ends(known: Known):
    """Relay wraps host consumers into regions of a compiler "default"; here what is not annotated is the host's."""
    known("x", "abs")
    done = annotate(module("a = abs x\nb = clip a\nc = exp a\nr = add b c\nreturn r"), "x")
    assert ops(done) == ["begin x", "abs", "end x", "clip", "exp", "add"]


def test_type_propagation(known: Known):
    """`supports` sees the types of operands, those behind boundaries too. (Relay forgot them.)"""
    seen: list[str] = []

    def supports(op: Operation) -> bool:
        seen.append(f"{short(op)} {op.operands[0].type}")
        return op.operands[0].type == TensorType(f32, [4])

    known("x", "abs")
    known("y", supports=supports)
    mod = module("a = abs x\nb = clip a\nq, s = qnn.dynamic_quantize b\nr = abs q\nreturn r")
    marked = annotate(annotate(mod, "x"), "y")
    assert ops(marked).count("end y") == 2 and TensorType(i8, [4]) == mod["main"].function_type.outputs.data[0]
    assert seen == [f"clip {FLOATS4}", f"qnn.dynamic_quantize {FLOATS4}"]


def test_ref_create_read_write(known: Known):
    """There are no references; ops with effects, as calls may be, are what no compiler is asked for."""
    asked: list[str] = []
    known("x", supports=lambda op: asked.append(op.name) is None)
    mod = module("a = abs x\nreturn a")
    mod["other"] = function("a = abs x\nreturn a", name="other")
    mod["main"] = function("a = call other x\nb = abs a\nreturn b")
    assert ops(annotate(mod, "x")) == ["call other", "begin x", "abs", "end x"]
    assert asked == ["relay.abs"] * 2


def test_tuple(known: Known):
    """A tuple is an op's several results; each that is used has an end."""
    known("x", "qnn.dynamic_quantize")
    both = annotate(module("q, s = qnn.dynamic_quantize x\na = abs s\nreturn q, a"), "x")
    assert ops(both) == ["begin x", "qnn.dynamic_quantize", "end x", "end x", "abs"]
    one = annotate(module("q, s = qnn.dynamic_quantize x\na = abs s\nreturn a"), "x")
    assert ops(one) == ["begin x", "qnn.dynamic_quantize", "end x", "abs"]


def test_composite_function(known: Known):
    """A composite goes to the compiler of its name, whatever `supports` says, and to no other."""
    known("x", entries=[Entry("add_abs", is_op("abs")(wildcard() + wildcard()))])
    known("y", supports=lambda op: True)
    merged = MergeComposite("x")(module("a = add x x\nb = abs a\nc = clip b\nreturn c"))
    assert ops(annotate(merged, "y")) == ["x.add_abs[add, abs]", "begin y", "clip", "end y"]
    done = annotate(merged, "y", "x")
    assert ops(done) == ["begin x", "x.add_abs[add, abs]", "end x", "begin y", "clip", "end y"]


def test_double_target(known: Known):
    known("x", "abs", "add")
    once = annotate(module("a = abs x\nr = add a x\nreturn r"), "x")
    assert str(annotate(once, "x")) == str(once) == str(annotate(once, "x", "x"))


def test_different_targets(known: Known):
    """A run for A and one for B is a run for A and B."""
    known("a", "abs", "add")
    known("b", "add", "clip")
    mod = module("a = abs x\nb = add a x\nr = clip b\nreturn r")
    together = annotate(mod, "a", "b")
    assert str(annotate(annotate(mod, "a"), "b")) == str(together)
    assert [name for name in ops(together) if name.startswith("end")] == ["end a", "end a", "end b"]


def test_multiple_runs(known: Known):
    """The same where a value fans out."""
    known("a", "abs")
    known("b", "clip", "exp", "add")
    mod = module("a = abs x\nb = clip a\nc = exp a\nd = add a b\ne = add c d\nreturn e, a")
    assert str(annotate(annotate(mod, "a"), "b")) == str(annotate(mod, "a", "b"))


@pytest.mark.parametrize("returned", ["q, s", "s"])
@pytest.mark.parametrize("taken", [True, False])
def test_ends_with_tuple(known: Known, taken: bool, returned: str):
    """An op of two results, of which two or one are returned, taken or not."""
    known("x", *(["qnn.dynamic_quantize"] if taken else []), "abs")
    done = annotate(module(f"a = abs x\nq, s = qnn.dynamic_quantize a\nreturn {returned}"), "x")
    ends = ["end x"] * len(returned.split())
    last = ["begin x", "qnn.dynamic_quantize", *ends] if taken else ["qnn.dynamic_quantize"]
    assert ops(done) == ["begin x", "abs", "end x", *last]


def test_if_else(known: Known):
    """Bodies are annotated in their own blocks, the `scf.if` itself is not; `%a` ends before it."""
    known("x", "abs", "add")
    done = AnnotateTarget("x")(IRModule.parse(IF))
    done.verify()
    _, main, then, otherwise = bodies(done)
    assert main == ["begin x", "abs", "end x", "scf.if", "begin x", "abs", "end x"]
    assert then == ["constant", "negative", "begin x", "begin x", "add", "end x", "scf.yield"]
    assert otherwise == ["scf.yield"]


def test_while_let(known: Known):
    """Relay loops by a recursive closure; here the two bodies of an `scf.while`."""
    known("x", "abs", "add")
    done = AnnotateTarget("x")(IRModule.parse(WHILE))
    done.verify()
    _, main, before, after = bodies(done)
    assert main == ["scf.while"] and before == ["begin x", "abs", "end x", "scf.condition"]
    assert after == ["arith.constant", "begin x", "begin x", "add", "end x", "scf.yield"]


def test_if_free_vars(known: Known):
    """An op on constants alone, in a branch: constant folding's, as Relay's op without operands."""
    known("x", "negative")
    done = AnnotateTarget("x")(IRModule.parse(IF))
    assert not any(isinstance(op, byoc.Boundary) for op in done.op.walk())


def test_free_vars_zeros(known: Known):
    known("x", supports=lambda op: True)
    done = annotate(module("k = constant 0.0\nz = negative k\nreturn z", ""), "x")
    assert ops(done) == ["constant", "negative"]


def test_empty_tuple(known: Known):
    """A function that returns nothing, and an op that nobody needs."""
    known("x", supports=lambda op: True)
    assert ops(annotate(module("a = abs x\nreturn"), "x")) == ["abs"]


def test_block_arguments_and_constants_returned_directly(known: Known):
    known("x", supports=lambda op: True)
    assert ops(annotate(module("k = constant 0.0\nreturn x, k"), "x")) == ["constant"]


def test_constants_have_no_begin(known: Known):
    known("x", "add")
    assert ops(annotate(module("k = constant 1.0\na = add x k\nreturn a"), "x")) == [
        "constant",
        "begin x",
        "add",
        "end x",
    ]


def test_refusals_stay_with_the_op(known: Known):
    known("a", supports=lambda op: Refusal("too small"))
    known("b", "abs")
    (op,) = [op for op in body(annotate(module("a = abs x\nreturn a"), "a", "b")) if op.name == "relay.abs"]
    assert str(op.attributes["byoc.refused"]) == '{a = "too small"}'


def test_what_is_not_exact_is_refused(known: Known):
    mod = module("a = abs x\nreturn a")
    known("x", "abs", exact=False, difference="it rounds")
    assert ops(AnnotateTarget("x", exact=True)(mod)) == ["abs"]
    mod.op.attributes["byoc.exact"] = BoolAttr.from_bool(True)
    assert ops(AnnotateTarget("x")(mod)) == ["abs"]
    assert ops(AnnotateTarget("x", exact=False)(mod)) == ["begin x", "abs", "end x"]


def test_the_function_s_own_attribute(known: Known):
    """`set_func_attr("compiler", "x")`, as in the discussion that founded the project; other functions stay."""
    known("x", "abs")
    mod = module("a = abs x\nreturn a")
    mod["other"] = function("a = abs x\nreturn a", name="other")
    mod["main"].set_func_attr("compiler", "x")
    done = AnnotateTarget()(mod)
    assert ops(done) == ["begin x", "abs", "end x"] and ops(done, "other") == ["abs"]
    assert "compiler" not in done["main"].attributes


SCALAR = """func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %p = tensor.extract %c[] : tensor<i1>
  %r = scf.if %p -> (tensor<4xf32>) {
    %a = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}"""


@pytest.mark.parametrize("choose", ["order", "cost"])
def test_scalars_of_control_flow_stay_with_the_host(known: Known, choose: str):
    """Also with a compiler that takes everything, whose function could not give them."""
    known("x", supports=lambda op: True, cost=lambda ops: 0.0)
    done = relay.build_external_compiler(IRModule.parse(SCALAR), "x", choose=choose)
    (function,) = [f for f in done.functions.values() if "compiler" in f.attributes]
    assert [op.name for op in function.body.block.ops] == ["relay.abs", "func.return"]
