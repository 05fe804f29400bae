"""Kernels of every kind, their loops shared: any partition in any order gives the same bits, and so do threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.passes import PassContext
from relay.runtime import executable as runtime
from relay.runtime import team
from tests.numeric.compiled_modules import Net
from tests.numeric.shuffled_turns import Shuffled

CONVOLUTIONS = (
    (20, 3, 7, (1, 1), (1, 1, 1, 1)),
    (33, 1, 24, (1, 1), (0, 0, 0, 0)),
    (70, 1, 130, (2, 2), (0, 0, 0, 0)),
    (300, 1, 200, (1, 1), (0, 0, 0, 0)),
)
"""Outputs, taps a side, channels, strides, padding."""
DEPTHWISE = ((5, 5, (2, 2)), (144, 3, (1, 1)))
"""Channels, taps a side, strides."""


def convolutions(dtype: str) -> Net:
    """Convolutions, depthwise ones and products, of two images."""
    net = Net(50)
    floats = dtype == "float32"
    for o, taps, c, strides, padding in CONVOLUTIONS:
        x = net.argument(net.numbers(dtype, 2, 13, 11, c))
        kernel = net.constant(net.numbers(dtype, o, taps, taps, c))
        points = None if floats else (3, 0 if dtype == "int8" else 130)
        sums = net.conv2d(x, kernel, strides=strides, padding=padding, zero_points=points)
        net.result(f"conv2d {o} {taps} {c}", net.relu(sums, o) if floats else net.requantize(sums, o, dtype))
    for c, taps, strides in DEPTHWISE:
        x = net.argument(net.numbers(dtype, 1, 17, 14, c))
        kernel = net.constant(net.numbers(dtype, taps, taps, c, 1))
        points = None if floats else (3, 0 if dtype == "int8" else 120)
        padding = (taps // 2,) * 4
        sums = net.conv2d(x, kernel, strides=strides, padding=padding, groups=c, zero_points=points, depthwise=True)
        net.result(f"depthwise {c} {taps}", net.relu(sums, c) if floats else net.requantize(sums, c, dtype))
    for rows, inputs, outputs in ((1, 64, 300), (19, 40, 33)):
        x = net.argument(net.numbers(dtype, rows, inputs))
        kernel = net.constant(net.numbers(dtype, outputs, inputs))
        sums = net.dense(x, kernel, None if floats else (3, 0))
        net.result(f"dense {rows}", net.relu(sums, outputs) if floats else net.requantize(sums, outputs, dtype))
    return net


def others() -> Net:
    """Elementwise operations, reductions and movements."""
    net = Net(51)
    x = net.argument(net.numbers("float32", 3, 37, 50))
    net.result("exp", net.add(relay.ExpOp, [x], {}))
    net.result("transposed", net.add(relay.TransposeOp, [x], {"axes": ints((2, 0, 1))}))
    for name, op in (("sum", relay.SumOp), ("max", relay.MaxOp)):
        for axes in ((2,), (0, 2), (1,)):
            net.result(f"{name} {axes}", net.add(op, [x], {"axis": ints(axes)}))
    row = net.argument(net.numbers("float32", 50))
    net.result("add", net.add(relay.AddOp, [x, row], {}))
    return net


NETS: dict[str, Callable[[], Net]] = {
    "int8": lambda: convolutions("int8"),
    "uint8": lambda: convolutions("uint8"),
    "float32": lambda: convolutions("float32"),
    "others": others,
}


EACH = [
    "int8",
    pytest.param("uint8", marks=pytest.mark.slow),
    pytest.param("float32", marks=pytest.mark.ci),
    "others",
]


@pytest.mark.parametrize("name", EACH)
def test_shared_loops(name: str, monkeypatch: pytest.MonkeyPatch):
    net = NETS[name]()
    with PassContext(config={"parallelize.fork": 1, "parallelize.least": 1}):
        executable = net.check()
    assert ("relay.shared" in executable.get_source("mlir")) == (name != "others"), "pixels, of all blocks of channels"
    alone = executable.run(*net.inputs)
    assert isinstance(alone, tuple)
    results = dict(zip(net.results, alone, strict=True))

    def check(what: str) -> None:
        found = executable.run(*net.inputs)
        assert isinstance(found, tuple)
        wrong = [key for key, got in zip(results, found, strict=True) if got.tobytes() != results[key].tobytes()]
        assert wrong == [], what

    for seed in range(6):
        shuffled = Shuffled(seed)
        with monkeypatch.context() as patch:
            patch.setattr(runtime, "team_for", shuffled.taken)
            executable.num_threads = 2
        check(f"shuffled {seed}")
        assert len(shuffled.turns) >= len(results) - 2
    monkeypatch.setattr(team, "cores", lambda: 8)
    for count in (2, 3, 7):
        executable.num_threads = count
        for _ in range(10):
            check(f"{count} threads")
