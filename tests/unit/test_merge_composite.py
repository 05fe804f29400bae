"""What `merge-composite` makes of subgraphs: the cases of Relay's own tests, and those it got wrong."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, StringAttr, TensorType, f32
from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.patterns import Entry, Match, is_constant, is_op, is_output, wildcard
from relay.dialects import byoc
from relay.errors import InvalidArgument
from relay.module import IRModule
from tests.unit.partitioning_modules import Known, module, ops, same

ADD_ABS_CLIP = is_op("clip")(is_op("abs")(is_op("add")(wildcard(), wildcard())))
ADD_ABS = is_op("abs")(is_op("add")(wildcard(), wildcard()))
ABS_CLIP = is_op("clip")(is_op("abs")(wildcard()))


def composites(mod: IRModule, *compilers: str, exact: bool | None = None) -> IRModule:
    """The module after the pass, which computes the same."""
    done = MergeComposite(compilers, exact)(mod)
    same(mod, done)
    return done


def patterns(mod: IRModule) -> list[str]:
    """`partitioned_from_pattern` of each composite."""
    return [op.partitioned_from_pattern.data for op in mod.op.walk() if isinstance(op, byoc.CompositeOp)]


def reasons(mod: IRModule) -> dict[str, str]:
    """Why a compiler refused ops, by the ops' names."""
    found: dict[str, str] = {}
    for op in mod.op.walk():
        attr = op.attributes.get("byoc.refused")
        if isinstance(attr, DictionaryAttr):
            for reason in attr.data.values():
                assert isinstance(reason, StringAttr)
                found[op.name] = reason.data
    return found


def test_simple_merge(known: Known):
    known("x", entries=[Entry("add_clip", is_op("clip")(is_op("add")(wildcard(), wildcard())))])
    done = composites(module("a = add x y\nr = clip a\nreturn r", "x y"), "x")
    assert ops(done) == ["x.add_clip[add, clip]"] and patterns(done) == ["add_clip_"]


def test_branch_merge(known: Known):
    """A pattern that matches twice, the one match using the other's result."""
    x, y = wildcard(), wildcard()
    known("x", entries=[Entry("sub_mul", (x - y) * (x - y)), Entry("clip", is_op("clip")(wildcard()))])
    text = "s = subtract a b\nt = subtract a b\nm = multiply s t\nc = clip m\n"
    text += "u = subtract c b\nv = subtract c b\nn = multiply u v\nd = clip n\nreturn d"
    done = composites(module(text, "a b"), "x")
    one = ["x.sub_mul[subtract, subtract, multiply]", "x.clip[clip]"]
    assert ops(done) == [*one, *one]


def test_reuse_call_merge(known: Known):
    """An op of the match that two other ops of the match use."""
    x, y = wildcard(), wildcard()
    first = is_op("add")(x, y)
    known("x", entries=[Entry("adds", is_op("add")(is_op("add")(x, first), first))])
    done = composites(module("a = add x y\nb = add x a\nc = add b a\nreturn c", "x y"), "x")
    assert ops(done) == ["x.adds[add, add, add]"]


def test_multiple_patterns(known: Known):
    biased = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard())
    entries = [Entry("conv", is_op("clip")(biased)), Entry("add_clip", is_op("clip")(wildcard() + wildcard()))]
    known("x", entries=entries)
    text = """
func.func @main(%x: tensor<1x2x2x1xf32>, %k: tensor<1x1x1x1xf32>, %b: tensor<1xf32>) -> tensor<1x2x2x1xf32> {
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x2x2x1xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2x2x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
  %2 = relay.clip %1 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  %3 = relay.add %2, %x : (tensor<1x2x2x1xf32>, tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  %4 = relay.clip %3 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  func.return %4 : tensor<1x2x2x1xf32>
}"""
    done = composites(IRModule.parse(text), "x")
    assert ops(done) == ["x.conv[nn.conv2d, nn.bias_add, clip]", "x.add_clip[add, clip]"]


