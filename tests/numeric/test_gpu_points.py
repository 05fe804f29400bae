"""Results of a thread whose sums share what they read: the interpreter's integers, on OpenCL and the emulator."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relay
from relay.errors import Unsupported
from relay.interpreters import run
from relay.lowering.gpu.emulator import Emulator, run_model
from relay.runtime.opencl_driver import driver
from relay.target import resolve
from tests.numeric.compiled_modules import Net

Case = tuple[int, int, int, int]
"""Rows and columns of an image, its channels, and results of a thread. Blocks have threads of several rows."""
CASES = [(32, 32, 3, 8), (5, 16, 16, 2), (6, 9, 4, 3)]


def network(case: Case) -> Net:
    """A convolution with borders, something after it."""
    rows, columns, channels, _ = case
    net = Net(5)
    x = net.argument(net.numbers("int8", 1, rows, columns, channels))
    weights = net.constant(net.numbers("int8", 16, 3, 3, channels))
    net.result("codes", net.requantize(net.conv2d(x, weights, padding=(1, 1, 1, 1), zero_points=(5, 0)), 16, "int8"))
    return net


@pytest.mark.parametrize(
    ("case", "text"),
    [
        pytest.param(case, text, marks=() if n == m else pytest.mark.ci)
        for n, case in enumerate(CASES)
        for m, text in enumerate(("cuda -mattr=-mma,-shuffle", "opencl", "opencl -mattr=+dot"))
    ],
)
def test_points_share_reads(case: Case, text: str):
    net, target = network(case), resolve(text).with_costs({"near_results": case[-1], "processors": 1})
    module = net.module()
    (wanted,), executable = run(module, net.inputs), relay.build(module, target=target)
    assert re.findall(r"points = (\d+)", executable.get_source("mlir")) == [str(case[-1])]
    if target.kind == "cuda":
        emulator = Emulator(executable.get_source("ll"))
        (found,) = run_model(executable.graph, emulator, executable.params, net.inputs)
    else:
        try:
            driver(0)
        except Unsupported as error:
            pytest.skip(str(error))
        found = executable.run(*net.inputs)
    assert np.array_equal(np.asarray(found), wanted)
