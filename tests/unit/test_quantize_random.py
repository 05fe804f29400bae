"""Random float modules: what the integers stand for is as near to the floats as their scales imply."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Operation, SSAValue

from relay.byoc.regions import constant_of
from relay.dialects import relay
from relay.dialects.attributes import Array, ints
from relay.dialects.op import shape
from relay.interpreters import run
from relay.module import IRModule
from relay.quantize import Quantize, stayed
from relay.quantize.comparison import pairs_of
from relay.quantize.layers import Layer, layers_of
from relay.quantize.observing import returning
from relay.quantize.report import integer_share
from relay.quantize.rules import data_operands
from tests.unit.quantize_models import Net, calibrated, samples

STEPS = ("conv", "depthwise", "relu", "relu6", "add", "multiply", "max", "avg", "pad", "concat", "sigmoid", "tanh",
         "reverse", "tile", "mirror", "dilate", "sort")  # fmt: skip


def build(steps: list[str], seed: int) -> IRModule:
    net = Net((1, 5, 5, 2), seed)
    x: SSAValue = net.clip(net.conv(net.input, 3))
    before = x
    for step in steps:
        same = shape(before) == shape(x)
        last, window = x, {"pool_size": ints([3, 3]), "padding": ints([1, 1, 1, 1])}
        match step:
            case "conv":
                x = net.conv(x, 3, 1)
            case "depthwise":
                x = net.depthwise(x)
            case "relu" | "relu6":
                x = net.clip(x, 6.0 if step == "relu6" else 1e38)
            case "add" if same:
                x = net.op(relay.AddOp, x, before)
            case "multiply":
                x = net.op(relay.MultiplyOp, x, net.constant(net.random.normal(0, 1, (shape(x)[3],))))
            case "max" | "avg":
                x = net.op(relay.MaxPool2dOp if step == "max" else relay.AvgPool2dOp, x, **window)
            case "pad" if shape(x)[1] < 8:
                x = net.op(relay.PadOp, x, pad_width=ints([0, 0, 1, 0, 0, 1, 0, 0]), pad_value=FloatAttr(0.0, f32))
            case "concat" if same and shape(x)[3] < 8:
                x = net.op(relay.ConcatenateOp, x, before, axis=IntegerAttr(3, i64))
            case "reverse":
                x = net.op(relay.ReverseOp, x, axis=ints([1, 3]))
            case "tile" if shape(x)[3] < 8:
                x = net.op(relay.TileOp, x, reps=ints([1, 1, 1, 2]))
            case "mirror" if shape(x)[1] < 8:
                x = net.op(relay.MirrorPadOp, x, pad_width=ints([0, 0, 1, 0, 0, 1, 0, 0]))
            case "dilate" if shape(x)[1] < 6:
                x = net.op(relay.DilateOp, x, strides=ints([1, 2, 2, 1]), dilation_value=FloatAttr(0.0, f32))
            case "sort":
                x = net.op(relay.SortOp, x, axis=IntegerAttr(2, i64))
            case "sigmoid" | "tanh":
                x = net.op(relay.SigmoidOp if step == "sigmoid" else relay.TanhOp, x)
            case _:
                continue
        before = last
    return net.done(net.dense(net.mean(x), 4))


def bounds(mod: IRModule, quantised: IRModule, x: Array) -> dict[SSAValue, float]:
    """The most by which each value may differ: what came in, times what the op makes of it, and a step of rounding."""
    function = mod["main"]
    steps = {pair.real: pair.parameters.scale for pair in pairs_of(function, quantised["main"])}
    ops = [op for op in function.body.block.ops if op.results and not isinstance(op, relay.ConstantOp)]
    values: list[SSAValue] = [op.results[0] for op in ops]
    reals: dict[SSAValue, Array] = dict(zip(values, run(returning(function, values), [x]), strict=True))
    reals[function.body.block.args[0]] = x
    weights: dict[Operation, Layer] = {layer.anchor: layer for layer in layers_of(function)}
    found: dict[SSAValue, float] = {function.body.block.args[0]: steps[function.body.block.args[0]] / 2}

    def grows(op: Operation) -> float:
        came = [found[value] for value in op.operands if value in found]
        if op in weights:
            layer = weights[op]
            others = tuple(i for i in range(layer.weights.ndim) if i != layer.axis)
            sums = np.abs(layer.weights).sum(axis=others)
            half = np.abs(layer.weights).max(axis=others) / 254 * 1.001
            taps = layer.weights.size // sums.size
            most = float(np.abs(reals[data_operands(op)[0]]).max()) + came[0]
            return float((sums * came[0] + half * taps * most + half * 0.01).max())
        if isinstance(op, relay.MultiplyOp):
            factor = constant_of(op.rhs)
            assert factor is not None
            span = (max(float(factor.max()), 0.0) - min(float(factor.min()), 0.0)) / 255
            return came[0] * float(np.abs(factor).max()) + span * (float(np.abs(reals[op.lhs]).max()) + came[0])
        if isinstance(op, relay.AddOp):
            return sum(came)
        if isinstance(op, relay.SumOp):
            return came[0] * shape(op.input)[1] * shape(op.input)[2]
        if isinstance(op, relay.DivideOp):
            return came[0] / shape(op.lhs.owner.operands[0])[1] ** 2 * 1.6 if isinstance(op.lhs.owner, Operation) else 0
        return max(came)

    for op in ops:
        value = op.results[0]
        rounded = steps.get(value, 0.0)
        found[value] = grows(op) * 1.001 + (rounded * 1.01 + 1e-5 if value in steps else 0.0)
    return found


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=6), st.integers(0, 10**6))
def test_integers_are_within_the_bound_of_their_scales(steps: list[str], seed: int):
    check(steps, seed)


@pytest.mark.fuzz
@given(st.lists(st.sampled_from(STEPS), max_size=10), st.integers(0, 10**6))
def test_many_integers_are_within_the_bound_of_their_scales(steps: list[str], seed: int):
    check(steps, seed)


def check(steps: list[str], seed: int) -> None:
    mod = build(steps, seed)
    x = samples(1, seed, (1, 5, 5, 2))[0]
    quantised = Quantize(calibration=calibrated(mod, [x]), bias_correction=False)(mod)
    quantised.verify()
    assert stayed(quantised) == [] and integer_share(quantised["main"]) == 1.0
    result = mod["main"].body.block.last_op
    assert result is not None
    bound = bounds(mod, quantised, x)[result.operands[0]]
    difference = float(np.abs(run(quantised, [x])[0] - run(mod, [x])[0]).max())
    assert difference <= bound, (steps, seed)
    assert bound < 100 * max(1.0, float(np.abs(run(mod, [x])[0]).max()))