def test_optional_pattern(known: Known):
    """One name, and what was matched in `partitioned_from_pattern`."""
    summed = (wildcard() + wildcard()).optional(lambda s: is_op("abs")(s)).optional(lambda s: is_op("clip")(s))
    known("x", entries=[Entry("sum", summed)])
    text = "a = add x y\nb = abs a\nc = clip b\nd = add c y\ne = clip d\nf = add e y\nreturn f"
    assert patterns(composites(module(text, "x y"), "x")) == ["add_abs_clip_", "add_clip_", "add_"]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("ABC", ["x.A[add, abs, clip]"]),
        ("BAC", ["x.B[add, abs]", "clip"]),
        ("CAB", ["add", "x.C[abs, clip]"]),
    ],
)
def test_merge_order(known: Known, order: str, found: list[str]):
    """The first entry of the table takes what it can in the whole function, then the next."""
    table = {"A": ADD_ABS_CLIP, "B": ADD_ABS, "C": ABS_CLIP}
    known("x", entries=[Entry(name, table[name]) for name in order])
    assert ops(composites(module("a = add x y\nb = abs a\nr = clip b\nreturn r", "x y"), "x")) == found


def test_a_match_with_an_op_in_a_foreign_layout(known: Known):
    """The layout is the reason for the whole match, rather than that another match has taken the op."""
    biased = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard())
    known("x", entries=[Entry("conv", is_op("clip")(biased))])
    text = """
func.func @main(%x: tensor<1x1x2x2xf32>, %k: tensor<1x1x1x1xf32>, %b: tensor<1xf32>) -> tensor<1x1x2x2xf32> {
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32, data_layout = "NCHW", kernel_layout = "OIHW"}
    : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %1 = relay.nn.bias_add %0, %b {axis = 1 : i64} : (tensor<1x1x2x2xf32>, tensor<1xf32>) -> tensor<1x1x2x2xf32>
  %2 = relay.clip %1 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  func.return %2 : tensor<1x1x2x2xf32>
}"""
    said = "its layout is NCHW, not NHWC"
    assert reasons(MergeComposite("x")(IRModule.parse(text))) == {
        "relay.nn.conv2d": said,
        "relay.nn.bias_add": f"conv: {said}",
        "relay.clip": f"conv: {said}",
    }


def test_checks_see_static_shapes_only(known: Known):
    def check(match: Match) -> bool:
        raise AssertionError

    known("x", entries=[Entry("abs_clip", ABS_CLIP, check)])
    text = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = relay.abs %x : (tensor<?xf32>) -> tensor<?xf32>
  %1 = relay.clip %0 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<?xf32>) -> tensor<?xf32>
  func.return %1 : tensor<?xf32>
}"""
    found = reasons(MergeComposite("x")(IRModule.parse(text)))
    assert set(found.values()) == {"a size of it is not known: give the model's inputs static shapes"}


def test_parallel_merge(known: Known):
    known("x", entries=[Entry("add_clip", is_op("clip")(wildcard() + wildcard()))])
    text = "a = add x y\nb = clip a\nc = add x y\nd = clip c\nr = multiply b d\nreturn r"
    assert ops(composites(module(text, "x y"), "x")) == ["x.add_clip[add, clip]"] * 2 + ["multiply"]


def test_multiple_input_subgraphs(known: Known):
    """A pattern object stands for one value: two sums of the same operands, not of others."""
    x, y = wildcard(), wildcard()
    known("x", entries=[Entry("sums", is_op("subtract")(is_op("clip")(x + y), is_op("abs")(x + y)))])
    same_operands = "a = add x y\nb = clip a\nc = add x y\nd = abs c\nr = subtract b d\nreturn r"
    assert patterns(composites(module(same_operands, "x y z"), "x")) == ["add_clip_add_abs_subtract_"]
    others = same_operands.replace("c = add x y", "c = add x z")
    assert patterns(composites(module(others, "x y z"), "x")) == []


def test_tuple_get_item_merge(known: Known):
    """Relay takes an element of a tuple; here a pattern names one of an op's results."""
    quantized = is_op("qnn.dynamic_quantize")(wildcard()).named("quantize")
    known("x", entries=[Entry("scale", is_op("abs")(is_output(quantized, 1)))])
    done = composites(module("q, s = qnn.dynamic_quantize x\na = abs s\nreturn a"), "x")
    assert ops(done) == ["x.scale[qnn.dynamic_quantize, abs]"]
    other = composites(module("q, s = qnn.dynamic_quantize x\na = abs s\nreturn a, q"), "x")
    assert ops(other) == ["qnn.dynamic_quantize", "abs"]
    said = "scale: the result of qnn.dynamic_quantize is also returned"
    assert reasons(other) == {"qnn.dynamic_quantize": said, "relay.abs": said}


