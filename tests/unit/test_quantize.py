"""`Quantize`: what is chosen, what comes out, and that each option does what it says."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

import relay
from relay import signature
from relay.byoc.regions import constant_of
from relay.dialects import qnn
from relay.dialects import relay as relay_ops
from relay.dialects.attributes import ints, to_numpy
from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.module import IRModule
from relay.quantize import (
    Calibration,
    EqualizeLayers,
    Quantize,
    QuantizeAnnotate,
    QuantizeCalibrate,
    QuantizeRealize,
    stayed,
)
from relay.quantize.report import integer_share
from tests.unit.quantize_models import Net, calibrated, samples, small

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
FLOAT = small()
DATA = samples(8)


@cache
def calibration() -> Calibration:
    """Of `FLOAT` on `DATA`."""
    return calibrated(FLOAT, DATA)


def names(mod: IRModule) -> list[str]:
    return [op.name for op in mod["main"].body.block.ops if op.name != "relay.constant"]


def noise(mod: IRModule, other: IRModule = FLOAT) -> float:
    """The largest difference of outputs on new samples."""
    return max(float(np.abs(run(mod, [x])[0] - run(other, [x])[0]).max()) for x in samples(4, seed=9))


def test_all_of_it_becomes_the_ops_that_quantised_models_import_to():
    mod = Quantize(calibration=calibration())(FLOAT)
    mod.verify()
    assert names(mod) == [
        *("qnn.quantize", "qnn.conv2d", "relay.nn.bias_add", "qnn.requantize"),
        *("qnn.conv2d", "relay.nn.bias_add", "qnn.requantize", "qnn.add", "relay.nn.max_pool2d"),
        *("qnn.conv2d", "relay.nn.bias_add", "qnn.requantize", "qnn.mean"),
        *("qnn.dense", "relay.nn.bias_add", "qnn.requantize", "qnn.softmax", "qnn.dequantize", "func.return"),
    ]
    assert integer_share(mod["main"]) == 1.0 and stayed(mod) == [] and noise(mod) < 0.05


def test_compiled_equals_interpreted():
    mod = Quantize(calibration=calibration(), io="codes")(FLOAT)
    executable = relay.build(mod)
    (info,) = executable.inputs
    assert info.dtype == np.int8
    for seed in range(3):
        codes = np.random.default_rng(seed).integers(-128, 128, info.shape).astype(np.int8)
        assert np.array_equal(np.asarray(executable.run(codes)), run(mod, [codes])[0])


def test_weights_are_symmetric_per_channel_and_biases_int32():
    mod = Quantize(calibration=calibration())(FLOAT)
    found = 0
    for op in mod["main"].body.block.ops:
        if isinstance(op, qnn.Conv2dOp | qnn.DenseOp):
            codes = constant_of(op.kernel)
            assert codes is not None and codes.dtype == np.int8 and op.kernel_zero_point.value.data == 0
            depthwise = isinstance(op, qnn.Conv2dOp) and op.depthwise
            others = (0, 1) if depthwise else tuple(range(1, codes.ndim))
            assert np.all(np.abs(codes.astype(int)).max(axis=others) == 127)
            assert to_numpy(op.kernel_scale).size == (4 if depthwise else codes.shape[0])
            found += 1
        if isinstance(op, relay_ops.BiasAddOp):
            bias = constant_of(op.bias)
            assert bias is not None and bias.dtype == np.int32
    assert found == 4


def test_per_tensor_weights():
    mod = Quantize(calibration=calibration(), per_channel=False)(FLOAT)
    assert "kernel_scale = dense" not in str(mod) and noise(mod) < 0.1


@pytest.mark.parametrize("dtype", ["uint8", pytest.param("int16", marks=pytest.mark.ci)])
def test_other_codes(dtype: str):
    found = calibrated(FLOAT, DATA, dtype=dtype)
    mod = Quantize(calibration=found, dtype=dtype)(FLOAT)
    text = str(mod)
    assert ("xui8>" in text) == (dtype == "uint8") and ("xi16>" in text) == (dtype == "int16")
    assert integer_share(mod["main"]) == 1.0
    assert noise(mod) < (0.1 if dtype == "uint8" else 0.05)
    if dtype == "int16":
        assert "relay.nn.softmax" in text and "xi64>" in text
    x = DATA[0]
    found, wanted = np.asarray(relay.build(mod).run(x)), run(mod, [x])[0]
    assert np.allclose(found, wanted, rtol=1e-6, atol=0) if dtype == "int16" else np.array_equal(found, wanted)


def test_layers_left_in_float():
    mod = Quantize(calibration=calibrated(FLOAT, DATA), from_layer=1)(FLOAT)
    assert names(mod)[:4] == ["relay.nn.conv2d", "relay.nn.bias_add", "relay.clip", "qnn.quantize"]
    assert 0 < integer_share(mod["main"]) < 1 and noise(mod) < 0.05
    assert str(Quantize(from_layer=4)(FLOAT)) == str(FLOAT)


@pytest.mark.parametrize(
    ("option", "value", "kept"),
    [
        ("skip_layers", (1,), ["conv2d"]),
        ("skip_names", ("mid*",), ["conv2d"]),
        ("skip_ops", ("softmax",), ["softmax"]),
        ("skip_ops", ("relay.nn.dense",), ["dense"]),
        ("keep_float", ("2..3",), ["conv2d", "dense"]),
        ("keep_float", ("middle",), ["conv2d"]),
    ],
)
def test_what_is_skipped_stays_float(option: str, value: tuple[str, ...], kept: list[str]):
    mod = replace(Quantize(calibration=calibration()), **{option: value})(FLOAT)
    mod.verify()
    floats = [n.removeprefix("relay.nn.") for n in names(mod) if n.startswith("relay.nn.")]
    assert [n for n in floats if n in ("conv2d", "dense", *kept)] == kept
    assert noise(mod) < 0.05


@pytest.mark.parametrize(
    ("annotate", "message"),
    [
        (QuantizeAnnotate(skip_layers=(4,)), "there is no layer 4; there are 4, from 0"),
        (QuantizeAnnotate(skip_names=("nothing*",)), "no op is named 'nothing*'"),
        (QuantizeAnnotate(skip_ops=("nn.pool",)), "there is no op nn.pool; the module has relay.add"),
        (QuantizeAnnotate(keep_float=("3..1",)), "'3..1' ends before it starts"),
        (QuantizeAnnotate(keep_float=("²",)), "no op is named '²'"),
        (QuantizeAnnotate(skip_ops=("",)), "there is no op ;"),
        (QuantizeAnnotate(from_layer=-1), "from_layer is -1"),
        (QuantizeAnnotate(dtype="int4"), "codes of 'int4' are unknown; use int8, uint8, int16"),
    ],
)
def test_what_is_not_there_is_an_error(annotate: QuantizeAnnotate, message: str):
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        annotate(FLOAT)


def test_simulation_stays_near_the_integers():
    fake = Quantize(calibration=calibration(), simulate=True)(FLOAT)
    assert "qnn.conv2d" not in str(fake) and "relay.nn.conv2d" in str(fake)
    assert noise(fake) > 0 and noise(fake, Quantize(calibration=calibration())(FLOAT)) < 3 / 256


def test_the_passes_one_by_one_are_the_composition():
    one = QuantizeAnnotate(skip_layers=(1,))(FLOAT)
    two = QuantizeCalibrate(data=calibration(), method="mse")(one)
    assert str(QuantizeRealize()(two)) == str(
        Quantize(calibration=calibration(), skip_layers=(1,), method="mse")(FLOAT)
    )


def test_bias_correction_takes_out_the_mean_error():
    net = Net((1, 4))
    kernel = net.random.normal(0, 1, (3, 4)) * np.array([[100.0], [1.0], [1.0]])
    mod = net.done(net.op(relay_ops.DenseOp, net.input, net.constant(kernel), out_dtype=f32))
    data = [np.random.default_rng(n).normal(3, 0.1, (1, 4)).astype(np.float32) for n in range(64)]
    found = calibrated(mod, data)
    errors: list[float] = []
    for correct in (False, True):
        quantised = Quantize(calibration=found, bias_correction=correct, per_channel=False, dtype="int16")(mod)
        difference = [run(quantised, [x])[0] - run(mod, [x])[0] for x in data]
        errors.append(float(np.abs(np.mean(difference, axis=0))[0, 1:].max()))
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_layers_without_a_bias_get_one_of_integers(dtype: str):
    """Bias correction adds it: after a product, after a convolution that is read twice, and before a clamp."""
    net = Net((1, 6, 6, 2))
    kernels = [net.weights(2, 3, 3, 2) for _ in range(2)]
    shared = {"padding": ints([1] * 4), "out_dtype": f32}
    first = net.op(relay_ops.Conv2dOp, net.input, kernels[0], **shared)
    second = net.clip(net.op(relay_ops.Conv2dOp, first, kernels[1], **shared))
    flat = net.flat(net.op(relay_ops.AddOp, first, second))
    mod = net.done(net.op(relay_ops.DenseOp, flat, net.weights(3, 72), out_dtype=f32))
    quantised = Quantize(calibration=calibrated(mod, DATA, dtype), dtype=dtype)(mod)
    assert names(quantised) == [
        *("qnn.quantize", "qnn.conv2d", "relay.nn.bias_add", "qnn.requantize"),
        *("qnn.conv2d", "relay.nn.bias_add", "qnn.requantize", "qnn.add", "relay.reshape"),
        *("qnn.dense", "relay.nn.bias_add", "qnn.requantize", "qnn.dequantize", "func.return"),
    ]
    assert stayed(quantised) == [] and noise(quantised, mod) < 0.2


def test_equalization_changes_nothing_but_the_ranges():
    net = Net((1, 5))
    kernel = net.constant(np.diag([100.0, 1.0, 0.01, 1.0, 1.0]))
    a = net.clip(net.bias(net.op(relay_ops.DenseOp, net.input, kernel, out_dtype=f32)))
    mod = net.done(net.dense(a, 3))
    other = EqualizeLayers()(mod)
    x = np.random.default_rng(3).normal(0, 1, (1, 5)).astype(np.float32)
    assert np.allclose(run(mod, [x])[0], run(other, [x])[0], rtol=1e-4, atol=1e-5)
    widths = [max(abs(s.high), 1e-9) for s in calibrated(other, [x]).values.values()]
    assert str(other) != str(mod) and len(widths) == 3
    data = [np.random.default_rng(n).normal(0, 1, (1, 5)).astype(np.float32) for n in range(32)]
    noises: list[float] = []
    for equalize, base in ((False, mod), (True, other)):
        quantised = Quantize(calibration=calibrated(base, data), equalize=equalize, per_channel=False)(mod)
        noises.append(float(np.mean([np.square(run(quantised, [x])[0] - run(mod, [x])[0]).mean() for x in data])))
    assert noises[1] < noises[0]


def test_skipped_weights_keep_their_float_results_exactly():
    mod = Quantize(calibration=calibration(), skip_layers=(0, 1, 2, 3))(FLOAT)
    assert str(mod) == str(FLOAT)


def test_a_second_run_is_the_same():
    first, second = (Quantize(calibration=calibration(), method="kl")(FLOAT).to_text(weights=True) for _ in range(2))
    assert first == second


def test_options_have_a_text():
    step = Quantize(from_layer=1, skip_names=("a*", "b"), calibration=DATA)
    assert relay.transform.Pipeline.parse(str(step)).passes == [Quantize(from_layer=1, skip_names=("a*", "b"))]


def test_build_config_stands_for_the_pass():
    with relay.BuildConfig(quantize_model=True, quantize_start_layer=1, quantize_calibration=calibration()):
        pipeline = relay.default_pipeline()
        assert str(pipeline[0]) == "quantize{from_layer=1}"
        executable = relay.build(FLOAT)
    wanted = run(Quantize(calibration=calibration(), from_layer=1)(FLOAT), [DATA[0]])[0]
    assert np.abs(np.asarray(executable.run(DATA[0])) - wanted).max() < 2 / 256
    assert not np.array_equal(np.asarray(executable.run(DATA[0])), run(FLOAT, [DATA[0]])[0])
    with pytest.raises(InvalidArgument, match="has nothing to calibrate with"):
        with relay.BuildConfig(quantize_model=True):
            relay.build(FLOAT)
    with pytest.raises(InvalidArgument, match=r"then Quantize\(calibration=samples\)"):
        with relay.BuildConfig(quantize_start_layer=1):
            relay.build(FLOAT)
    with pytest.raises(InvalidArgument, match="has no option quantize_modle"):
        relay.BuildConfig(quantize_modle=True)
    with relay.BuildConfig(quantize_model=False, quantize_start_layer=1):
        assert relay.default_pipeline()[0].name != "quantize"


def test_codes_outside_are_described_by_whatever_builds_them():
    """In the module, in a pipeline, in the default pipeline: the executable tells the same of what it takes."""
    net = Net((1, 4))
    mod = net.done(net.dense(net.input, 3))
    data = samples(4, dims=(1, 4))
    step = Quantize(calibration=calibrated(mod, data), io="codes")
    quantised = step(mod)
    inputs, outputs = signature.read(quantised["main"])
    with relay.BuildConfig(quantize_model=True, quantize_io="codes", quantize_calibration=step.calibration):
        configured = relay.build(mod)
    codes = data[0].astype(np.int8)
    for executable in (relay.build(mod, pipeline=[step, *relay.default_pipeline()]), configured):
        for specs, infos in ((executable.inputs, inputs), (executable.outputs, outputs)):
            assert [(s.dtype, s.scale, s.zero_point) for s in specs] == [(np.int8, infos[0].scale, infos[0].zero_point)]
        assert np.array_equal(np.asarray(executable.run(codes)), run(quantised, [codes])[0])


def test_a_batch_of_nothing_is_built():
    net = Net((0, 7))
    mod = net.done(net.dense(net.input, 3))
    nothing = np.zeros((0, 7), np.float32)
    quantised = Quantize(calibration=calibrated(mod, [nothing]))(mod)
    assert "qnn.dense" in names(quantised)
    assert np.asarray(relay.build(quantised).run(nothing)).shape == (0, 3)


@pytest.mark.ci
def test_the_digits_lose_nothing():
    mod = relay.frontend.from_tflite(DIGITS / "digits_float.tflite")
    held_out = np.load(DIGITS / "digits_test.npz")
    images, labels = held_out["images"], held_out["labels"]
    executable = relay.build(Quantize(calibration=[image[None] for image in images[:100]])(mod))
    outputs = np.concatenate([np.asarray(executable.run(image[None])) for image in images])
    right = float((held_out["float_out"].argmax(1) == labels).mean())
    assert float((outputs.argmax(1) == labels).mean()) > right - 0.005
