"""Normalizations whose rows a team of a GPU's threads computes in one launch, against formulas in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, f32, i8, i32
from xdsl.ir import Attribute, SSAValue

import relay
from relay.dialects import qnn
from relay.dialects import relay as ops
from relay.dialects.attributes import Array, scalar_attr
from relay.errors import Unsupported
from relay.runtime.opencl_driver import driver
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import Emulated
from tests.numeric.test_models_compiled import outputs_of
from tests.ptx.interpreter import run as run_ptx

EPSILON = 1e-5
SHAPES = ((5, 24), (2, 3, 33), (1, 2002), (9, 2))
"""A part of a warp has a row, a warp, several; rows that are not whole, and teams without one."""


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON) * gamma + beta


def rms_norm(x: Array, gamma: Array) -> Array:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * gamma


def add_softmax(net: Net, x: SSAValue, x64: Array) -> tuple[SSAValue, Array]:
    return net.add(ops.SoftmaxOp, [x], {"beta": FloatAttr(1.0, f32)}), softmax(x64)


def add_layer_norm(net: Net, x: SSAValue, x64: Array) -> tuple[SSAValue, Array]:
    gamma, beta = net.numbers("float32", x64.shape[-1]), net.numbers("float32", x64.shape[-1])
    value = net.add(ops.LayerNormOp, [x, net.constant(gamma), net.constant(beta)], {"epsilon": FloatAttr(EPSILON, f32)})
    return value, layer_norm(x64, gamma.astype(np.float64), beta.astype(np.float64))


def add_rms_norm(net: Net, x: SSAValue, x64: Array) -> tuple[SSAValue, Array]:
    gamma = net.numbers("float32", x64.shape[-1])
    value = net.add(ops.RmsNormOp, [x, net.constant(gamma)], {"epsilon": FloatAttr(EPSILON, f32)})
    return value, rms_norm(x64, gamma.astype(np.float64))


Adder = Callable[[Net, SSAValue, Array], tuple[SSAValue, Array]]
NORMS: tuple[Adder, ...] = (add_softmax, add_layer_norm, add_rms_norm)


def network(shapes: tuple[tuple[int, ...], ...], norms: tuple[Adder, ...] = NORMS) -> tuple[Net, list[Array]]:
    """Each normalization of each shape, and what it is in float64."""
    net, wanted = Net(8), list[Array]()
    for shape in shapes:
        for norm in norms:
            given = net.numbers("float32", *shape)
            value, exact = norm(net, net.argument(given), given.astype(np.float64))
            net.result(f"{norm.__name__} of {shape}", value)
            wanted.append(exact)
    return net, wanted


def close(found: Array, wanted: Array) -> bool:
    """Within 4e-6 of the largest: rounding errors of a sum by some hundred threads, of exp, and of a quotient."""
    return bool(found.dtype == np.float32 and np.abs(found - wanted).max() <= 4e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("target", ["cuda", pytest.param("cuda -mattr=-shuffle", marks=pytest.mark.ci)])
def test_each_is_one_launch(target: str):
    net, wanted = network(SHAPES)
    model = Emulated(net.module(), target)
    launches = model.graph["device"]["launches"]
    assert len(launches) == len(wanted)
    assert {0} < {row["shared"] for row in launches}, "several warps join through memory"
    found = model.run(net.inputs)
    wrong = [name for name, got, exact in zip(net.results, found, wanted, strict=True) if not close(got, exact)]
    assert wrong == []


@pytest.mark.ci
def test_each_is_one_launch_on_a_device_of_opencl():
    """Threads have no shuffles there: they join through memory whose size is given with the launch."""
    try:
        driver(0)
    except Unsupported as error:
        pytest.skip(str(error))
    net, wanted = network(SHAPES)
    executable = relay.build(net.module(), target="opencl")
    launches = executable.graph["device"]["launches"]
    assert len(launches) == len(wanted) and max(row["shared"] for row in launches) > 0
    found = outputs_of(executable, *net.inputs)
    assert [name for name, got, exact in zip(net.results, found, wanted, strict=True) if not close(got, exact)] == []


def test_rows_of_more_than_a_team_keeps():
    net, wanted = network(((1, 8200),), (add_softmax,))
    model = Emulated(net.module())
    assert len(model.graph["device"]["launches"]) > 1
    assert close(model.run(net.inputs)[0], wanted[0])


def test_codes_are_read_and_written():
    """By the normalizations; a softmax writes codes, and reads what another kernel widened."""
    net, wanted = Net(9), list[Array]()
    for norm in NORMS:
        given = net.numbers("uint8", 5, 96)
        x = net.add(qnn.DequantizeOp, [net.argument(given)], parameters(np.float32(1 / 32), 120))
        value, exact = norm(net, x, (given.astype(np.float64) - 120) / 32)
        step = np.float32(np.abs(exact).max() / 100)
        net.result(norm.__name__, net.add(qnn.QuantizeOp, [value], parameters(step, 3) | {"out_dtype": i8}))
        wanted.append(np.clip(exact / np.float64(step) + 3, -128, 127))
    model = Emulated(net.module())
    assert len(model.graph["device"]["launches"]) == len(NORMS) + 1
    for found, exact in zip(model.run(net.inputs), wanted, strict=True):
        assert found.dtype == np.int8 and np.abs(found - exact).max() <= 0.5 + 1e-3


def parameters(scale: np.float32, zero_point: int) -> dict[str, Attribute]:
    return {"scale": scalar_attr(float(scale), f32), "zero_point": scalar_attr(zero_point, i32)}


@pytest.mark.parametrize("target", [pytest.param("cuda", marks=pytest.mark.ci), "cuda -mattr=-shuffle"])
def test_ptx_of_warps_and_blocks(target: str):
    net, wanted = network(((5, 24), (2, 1100)))
    results = run_ptx(relay.build(net.module(), target=target), net.inputs)[0]
    assert [close(found, exact) for found, exact in zip(results, wanted, strict=True)] == [True] * len(wanted)