@pytest.mark.parametrize("groups", [1, 2])
def test_pattern_with_check(known: Known, groups: int):
    def check(match: Match) -> bool | Refusal:
        assert [op.name for op in match.ops] == ["relay.add", "relay.clip"] and match.root is match.ops[-1]
        assert match["sum"] is match.ops[0] and len(match.inputs) == 2 and not match.constants
        return True if groups == 1 else Refusal("it has no groups")

    known("x", entries=[Entry("add_clip", is_op("clip")((wildcard() + wildcard()).named("sum")), check)])
    done = composites(module("a = add x y\nr = clip a\nreturn r", "x y"), "x")
    assert ops(done) == (["x.add_clip[add, clip]"] if groups == 1 else ["add", "clip"])
    said = "add_clip: it has no groups"
    assert reasons(done) == ({} if groups == 1 else {"relay.add": said, "relay.clip": said})


def test_diamond_not_merge(known: Known):
    """An op between two ops of the match, which the pattern does not name, breaks it."""
    x, y = wildcard(), wildcard()
    product = x * y
    known("x", entries=[Entry("diamond", is_op("add")(is_op("clip")(product), product))])
    whole = module("m = multiply x y\nc = clip m\nr = add c m\nreturn r", "x y")
    assert ops(composites(whole, "x")) == ["x.diamond[multiply, clip, add]"]
    broken = module("m = multiply x y\nc = clip m\nd = add c m\nr = add d m\nreturn r", "x y")
    assert ops(composites(broken, "x")) == ["multiply", "clip", "add", "add"]


def test_type_check(known: Known):
    """A check sees types, those of composites that were made before too. (Relay forgot them.)"""
    seen: list[object] = []

    def check(match: Match) -> bool:
        seen.append((match.inputs[0].type, match.root.results[0].type))
        return True

    first = Entry("abs", is_op("abs")(wildcard()))
    known("x", entries=[first, Entry("add", wildcard() + wildcard(), check)])
    composites(module("a = abs x\nr = add a a\nreturn r"), "x")
    assert seen == [(TensorType(f32, [4]), TensorType(f32, [4]))]


def test_an_alternative_that_fails_is_not_the_last(known: Known):
    """The longer form is needed outside or refused by its check; the shorter one is taken. (Relay gave up.)"""
    both = is_op("abs")(wildcard()) | is_op("abs")(wildcard() + wildcard())
    longer = is_op("abs")(wildcard() + wildcard()) | is_op("abs")(wildcard())
    outside = module("a = add x y\nr = abs a\nreturn r, a", "x y")
    known("x", entries=[Entry("abs", longer)])
    assert ops(composites(outside, "x")) == ["add", "x.abs[abs]"]
    known("x", entries=[Entry("abs", longer, lambda match: len(match.ops) == 1)])
    assert ops(composites(module("a = add x y\nr = abs a\nreturn r", "x y"), "x")) == ["add", "x.abs[abs]"]
    known("x", entries=[Entry("abs", both, lambda match: len(match.ops) == 2)])
    assert ops(composites(module("a = add x y\nr = abs a\nreturn r", "x y"), "x")) == ["x.abs[add, abs]"]


def test_constants_are_copied_where_the_pattern_asked_for_them(known: Known):
    known("x", entries=[Entry("bias", wildcard() + is_constant()), Entry("product", wildcard() * wildcard())])
    mod = module("c = constant 2.0\na = add c x\nb = multiply c a\nreturn b")
    done = composites(mod, "x")
    assert ops(done) == ["constant", "x.bias[constant, add]", "x.product[multiply]"]
    alone = composites(module("c = constant 2.0\na = add c x\nreturn a"), "x")
    assert ops(alone) == ["x.bias[constant, add]"]


