"""Random modules for random compilers: regions are as large as they can be, and the integers stay the same."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

import relay
from relay.byoc import registry
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import loaders
from tests.conftest import Cases
from tests.fuzz.random_partitions import Case, main, random_case
from tests.marks import ci
from tests.unit.interpreting import load_text
from tests.unit.partitioning_modules import Known, arguments, same

ROOT = Path(__file__).parents[2]


def check(case: Case) -> None:
    """What must hold at every step of a case."""
    for step in case.steps.values():
        same(case.mod, step)
    assert mergeable(case.steps["regions"]) == []
    for step in ("regions", "pruned", "functions"):
        assert computed(case.steps[step]) <= computed(case.mod), step
    regions = [op for op in case.steps["pruned"].op.walk() if isinstance(op, byoc.RegionOp)]
    calls = [op for op in case.steps["functions"].op.walk() if isinstance(op, CallOp)]
    assert [op.compiler.data for op in regions] == [op.callee.string_value().split("_")[1] for op in calls]
    assert not any(isinstance(op, byoc.Boundary | byoc.Body) for op in case.steps["inlined"].op.walk())
    constants = [op for op in case.mod.op.walk() if isinstance(op, ConstantOp)]
    if len({op.value for op in constants}) == len(constants) and all(op.result.uses.get_length() for op in constants):
        assert str(case.steps["inlined"]) == str(case.mod)
    for region in regions:
        assert any(not isinstance(op, ConstantOp | byoc.YieldOp) for op in region.body.block.ops)
    wanted = Counter((row.op, row.source, row.compiler) for row in case.steps["pruned"].partition_report().rows)
    found = Counter((row.op, row.source, row.compiler) for row in case.steps["functions"].partition_report().rows)
    assert found <= wanted


def computed(mod: IRModule) -> Counter[str]:
    """How many ops of each kind there are: partitioning copies constants, nothing else."""
    ops = [op for op in mod.op.walk() if op.name.startswith("relay.") and not isinstance(op, ConstantOp)]
    return Counter(f"{op.name} {op.location}" for op in ops)


def mergeable(mod: IRModule) -> list[tuple[Operation, Operation]]:
    """Pairs of regions of one compiler, the second using a result of the first, that could be one: no way leads from
    the one to the other through something else."""
    order = list(mod["main"].body.block.ops)
    users = {op: {use.operation for result in op.results for use in result.uses} for op in order}
    after: dict[Operation, set[Operation]] = {}
    for op in reversed(order):
        after[op] = users[op].union(*(after[user] for user in users[op]))
    regions = [op for op in order if isinstance(op, byoc.RegionOp)]
    return [
        (a, b)
        for a, b in permutations(regions, 2)
        if a.compiler == b.compiler and b in users[a] and not any(b in after[c] for c in users[a] - {b})
    ]


def fresh(patch: pytest.MonkeyPatch) -> Known:
    """Makes compilers known for the time of a patch."""
    registered = dict(registry.COMPILERS.registered)
    patch.setattr(registry.COMPILERS, "registered", registered)
    return Known(registered)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Makes compilers known for the time of a test."""
    return fresh(monkeypatch)


@pytest.mark.parametrize("seed", [*range(10), *ci(range(10, 30))])
def test_random_modules_are_partitioned(known: Known, seed: int):
    check(random_case(random.Random(seed).randrange, known))


def run_natively(case: Case, patch: pytest.MonkeyPatch) -> None:
    """The host's part compiled, the functions of the compilers interpreted: the same integers."""
    for name in case.targets:
        patch.setitem(loaders.LOADERS.registered, name, load_text)
    given = arguments(case.mod)
    for step in ("functions", "each alone"):
        executable = relay.build(case.steps[step])
        calls = [op for op in case.steps[step].op.walk() if isinstance(op, CallOp)]
        assert len(executable.externals) == len(calls)
        found = executable.run(*given)
        for a, b in zip(found if isinstance(found, tuple) else (found,), run(case.mod, given), strict=True):
            assert a is not None and np.array_equal(a, b)


@pytest.mark.parametrize("seed", [0, *ci((1, 2))])
def test_random_partitions_run(known: Known, monkeypatch: pytest.MonkeyPatch, seed: int):
    run_natively(random_case(random.Random(seed).randrange, known), monkeypatch)


@pytest.mark.fuzz
def test_more_random_partitions_run(cases: Cases):
    for number in cases(300):
        with pytest.MonkeyPatch.context() as patch:
            run_natively(random_case(random.Random(3 + number).randrange, fresh(patch)), patch)


@pytest.mark.fuzz
@given(st.data())
def test_many_random_modules_are_partitioned(data: st.DataObject):
    with pytest.MonkeyPatch.context() as patch:
        check(random_case(lambda below: data.draw(st.integers(0, below - 1)), fresh(patch)))


def hashes(seed: int, first: int, last: int) -> str:
    """What a process of this hash seed makes of some cases."""
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.fuzz.random_partitions", str(first), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.ci
def test_hash_seeds_do_not_matter(known: Known, capsys: pytest.CaptureFixture[str]):
    """This process and one whose sets have another order make the same text of every step."""
    main(range(12), known)
    assert hashes(1, 0, 12) == capsys.readouterr().out != ""


@pytest.mark.fuzz
def test_more_hash_seeds_do_not_matter(cases: Cases):
    for number in cases(50):
        assert len({hashes(seed, 10 * number, 10 * (number + 1)) for seed in (1, 2, 3, 4)}) == 1
