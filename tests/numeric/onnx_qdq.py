"""Groups DequantizeLinear, operator, QuantizeLinear, each with parameters of its own, that make ties likely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numeric.onnx_quantised import Array, Graph, weights

PAIRS = ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))


def real(g: Graph, dtype: Any, *shape: int, scale: Array | None = None) -> str:
    """An input of codes, dequantised."""
    return g.inner("DequantizeLinear", g.coded(dtype, *shape, scale=scale))


def kernel(g: Graph, dtype: Any, *shape: int, channels: int = 1, axis: int = 0) -> tuple[str, Array]:
    """Constant weights, dequantised, and their scale."""
    given = weights(g, dtype, *shape, channels=channels)
    return g.inner("DequantizeLinear", given, axis=axis), g.constants[given[1]]


def bias(g: Graph, scale: Array, size: int) -> str:
    """A constant bias, of floats or dequantised."""
    if g.random.random() < 0.4:
        return g.constant(np.asarray(g.random.integers(-999, 999, size) * scale, np.float32))
    zero = g.constant(np.zeros(scale.shape, np.int32))
    return g.inner("DequantizeLinear", [g.bias(size), g.constant(np.asarray(scale, np.float32)), zero], axis=0)


def coded(g: Graph, value: str, dtype: Any, low: int = -6, high: int = 0) -> None:
    g.node("QuantizeLinear", [value, *g.target(dtype, low, high)], dtype)


def convolution(g: Graph) -> None:
    x, w = g.signed(*PAIRS)
    groups = g.signed(1, 1, 2, 4)
    channels, out = groups * int(g.random.integers(1, 4)), groups * int(g.random.integers(1, 3))
    data = g.coded(x, 1, channels, 9, 8, scale=g.scale(-6, -2))
    filters, scale = kernel(g, w, out, channels // groups, 3, 3, channels=g.signed(1, out))
    given = [g.inner("DequantizeLinear", data), filters, bias(g, g.constants[data[1]] * scale, out)]
    result = g.inner("Conv", given, pads=[1] * 4, group=groups)
    coded(g, g.inner("Relu", [result]) if g.random.random() < 0.5 else result, x, -2, 3)


def convolution_of(*sizes: int) -> Callable[[Graph], None]:
    """Of images of these sizes."""

    def case(g: Graph) -> None:
        data = g.coded(np.uint8, 1, 2, *sizes, scale=g.scale(-6, -2))
        filters, scale = kernel(g, np.int8, 4, 2, *[3] * len(sizes), channels=4)
        given = [g.inner("DequantizeLinear", data), filters, bias(g, g.constants[data[1]] * scale, 4)]
        coded(g, g.inner("Conv", given, pads=[1] * 2 * len(sizes)), np.uint8, -2, 3)

    return case


def product(g: Graph) -> None:
    x, w = g.signed(*PAIRS)
    filters, _ = kernel(g, w, 30, 9, channels=g.signed(1, 9), axis=1)
    coded(g, g.inner("MatMul", [real(g, x, 2, g.rows(), 30, scale=g.scale(-6, -2)), filters]), x, -2, 3)


def activations(g: Graph) -> None:
    x = g.signed(np.uint8, np.int8)
    sides = [real(g, x, 2, g.rows(), 30, scale=g.scale(-6, -2)), real(g, x, 2, 30, 7, scale=g.scale(-6, -2))]
    coded(g, g.inner("MatMul", sides), x, -2, 3)


def gemm(g: Graph) -> None:
    x, w = g.signed(*PAIRS)
    rows, turned = g.rows(), int(g.random.random() < 0.3)
    data = g.coded(x, *((30, rows) if turned else (rows, 30)), scale=g.scale(-6, -2))
    filters, scale = kernel(g, w, 9, 30, channels=g.signed(1, 9))
    given = [g.inner("DequantizeLinear", data), filters, bias(g, g.constants[data[1]] * scale, 9)]
    coded(g, g.inner("Gemm", given, transA=turned, transB=1), x, -2, 3)


def binary(kind: str, low: int, high: int) -> Callable[[Graph], None]:
    def case(g: Graph) -> None:
        x = g.signed(np.uint8, np.int8)
        coded(g, g.inner(kind, [real(g, x, 8, 25), real(g, x, 8, 25)]), x, low, high)

    return case


def unary(kind: str, *shape: int, scale: tuple[int, int] = (-6, 0), **attributes: Any) -> Callable[[Graph], None]:
    def case(g: Graph) -> None:
        x = g.signed(np.uint8, np.int8)
        coded(g, g.inner(kind, [real(g, x, *shape, scale=g.scale(*scale))], **attributes), x)

    return case


def share(kind: str, **attributes: Any) -> Callable[[Graph], None]:
    """Results in [0, 1]."""

    def case(g: Graph) -> None:
        x = g.signed(np.uint8, np.int8)
        result = g.inner(kind, [real(g, x, 6, 35, scale=g.scale(-6, -3))], **attributes)
        lowest = g.constant(np.asarray(np.iinfo(x).min, x))
        g.node("QuantizeLinear", [result, g.constant(np.asarray(1 / 256, np.float32)), lowest], x)

    return case


def concatenate(g: Graph) -> None:
    x = g.signed(np.uint8, np.int8)
    coded(g, g.inner("Concat", [real(g, x, 7, 13), real(g, x, 7, 21)], axis=1), x)


def nearest(g: Graph) -> None:
    """Of one scale."""
    data = g.coded(np.uint8, 1, 3, 5, 6)
    sizes = ["", g.constant(np.asarray([1, 1, 2, 1.5], np.float32))]
    result = g.inner("Resize", [g.inner("DequantizeLinear", data), *sizes], mode="nearest")
    g.node("QuantizeLinear", [result, *data[1:]], np.uint8)


GROUPS: dict[str, Callable[[Graph], None]] = {
    "Conv": convolution,
    "Conv of one axis": convolution_of(51),
    "Conv of three axes": convolution_of(3, 5, 6),
    "MatMul": product,
    "MatMul of activations": activations,
    "Gemm": gemm,
    "Add": binary("Add", -4, 3),
    "Mul": binary("Mul", 0, 6),
    "Concat": concatenate,
    "GlobalAveragePool": unary("GlobalAveragePool", 2, 101, 5, 7),
    "AveragePool": unary("AveragePool", 1, 13, 9, 9, kernel_shape=[3, 3], strides=[2, 2]),
    "MaxPool": unary("MaxPool", 1, 13, 9, 9, kernel_shape=[2, 2], strides=[2, 2]),
    "Resize to the nearest": nearest,
    "Transpose": unary("Transpose", 8, 25, perm=[1, 0]),
    "LeakyRelu": unary("LeakyRelu", 8, 25, alpha=0.1),
    "Relu": unary("Relu", 8, 25),
    "Sqrt, NaN for half of the codes": unary("Sqrt", 8, 25),
    "Sigmoid": share("Sigmoid"),
    "Softmax": share("Softmax", axis=-1),
}
"""What adds a group of each kind to a graph."""


def transposed(g: Graph) -> None:
    filters, _ = kernel(g, np.int8, 3, 4, 3, 3)
    result = g.inner("ConvTranspose", [real(g, np.uint8, 1, 3, 5, 6, scale=g.scale(-6, -2)), filters], strides=[2, 2])
    coded(g, result, np.uint8, -2, 3)


def of_16_bits(g: Graph) -> None:
    x = g.signed(np.uint16, np.int16)
    filters, _ = kernel(g, np.int8, 5, 3, 3, 3, channels=5)
    coded(g, g.inner("Conv", [real(g, x, 1, 3, 9, 8, scale=g.scale(-12, -8)), filters]), x, -8, -4)


def sum_of_16_bits(g: Graph) -> None:
    x = g.signed(np.uint16, np.int16)
    coded(g, g.inner("Add", [real(g, x, 8, 25, scale=g.scale(-12, -8)) for _ in range(2)]), x, -12, -8)


def foreign_bias(g: Graph) -> None:
    data = g.coded(np.uint8, 1, 3, 9, 8, scale=g.scale(-6, -2))
    filters, scale = kernel(g, np.int8, 5, 3, 3, 3)
    added = [g.bias(5), g.constant(np.float32(1.5) * g.constants[data[1]] * scale), g.constant(np.int32(0))]
    given = [g.inner("DequantizeLinear", data), filters, g.inner("DequantizeLinear", added)]
    coded(g, g.inner("Conv", given), np.uint8, -2, 3)


def scaled_product(g: Graph) -> None:
    filters, _ = kernel(g, np.int8, 30, 9)
    coded(g, g.inner("Gemm", [real(g, np.uint8, 7, 30, scale=g.scale(-6, -2)), filters], alpha=0.5), np.uint8, -2, 3)


def product_to_reals(g: Graph) -> None:
    """With a bias of floats, whose result is no code."""
    x, w = g.signed(*PAIRS)
    filters, _ = kernel(g, w, 30, 9, channels=g.signed(1, 9), axis=1)
    found = g.inner("MatMul", [real(g, x, 2, g.rows(), 30, scale=g.scale(-6, -2)), filters])
    g.node("Add", [found, g.constant(np.asarray(g.random.normal(size=9), np.float32))], np.float32)


def activations_to_reals(g: Graph) -> None:
    x = g.signed(np.uint8, np.int8)
    sides = [real(g, x, 2, g.rows(), 30, scale=g.scale(-6, -2)), real(g, x, 2, 30, 7, scale=g.scale(-6, -2))]
    g.node("Neg", [g.inner("MatMul", sides)], np.float32)


def by_floats(g: Graph) -> None:
    factor = g.constant(np.asarray(g.random.random(25), np.float32))
    coded(g, g.inner("Mul", [real(g, np.uint8, 8, 25), factor]), np.uint8)


def choice(g: Graph) -> None:
    sides = [g.input(g.random.random((8, 25)) < 0.5), real(g, np.uint8, 8, 25), real(g, np.uint8, 8, 25)]
    coded(g, g.inner("Where", sides), np.uint8)


def resize(g: Graph) -> None:
    sizes = ["", g.constant(np.asarray([1, 1, 2, 2], np.float32))]
    coded(g, g.inner("Resize", [real(g, np.uint8, 1, 3, 5, 6), *sizes], mode="linear"), np.uint8)


def mean(g: Graph) -> None:
    coded(g, g.inner("ReduceMean", [real(g, np.uint8, 2, 6, 5, 7), g.constant(np.asarray([2, 3]))]), np.uint8)


TO_REALS: dict[str, Callable[[Graph], None]] = {
    "MatMul": product_to_reals,
    "MatMul of activations": activations_to_reals,
    "Gemm with a factor": scaled_product,
}
"""Products of codes whose results are used as reals."""


BITS = "ONNX Runtime has integer kernels of 8-bit codes only"
STAYS: dict[str, tuple[Callable[[Graph], None], str]] = {
    "Conv of 16-bit codes": (of_16_bits, BITS),
    "Add of 16-bit codes": (sum_of_16_bits, BITS),
    "Conv, its bias of another scale": (
        foreign_bias,
        "its bias is no constant vector along the channels, or of another scale than the sums",
    ),
    "ConvTranspose": (transposed, "relay.nn.conv2d_transpose has no form on codes"),
    "Mul by floats": (by_floats, "relay.multiply has no form on codes"),
    "Sub": (binary("Sub", -4, 3), "relay.subtract has no form on codes"),
    "Div": (binary("Div", -4, 3), "relay.divide has no form on codes"),
    "Max": (binary("Max", -4, 3), "relay.maximum has no form on codes"),
    "Min": (binary("Min", -4, 3), "relay.minimum has no form on codes"),
    "Where of two scales": (choice, "relay.where has no form on codes"),
    "ReduceMean": (mean, "relay.mean has no form on codes"),
    "Resize, linear": (resize, "relay.image.resize2d has no form on codes"),
}
"""Groups that stay in floats, as they do in ONNX Runtime, and why."""
