"""Operators built for a GPU, on the emulator with every access checked, against the interpreter."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from relay import signature
from relay.dialects import relay as ops
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import Emulated, check
from tests.numeric.litert_comparison import compare
from tests.numeric.litert_shape_cases import CASES
from tests.numeric.test_models_compiled import outputs_of
from tests.numeric.test_operators_compiled import convolutions, depthwise, products
from tests.unit.gpu_driver import emulated_cuda


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ["i8", "i8_i8zp", "u8", "u8_128", "u8_i8", "i8_u8", "i16", "f32"])
def test_convolutions(flavour: str):
    check(convolutions(flavour))


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ["i8", "i8_i8zp", "u8", "i16", "f32"])
def test_depthwise_convolutions(flavour: str):
    check(depthwise(flavour))


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ["i8", "i8_i8zp", "u8", "u8_i8", "f32"])
def test_products(flavour: str):
    check(products(flavour))


def test_products_of_codes():
    """Dot products of 16, 8 and 4 codes, and of numbers of codes that have no such form; both zero points."""
    net = Net(5)
    for channels in (5, 12, 24, 32):
        x = net.argument(net.numbers("uint8", 3, channels))
        weights = net.constant(net.numbers("int8", 7, channels))
        net.result(f"{channels} channels", net.dense(x, weights, (121, -7)))
    check(net)


def test_constants_of_kernels_are_no_steps_of_the_host():
    """A condition that only a kernel uses is the kernel's: the launches are still one graph."""
    net = Net(6)
    net.result("not", net.add(ops.LogicalNotOp, [net.argument(np.array([True, False, True]))], {}))
    assert "steps" not in check(net).graph["device"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CASES))
def test_operator(kind: str):
    rng = np.random.default_rng([7, zlib.crc32(kind.encode())])
    case = CASES[kind](rng, kind)
    module = from_tflite(case.model())
    inputs, _ = signature.read(module["main"])
    given = [*case.feeds(rng), *(np.array(info.initial) for info in inputs if info.kind == "state")]
    model = Emulated(module)
    outputs = [info for info in model.graph["outputs"] if info["kind"] == "output"]
    if "steps" in model.graph["device"]:  # the host decides between launches
        with emulated_cuda(model.executable):
            found = outputs_of(model.executable, *given)
    else:
        found = model.run(given)
    for result, want in zip(found, run(module, given)[: len(outputs)], strict=True):
        compare(result, want, f"{case}")
