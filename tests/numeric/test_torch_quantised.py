"""PT2E programs on integers: the codes of the formulas written here in numpy, and nearly those of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.frontend import from_pytorch
from relay.interpreters import run
from relay.quantize import QdqToInteger, stayed
from tests.numeric.torch_programs import Json, archive, invoke, tensor

F32 = np.float32
SHAPE = (1, 4, 9, 8)
ZERO = -7


class Group:
    """A program of one operator between codes, with scales drawn at random."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Json] = []
        self.inputs: dict[str, Array] = {}
        self.weights: dict[str, Array] = {}
        self.types: dict[str, tuple[Any, str]] = {}

    def scale(self, low: float, high: float) -> np.float32:
        return F32(np.exp2(self.random.uniform(low, high)))

    def node(self, target: str, shape: tuple[int, ...], dtype: str = "float32", /, **arguments: Json) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(invoke(target, arguments, name))
        self.types[name] = (shape, dtype)
        return name

    def real(self, shape: tuple[int, ...] = SHAPE) -> tuple[str, Array, np.float32]:
        """An input of codes, dequantised: its name, codes less the zero point, and scale."""
        name, scale = f"x{len(self.inputs)}", self.scale(-6, -4)
        self.inputs[name] = self.random.integers(-128, 128, shape, np.int8)
        found = self.node("quantized_decomposed.dequantize_per_tensor.default", shape, **coded(name, scale, ZERO))
        return found, self.inputs[name].astype(np.int64) - ZERO, scale

    def kernel(self, shape: tuple[int, ...]) -> tuple[str, Array, Array]:
        self.weights["w"] = self.random.integers(-127, 128, shape, np.int8)
        scales = np.exp2(self.random.uniform(-9, -7, shape[0])).astype(F32)
        self.weights |= {"s": scales, "z": np.zeros(shape[0], np.int64)}
        given = coded("w", 1.0, 0) | {"scales": tensor("s"), "zero_points": tensor("z"), "axis": {"as_int": 0}}
        del given["scale"], given["zero_point"]
        found = self.node("quantized_decomposed.dequantize_per_channel.default", shape, **given)
        self.weights["b"] = self.random.normal(size=shape[0]).astype(F32)
        return found, self.weights["w"].astype(np.int64), scales

    def program(self, value: str, scale: np.float32) -> bytes:
        shape = self.types[value][0]
        last = self.node("quantized_decomposed.quantize_per_tensor.default", shape, "int8", **coded(value, scale, ZERO))
        given = {name: (each.shape, "int8") for name, each in self.inputs.items()}
        return archive(self.nodes, given, [last], self.types, self.weights)


def coded(name: str, scale: float | np.float32, zero: int) -> dict[str, Json]:
    return {
        "input": tensor(name), "scale": {"as_float": float(scale)}, "zero_point": {"as_int": zero},
        "quant_min": {"as_int": -128}, "quant_max": {"as_int": 127}, "dtype": {"as_scalar_type": 2},
    }  # fmt: skip


def clamped(steps: Array) -> Array:
    return np.clip(np.rint(steps) + ZERO, -128, 127)


def codes(reals: Array, scale: np.float32) -> Array:
    """torch's quantization: the product with the float32 inverse, halves to even."""
    return clamped(reals.astype(F32) * (F32(1) / scale))


def requantized(sums: Array, scales: Array, scale: np.float32) -> Array:
    return clamped(sums.astype(F32) * (scales / scale).astype(F32))


Made = tuple[str, Array, np.float32]
"""The float value, the codes that are wanted, and their scale."""