def test_results_that_nothing_needs_are_no_match(known: Known):
    known("x", entries=[Entry("abs", is_op("abs")(wildcard()))])
    assert ops(composites(module("a = abs x\nb = clip x\nreturn b"), "x")) == ["abs", "clip"]


def test_several_compilers_in_order(known: Known):
    known("a", entries=[Entry("abs", is_op("abs")(wildcard()))])
    known("b", entries=[Entry("add_abs", ADD_ABS)])
    mod = module("s = add x y\nr = abs s\nreturn r", "x y")
    assert ops(composites(mod, "a", "b")) == ["add", "a.abs[abs]"]
    assert ops(composites(mod, "b", "a")) == ["b.add_abs[add, abs]"]


def test_what_is_not_exact_is_refused(known: Known):
    exact, free = Entry("abs", is_op("abs")(wildcard()), exact=True), Entry("add", wildcard() + wildcard())
    mod = module("s = add x y\nr = abs s\nreturn r", "x y")
    known("x", entries=[exact, free], exact=False, difference="off by one")
    done = composites(mod, "x", exact=True)
    assert ops(done) == ["add", "x.abs[abs]"]
    assert reasons(done) == {"relay.add": "add: integers must be exact, and x's are not: off by one"}
    known("x", entries=[Entry("abs", is_op("abs")(wildcard()), exact=False), free])
    assert ops(composites(mod, "x", exact=True)) == ["x.add[add]", "abs"]
    mod.op.attributes["byoc.exact"] = BoolAttr.from_bool(True)
    assert ops(composites(mod, "x")) == ["x.add[add]", "abs"]
    assert ops(composites(mod, "x", exact=False)) == ["x.add[add]", "x.abs[abs]"]


def test_ops_of_several_blocks_are_no_match(known: Known):
    """A value from outside of the body of an `scf.if` is an input, never part of the match."""
    known("x", entries=[Entry("add_abs", ADD_ABS), Entry("abs", is_op("abs")(wildcard()))])
    text = """func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = relay.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = scf.if %c -> (tensor<4xf32>) {
    %b = relay.abs %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}"""
    done = MergeComposite("x")(IRModule.parse(text))
    done.verify()
    assert [op.composite.data for op in done.op.walk() if isinstance(op, byoc.CompositeOp)] == ["x.abs"]


def test_what_compilers_were_given_stays(known: Known):
    known("x", "abs", entries=[Entry("abs", is_op("abs")(wildcard()))])
    from relay.byoc.partitioning.annotate_target import AnnotateTarget

    marked = AnnotateTarget("x")(module("a = abs x\nreturn a"))
    assert ops(composites(marked, "x")) == ["begin x", "abs", "end x"]


def test_unknown_names(known: Known):
    known("x")
    mod = module("a = abs x\nreturn a")
    with pytest.raises(InvalidArgument, match="merge-composite: there is no compiler 'y'"):
        MergeComposite("y")(mod)


def test_the_source_of_the_last_op_is_the_composite_s(known: Known):
    known("x", entries=[Entry("add_abs", ADD_ABS)])
    (op,) = [op for op in composites(module("a = add x x\nb = abs a\nreturn b"), "x").op.walk() if is_composite(op)]
    assert "b" in str(op.location) and op.results[0].name_hint == "b"


def is_composite(op: Operation) -> bool:
    return isinstance(op, byoc.CompositeOp)


def test_operands_commute_deep_in_a_match(known: Known):
    """Which operand is which is decided by what matches further down. (Relay took the first that fit.)"""
    x = wildcard()
    known("x", entries=[Entry("sum", is_op("add")(is_op("abs")(x), is_op("clip")(is_op("abs")(wildcard()))))])
    text = "a = abs x\nb = abs y\nc = clip b\nr = add c a\nreturn r"
    assert patterns(composites(module(text, "x y"), "x")) == ["abs_abs_clip_add_"]
