"""The memory of each layer, and a limit of it: the plan's own table of buffers is the oracle."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

import relay
from relay.errors import InvalidArgument
from relay.runtime import Executable
from relay.target import resolve
from tests.unit.pass_modules import DIGITS, small


@cache
def digits() -> Executable:
    """The digits without a limit."""
    return relay.build(DIGITS, "cortex-m4")


def test_the_peak_of_layers_is_that_of_buffers_that_live_at_once():
    graph = digits().graph
    rows, room = graph["buffers"], resolve("cortex-m4").room_of
    times = {row["first"] for row in rows}
    touched: dict[int, set[int]] = {at: set() for at in times}
    for row, at in product(rows, times):
        if row["first"] <= at <= row["last"]:
            touched[at].update(range(row["offset"], row["offset"] + room(row["size"])))
    alive = [len(bytes) for bytes in touched.values()]
    assert max(alive) == max(layer["bytes"] for layer in graph["layers"]) <= graph["arena_bytes"]
    assert [layer["kernel"] for layer in graph["layers"]] == graph["kernels"]


def test_a_limit_that_is_kept():
    arena = digits().graph["arena_bytes"]
    assert relay.build(DIGITS, "cortex-m4", memory_limit=arena).graph["arena_bytes"] == arena


def test_a_limit_that_is_not():
    message = r"is 100 bytes, and the arena takes \d+: operator \d+ DEPTHWISE_CONV_2D .* needs \d+"
    with pytest.raises(InvalidArgument, match=f"memory_limit: {message}"):
        relay.build(DIGITS, "cortex-m4", memory_limit=100)


@pytest.mark.parametrize("limit", [-1, True])
def test_a_limit_that_is_no_number(limit: int):
    with pytest.raises(InvalidArgument, match=f"memory_limit: is {limit}, no number of bytes"):
        relay.build(small(), "cortex-m4", memory_limit=limit)


def test_a_limit_needs_a_plan():
    with pytest.raises(InvalidArgument, match="memory_limit: is for CPUs and known sizes"):
        relay.build(small(), "opencl", memory_limit=10)
