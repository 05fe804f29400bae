"""Models of many nodes of one quantised kind, each with parameters of its own, that make ties likely."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from relay.target import host

Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator
MICROSOFT = "com.microsoft"
SATURATES = host().saturates_in_libraries
"""Without VNNI, ONNX Runtime adds two products of int8 weights in 16 bits: see the table of docs/support.md."""


class Graph:
    """A graph under construction: inputs, constants and nodes; every output of a node is an output of the model."""

    def __init__(self, random: Random, opset: int = 21) -> None:
        self.random, self.opset = random, opset
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.outputs: dict[str, int] = {}

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def input(self, array: Any) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = np.asarray(array)
        return name

    def node(
        self, kind: str, inputs: Sequence[str], dtype: Any, domain: str = "", count: int = 1, **attributes: Any
    ) -> str:
        names = [f"y{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        types = [np.dtype(dtype), np.dtype(np.float32), np.dtype(np.uint8)]  # those of DynamicQuantizeLinear
        self.outputs |= {name: helper.np_dtype_to_tensor_dtype(type) for name, type in zip(names, types, strict=False)}
        return names[0]

    def inner(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node whose result is no output."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def model(self) -> onnx.ModelProto:
        def info(name: str, array: Array) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        graph = helper.make_graph(
            self.nodes,
            "quantised",
            [info(*each) for each in self.inputs.items()],
            [helper.make_tensor_value_info(name, type, None) for name, type in self.outputs.items()],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def codes(self, dtype: Any, *shape: int) -> Array:
        info = np.iinfo(dtype)
        return self.random.integers(info.min, info.max + 1, shape).astype(dtype)

    def factors(self, dtype: Any, *shape: int) -> Array:
        """Codes of weights: where two products could saturate in ONNX Runtime, none of int8 beyond 64."""
        codes = self.codes(dtype, *shape)
        return codes // 2 if SATURATES and dtype == np.int8 else codes

    def zero(self, dtype: Any) -> Array:
        return self.codes(dtype).reshape(())

    def scale(self, low: int = -6, high: int = 0) -> Array:
        """One with few bits, so that ties are common, or any."""
        if self.random.random() < 0.5:
            return np.asarray(self.random.integers(1, 8) * 2.0 ** self.random.integers(low, high), np.float32)
        return np.asarray(2.0 ** self.random.uniform(low, high + 2), np.float32)

    def open(self, *names: str) -> list[str]:
        """Constants as inputs of the same numbers: what is known only at run time."""
        return [self.input(self.constants[name]) if name in self.constants else name for name in names]

    def bias(self, size: int) -> str:
        return self.constant(np.asarray(self.random.integers(-9999, 9999, size), np.int32))

    def signed(self, *types: Any) -> Any:
        return types[int(self.random.integers(len(types)))]

    def rows(self) -> int:
        """Of a product: as many as one image or token has, and such that kernels of tiles have remainders."""
        return self.signed(1, 5, 33, 70)

    def coded(self, dtype: Any, *shape: int, scale: Array | None = None) -> list[str]:
        """An input of codes, with scale and zero point."""
        given = [self.scale() if scale is None else scale, self.zero(dtype)]
        return [self.input(self.codes(dtype, *shape)), *map(self.constant, given)]

    def target(self, dtype: Any, low: int = -6, high: int = 0, scale: Array | None = None) -> list[str]:
        return [self.constant(self.scale(low, high) if scale is None else scale), self.constant(self.zero(dtype))]


def quantize(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8, np.uint16, np.int16)
    scale = g.scale()
    x = np.asarray(g.random.integers(-600, 600, (16, 13)) / 2, np.float32) * scale
    if g.random.random() < 0.3:
        scale = np.asarray([g.scale() for _ in range(13)], np.float32)
        zero = g.constant(g.codes(dtype, 13))
    else:
        zero = g.constant(g.zero(dtype))
    g.node("QuantizeLinear", [g.input(x.astype(np.float32)), g.constant(scale), zero], dtype, axis=1)


def dequantize(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8, np.uint16, np.int16, np.int32)
    zero = g.constant(np.zeros((), dtype) if dtype == np.int32 else g.zero(dtype))
    g.node("DequantizeLinear", [g.input(g.codes(dtype, 16, 13)), g.constant(g.scale()), zero], np.float32)


def dynamic(g: Graph) -> None:
    wide, shift = 2.0 ** g.random.uniform(-8, 8), g.random.standard_normal() * 3
    x = np.asarray(g.random.standard_normal((5, 41)) * wide + shift, np.float32)
    if g.random.random() < 0.5:  # a scale that is a power of two, and halves of it
        low = -int(g.random.integers(0, 256))
        steps = g.random.integers(2 * low, 2 * low + 511, (5, 41)) / 2
        steps[0, :2] = low, low + 255
        x = np.asarray(steps * 2.0 ** g.random.integers(-8, 8), np.float32)
    g.node("DynamicQuantizeLinear", [g.input(x)], np.uint8, count=3)


def weights(g: Graph, kind: Any, *shape: int, channels: int = 1, columns: bool = False) -> list[str]:
    """Codes of weights; per channel, where there are channels: of zero point 0 (128 unsigned), or of any as a matrix
    may have for its columns."""
    scale = g.scale(-9, -4) if channels == 1 else np.asarray([g.scale(-9, -4) for _ in range(channels)], np.float32)
    middle = 128 if kind == np.uint8 else 0
    zero = np.full(np.shape(scale), middle, kind)
    if channels == 1 and kind == np.uint8:
        zero = g.zero(kind)
    elif columns and channels > 1 and g.random.random() < 0.5:
        zero = g.codes(kind, channels)
    return [g.constant(g.factors(kind, *shape)), g.constant(scale), g.constant(zero)]


def convolution(g: Graph) -> None:
    x, w = g.signed((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    groups = g.signed(1, 1, 2, 4)
    channels, out = groups * int(g.random.integers(1, 4)), groups * int(g.random.integers(1, 3))
    size, pad, stride = (int(g.random.integers(low, high)) for low, high in ((1, 4), (0, 2), (1, 3)))
    shape = (out, channels // groups, size, size)
    data = g.coded(x, 1, channels, 11, 10, scale=g.scale(-6, -2))
    filters = weights(g, w, *shape, channels=g.signed(1, out))
    bias = [g.bias(out)] if g.random.random() < 0.7 else []
    given = [*data, *filters, *g.target(x, -2, 3), *bias]
    g.node("QLinearConv", given, x, pads=[pad] * 4, strides=[stride, stride], group=groups)


def convolution_1d(g: Graph) -> None:
    data, filters = g.coded(np.uint8, 2, 3, 41, scale=g.scale(-6, -2)), weights(g, np.int8, 4, 3, 3)
    same: dict[str, object] = {"auto_pad": "SAME_UPPER", "strides": [2]}
    given = [*data, *filters, *g.target(np.uint8, -2, 3)]
    g.node("QLinearConv", given, np.uint8, **g.signed({"pads": [1, 1]}, same, same | {"auto_pad": "SAME_LOWER"}))


def convolution_3d(g: Graph) -> None:
    data, filters = g.coded(np.uint8, 1, 2, 3, 5, 6, scale=g.scale(-6, -2)), weights(g, np.int8, 3, 2, 3, 3, 3)
    g.node("QLinearConv", [*data, *filters, *g.target(np.uint8, -2, 3), g.bias(3)], np.uint8, pads=[1] * 6)


def open_convolution(g: Graph) -> None:
    x, w = g.signed((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    filters = weights(g, w, 4, 3, 3, 3, channels=g.signed(1, 4))
    given = [*g.coded(x, 1, 3, 9, 8, scale=g.scale(-6, -2)), *filters, *g.target(x, -2, 3), g.bias(4)]
    g.node("QLinearConv", [*g.open(*given[:-1]), given[-1]], x, pads=[1] * 4)


def product(g: Graph) -> None:
    a, b = g.signed((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    inner = int(g.random.integers(1, 50))
    rows = g.rows()
    left = g.coded(a, rows, inner, scale=g.scale(-6, -2))
    many = g.random.random() < 0.3
    right = weights(g, b, inner, 9, channels=1 if many else g.signed(1, 9), columns=True)
    if many:
        left[0] = g.input(g.codes(a, 2, rows, inner))
        right[0] = g.input(g.factors(b, 2, inner, 9))
    g.node("QLinearMatMul", [*left, *right, *g.target(a, -2, 3)], a)


def open_product(g: Graph) -> None:
    a, b = g.signed((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    right = weights(g, b, 17, 9, channels=g.signed(1, 9), columns=True)
    given = [*g.coded(a, g.rows(), 17, scale=g.scale(-6, -2)), *right, *g.target(a, -2, 3)]
    g.node("QLinearMatMul", g.open(*given), a)


def gemm(g: Graph) -> None:
    a, b = g.signed((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    inner, flip = int(g.random.integers(1, 50)), bool(g.random.random() < 0.5)
    left = g.coded(a, g.rows(), inner, scale=g.scale(-6, -2))
    right = weights(g, b, *((9, inner) if flip else (inner, 9)), channels=g.signed(1, 9), columns=True)
    bias = g.bias(9)
    g.node("QGemm", [*left, *right, bias, *g.target(a, -2, 3)], a, MICROSOFT, transB=int(flip))


def convolution_integer(g: Graph) -> None:
    zeros = [g.input(g.zero(np.uint8)) if g.random.random() < 0.5 else g.constant(g.zero(np.uint8))]
    zeros.append(g.constant(g.zero(np.uint8)))
    given = [g.input(g.codes(np.uint8, 1, 3, 9, 8)), g.constant(g.codes(np.uint8, 4, 3, 3, 3)), *zeros]
    g.node("ConvInteger", given, np.int32, pads=[1] * 4)


def open_convolution_integer(g: Graph) -> None:
    given = [g.codes(np.uint8, 1, 3, 9, 8), g.codes(np.uint8, 4, 3, 3, 3), g.zero(np.uint8), g.zero(np.uint8)]
    g.node("ConvInteger", [g.input(each) for each in given], np.int32, pads=[1] * 4)


def product_integer(g: Graph) -> None:
    a, b = g.signed(np.uint8, np.int8), g.signed(np.uint8, np.int8)
    zero = g.input(g.zero(a)) if g.random.random() < 0.5 else g.constant(g.zero(a))
    columns = g.constant(g.codes(b, 11) if g.random.random() < 0.5 else g.zero(b))
    right = g.factors(b, 50, 11)
    given = [g.input(g.codes(a, g.rows(), 50)), g.constant(right) if g.random.random() < 0.7 else g.input(right)]
    g.node("MatMulInteger", [*given, zero, columns], np.int32)


def add(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    a, b = g.coded(dtype, 8, 25), g.coded(dtype, *g.signed((8, 25), (1, 25), (1,)))
    g.node("QLinearAdd", [*a, *b, *g.target(dtype, -4, 3)], dtype, MICROSOFT)


def multiply(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    a, b = g.coded(dtype, 8, 25), g.coded(dtype, *g.signed((8, 25), (1, 25), (1,)))
    g.node("QLinearMul", [*a, *b, *g.target(dtype, 0, 6)], dtype, MICROSOFT)


def global_pool(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    data = g.coded(dtype, 2, 101, 5, 7)
    g.node("QLinearGlobalAveragePool", [*data, *g.target(dtype, -6, 0)], dtype, MICROSOFT, channels_last=0)


def pool(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    given = [*g.coded(dtype, 1, 13, 9, 9), *g.target(dtype, -6, 0)]
    more = g.signed({}, {"pads": [1] * 4}, {"pads": [1] * 4, "count_include_pad": 1}, {"ceil_mode": 1})
    g.node("QLinearAveragePool", given, dtype, MICROSOFT, kernel_shape=[3, 3], strides=[2, 2], **more)


def concatenate(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    given = [*g.target(dtype), *g.coded(dtype, 7, 13), *g.coded(dtype, 7, 21)]
    g.node("QLinearConcat", given, dtype, MICROSOFT, axis=1)


def leaky(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    given = [*g.coded(dtype, 8, 25), *g.target(dtype)]
    g.node("QLinearLeakyRelu", given, dtype, MICROSOFT, alpha=float(np.float32(g.random.uniform(0.01, 0.5))))


def sigmoid(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    lowest = g.constant(np.asarray(np.iinfo(dtype).min, dtype))
    given = [*g.coded(dtype, 8, 25, scale=g.scale(-7, -3)), g.constant(np.float32(1 / 256)), lowest]
    g.node("QLinearSigmoid", given, dtype, MICROSOFT)


def softmax(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    lowest = g.constant(np.asarray(np.iinfo(dtype).min, dtype))
    given = [*g.coded(dtype, 6, 35, scale=g.scale(-6, -3)), g.constant(np.float32(1 / 256)), lowest]
    g.node("QLinearSoftmax", given, dtype, MICROSOFT, axis=-1, opset=13)


def where(g: Graph) -> None:
    dtype = g.signed(np.uint8, np.int8)
    chosen = g.input(g.random.random((8, 25)) < 0.5)
    g.node("QLinearWhere", [chosen, *g.coded(dtype, 8, 25), *g.coded(dtype, 8, 25), *g.target(dtype)], dtype, MICROSOFT)


def to_float(g: Graph) -> None:
    a, b = g.signed((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    scales = np.asarray([g.scale() for _ in range(9)], np.float32)
    given = [g.input(g.codes(a, g.rows(), 33)), g.constant(g.factors(b, 33, 9)), g.input(g.scale()), g.constant(scales)]
    given += [g.input(g.zero(a)), g.constant(g.codes(b, 9))]
    if g.random.random() < 0.5:
        given.append(g.constant(g.random.standard_normal(9).astype(np.float32)))
    g.node("MatMulIntegerToFloat", given, np.float32, MICROSOFT)


def dynamic_product(g: Graph) -> None:
    x = (g.random.standard_normal((g.rows(), 33)) * 3).astype(np.float32)
    bias = g.constant(g.random.standard_normal(9).astype(np.float32))
    given = [g.input(x), g.constant(g.factors(np.int8, 33, 9)), g.constant(g.scale()), "", bias]
    g.node("DynamicQuantizeMatMul", given, np.float32, MICROSOFT)


def few_bits(bits: int, zeros: bool) -> Callable[[Graph], None]:
    """MatMulNBits."""

    def case(g: Graph) -> None:
        inner, columns, block = 50, 9, 16
        count = -(-inner // block)
        scales = g.constant(np.asarray(g.random.random((columns, count)) * 0.1, np.float32))
        x = g.input(np.asarray(g.random.standard_normal((5, inner)), np.float32))
        given = [x, g.constant(g.codes(np.uint8, columns, count, block * bits // 8)), scales]
        given += [g.constant(g.codes(np.uint8, columns, -(-count * bits // 8)))] if zeros else []
        sizes = {"K": inner, "N": columns, "bits": bits, "block_size": block}
        g.node("MatMulNBits", given, np.float32, MICROSOFT, **sizes)

    return case


def rows_of_blocks(kind: str, zero_points: bool) -> Callable[[Graph], None]:
    """GatherBlockQuantized of a table 10 x 64 in blocks of 16; `kind`: of codes, two in a byte of uint8 with 4 bits."""

    def add(g: Graph) -> None:
        scales = g.constant(np.asarray(g.random.random((10, 4)) * 0.1, np.float32))
        bits = 8 if kind == "uint8" else 4
        if kind in ("int4", "uint4"):
            dtype = helper.tensor_dtype_to_np_dtype({"uint4": 21, "int4": 22}[kind])
            low = -8 if kind == "int4" else 0
            codes, zeros = (g.random.integers(low, low + 16, (10, size)).astype(dtype) for size in (64, 4))
        else:
            codes, zeros = (g.codes(np.uint8, 10, size * bits // 8) for size in (64, 4))
        given = [g.constant(codes), g.input(np.asarray([[1, 3, 5], [-1, 0, 3]])), scales]
        if zero_points:
            given.append(g.constant(zeros))
        g.node("GatherBlockQuantized", given, np.float32, MICROSOFT, bits=bits, block_size=16, quantize_axis=1)

    return add


def blocks_of_4_bits(g: Graph) -> None:
    """DequantizeLinear of weights of 4 bits in blocks, and MatMul."""
    codes = g.constant(g.random.integers(-8, 8, (32, 9)).astype(helper.tensor_dtype_to_np_dtype(22)))
    scales = g.constant(np.asarray(g.random.random((2, 9)) * 0.1, np.float32))
    weights = g.inner("DequantizeLinear", [codes, scales], axis=0, block_size=16)
    g.node("MatMul", [g.input(np.asarray(g.random.standard_normal((5, 32)), np.float32)), weights], np.float32)


NEAR: dict[str, Callable[[Graph], None]] = {
    "MatMulNBits of 2 bits": few_bits(2, False),
    "MatMulNBits of 4 bits": few_bits(4, False),
    "MatMulNBits of 4 bits with zero points": few_bits(4, True),
    "MatMulNBits of 8 bits": few_bits(8, False),
    "GatherBlockQuantized": rows_of_blocks("packed", False),
    "GatherBlockQuantized with zero points": rows_of_blocks("packed", True),
    "GatherBlockQuantized of uint8": rows_of_blocks("uint8", True),
    "GatherBlockQuantized of int4": rows_of_blocks("int4", False),
    "GatherBlockQuantized of uint4": rows_of_blocks("uint4", False),
    "GatherBlockQuantized of uint4 with zero points": rows_of_blocks("uint4", True),
    "GatherBlockQuantized of int4 with zero points": rows_of_blocks("int4", True),
    "MatMul of 4-bit weights in blocks": blocks_of_4_bits,
}
"""Kinds whose sums are of floats."""
CASES: dict[str, Callable[[Graph], None]] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "QLinearConv": convolution,
    "QLinearConv of one axis": convolution_1d,
    "QLinearConv of three axes": convolution_3d,
    "QLinearConv of run-time weights and scales": open_convolution,
    "QLinearMatMul": product,
    "QLinearMatMul of run-time scales": open_product,
    "QGemm": gemm,
    "ConvInteger": convolution_integer,
    "ConvInteger of run-time weights": open_convolution_integer,
    "MatMulInteger": product_integer,
    "QLinearAdd": add,
    "QLinearMul": multiply,
    "QLinearGlobalAveragePool": global_pool,
    "QLinearAveragePool": pool,
    "QLinearConcat": concatenate,
    "QLinearLeakyRelu": leaky,
    "QLinearSigmoid": sigmoid,
    "QLinearSoftmax": softmax,
    "QLinearWhere": where,
    "MatMulIntegerToFloat": to_float,
    "DynamicQuantizeMatMul": dynamic_product,
}
"""What adds a node of each kind to a graph."""


def many(cases: Mapping[str, Callable[[Graph], None]], kinds: Sequence[str], count: int, seed: int) -> Graph:
    """A graph of `count` nodes of each of these kinds."""
    graph = Graph(np.random.default_rng(seed))
    for kind in kinds:
        for _ in range(count):
            cases[kind](graph)
    return graph
