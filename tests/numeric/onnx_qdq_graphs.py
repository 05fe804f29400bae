"""Random graphs of quantised groups: values that several groups read, chains that are fused, results in floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numeric.onnx_qdq import bias, kernel
from tests.numeric.onnx_quantised import Array, Graph

CHANNELS = 4
Step = Callable[["Codes", str, Array], None]


class Codes:
    """A graph whose values are codes [1, CHANNELS, 6, 6] of one type."""

    def __init__(self, seed: int) -> None:
        self.graph = Graph(np.random.default_rng(seed))
        self.dtype: Any = self.graph.signed(np.uint8, np.int8)
        self.weights: Any = np.int8 if self.dtype == np.int8 else self.graph.signed(np.uint8, np.int8)
        self.values: list[list[str]] = []
        """Codes, scale and zero point."""
        self.floats: dict[str, str] = {}
        for _ in range(int(self.graph.random.integers(1, 3))):
            self.values.append(self.graph.coded(self.dtype, 1, CHANNELS, 6, 6, scale=self.graph.scale(-6, -2)))

    def real(self) -> tuple[str, Array]:
        """A value, most often the last one, dequantised anew or as before, and its scale."""
        random = self.graph.random
        value = self.values[int(random.integers(len(self.values)))] if random.random() < 0.6 else self.values[-1]
        if value[0] not in self.floats or random.random() < 0.5:
            self.floats[value[0]] = self.graph.inner("DequantizeLinear", value)
        self.last = value[1:]
        return self.floats[value[0]], self.graph.constants[value[1]]

    def code(self, value: str, low: int = -5, high: int = 0, same: bool = False, scale: Array | None = None) -> None:
        """The value quantised, or with the `same` parameters as the one that was read last."""
        target = self.last if same else self.graph.target(self.dtype, low, high, scale)
        self.values.append([self.graph.node("QuantizeLinear", [value, *target], self.dtype), *target])

    def positive(self, value: str) -> None:
        """The value quantised, perhaps after Relu. ONNX Runtime fuses that where the lowest code stands for 0."""
        if self.graph.random.random() < 0.5:
            return self.code(value, -2, 3)
        lowest = np.asarray(np.iinfo(self.dtype).min, self.dtype)
        target = [self.graph.constant(self.graph.scale(-2, 3)), self.graph.constant(lowest)]
        result = self.graph.inner("Relu", [value])
        self.values.append([self.graph.node("QuantizeLinear", [result, *target], self.dtype), *target])
        return None


def convolution(codes: Codes, x: str, scale: Array) -> None:
    g = codes.graph
    filters, other = kernel(g, codes.weights, CHANNELS, CHANNELS, 3, 3, channels=g.signed(1, CHANNELS))
    added = [bias(g, np.asarray(scale * other, np.float32), CHANNELS)] if g.random.random() < 0.6 else []
    result = g.inner("Conv", [x, filters, *added], pads=[1] * 4)
    codes.positive(result)


def binary(kind: str) -> Step:
    def step(codes: Codes, x: str, _: Array) -> None:
        codes.positive(codes.graph.inner(kind, [x, codes.real()[0]]))

    return step


def unary(kind: str, same: bool = False, **attributes: Any) -> Step:
    def step(codes: Codes, x: str, _: Array) -> None:
        codes.code(codes.graph.inner(kind, [x], **attributes), same=same)

    return step


def softmax(codes: Codes, x: str, _: Array) -> None:
    codes.code(codes.graph.inner("Softmax", [x], axis=-1), scale=np.asarray(1 / 256, np.float32))


def joined(codes: Codes, x: str, _: Array) -> None:
    """Joined along the channels, and cut again."""
    g = codes.graph
    codes.code(g.inner("Concat", [x, codes.real()[0]], axis=1))
    codes.last = codes.values[-1][1:]
    bounds = [g.constant(np.asarray([each])) for each in (2, 2 + CHANNELS, 1)]
    cut = g.inner("Slice", [g.inner("DequantizeLinear", codes.values.pop()), *bounds])
    codes.code(cut, same=True)


def result(codes: Codes, x: str, _: Array) -> None:
    """A result in floats."""
    codes.graph.node("Identity", [x], np.float32)


STEPS: tuple[Step, ...] = (
    convolution, convolution, convolution, binary("Add"), binary("Add"), binary("Mul"), joined, softmax, result,
    unary("MaxPool", same=True, kernel_shape=[3, 3], pads=[1] * 4), unary("Transpose", same=True, perm=[0, 1, 3, 2]),
    unary("AveragePool", kernel_shape=[3, 3], pads=[1] * 4), unary("Sigmoid"), unary("HardSwish"),
    unary("LeakyRelu", alpha=0.1), unary("Neg"),
)  # fmt: skip


def random_graph(seed: int) -> Graph:
    """Some steps; results are the last value, the floats, and perhaps another."""
    codes = Codes(seed)
    random = codes.graph.random
    for _ in range(int(random.integers(3, 9))):
        x, scale = codes.real()
        STEPS[int(random.integers(len(STEPS)))](codes, x, scale)
    kept = {value[0] for value in codes.values[-1 if random.random() < 0.7 else -2 :]}
    outputs = codes.graph.outputs
    codes.graph.outputs = {name: type for name, type in outputs.items() if name in kept or type == 1} or outputs
    return codes.graph
