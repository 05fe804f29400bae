"""`choose=cost`, `choose=measured`: no plan costs more, by its own numbers, than one compiler alone or the host."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path

import pytest
from xdsl.ir import Operation

import relay
from relay.byoc import registry
from relay.byoc.partitioning.annotate_external_compiler import AnnotateExternalCompiler
from relay.byoc.partitioning.estimates import Estimates
from relay.byoc.partitioning.scope import eligible, opened
from relay.dialects import byoc
from relay.errors import InvalidArgument
from relay.exploration import region_times
from relay.module import IRModule
from relay.runtime import loaders
from relay.universe import PRICES
from tests.fuzz.random_partitions import ENTRIES, KINDS, random_module
from tests.unit.interpreting import as_text, load_text
from tests.unit.partitioning_modules import INTEGERS, Known, module, same


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    registered = dict(registry.COMPILERS.registered)
    monkeypatch.setattr(registry.COMPILERS, "registered", registered)
    return Known(registered)


class Rounded(Estimates):
    """The host takes a microsecond for an op: random modules are too small for estimates to differ."""

    @property
    def whole(self) -> float:
        return float(len(self.microseconds or ()))

    def host(self, ops: Sequence[Operation]) -> float:
        return float(len(opened(ops)))


def linear(call: float, per_op: float, limit: int, ops: Sequence[Operation]) -> float:
    """What a call costs, and each op; nothing of more ops than the limit fits."""
    return call + per_op * len(ops) if len(ops) <= limit else inf


def check(choose: random.Random, known: Known) -> str:
    """A plan for random compilers, and which of the candidates it is."""
    mod = random_module(choose.randrange)
    names = tuple(f"c{k}" for k in range(1 + choose.randrange(3)))
    costs: dict[str, Callable[[Sequence[Operation]], float] | None] = {}
    for name in names:
        takes = [kind for kind in KINDS if choose.randrange(3)]
        entries = [entry for entry in ENTRIES if choose.randrange(2)]
        call, limit = choose.randrange(4) * 0.5, (5, 99)[choose.randrange(2)]
        costs[name] = cost = partial(linear, call, choose.random(), limit) if choose.randrange(8) else None
        known(name, *takes, entries=entries, cost=cost)
    planned = AnnotateExternalCompiler(names, choose="cost")(mod)
    same(mod, planned)
    plan = planned.partition_report().plan
    regions = [op for op in planned.op.walk() if isinstance(op, byoc.RegionOp)]
    host = sum(eligible(op) for op in mod.op.walk())
    paid = 0.0
    for region in regions:
        ops, cost = opened([region]), costs[region.compiler.data]
        assert cost is not None
        paid += cost(ops) - len(ops)
    assert plan["host"] == host and plan["chosen"] == pytest.approx(host + paid)
    for name in names:
        whole = alone(mod, name)
        if (cost := costs[name]) is not None:
            wanted = host + sum(cost(opened([region])) - len(opened([region])) for region in whole)
            assert plan.get(name, inf) == pytest.approx(wanted)
            assert plan["chosen"] <= wanted + 1e-9
    assert all(plan["chosen"] <= cost + 1e-9 for cost in plan.values())
    left = [name for name in costs if name in plan and plan[name] < plan["host"]]
    return "host" if not regions else "mixed" if len({r.compiler for r in regions}) > 1 else "better" if left else "cut"


def alone(mod: IRModule, name: str) -> list[byoc.RegionOp]:
    """The regions of one compiler that takes all that it can."""
    parted = relay.transform.MergeCompilerRegions()(AnnotateExternalCompiler((name,))(mod))
    return [op for op in parted.op.walk() if isinstance(op, byoc.RegionOp)]


def test_plans_of_random_modules(known: Known, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRICES, "cost", f"{__name__}:Rounded")
    found = {check(random.Random(seed), known) for seed in range(12)}
    assert found >= {"host", "mixed"}


@pytest.mark.slow
def test_plans_of_more_random_modules(known: Known, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRICES, "cost", f"{__name__}:Rounded")
    found = {check(random.Random(seed), known) for seed in range(12, 512)}
    assert found == {"host", "mixed", "better", "cut"}


CHAIN = "\n".join(f"v{k + 1} = {'add v0' if k % 4 else 'abs'} v{k}" for k in range(16))


def test_what_a_call_costs_is_paid_once_for_a_region(known: Known, monkeypatch: pytest.MonkeyPatch):
    """Two compilers, each faster at some ops: splitting at every op would pay for more calls than it saves."""
    monkeypatch.setitem(PRICES, "cost", f"{__name__}:Rounded")

    def cost(call: float, faster: str, ops: Sequence[Operation]) -> float:
        return call + sum(0.1 if op.name == f"relay.{faster}" else 0.3 for op in ops)

    for call, parts in ((0.01, 8), (3.0, 1), (16.0, 0)):
        known("a", "add", "abs", cost=partial(cost, call, "add"))
        known("b", "add", "abs", cost=partial(cost, call, "abs"))
        parted = relay.build_external_compiler(
            module(f"{CHAIN}\nreturn v16", "v0", INTEGERS), ["b", "a"], choose="cost"
        )
        report = parted.partition_report()
        assert len(report.places("a")) + len(report.places("b")) == parts, str(report)
        assert ("leaving the host does not pay" in str(report)) == (parts == 0)


def test_each_compiler_is_priced_alone_where_functions_name_theirs(known: Known, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRICES, "cost", f"{__name__}:Rounded")
    text = """func.func @{name}(%x: tensor<4xi32>) -> tensor<4xi32> attributes {{compiler = "{name}"}} {{
      %r = relay.abs %x : (tensor<4xi32>) -> tensor<4xi32>
      return %r : tensor<4xi32>
    }}"""
    for name, each in (("a", 0.25), ("b", 0.5)):
        known(name, "abs", cost=partial(linear, 0.0, each, 99))
    parted = AnnotateExternalCompiler(choose="cost")(IRModule.parse(text.format(name="a") + text.format(name="b")))
    assert parted.partition_report().plan == {"chosen": 0.75, "host": 2.0, "a": 1.25, "b": 1.5}


def test_costs_that_are_not_known(known: Known):
    known("a", "abs")
    parted = relay.build_external_compiler(module("r = abs x\nreturn r"), "a", choose="cost")
    assert "a: its cost is not known: choose=measured finds it" in str(parted.partition_report())
    with pytest.raises(InvalidArgument, match="choose is 'best'; it is 'order', 'cost' or 'measured'"):
        relay.build_external_compiler(module("r = abs x\nreturn r"), "a", choose="best")


def test_regions_are_measured_once(known: Known, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(region_times, "ROUNDS", 1)
    known("a", "abs", "add", compiled=as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "a", load_text)
    mod = module("s = add x x\nr = abs s\nreturn r")
    first = relay.build_external_compiler(mod, "a", choose="measured").partition_report()
    assert set(first.plan) == {"chosen", "host", "a"} and first.plan["a"] > first.plan["host"], "it is interpreted"
    assert "leaving the host does not pay" in str(first)
    monkeypatch.setattr(region_times, "build", None)  # nothing is built again
    assert relay.build_external_compiler(mod, "a", choose="measured").partition_report() == first


def test_regions_that_cannot_be_measured_say_why(known: Known, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(region_times, "ROUNDS", 1)
    known("a", "abs")
    parted = relay.build_external_compiler(module("r = abs x\nreturn r"), "a", choose="measured")
    assert "a: it cannot be measured here: external function relay_a_main_0: was comp" in str(parted.partition_report())
