"""module_pass and function_pass: on functions and classes, as decorators and as calls."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier
from typing import Any, cast

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pass, PassContext, Pipeline, Sequential, function_pass, module_pass, registry
from relay.passes.timing import OpStatistics
from tests.unit.pass_modules import small

TWO = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @theirs(%x: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "c"} { func.return %x : tensor<4xf32> }
"""


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "MADE", {})


def tagged(mod: IRModule) -> list[str]:
    return [name for name, function in mod.functions.items() if "tag" in function.attributes]


def tag(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
    """Tags a function."""
    func.attributes["tag"] = StringAttr(str(ctx.opt_level))
    return func


def test_a_function_pass_sees_each_function_of_ours():
    mod = IRModule.parse(TWO)
    assert tagged(function_pass(tag, opt_level=1)(mod)) == ["main", "other"] and tagged(mod) == []


def test_a_function_pass_on_one_function():
    function = IRModule.parse(TWO)["other"]
    result = function_pass(tag, opt_level=1)(function)
    assert isinstance(result, FuncOp) and "tag" in result.attributes and "tag" not in function.attributes


def test_a_function_may_be_replaced():
    @function_pass(opt_level=0)
    def renew(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
        new = func.clone()
        new.attributes["tag"] = StringAttr("new")
        return new

    after = renew(IRModule.parse(TWO))
    assert tagged(after) == ["main", "other"] and list(after) == ["main", "other", "declared", "theirs"]


def test_a_module_may_be_replaced():
    @module_pass(opt_level=0)
    def swap(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule.parse(TWO)

    mod = small()
    swapped = Sequential([swap, function_pass(tag, opt_level=0)])(mod)
    assert tagged(swapped) == ["main", "other"] and "relay.add" in str(mod)
    swapped.verify()


def test_a_decorated_class_takes_arguments():
    @module_pass(opt_level=1, name="tagger")
    class Tagger:
        """Tags the module."""

        def __init__(self, text: str, times: int = 1):
            self.text = text * times

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            mod.op.attributes["tag"] = StringAttr(self.text)
            return mod

    first, second = Tagger("a", times=2), Tagger("b")
    assert isinstance(first, Pass) and first.name == "tagger" and first.__doc__ == "Tags the module."
    assert 'tag = "aa"' in str(first(small())) and 'tag = "b"' in str(Sequential([first, second])(small()))
    assert Tagger.__name__ == "Tagger"


def test_a_decorated_class_on_functions():
    @function_pass(opt_level=1)
    class Tag:
        def transform_function(self, func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
            return tag(func, mod, ctx)

    assert tagged(Tag()(IRModule.parse(TWO))) == ["main", "other"]


def test_levels_and_requirements():
    fancy = function_pass(tag, opt_level=3, name="Fancy", required=["FoldConstant"])
    assert (fancy.name, fancy.opt_level, tuple(fancy.requires)) == ("Fancy", 3, ("FoldConstant",))
    assert tagged(Sequential([fancy])(small())) == []
    with PassContext(opt_level=3):
        after = Sequential([fancy])(small())
    assert tagged(after) == ["main"] and str(after).count("relay.add") == 1


def test_made_passes_are_known_by_name():
    function_pass(tag, opt_level=1, name="Fancy")
    assert tagged(Pipeline.parse("cse,Fancy")(small())) == ["main"]
    with PassContext(disabled_pass=["Fancy"]):
        assert tagged(Pipeline.parse("cse,Fancy")(small())) == []


def test_options_of_a_function_are_in_text_and_config():
    @module_pass(opt_level=0, invalidates=())
    def tag_with(mod: IRModule, ctx: PassContext, *, text: str = "a", times: int = 1, by: object = None) -> IRModule:
        mod.op.attributes["tag"] = StringAttr(text * times)
        return mod

    def tags(step: Pass | Pipeline) -> str:
        return str(step(small()).op.attributes["tag"])

    assert tags(tag_with) == '"a"' and tags(Pipeline.parse('tag_with{text="b" times=2}')) == '"bb"'
    again = replace(cast(Any, tag_with), times=3, by=tag_with)
    assert str(again) == "tag_with{times=3}" and tags(again) == '"aaa"'
    with PassContext(config={"tag_with.times": 4}):
        assert tags(tag_with) == '"aaaa"'
    assert PassContext.list_configs()["tag_with.times"].default == 1
    with pytest.raises(InvalidArgument, match="pass tag_with"):
        Pipeline.parse("tag_with{times=x}")(small())


def test_options_of_a_class_are_in_text():
    @module_pass(opt_level=0)
    class TagWith:
        def __init__(self, text: str, times: int = 1):
            self.text = text * times

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            mod.op.attributes["tag"] = StringAttr(self.text)
            return mod

    given = TagWith("a", times=2)
    assert str(given) == 'TagWith{text="a" times=2}' and Pipeline.parse(str(given)) == Pipeline([given])
    assert 'tag = "aa"' in str(Pipeline.parse(str(given))(small()))
    with pytest.raises(TypeError, match="missing a required argument: 'text'"):
        cast(Any, TagWith)()


def test_what_a_made_pass_leaves_is_as_it_declares():
    """What P4 of [a, b, c, c] ran again: b and c keep what a did."""
    ran: list[str] = []

    def mark(name: str, *required: str) -> Pass:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            ran.append(name)
            return mod

        return module_pass(run, opt_level=0, name=name, required=required, invalidates=(), preserves=["use-counts"])

    a, b = mark("a"), mark("b", "a")
    c = mark("c", "a", "b")
    Sequential([a, b, c, c])(small())
    assert ran == ["a", "b", "c", "c"] and c.preserves == ("use-counts",)


def test_a_call_with_a_context():
    levels: list[int] = []

    @function_pass(opt_level=4)
    def level(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
        levels.append(ctx.opt_level)
        return func

    ctx = PassContext(opt_level=3)
    level(small(), ctx)
    Sequential([level])(small(), ctx)  # of level 4: does not run
    level(small()["main"], ctx)
    assert levels == [3, 3]
    with pytest.raises(InvalidArgument, match=r"pass\(mod, ctx\): 3 is no PassContext"):
        level(small(), cast(Any, 3))


def test_functions_at_once():
    """Each waits for the other."""
    both = Barrier(2, timeout=30)

    @function_pass(opt_level=0, parallel=True)
    def meet(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
        both.wait()
        return tag(func, mod, PassContext.current())

    with PassContext(opt_level=3):
        after = meet(IRModule.parse(TWO))
    assert tagged(after) == ["main", "other"] and str(after).count('tag = "3"') == 2


def test_a_pass_counts():
    @module_pass(opt_level=0)
    def look(mod: IRModule, ctx: PassContext) -> IRModule:
        for op in mod.op.walk():
            ctx.count(f"{op.name} seen")
        return mod

    statistics = OpStatistics()
    look(small(), PassContext(instruments=[statistics]))
    assert "func.func seen +1" in statistics.render()
    PassContext.current().count("of no pass")


@pytest.mark.parametrize("name", ["fold-constant", "FoldConstant", "cse", "InferType", "legalize"])
def test_the_name_of_a_pass_of_ours_stays_with_it(name: str):
    with pytest.raises(InvalidArgument, match=f"pass {name}: has the name of a pass of relay or xDSL; give it another"):
        function_pass(tag, opt_level=1, name=name)


def test_a_name_is_of_one_pass():
    def other(func: FuncOp, mod: IRModule, ctx: PassContext) -> FuncOp:
        return func

    function_pass(tag, opt_level=1, name="fancy")
    function_pass(tag, opt_level=2, name="fancy")
    with pytest.raises(InvalidArgument, match="pass fancy: has the name of tests.unit.test_passes_decorators.tag"):
        function_pass(other, opt_level=1, name="fancy")


def test_what_is_missing_or_wrong():
    with pytest.raises(InvalidArgument, match="function_pass tag: has no opt_level; write opt_level=1"):
        function_pass(tag)
    with pytest.raises(InvalidArgument, match="the name 'my pass' has more than letters"):
        function_pass(tag, opt_level=1, name="my pass")
    with pytest.raises(InvalidArgument, match=r"required: is the text 'cse'; write required=\['cse'\]"):
        function_pass(tag, opt_level=1, required="cse")
    with pytest.raises(InvalidArgument, match="module_pass int: the class has no method transform_module"):
        module_pass(cast(type[FakeTransform], int), opt_level=1)
    nothing = function_pass(lambda func, mod, ctx: cast(FuncOp, None), opt_level=1, name="nothing")
    with pytest.raises(InvalidArgument, match="pass nothing, @main: returned None; return the function"):
        nothing(small())
    none = module_pass(lambda mod, ctx: cast(ModuleOp, None), opt_level=1, name="none")
    with pytest.raises(InvalidArgument, match="pass none: returned None; return the module"):
        none(small())


class FakeTransform:
    """Stands for what `int` is not."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        raise AssertionError
