"""Random ONNX graphs of groups DequantizeLinear, operator, QuantizeLinear, of operators on codes, of products that stay
int32, and of floats: each step reads values that earlier ones made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.numeric.onnx_qdq_graphs import CHANNELS, STEPS, Codes
from tests.numeric.onnx_quantised import MICROSOFT, Graph, weights

SIZE = 6
Values = list[str]
"""Codes, scale and zero point."""


class Mixed(Codes):
    """A graph of those steps: every value that no other reads is a result, and some others."""

    def __init__(self, seed: int, steps: Sequence[int]) -> None:
        super().__init__(seed)
        self.reals: list[str] = []
        """Floats [1, CHANNELS, SIZE, SIZE] that no QuantizeLinear reads."""
        for step in steps:
            self.graph.random = np.random.default_rng([seed, step])
            if self.graph.random.random() < 0.4:
                x, scale = self.real()
                STEPS[int(self.graph.random.integers(len(STEPS)))](self, x, scale)
            else:
                OTHERS[int(self.graph.random.integers(len(OTHERS)))](self)

    def value(self) -> Values:
        random = self.graph.random
        return self.values[int(random.integers(len(self.values)))] if random.random() < 0.5 else self.values[-1]

    def add(self, kind: str, given: Sequence[str], target: Values, domain: str = MICROSOFT, **attributes: Any) -> None:
        self.values.append([self.graph.node(kind, given, self.dtype, domain, **attributes), *target])

    def float(self) -> str:
        if self.reals and self.graph.random.random() < 0.5:
            return self.reals[int(self.graph.random.integers(len(self.reals)))]
        return self.real()[0]


def convolution(m: Mixed) -> None:
    g, groups = m.graph, m.graph.signed(1, 1, 2, CHANNELS)
    filters = weights(g, m.weights, CHANNELS, CHANNELS // groups, 3, 3, channels=g.signed(1, CHANNELS))
    target, bias = g.target(m.dtype, -2, 3), [g.bias(CHANNELS)] if g.random.random() < 0.7 else []
    m.add("QLinearConv", [*m.value(), *filters, *target, *bias], target, "", pads=[1] * 4, group=groups)


def product(m: Mixed) -> None:
    target = m.graph.target(m.dtype, -2, 3)
    right = weights(m.graph, m.weights, SIZE, SIZE, channels=m.graph.signed(1, SIZE), columns=True)
    m.add("QLinearMatMul", [*m.value(), *right, *target], target, "")


def binary(m: Mixed) -> None:
    kind = m.graph.signed("QLinearAdd", "QLinearMul")
    target = m.graph.target(m.dtype, -4, 3)
    m.add(kind, [*m.value(), *m.value(), *target], target)


def unary(m: Mixed) -> None:
    g, kind = m.graph, m.graph.signed("QLinearLeakyRelu", "QLinearAveragePool", "QLinearSigmoid")
    target = g.target(m.dtype)
    if kind == "QLinearSigmoid":
        target = [g.constant(np.float32(1 / 256)), g.constant(np.asarray(np.iinfo(m.dtype).min, m.dtype))]
    more: dict[str, dict[str, Any]] = {
        "QLinearLeakyRelu": {"alpha": 0.1},
        "QLinearAveragePool": {"kernel_shape": [3, 3], "pads": [1] * 4},
    }
    m.add(kind, [*m.value(), *target], target, MICROSOFT, **more.get(kind, {}))


def joined(m: Mixed) -> None:
    """Two along the channels, and a part of them."""
    g, target = m.graph, m.graph.target(m.dtype)
    whole = g.node("QLinearConcat", [*target, *m.value(), *m.value()], m.dtype, MICROSOFT, axis=1)
    first = int(g.random.integers(CHANNELS))
    bounds = [g.constant(np.asarray([n])) for n in (first, first + CHANNELS, 1)]
    m.add("Slice", [whole, *bounds], target, "")


def moved(m: Mixed) -> None:
    """Codes of the same scale."""
    g, (codes, *target) = m.graph, m.value()
    kind = g.signed("Transpose", "MaxPool", "Reshape")
    if kind == "Reshape":
        flat = g.inner(kind, [codes, g.constant(np.asarray([CHANNELS, -1]))])
        return m.add(kind, [flat, g.constant(np.asarray([1, CHANNELS, SIZE, SIZE]))], target, "")
    more: dict[str, Any] = {"perm": [0, 1, 3, 2]} if kind == "Transpose" else {"kernel_shape": [3, 3], "pads": [1] * 4}
    return m.add(kind, [codes], target, "", **more)


def integers(m: Mixed) -> None:
    """Sums of int32: a result."""
    g, (codes, _, zero) = m.graph, m.value()
    if g.random.random() < 0.5 and m.dtype == np.uint8:
        filters = [g.constant(g.codes(np.uint8, 3, CHANNELS, 3, 3)), zero, g.constant(g.zero(np.uint8))]
        g.node("ConvInteger", [codes, *filters], np.int32, pads=[1] * 4)
    else:
        right = [g.constant(g.factors(m.weights, SIZE, 5)), zero, g.constant(g.codes(m.weights, 5))]
        g.node("MatMulInteger", [codes, *right], np.int32)


def dynamic(m: Mixed) -> None:
    """Codes whose scale is found at run time: three results."""
    m.graph.node("DynamicQuantizeLinear", [m.real()[0]], np.uint8, count=3)


def numbers(g: Graph, *shape: int) -> str:
    return g.constant(np.asarray(g.random.standard_normal(shape) / 3, np.float32))


FUNCTIONS: dict[str, Callable[[Graph], tuple[list[str], dict[str, Any]]]] = {
    **{kind: lambda g: ([], {}) for kind in ("Tanh", "Sigmoid", "Erf", "Abs", "Neg", "Softsign", "HardSwish")},
    **{kind: lambda g: ([numbers(g, CHANNELS, 1, 1)], {}) for kind in ("Add", "Mul", "Sub", "Max", "Min", "PRelu")},
    "Softmax": lambda g: ([], {"axis": int(g.random.integers(1, 4))}),
    "Conv": lambda g: ([numbers(g, CHANNELS, CHANNELS, 3, 3), numbers(g, CHANNELS)], {"pads": [1] * 4}),
    "MatMul": lambda g: ([numbers(g, SIZE, SIZE)], {}),
    "Transpose": lambda g: ([], {"perm": [0, 1, 3, 2]}),
    "AveragePool": lambda g: ([], {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "Clip": lambda g: ([g.constant(np.float32(-1)), g.constant(np.float32(2))], {}),
}
"""What operators on floats take beside a value, and their attributes."""


def function(m: Mixed) -> None:
    kind = m.graph.signed(*FUNCTIONS)
    more, attributes = FUNCTIONS[kind](m.graph)
    m.reals.append(m.graph.node(kind, [m.float(), *more], np.float32, **attributes))


OTHERS: tuple[Callable[[Mixed], None], ...] = (
    convolution, convolution, product, binary, binary, unary, unary, joined, moved, integers, dynamic, function,
    function, function, function,
)  # fmt: skip
