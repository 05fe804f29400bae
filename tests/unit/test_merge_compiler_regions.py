"""What `merge-compiler-regions` makes one region: the cases of Relay's own tests, maximality, determinism, speed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import permutations

import pytest
from xdsl.ir import Block, Operation

from relay.byoc.compiler import Refusal
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.grouping import Grouping
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.scope import blocks
from relay.dialects import byoc
from relay.errors import InvalidArgument, Unsupported
from relay.module import IRModule
from tests.unit.partitioning_modules import Known, annotated, function, module, ops, same
from tests.unit.test_annotate_target import IF, bodies


def merge(mod: IRModule, *targets: str) -> IRModule:
    """The module with its regions, which computes the same."""
    done = MergeCompilerRegions()(annotated(mod, *targets))
    same(mod, done)
    for each in done.functions.values():
        for block in blocks(each):
            assert mergeable(block) == []
    return done


def mergeable(block: Block) -> list[tuple[Operation, Operation]]:
    """Pairs of regions of one compiler, the second using a result of the first, between which no way leads through
    another op: they could be one. Written down here as plainly as can be, by walking every way."""
    order = list(block.ops)
    users = {op: {use.operation for r in op.results for use in r.uses} & set(order) for op in order}

    def leads(start: Operation, end: Operation) -> bool:
        return start is end or any(leads(user, end) for user in users[start])

    regions = [op for op in order if isinstance(op, byoc.RegionOp)]
    return [
        (a, b)
        for a, b in permutations(regions, 2)
        if a.compiler == b.compiler and b in users[a] and not any(leads(c, b) for c in users[a] - {b})
    ]


def test_diamond_graph_fanouts(known: Known):
    """A supported op, an unsupported one that uses it, and a supported one that uses both: two regions."""
    known("x", "abs", "add")
    mod = module("a = abs x\nb = add a a\nc = clip b\nd = add b c\nreturn d")
    assert ops(merge(mod, "x")) == ["x[abs, add]", "clip", "x[add]"]


EXAMPLE = """n0 = add i1 i2
n1 = add i3 i4
n2 = add n0 n1
n3 = subtract i5 i6
n4 = subtract i7 n3
n5 = add n2 n4
n6 = subtract i8 n5
n7 = add i9 n5
n8 = add n6 n7
n9 = add i10 n8
return n9"""


def test_example_graph(known: Known):
    """The graph of Relay's RFC on partitioning: two regions, two stretches of the host."""
    known("test", "add")
    done = merge(module(EXAMPLE, " ".join(f"i{k}" for k in range(1, 11))), "test")
    two = ["test[add, add, add, add, add]", "test[add, add]"]
    assert ops(done) == ["subtract", "subtract", two[0], "subtract", two[1]]
    first, last = (op for op in done["main"].body.block.ops if isinstance(op, byoc.RegionOp))
    assert [value.name_hint for value in first.results] == ["n5", "n7"]
    assert [value.name_hint for value in last.operands] == ["n6", "n7", "i10"]


def test_regions_of_both_are_merged_where_one_is_enough(known: Known):
    known("a", "add")
    known("b", "multiply")
    text = "p = add x y\nq = multiply p y\nr = add p y\ns = multiply q r\nt = add s r\nreturn t"
    assert ops(merge(module(text, "x y"), "a", "b")) == ["a[add, add]", "b[multiply, multiply]", "a[add]"]


def test_a_way_through_another_region_keeps_two_apart(known: Known):
    """a0 -> b0 -> a1 and a0 -> a1: as one region of `a`, b0 would be before and after it."""
    known("a", "add")
    known("b", "multiply")
    text = "p = add x x\nq = multiply p p\nr = add p q\nreturn r"
    assert ops(merge(module(text), "a", "b")) == ["a[add]", "b[multiply]", "a[add]"]


def test_two_ways_cross(known: Known):
    """Either pair can be merged alone, both would wait for each other. (Relay's restrictions were not symmetric.)"""
    known("a", "add")
    known("b", "multiply")
    text = "p = add x x\nq = multiply y y\nr = multiply p q\ns = add q p\nt = abs r\nu = abs s\nreturn t, u"
    done = merge(module(text, "x y"), "a", "b")
    assert ops(done) == ["a[add]", "b[multiply, multiply]", "a[add]", "abs", "abs"]


def test_a_call_keeps_its_place(known: Known):
    """Ops with effects stay in their order, and a region that one of them feeds is not merged around it."""
    known("x", "add")
    mod = module("a = add x x\nreturn a")
    mod["f"] = function("a = abs x\nreturn a", name="f")
    mod["main"] = function("a = add x x\nb = call f a\nc = add a b\nd = call f x\nreturn c, d")
    assert ops(merge(mod, "x")) == ["x[add]", "call f", "x[add]", "call f"]


def test_control_flow(known: Known):
    """Regions stay in their blocks; what a body takes from outside is between the ops around it."""
    known("x", "abs", "add")
    done = MergeCompilerRegions()(annotated(IRModule.parse(IF), "x"))
    done.verify()
    _, main, _, then, _, _, _ = bodies(done)
    assert main == ["x[abs]", "scf.if", "x[abs]"] and then == ["constant", "negative", "x[add]"] + ["scf.yield"]


def test_what_an_if_takes_from_outside_is_a_way(known: Known):
    """Two ops of a compiler with an `scf.if` between them whose body uses the first: two regions."""
    known("x", "abs", "add")
    text = IF.replace("%s = relay.abs %r : (tensor<4xf32>)", "%s = relay.add %r, %a : (tensor<4xf32>, tensor<4xf32>)")
    _, main, *_ = bodies(MergeCompilerRegions()(annotated(IRModule.parse(text), "x")))
    assert main == ["x[abs]", "scf.if", "x[add]"]


