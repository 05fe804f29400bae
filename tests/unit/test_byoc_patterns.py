"""The pattern language: what each pattern matches, and what a match tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, TensorType, f32, i8
from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.entries import supported
from relay.byoc.patterns import (
    Entry,
    Match,
    Pattern,
    is_constant,
    is_elementwise,
    is_expr,
    is_op,
    is_output,
    is_var,
    wildcard,
)
from relay.errors import InvalidArgument
from relay.module import IRModule
from tests.unit.partitioning_modules import INTEGERS, module, short

CONV = """func.func @main(%x: tensor<1x4x4x2xi8>, %w: tensor<3x3x2x1xi8>) -> tensor<1x4x4x2xi32> {
  %c = qnn.conv2d %x, %w {padding = array<i64: 1, 1, 1, 1>, groups = 2 : i64, kernel_layout = "HWOI",
    input_scale = 0.1 : f32, input_zero_point = 3 : i32, kernel_scale = dense<[0.5, 0.25]> : tensor<2xf32>}
    : (tensor<1x4x4x2xi8>, tensor<3x3x2x1xi8>) -> tensor<1x4x4x2xi32>
  func.return %c : tensor<1x4x4x2xi32>
}"""


def last(mod: IRModule) -> tuple[Operation, dict[Operation, int]]:
    """The op before the return, and the order of the block."""
    block = mod["main"].body.block
    assert block.last_op is not None and block.last_op.prev_op is not None
    return block.last_op.prev_op, {op: i for i, op in enumerate(block.ops)}


def matches(pattern: Pattern, mod: IRModule) -> bool:
    return isinstance(Entry("entry", pattern).match(*last(mod)), Match)


def test_operands_that_are_the_same_are_tried_once():
    """Each doubles the one before, and the first is needed elsewhere: every way to match is refused."""
    pattern, lines = wildcard(), list[str]()
    for k in range(40):
        pattern = is_op("add")(pattern, wildcard())
        lines.append(f"v{k + 1} = add v{k} v{k}")
    mod = module("\n".join([*lines, "return v40, v1"]), "v0", INTEGERS)
    found = Entry("entry", pattern).match(*last(mod))
    assert isinstance(found, Refusal) and "the result of add is also" in found.reason


def matched(pattern: Pattern, mod: IRModule) -> list[str]:
    """The ops of the match, in order; none if there is none."""
    found = Entry("entry", pattern).match(*last(mod))
    return [short(op) for op in found.ops] if isinstance(found, Match) else []


def test_names_of_ops():
    mod = module("r = add x x\nreturn r")
    assert all(matches(is_op(name), mod) for name in ("add", "relay.add"))
    assert matches(is_op("subtract", "add"), mod) and not matches(is_op("subtract"), mod)
    assert is_op("somebody.else")(wildcard()).roots() == {"somebody.else"}
    with pytest.raises(InvalidArgument, match="pattern: there is no op 'nn.convd2'; did you mean nn.conv"):
        is_op("nn.convd2")
    with pytest.raises(InvalidArgument, match="there is no op 'qnn.convd2'"):
        is_op("qnn.convd2")
    with pytest.raises(InvalidArgument, match="there is no op 'ad'; did you mean add"):
        is_op("ad")


def test_operands():
    mod = module("a = abs x\nr = subtract a x\nreturn r")
    assert matches(is_op("subtract")(None), mod) and matches(is_op("subtract"), mod)
    assert matches(is_op("subtract")(is_op("abs")(wildcard()), is_var()), mod)
    assert not matches(is_op("subtract")(is_var(), is_op("abs")), mod)
    assert not matches(is_op("subtract")(wildcard()), mod) and not matches(is_op("subtract")(), mod)
    assert matches(wildcard()(wildcard(), wildcard()), mod)


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_operands_of_ops_that_commute(name: str):
    mod = module(f"a = abs x\nr = {name} x a\nreturn r")
    assert matched(is_op(name)(is_op("abs")(wildcard()), wildcard()), mod) == ["abs", name]
    assert matched(is_op(name)(wildcard(), is_op("abs")(wildcard())), mod) == ["abs", name]


def test_constants_arguments_and_values():
    mod = module("k = constant 2.0\nr = add x k\nreturn r")
    constant = next(iter(mod["main"].body.block.ops))
    assert matches(is_op("add")(is_var("x"), is_constant()), mod)
    assert not matches(is_op("subtract")(is_var("x"), is_constant()), mod)
    assert not matches(is_op("add")(is_var("y"), wildcard()), mod)
    assert matches(is_op("add")(wildcard(), is_expr(constant)), mod)
    assert matches(is_op("add")(wildcard(), is_expr(np.full(4, 2.0, np.float32))), mod)
    assert not matches(is_op("add")(wildcard(), is_expr([2.0, 2.0, 2.0, 3.0])), mod)
    assert matches(is_op("add")(is_expr(mod["main"].body.block.args[0]), wildcard()), mod)
    found = Entry("entry", is_op("add")(wildcard(), is_constant().named("k"))).match(*last(mod))
    assert isinstance(found, Match) and found.constants == (constant,) and found.array("k").tolist() == [2.0] * 4
    kept = Entry("entry", is_op("add")(wildcard(), wildcard())).match(*last(mod))
    assert isinstance(kept, Match) and kept.constants == () and len(kept.inputs) == 2


def test_attributes():
    mod = IRModule.parse(CONV)
    conv = is_op("qnn.conv2d")
    assert matches(conv.has_attr({"groups": 2, "kernel_layout": "HWOI", "input_zero_point": 3}), mod)
    assert matches(conv.has_attr({"padding": (1, 1, 1, 1), "strides": [1, 1]}), mod)
    assert matches(conv.has_attr({"input_scale": 0.1, "kernel_scale": [0.5, 0.25]}), mod)
    assert matches(conv.has_attr({"input_scale": FloatAttr(0.1, f32), "out_dtype": "int32"}), mod)
    assert matches(conv.has_attr({"data_layout": "NHWC", "nothing": None}), mod)
    for wrong in ({"groups": 1}, {"padding": (1, 1)}, {"input_scale": 0.2}, {"groups": None}, {"nothing": 1}):
        assert not matches(conv.has_attr(wrong), mod), wrong
    assert not matches(conv.has_attr({"out_dtype": "int8"}), mod) and not matches(
        conv.has_attr({"kernel_scale": [0.5]}), mod
    )
    assert matches(wildcard().has_attr({"groups": 2}), mod)
    assert not matches(is_op("qnn.conv2d")(wildcard().has_attr({"groups": 2}), wildcard()), mod)
    assert matches(is_op("qnn.conv2d").has_attr({"groups": 2})(wildcard(), wildcard()), mod)


def test_types():
    mod = IRModule.parse(CONV)
    data = is_op("qnn.conv2d")(wildcard().has_dtype("int8"), wildcard().has_shape((3, None, 2, 1)))
    assert matches(data.has_dtype(np.int32), mod) and matches(data.has_dtype("i32"), mod)
    assert matches(data.has_shape((1, 4, 4, 2)), mod) and not matches(data.has_shape((1, 4, 4)), mod)
    assert matches(data.has_type("tensor<1x4x4x2xi32>"), mod)
    assert not matches(data.has_type(TensorType(i8, [1, 4, 4, 2])), mod)
    assert not matches(is_op("qnn.conv2d")(wildcard().has_dtype("uint8"), wildcard()), mod)
    assert matches(is_op("qnn.conv2d").where(lambda value: value.name_hint == "c"), mod)
    with pytest.raises(InvalidArgument, match="has_dtype: 'int7' is no dtype"):
        wildcard().has_dtype("int7")


def test_alternatives_and_options():
    text = "a = add x y\nb = abs a\nreturn b"
    summed = is_op("add")(wildcard(), wildcard())
    pattern = is_op("abs")(summed | is_op("multiply")(wildcard(), wildcard()))
    assert matched(pattern, module(text, "x y")) == ["add", "abs"]
    assert matched(pattern, module(text.replace("add", "multiply"), "x y")) == ["multiply", "abs"]
    assert matched(pattern, module(text.replace("add", "subtract"), "x y")) == []
    optional = summed.optional(lambda value: is_op("abs")(value)).optional(lambda value: is_op("clip")(value))
    assert optional.roots() == {"relay.add", "relay.abs", "relay.clip"}
    assert matched(optional, module(text, "x y")) == ["add", "abs"]
    assert matched(optional, module("a = add x y\nb = clip a\nreturn b", "x y")) == ["add", "clip"]


def test_the_choice_further_down_decides():
    """An alternative that matches, but makes the rest fail, is taken back. (Relay kept it.)"""
    x = wildcard()
    one, other = is_op("abs")(x), is_op("abs")(wildcard())
    pattern = is_op("subtract")(one | other, x)
    assert matched(pattern, module("a = abs x\nr = subtract a x\nreturn r", "x y")) == ["abs", "subtract"]
    assert matched(pattern, module("a = abs x\nr = subtract a y\nreturn r", "x y")) == ["abs", "subtract"]
    assert matched(is_op("subtract")(one, x), module("a = abs x\nr = subtract a y\nreturn r", "x y")) == []


def test_results():
    quantize = is_op("qnn.dynamic_quantize")(wildcard())
    mod = module("q, s = qnn.dynamic_quantize x\na = abs s\nreturn a")
    assert matches(is_op("abs")(is_output(quantize, 1)), mod) and matches(is_op("abs")(is_output(quantize)), mod)
    assert not matches(is_op("abs")(is_output(quantize, 0)), mod) and not matches(is_op("abs")(quantize), mod)
    assert matches(quantize, module("q, s = qnn.dynamic_quantize x\nreturn s"))


def test_operators_and_elementwise():
    x, y = wildcard(), wildcard()
    mod = module("a = add x y\nb = subtract a x\nc = multiply b a\nd = divide c y\nreturn d", "x y")
    summed = x + y
    assert matched((summed - x) * summed / y, mod) == ["add", "subtract", "multiply", "divide"]
    assert matches(is_elementwise()(wildcard(), wildcard()), mod)
    assert not matches(is_elementwise()(wildcard()), module("r = concatenate x\nreturn r"))


DIAMOND = "m = multiply x y\na = abs m\nb = exp a\nc = clip m\nd = add b c\nreturn d"


def test_dominates():
    """Every way back from the child leads, through ops of the path, to one parent."""
    unary = is_elementwise()(wildcard())
    pattern = is_op("add")(wildcard(), wildcard()).dominates(is_op("multiply")(wildcard(), wildcard()), unary)
    assert matched(pattern, module(DIAMOND, "x y")) == ["multiply", "abs", "exp", "clip", "add"]
    direct = DIAMOND.replace("c = clip m\nd = add b c", "d = add b m")
    assert matched(pattern, module(direct, "x y")) == ["multiply", "abs", "exp", "add"]


@pytest.mark.parametrize(
    "text",
    [
        DIAMOND.replace("clip m", "clip y"),  # a way that ends elsewhere
        DIAMOND.replace("exp a", "concatenate a"),  # a way through another op
        DIAMOND.replace("return d", "return d, a"),  # something outside needs what is inside
    ],
)
def test_does_not_dominate(text: str):
    unary = is_elementwise()(wildcard())
    pattern = is_op("add")(wildcard(), wildcard()).dominates(is_op("multiply")(wildcard(), wildcard()), unary)
    assert matched(pattern, module(text, "x y")) == []


def test_dominates_one_parent_only():
    unary = is_elementwise()(wildcard())
    pattern = is_op("add")(wildcard(), wildcard()).dominates(is_op("multiply")(wildcard(), wildcard()), unary)
    two = "m = multiply x y\nn = multiply x x\na = abs m\nc = clip n\nd = add a c\nreturn d"
    assert matched(pattern, module(two, "x y")) == []
    constant = "k = constant 1.0\nm = multiply x y\na = abs m\nd = add a k\nreturn d"
    assert matched(pattern, module(constant, "x y")) == ["multiply", "abs", "add"]


def test_a_match_tells_what_it_is():
    mod = module("k = constant 1.0\na = add x k\nb = abs a\nreturn b", "x y")
    summed = is_op("add")(wildcard().named("x"), is_constant().named("k")).named("sum")
    pattern = is_op("abs")(summed).optional(lambda value: is_op("clip")(value).named("clip"))
    found = Entry("entry", pattern).match(*last(mod))
    assert isinstance(found, Match) and "sum" in found and "clip" not in found
    assert found["sum"] is found.ops[0] and found.get("clip") is None and found.root is found.ops[1]
    assert found.inputs == (mod["main"].body.block.args[0],) == (found.value("x"),)
    for error, ask in (
        (r"match\['clip'\]: is not bound in this match; there are x, k, sum", lambda: found["clip"]),
        (r"match\['x'\]: is an argument of the function", lambda: found["x"]),
        (r"match.array\('x'\): is no constant", lambda: found.array("x")),
    ):
        with pytest.raises(InvalidArgument, match=error):
            ask()


def test_refusals():
    """Why there is no match: the check's words, or what else needs a result."""
    outside = module("a = add x y\nb = clip a\nc = abs a\nreturn b, c", "x y")
    pattern = is_op("abs")(wildcard() + wildcard())
    assert Entry("entry", pattern).match(*last(outside)) == Refusal("entry: the result of add is also used by clip")
    mod = module("a = add x y\nc = abs a\nreturn c", "x y")
    said = Entry("entry", pattern, lambda match: Refusal("no")).match(*last(mod))
    assert said == Refusal("entry: no")
    silent = Entry("entry", pattern, lambda match: False).match(*last(mod))
    assert silent == Refusal("entry: its check says no")
    longer = is_op("abs")(wildcard() + wildcard()) | is_op("abs")(wildcard())
    first = Entry("entry", longer, lambda match: Refusal(f"{len(match.ops)} ops")).match(*last(mod))
    assert first == Refusal("entry: 2 ops")
    assert Entry("entry", is_op("clip")).match(*last(mod)) is None


