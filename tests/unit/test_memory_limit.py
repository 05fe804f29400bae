"""The memory of each layer, and a limit of it: the plan's own table of buffers is the oracle."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import relay
from relay.errors import InvalidArgument
from relay.target import resolve

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"


def test_the_peak_of_layers_is_that_of_buffers_that_live_at_once():
    graph = relay.build(DIGITS, "cortex-m4").graph
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
    arena = relay.build(DIGITS, "cortex-m4").graph["arena_bytes"]
    assert relay.build(DIGITS, "cortex-m4", memory_limit=arena).graph["arena_bytes"] == arena


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (100, r"memory_limit: is 100 bytes, and the arena takes \d+: operator \d+ DEPTHWISE_CONV_2D .* needs \d+"),
        (-1, "memory_limit: is -1, no number of bytes"),
        (True, "memory_limit: is True, no number of bytes"),
    ],
)
def test_a_limit_that_is_not(limit: int, message: str):
    with pytest.raises(InvalidArgument, match=message):
        relay.build(DIGITS, "cortex-m4", memory_limit=limit)


def test_a_limit_needs_a_plan():
    with pytest.raises(InvalidArgument, match="memory_limit: is for CPUs and known sizes"):
        relay.build(DIGITS, "opencl", memory_limit=10)