def test_annotations_by_hand(known: Known):
    """A region of several ops between one begin and one end; an empty one; one of a constant; one without operands."""
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %b = byoc.compiler_begin %x {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %p = relay.abs %b : (tensor<4xf32>) -> tensor<4xf32>
  %q = relay.negative %p : (tensor<4xf32>) -> tensor<4xf32>
  %e = byoc.compiler_end %q {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = byoc.compiler_begin %x {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %f = byoc.compiler_end %c {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %k = relay.constant dense<1.0> : tensor<4xf32>
  %g = byoc.compiler_end %k {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %n = relay.negative %k : (tensor<4xf32>) -> tensor<4xf32>
  %h = byoc.compiler_end %n {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %e, %f, %g, %h : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}"""
    mod = IRModule.parse(text)
    done = MergeCompilerRegions()(mod)
    same(mod, done)
    assert ops(done) == ["x[abs, negative]", "constant", "x[constant, negative]"]


def test_one_op_in_two_regions_is_an_error():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = byoc.compiler_begin %x {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %a = relay.abs %b : (tensor<4xf32>) -> tensor<4xf32>
  %e = byoc.compiler_end %a {compiler = "y"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %e : tensor<4xf32>
}"""
    with pytest.raises(InvalidArgument, match="relay.abs in @main: lies in a region of . and in one of .; put a comp"):
        MergeCompilerRegions()(IRModule.parse(text))


def test_regions_that_wait_for_themselves_are_split():
    """Annotated by hand: one region of two ops with the host's op between them."""
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = byoc.compiler_begin %x {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %a = relay.abs %b : (tensor<4xf32>) -> tensor<4xf32>
  %e = byoc.compiler_end %a {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %h = relay.exp %e : (tensor<4xf32>) -> tensor<4xf32>
  %c = byoc.compiler_begin %h {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = relay.add %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = byoc.compiler_end %d {compiler = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %f : tensor<4xf32>
}"""
    mod = IRModule.parse(text)
    done = MergeCompilerRegions()(mod)
    same(mod, done)
    assert ops(done) == ["x[abs]", "exp", "x[add]"]


def test_again_changes_nothing(known: Known):
    known("x", "abs", "add")
    once = merge(module("a = abs x\nb = clip a\nc = add a b\nreturn c"), "x")
    assert str(MergeCompilerRegions()(once)) == str(once)


def test_a_thousand_ops_take_no_time(known: Known):
    """A ladder of 1000 ops in which no two regions can be one, and a chain that is one region: under a second each."""
    known("x", "abs", "add")
    ladder = ["v0 = abs x"] + [f"h{k} = exp v{k}\nv{k + 1} = add v{k} h{k}" for k in range(500)]
    chain = ["v0 = abs x"] + [f"v{k + 1} = abs v{k}" for k in range(1000)]
    for lines, regions in ((ladder, 501), (chain, 1)):
        marked = AnnotateTarget("x")(module("\n".join([*lines, f"return v{len(lines) - 1}"])))
        started = time.process_time()
        grouping = Grouping(marked["main"].body.block)
        grouping.merge(grouping.edges)
        assert time.process_time() - started < 1
        assert len({grouping.group[grouping.number[op]] for op in grouping.labels}) == regions


def pieces(size: int, found: Sequence[Operation]) -> list[Sequence[Operation]]:
    """Runs of so many ops in program order."""
    return [found[at : at + size] for at in range(0, len(found), size)]


def test_a_compiler_splits_a_region_that_it_is_shown_whole(known: Known):
    """Program memory for three ops: 8 in a row are three regions, and none goes back to the host."""
    mod = module("\n".join([f"v{k + 1} = abs v{k}" for k in range(8)] + ["return v8"]), "v0")
    known("x", "abs", regions=partial(pieces, 3))
    done = MergeCompilerRegions()(annotated(mod, "x"))
    same(mod, done)
    assert ops(done) == ["x[abs, abs, abs]", "x[abs, abs, abs]", "x[abs, abs]"]


def test_parts_that_would_wait_for_themselves_are_regions_of_their_own(known: Known):
    """The first and the last op as one part need each other by way of the second: each is a region."""
    mod = module("a = abs x\nb = clip a\nc = add a b\nreturn c")
    known("x", "abs", "clip", "add", regions=lambda found: [[found[0], found[2]], [found[1]]] if found[2:] else [found])
    done = MergeCompilerRegions()(annotated(mod, "x"))
    same(mod, done)
    assert ops(done) == ["x[abs]", "x[clip]", "x[add]"]


def test_what_no_part_has_is_the_host_s(known: Known):
    mod = module("a = abs x\nb = clip a\nc = add a b\nreturn c")
    known("x", "abs", "clip", "add", regions=lambda found: [[op] for op in found if op.name == "relay.clip"])
    done = MergeCompilerRegions()(annotated(mod, "x"))
    same(mod, done)
    assert ops(done) == ["abs", "x[clip]", "add"]
    assert "x: its compiler leaves it out of the region" in str(done.partition_report())


def test_a_refused_region_is_the_host_s_with_the_reason(known: Known):
    mod = module("a = abs x\nb = clip a\nreturn b")
    known("x", "abs", "clip", regions=lambda found: Refusal(f"{len(found)} ports, and it has one"))
    done = MergeCompilerRegions()(annotated(mod, "x"))
    same(mod, done)
    assert ops(done) == ["abs", "clip"] and "x: 2 ports, and it has one" in str(done.partition_report())
    known("x", "abs", "clip", regions=lambda found: [found, found])
    with pytest.raises(Unsupported, match="compiler x: regions gave an op twice, or one that it was not shown"):
        MergeCompilerRegions()(annotated(mod, "x"))
