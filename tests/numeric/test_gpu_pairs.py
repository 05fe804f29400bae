"""Products of two computed factors by a GPU's matrix units: the interpreter's integers, floats within their bound."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr

import relay
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.lowering.gpu.formats import ACCUMULATED, FLOATS
from tests.numeric.compiled_modules import Net, equal, offsets
from tests.numeric.gpu_models import Emulated, check
from tests.ptx.interpreter import run as run_ptx

CODES = (
    ((3, 24, 32), 40, "uint8", "int8", (113, 0), True),
    ((2, 70, 144), 36, "int8", "uint8", (0, 131), False),
    ((2, 9, 68), 132, "uint8", "uint8", (7, 250), False),
    ((1, 130, 20), 66, "int8", "int8", (-5, 9), True),
)
"""Stack, rows and depth; columns; both types and zero points; whether the second factor's rows are its columns."""
FLOATS_OF = (((3, 24, 32), 40, True), ((2, 70, 45), 36, False), ((1, 9, 300), 34, True))


def stack(net: Net, number: int) -> None:
    """One product of codes of a stack, with a rescale of every second one."""
    shape, columns, left, right, zero_points, by_rows = CODES[number]
    second = (shape[0], columns, shape[2]) if by_rows else (shape[0], shape[2], columns)
    x, y = net.argument(net.numbers(left, *shape)), net.argument(net.numbers(right, *second))
    properties = offsets(zero_points) | {"transpose_b": BoolAttr.from_bool(by_rows)}
    sums = net.add(ops.BatchMatmulOp, [x, y], properties)
    net.result(f"product {number}", net.requantize(sums, columns, "int8") if number % 2 else sums)


def products_of(model: Emulated) -> int:
    """Kernels by matrix units."""
    text = model.executable.get_source("ptx")
    return sum("mma.sync" in kernel for kernel in text.split(".entry ")[1:])


def test_codes():
    net = Net(41)
    for number in range(len(CODES)):
        stack(net, number)
    x, y = net.argument(net.numbers("int8", 17, 96)), net.argument(net.numbers("int8", 12, 96))
    net.result("one product", net.dense(x, y, (3, 5)))
    assert products_of(check(net)) == len(CODES) + 1


def test_ptx_of_codes():
    net = Net(42)
    for number in (0, 2):
        stack(net, number)
    module = net.module()
    found = run_ptx(relay.build(module, target="cuda"), net.inputs)[0]
    assert all(map(equal, found, run(module, net.inputs)))


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "tf32" else pytest.mark.ci) for n in FLOATS])
def test_floats(name: str):
    net, inputs = Net(43), list[tuple[Array, Array]]()
    for shape, columns, by_rows in FLOATS_OF:
        second = (shape[0], columns, shape[2]) if by_rows else (shape[0], shape[2], columns)
        x, y = net.numbers("float32", *shape), net.numbers("float32", *second)
        properties = offsets(None) | {"transpose_b": BoolAttr.from_bool(by_rows)}
        net.result(f"{shape}", net.add(ops.BatchMatmulOp, [net.argument(x), net.argument(y)], properties))
        inputs.append((x.astype(np.float64), (y.swapaxes(1, 2) if by_rows else y).astype(np.float64)))
    model, format = Emulated(net.module(), f"cuda -matmul={name}"), FLOATS[name]
    assert products_of(model) == len(inputs)
    for got, (x, y) in zip(model.run(net.inputs), inputs, strict=True):
        depth, magnitudes = x.shape[-1], np.abs(x) @ np.abs(y)
        allowed = (format.bound(depth + 16) + ACCUMULATED) * magnitudes + format.tiny * 4 * depth
        assert np.max(np.abs(got - x @ y) / allowed) <= 1
        assert np.max(np.abs(got - x @ y) / magnitudes) > format.roundoff / 64, "nothing was rounded"
