"""Sums and the like that threads of a GPU share, on the emulator with every access checked, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import TensorOp
from relay.target import GpuCosts
from relay.target.record import WARP
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import Emulated, check

REDUCTIONS: tuple[tuple[type[TensorOp], str, tuple[int, ...], tuple[int, ...]], ...] = (
    (relay.SumOp, "int32", (3, 1000), (1,)),
    (relay.MaxOp, "int8", (1, 1001), (1,)),
    (relay.MinOp, "int32", (2, 7, 7, 20), (1, 2)),
    (relay.SumOp, "int32", (1, 9, 5, 16), (1, 2)),
    (relay.MaxOp, "float32", (5, 33), (1,)),
    (relay.SumOp, "float32", (1, 600), (1,)),
    (relay.MeanOp, "float32", (1, 5, 7, 12), (1, 2)),
    (relay.SumOp, "int32", (70, 3), (0,)),
)
"""Operator, type, shape, axes: one warp a point, several, a part of one; points beside each other, and turns."""


def network() -> Net:
    net = Net(31)
    for number, (op, dtype, shape, axes) in enumerate(REDUCTIONS):
        x = net.argument(net.numbers(dtype, *shape))
        properties = {"axis": ints(axes), "keepdims": BoolAttr.from_bool(False)}
        net.result(f"{number}: {op.name} of {shape}", net.add(op, [x], properties))
    for rows, depth, outputs, zero_points in ((1, 2048, 10, (3, 0)), (1, 300, 7, (-5, 9)), (2, 1024, 65, (0, 0))):
        x = net.argument(net.numbers("int8", rows, depth))
        weights = net.constant(net.numbers("int8", outputs, depth))
        sums = net.dense(x, weights, zero_points)
        net.result(f"{rows} x {depth} x {outputs}", net.requantize(sums, outputs, "int8"))
    return net


def test_shared_sums():
    model = check(network())
    launches = model.graph["device"]["launches"]
    assert sum(row["shared"] > 0 for row in launches) >= 3, "several warps join through memory"
    assert model.executable.get_source("ll").count("call i32 @llvm.nvvm.shfl.sync.bfly.i32(") > 8 * 5


@pytest.mark.parametrize("size", [2, WARP])
def test_a_short_sum_is_a_threads_own(size: int):
    net = Net(size)
    x = net.argument(net.numbers("int32", 4, size))
    net.result("sum", net.add(relay.SumOp, [x], {"axis": ints([1]), "keepdims": BoolAttr.from_bool(False)}))
    model = Emulated(net.module())
    assert np.array_equal(model.run(net.inputs)[0], net.inputs[0].sum(axis=1, dtype=np.int32))
    assert ("shfl" in model.executable.get_source("ptx")) == (size >= GpuCosts().shared_turns)
