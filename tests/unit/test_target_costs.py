"""What a target costs: estimates of each processor, measured numbers in their place, and the text of both."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from relay.errors import InvalidArgument
from relay.lowering.gpu.tiles import Tile
from relay.target import (
    host,
    resolve,
    resolve_gpu,
    spelled,
)
from relay.target.costs import CpuCosts, GpuCosts
from relay.target.microarchitectures import GENERIC, ROWS, micro_architecture


@pytest.mark.parametrize("text", ["llvm -costs=", "cuda -costs=step=3,"])
def test_costs_that_name_nothing(text: str):
    with pytest.raises(InvalidArgument, match="target: names no cost behind -costs= or a comma; write -costs=fork=30"):
        resolve(text)


def test_measured_costs_replace_estimates():
    target = host().with_costs({"fork": 3000, "issue_width": 5})
    assert (target.costs.fork, target.costs.issue_width) == (3000, 5.0)
    assert target.with_costs({"fork": host().costs.fork}).measured == (("issue_width", 5.0),)
    assert target != host()
    assert resolve_gpu("cuda").with_costs({"processors": 30}).processors == 30


@pytest.mark.parametrize(
    ("text", "kib"), [("cuda", 163), ("cuda -arch=sm_75", 64), ("cuda -arch=sm_86", 99), ("cuda -arch=sm_90a", 227)]
)
def test_a_block_has_the_shared_memory_of_its_chip(text: str, kib: int):
    target = resolve_gpu(text)
    assert target.costs.shared_bytes == kib << 10
    assert target.with_costs({"shared_bytes": 1024}).costs.shared_bytes == 1024
    with pytest.raises(InvalidArgument, match=rf"costs\['shared_bytes'\]: is .*; a block has {kib << 10} at most"):
        target.with_costs({"shared_bytes": (kib << 10) + 1})


@pytest.mark.parametrize(("threads", "limit"), [(2048, "1024 at most"), (31, "32 at least")])
def test_a_block_has_no_other_threads_than_the_chip_gives(threads: int, limit: str):
    with pytest.raises(InvalidArgument, match=rf"costs\['largest_block'\]: is {threads}; a block has {limit}"):
        resolve_gpu("cuda").with_costs({"largest_block": threads})


def test_a_tile_for_which_registers_do_not_do_has_a_cost():
    assert Tile(128, 128, 2, 4, 3).cost(512, 512, 512, 1, GpuCosts(registers=1)) > 0


@pytest.mark.parametrize("number", [np.int64(3000), np.float32(3000), np.uint16(3000), 3000.0])
def test_numbers_of_numpy_are_numbers(number: float):
    target = host().with_costs({"fork": number, "issue_width": number})
    assert target.measured == (("fork", 3000), ("issue_width", 3000.0))
    assert [type(value) for _, value in target.measured] == [int, float]


@pytest.mark.parametrize("value", [-1, 2.5, True, np.bool_(True), float("nan"), "3", None])
def test_a_cost_is_a_number_of_its_kind(value: Any):
    with pytest.raises(InvalidArgument, match=r"costs\['fork'\]"):
        host().with_costs({"fork": value})


@pytest.mark.parametrize(
    "name, value",
    [("issue_width", 0), ("staged_row", 0), ("partial_results", 0), ("cache_line", 0), ("tile_start", float("inf"))],
)
def test_a_divisor_is_not_0_and_no_cost_is_infinite(name: str, value: float):
    with pytest.raises(InvalidArgument, match=rf"costs\['{name}'\]: is (0|inf); give a number that is"):
        host().with_costs({name: value})


def test_costs_keep_all_their_digits_in_text():
    costs = {"fork": 1234567, "issue_width": 3.1234567}
    target = resolve("x86_64 -mcpu=znver4").with_costs(costs)
    assert spelled(target).endswith("-costs=fork=1234567,issue_width=3.1234567")
    assert dict(resolve(spelled(target)).measured) == costs


def test_a_cost_in_a_text_is_a_number():
    with pytest.raises(InvalidArgument, match="has the cost 'fork=many'"):
        resolve("llvm -costs=fork=many")


def test_blocks_that_stay_in_a_cache_follow_from_its_size():
    costs = {cpu: micro_architecture(cpu).costs for cpu in ("cascadelake", "cortex-m4", "neoverse-v2", "cortex-a53")}
    assert costs["cascadelake"] == costs["cortex-m4"] == GENERIC.costs == CpuCosts()
    assert (costs["neoverse-v2"].scratch_bytes, costs["neoverse-v2"].strip_bytes) == (32 << 10, 512 << 10)
    assert (costs["cortex-a53"].scratch_bytes, costs["cortex-a53"].prefetch_bytes) == (16 << 10, 192 << 10)


@pytest.mark.parametrize("row", [GENERIC, *ROWS], ids=lambda row: row.name)
def test_what_should_stay_in_a_cache_fits_it(row: object):
    assert isinstance(row, type(GENERIC))
    costs, caches = row.costs, row.caches
    if caches.first >= 32 << 10:
        assert max(costs.tile_weight_bytes, costs.inner_weight_bytes, costs.scratch_bytes) <= caches.first
    if caches.second:
        assert max(costs.prefetch_bytes, costs.strip_bytes) <= caches.second


def test_a_cpu_has_one_row():
    names = [cpu for row in ROWS for cpu in row.cpus]
    assert len(names) == len(set(names))
    assert micro_architecture("znver4").name == "Zen 4"
    assert micro_architecture("haswell") is GENERIC


def test_every_cost_is_a_number():
    for costs in (host().costs, resolve("cuda").costs):
        assert all(type(getattr(costs, field.name)) in (int, float) for field in fields(costs))
