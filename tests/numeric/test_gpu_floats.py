"""Products of floats by a GPU's matrix units, on the emulator: no further from the interpreter than they say."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.dialects import relay as ops
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import shape
from relay.errors import InvalidArgument, Unsupported
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.lowering.gpu.formats import ACCUMULATED, FLOATS, Format
from relay.lowering.gpu.schedule_gpu import ScheduleGpu
from relay.target import resolve
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import Emulated, golden_of
from tests.numeric.test_gpu_matrix import Case, Product
from tests.numeric.test_models_interpreted import MODELS

CONVOLUTIONS: Sequence[Case] = (
    ((1, 9, 7, 16), (24, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((2, 11, 12, 3), (9, 3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
    ((2, 9, 8, 34), (70, 2, 3), (2, 2), (1, 2), (0, 0, 1, 1)),
    ((1, 10, 10, 72), (130, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
)
PRODUCTS: Sequence[Product] = ((40, 37, 19), (9, 700, 40))


def network(
    magnitudes: bool, convolutions: Sequence[Case] = CONVOLUTIONS, products: Sequence[Product] = PRODUCTS
) -> Net:
    """Convolutions and products that leave remainders; with `magnitudes`, of the absolute values, and nothing after
    them."""
    net = Net(23)

    def numbers(*shape: int) -> Array:
        made = net.numbers("float32", *shape)
        return np.abs(made) if magnitudes else made

    for number, (image, (outputs, *taps), strides, dilation, padding) in enumerate(convolutions):
        x, w = net.argument(numbers(*image)), net.constant(numbers(outputs, *taps, image[-1]))
        sums = net.conv2d(x, w, strides=strides, dilation=dilation, padding=padding)
        bias = net.numbers("float32", outputs)
        if not magnitudes:
            sums = net.add(ops.BiasAddOp, [sums, net.constant(bias)], {})
        net.result(f"convolution {number}", sums)
    for rows, depth, outputs in products:
        x, w = net.argument(numbers(rows, depth)), net.constant(numbers(outputs, depth))
        net.result(f"{rows} rows of {depth}", net.dense(x, w))
    return net


def far(got: Array, want: Array, magnitudes: Array, depth: int, format: Format) -> float:
    """How far a result is off, as a part of what it may be: the format's, and the interpreter's own sum in float32."""
    allowed = (format.bound(depth + 16) + ACCUMULATED * depth) * magnitudes + format.tiny * 4 * depth
    return float(np.max(np.abs(got - want) / allowed))


@pytest.mark.parametrize("small", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["tf32", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f16", "bf16"))])
def test_products_are_no_further_off_than_they_say(name: str, small: bool):
    cases = (CONVOLUTIONS[1:2], PRODUCTS[:1]) if small else (CONVOLUTIONS, PRODUCTS)
    net, absolute = network(False, *cases), network(True, *cases)
    module = net.module()
    wanted, magnitudes = run(module, net.inputs), run(absolute.module(), absolute.inputs)
    model = Emulated(module, f"cuda -matmul={name}")
    got = model.run(net.inputs)
    depths = [case[1][1] * case[1][2] * case[0][3] for case in cases[0]] + [depth for _, depth, _ in cases[1]]
    format = FLOATS[name]
    for result, want, most, depth in zip(got, wanted, magnitudes, depths, strict=True):
        assert far(result, want, most, depth, format) <= 1
        assert np.max(np.abs(result - want) / most) > format.roundoff / 64, "nothing was rounded"
    assert products_of(model) == len(depths)


def products_of(model: Emulated) -> int:
    """How many kernels use matrix units."""
    kernels = model.executable.get_source("ll").partition("\ndeclare ")[0].split("define ")
    return sum("@llvm.nvvm.mma." in kernel for kernel in kernels)


@pytest.mark.parametrize("name", FLOATS)
def test_numbers_are_rounded_to_nearest(name: str):
    format = FLOATS[name]
    rng = np.random.default_rng(3)
    numbers = (rng.uniform(1, 2, 20000) * 2.0 ** rng.integers(-10, 10, 20000)).astype(np.float32)
    rounded = as_floats(format, numbers)
    worst = np.max(np.abs(rounded - numbers) / np.abs(numbers))
    assert 0.9 * format.roundoff < worst <= format.roundoff
    tie = np.float32(1 + format.roundoff)
    assert as_floats(format, np.array([tie, -tie, np.inf]))[0] == (1 + 2 * format.roundoff if name == "tf32" else 1)
    assert np.isnan(as_floats(format, np.array([np.nan]))).all()


def as_floats(format: Format, numbers: Array) -> Array:
    """Numbers rounded, as float32 again."""
    words = format.rounded(numbers.astype(np.float32))
    assert words is not None
    if format.name == "f16":
        return words.view(np.float16).astype(np.float32)
    return (words.astype(np.uint32) << (16 * (format.name == "bf16"))).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("name", ["tf32", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f16", "bf16"))])
def test_the_device_rounds_as_the_build_does(name: str):
    """Products by 1: the data as it was rounded, of both signs, at ties; what is no finite number stays that."""
    data = np.random.default_rng(5).integers(0, 1 << 32, (16, 16), np.uint32).view(np.float32)
    data = np.where(np.abs(data) < 2.0**-100, np.float32(3), np.nan_to_num(data, nan=7))
    data = np.clip(data, -60000, 60000) if name == "f16" else data
    data[0, :4] = [1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8]
    data[1:4, 5] = [np.inf, -np.inf, np.nan]
    net = Net(1)
    net.result("y", net.dense(net.argument(data), net.constant(np.eye(16, dtype=np.float32))))
    (got,) = Emulated(net.module(), f"cuda -matmul={name}").run(net.inputs)
    finite = np.isfinite(data).all(axis=1)
    assert finite.sum() >= 12
    assert np.array_equal(got[finite], as_floats(FLOATS[name], data[finite]))
    assert not np.isfinite(got[~finite]).any()


def test_weights_that_are_too_large_for_a_format_stay_float32():
    net = Net(2)
    weights = net.numbers("float32", 16, 32)
    weights[3, 4] = 1e5
    net.result("y", net.dense(net.argument(net.numbers("float32", 16, 32)), net.constant(weights)))
    module = net.module()
    codes = [relay.build(module, f"cuda -matmul={name}").get_source("ptx") for name in FLOATS]
    assert ["mma.sync" in code for code in codes] == [True, False, True]


def convolutions(path: Path) -> tuple[Net, Net]:
    """The model's convolutions with the data that they get for its first golden input; the same of magnitudes."""
    module = from_tflite(path)
    main = module["main"].body.block
    found = [op for op in main.ops if isinstance(op, ops.Conv2dOp) and op.groups.value.data == 1]
    end = main.last_op
    assert end is not None
    end.operands = [op.operands[0] for op in found]
    module["main"].update_function_type()
    del module["main"].attributes["relay.outputs"]
    nets = Net(1), Net(1)
    for data, op in zip(run(module, golden_of(path)[0][0]), found, strict=True):
        constant = op.operands[1].owner
        assert isinstance(constant, ops.ConstantOp)
        for net, change in zip(nets, (np.array, np.abs), strict=True):
            operands = [net.argument(change(data)), net.constant(change(to_numpy(constant.value)))]
            net.result(f"convolution {len(net.results)}", net.add(ops.Conv2dOp, operands, op.properties))
    return nets


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name"), [("resnet8_fp32", "tf32"), ("resnet8_fp32", "f16"), ("vww_96_float", "bf16")]
)
def test_models_stay_close(model: str, name: str):
    """Each convolution of the model by itself, then all of it."""
    path = MODELS / f"{model}.tflite"
    if not path.exists():
        pytest.skip(f"the model {model} is not here")
    format, (net, absolute) = FLOATS[name], convolutions(path)
    module = net.module()
    emulated = Emulated(module, f"cuda -matmul={name}")
    results = zip(
        emulated.run(net.inputs), run(module, net.inputs), run(absolute.module(), absolute.inputs), strict=True
    )
    for sums, (got, want, most) in zip(net.results.values(), results, strict=True):
        assert isinstance(sums.owner, ops.Conv2dOp)
        depth = prod(shape(sums.owner.operands[1])[1:])
        assert far(got, want, most, depth, format) <= 1
    assert products_of(emulated) > 4
    whole = Emulated(path, f"cuda -matmul={name}", level=2)
    for given, wanted in zip(*golden_of(path), strict=True):
        (got,) = whole.run(given)
        assert np.max(np.abs(got - wanted[0])) < 8 * format.roundoff


def test_an_option_that_is_not_known_is_told():
    with pytest.raises(InvalidArgument, match="tf32, f16, bf16"):
        resolve("cuda -matmul=fp8")
    with pytest.raises(InvalidArgument, match="-matmul=tf32|f16|bf16"):
        resolve("cuda -products=tf32")
    with pytest.raises(Unsupported, match="from sm_80 on"):
        resolve("cuda -arch=sm_75 -matmul=tf32")
    with pytest.raises(InvalidArgument, match="tf32, f16, bf16"):
        ScheduleGpu(matmul="int4")