def test_integers_too():
    mod = module("k = constant 3\nr = add x k\nreturn r", "x", INTEGERS)
    assert matches(is_op("add")(wildcard().has_dtype("int32"), is_expr(np.full(4, 3))), mod)


def test_options_take_as_much_as_there_is():
    """A pattern with ten options, on a chain of ten ops that it matches in one way."""
    pattern: Pattern = wildcard()
    for _ in range(10):
        pattern = pattern.optional(lambda value: is_op("abs")(value))
    lines = ["v0 = abs x"] + [f"v{k + 1} = abs v{k}" for k in range(9)]
    assert len(matched(pattern, module("\n".join([*lines, "return v9"])))) == 10


def test_a_refused_product_is_checked_with_what_an_entry_could_take():
    """A ReLU may be a maximum; what takes a product as the bias of other data does not belong to it."""
    square = "tensor<4x4xf32>"
    dense = f"{{out_dtype = f32}} : ({square}, {square}) -> {square}"
    mod = IRModule.parse(f"""func.func @main(%x: {square}, %w: {square}, %z: tensor<f32>) -> ({square}, {square}) {{
        %a = relay.nn.dense %x, %w {dense}
        %b = relay.maximum %a, %z : ({square}, tensor<f32>) -> {square}
        %c = relay.nn.dense %x, %w {dense}
        %d = relay.maximum %z, %c : (tensor<f32>, {square}) -> {square}
        func.return %b, %d : {square}, {square}
      }}""")
    asked: list[list[str]] = []

    def check(ops: Sequence[Operation]) -> str:
        asked.append([short(op) for op in ops])
        return "no"

    ops = [op for op in mod["main"].body.block.ops if short(op) == "nn.dense"]
    assert all(isinstance(supported(check, op), Refusal) for op in ops)
    assert asked == [["nn.dense"], ["nn.dense", "maximum"], ["nn.dense"], ["nn.dense"]]