def convolution(g: Group, groups: int = 1) -> Made:
    """Bias codes are `rint(bias / (scale of data * scale of kernel))`; relu is a bound of codes."""
    value, x, sx = g.real()
    w_name, w, sw = g.kernel((8, 4 // groups, 3, 3))
    arguments = {"input": tensor(value), "weight": tensor(w_name), "bias": tensor("b"), "groups": {"as_int": groups}}
    found = g.node("aten.conv2d.default", (1, 8, 7, 6), **arguments, padding={"as_ints": [0, 0]})
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    sums = np.concatenate([np.einsum("nchwij,ocij->nohw", *each) for each in parts], 1)
    return _layer(g, found, sums, (sx * sw).reshape(1, -1, 1, 1), (1, -1, 1, 1))


def linear(g: Group) -> Made:
    value, x, sx = g.real((2, 3, 40))
    w_name, w, sw = g.kernel((8, 40))
    given = {"input": tensor(value), "weight": tensor(w_name), "bias": tensor("b")}
    return _layer(g, g.node("aten.linear.default", (2, 3, 8), **given), x @ w.T, sx * sw, (-1,))


def _layer(g: Group, value: str, sums: Array, scales: Array, shape: tuple[int, ...]) -> Made:
    bias = np.rint(g.weights["b"].reshape(shape) / scales)
    scale = g.scale(-5, -3)
    found = requantized(sums + bias.astype(np.int64), scales, scale)
    if g.random.random() < 0.5:
        value, found = g.node("aten.relu.default", g.types[value][0], self=tensor(value)), np.maximum(found, ZERO)
    return value, found, scale


def add(g: Group) -> Made:
    """`fma(a, s / t, fma(b, u / t, c))` in float32, c of all zero points."""
    (left, a, s), (right, b, u), t = g.real(), g.real(), g.scale(-5, -4)
    first, second = np.float64(s / t), np.float64(u / t)
    zero = F32(ZERO * first + np.float64(F32(ZERO) * F32(second)))
    inner = ((b + ZERO) * second + np.float64(F32(ZERO) - zero)).astype(F32)
    wanted = np.clip(np.rint(((a + ZERO) * first + inner).astype(F32)), -128, 127)
    return g.node("aten.add.Tensor", SHAPE, self=tensor(left), other=tensor(right)), wanted, t


def multiply(g: Group) -> Made:
    (left, a, s), (right, b, u), t = g.real(), g.real((1, 4, 1, 1)), g.scale(-5, -3)
    wanted = np.clip(np.rint((a * b).astype(F32) * (s * u / t) + F32(ZERO)), -128, 127)
    return g.node("aten.mul.Tensor", SHAPE, self=tensor(left), other=tensor(right)), wanted, t


def function(g: Group) -> Made:
    """Of one code: a table of what the definition gives in floats."""
    (value, a, s), t = g.real(), g.scale(-6, -4)
    return g.node("aten.relu.default", SHAPE, self=tensor(value)), codes(np.maximum(a, 0) * s, t), t


def largest(g: Group) -> Made:
    (value, a, s), t = g.real(), g.scale(-6, -4)
    windows = np.lib.stride_tricks.sliding_window_view(a, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max((4, 5))
    found = g.node("aten.max_pool2d.default", (1, 4, 4, 4), self=tensor(value), kernel_size={"as_ints": [2, 2]})
    return found, codes(windows * s, t), t


def mean(g: Group) -> Made:
    (value, a, s), t = g.real(), g.scale(-8, -7)
    found = g.node(
        "aten.adaptive_avg_pool2d.default", (1, 4, 1, 1), self=tensor(value), output_size={"as_ints": [1, 1]}
    )
    return found, clamped(a.sum((2, 3), keepdims=True).astype(F32) * (s / (t * F32(72)))), t


def joined(g: Group) -> Made:
    (left, a, s), (right, b, u), t = g.real(), g.real(), g.scale(-6, -4)
    tensors = {"as_tensors": [{"name": left}, {"name": right}]}
    found = g.node("aten.cat.default", (1, 8, 9, 8), tensors=tensors, dim={"as_int": 1})
    return found, codes(np.concatenate([a * s, b * u], 1), t), t


GROUPS: dict[str, Callable[[Group], Made]] = {
    "conv2d": convolution, "depthwise": lambda g: convolution(g, 4), "linear": linear, "add": add, "mul": multiply,
    "relu": function, "max_pool2d": largest, "adaptive_avg_pool2d": mean, "cat": joined,
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_codes_are_those_of_the_formulas(name: str) -> None:
    """All of them on integers; those of floats are within one code, and differ in less than one of a thousand."""
    values = differ = 0
    for seed in range(8):
        group = Group(seed)
        value, wanted, scale = GROUPS[name](group)
        module = from_pytorch(group.program(value, scale))
        inputs = [*group.inputs.values()]
        (floats,) = run(module, inputs)
        module = QdqToInteger()(module)
        assert not stayed(module) and "qnn.dequantize" not in str(module["main"])
        (found,) = run(module, inputs)
        assert np.array_equal(found, wanted)
        if seed == 0:
            assert np.array_equal(np.asarray(relay.build(module)(*inputs)).reshape(wanted.shape), wanted)
        away = np.abs(floats.astype(int) - found)
        assert away.max() <= 1
        values, differ = values + away.size, differ + int((away > 0).sum())
    assert differ <= values / 1000
