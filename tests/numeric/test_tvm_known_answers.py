"""Known answers of TVM's own tests of QNN: the interpreter and the compiled code of `rounding` upward and tonearest.

Source: TVM 0.8, tests/python/relay/test_op_qnn_*.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.compile.entry import build
from relay.compile.pipeline import optimize
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, element_type, elements, ints
from relay.interpreters import run
from relay.interpreters.arithmetic import quantize_multipliers
from relay.module import IRModule
from tests.marks import ci
from tests.numeric.compiled_modules import Net


class Answers(Net):
    """Results whose numbers are known."""

    def __init__(self) -> None:
        super().__init__(0)
        self.known: dict[str, Array] = {}

    def expect(self, name: str, value: SSAValue, answer: object) -> None:
        self.result(name, value)
        self.known[name] = np.asarray(answer).reshape(-1)

    def finish(self) -> IRModule:
        """Interpret, compile and compare; the module."""
        mod = self.module()
        interpreted, compiled = run(mod, self.inputs), build(mod).run(*self.inputs)
        compiled = compiled if isinstance(compiled, tuple) else (compiled,)
        for name, mine, built in zip(self.known, interpreted, compiled, strict=True):
            assert built is not None
            assert mine.reshape(-1).tolist() == self.known[name].tolist(), name
            assert np.array_equal(mine, built), name
        return mod


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def real(value: float) -> FloatAttr:
    return FloatAttr(float(np.float32(value)), f32)


def multiplier(scale_in: Sequence[float], scale_out: float) -> dict[str, Attribute]:
    """TVM's: float32 scales, divided in double."""
    given = np.array(scale_in, np.float32).astype(np.float64)
    found = quantize_multipliers(given / np.float64(np.float32(scale_out)))
    return {
        name: elements(array, np.int32, label=name) if len(array) > 1 else number(int(array[0]))
        for name, array in zip(("multiplier", "shift"), found, strict=True)
    }


def requantize(
    net: Net,
    value: SSAValue,
    scales: tuple[float | list[float], float],
    zero_points: tuple[int, int] = (0, 0),
    rounding: str = "upward",
    dtype: str = "int8",
    axis: int = -1,
) -> SSAValue:
    given, target = scales
    several = given if isinstance(given, list) else [given]
    properties: dict[str, Attribute] = {
        "input_scale": elements(several, np.float32, label="scale") if len(several) > 1 else real(several[0]),
        "input_zero_point": number(zero_points[0]),
        "output_scale": real(target),
        "output_zero_point": number(zero_points[1]),
        "rounding": StringAttr(rounding),
        "axis": IntegerAttr(axis, i64),
        "out_dtype": element_type(dtype),
        **multiplier(several, target),
    }
    return net.add(qnn.RequantizeOp, [value], properties)


def runs(counts: Mapping[int, int]) -> list[int]:
    """Each number as often as it says."""
    return [number for number, count in counts.items() for _ in range(count)]


ROUNDINGS = ("upward", "tonearest")
UP, DOWN = np.arange(32, dtype=np.int32), -np.arange(32, dtype=np.int32)


def test_r1_equal_scales_change_nothing() -> None:
    net, codes = Answers(), np.arange(-100, 100, dtype=np.int32)
    for rounding in ROUNDINGS:
        net.expect(rounding, requantize(net, net.argument(codes), (0.5, 0.5), rounding=rounding), codes)
    assert not any("multiply" in op.name or "shift" in op.name for op in optimize(net.finish()).op.walk())


@pytest.mark.parametrize("dtype", ["int8", *ci(("uint8", "int32"))])
def test_r2_to_r4_scales(dtype: str) -> None:
    net = Answers()
    up = net.argument(UP if dtype == "int32" else UP.astype(dtype))
    down = net.argument(DOWN if dtype == "int32" else DOWN.astype("int8"))
    threes = net.argument(UP * 3 if dtype == "int32" else (UP * 3).astype(dtype))
    quarters = {0: 2, **dict.fromkeys(range(1, 8), 4), 8: 2}

    def case(name: str, value: SSAValue, scales: tuple[float, float], answer: object, rounding: str) -> None:
        result = requantize(net, value, scales, rounding=rounding, dtype="int8" if name.endswith("-") else dtype)
        net.expect(f"{rounding} {name}", result, answer)

    for rounding in ROUNDINGS:
        case("1/16", up, (1.0, 16.0), runs({0: 8, 1: 16, 2: 8}), rounding)
        case("1/4", up, (1.0, 4.0), runs(quarters), rounding)
        case("2", up, (1.0, 0.5), UP * 2, rounding)
        case("2 -", down, (1.0, 0.5), DOWN * 2, rounding)
        case("1/3", threes, (1.0, 3.0), UP, rounding)
        case("3", up, (3.0, 1.0), UP * 3, rounding)
    case("1/16 -", down, (1.0, 16.0), runs({0: 8, -1: 16, -2: 8}), "tonearest")
    case("1/4 -", down, (1.0, 4.0), runs({-k: n for k, n in quarters.items()}), "tonearest")
    case("1/16 -", down, (1.0, 16.0), runs({0: 9, -1: 16, -2: 7}), "upward")
    case("1/4 -", down, (1.0, 4.0), runs({0: 3, **dict.fromkeys(range(-1, -8, -1), 4), -8: 1}), "upward")
    net.finish()


def test_r5_r6_saturation_and_zero_points() -> None:
    net = Answers()
    for rounding in ROUNDINGS:
        high, low = np.arange(120, 136, dtype=np.int32), -np.arange(120, 136, dtype=np.int32)
        net.expect(f"{rounding} high", requantize(net, net.argument(high), (0.5, 0.5)), np.minimum(high, 127))
        net.expect(f"{rounding} low", requantize(net, net.argument(low), (0.5, 0.5)), np.maximum(low, -128))
    far = net.argument(-np.arange(32, 64, dtype=np.int32))
    upward, nearest = runs({-2: 9, -3: 16, -4: 7}), runs({-2: 8, -3: 16, -4: 8})
    for rounding, answer in (("upward", upward), ("tonearest", nearest)):
        shifted = requantize(net, far, (1.0, 16.0), (0, 1), rounding)
        net.expect(f"{rounding} output zero point", shifted, np.array(answer) + 1)
    near = net.argument(UP + 16)
    net.expect("input zero point", requantize(net, near, (1.0, 16.0), (16, 0)), runs({0: 8, 1: 16, 2: 8}))
    net.expect("both", requantize(net, near, (1.0, 16.0), (16, 1)), np.array(runs({0: 8, 1: 16, 2: 8})) + 1)
    net.finish()


def test_r7_a_scale_for_each_channel() -> None:
    net = Answers()
    pairs = net.argument(np.arange(-5, 5, dtype=np.int32).reshape(5, 2))
    net.expect("2-D", requantize(net, pairs, ([0.5, 0.25], 0.5), axis=1), [-5, -2, -3, -1, -1, 0, 1, 1, 3, 2])
    cube = np.arange(-5, 5, dtype=np.int32).reshape(5, 2, 1)
    net.expect("3-D", requantize(net, net.argument(cube), ([0.5, 0.5], 0.5), axis=1), cube)
    net.finish()


def test_q1_quantize_and_dequantize() -> None:
    net = Answers()
    reals = np.array([-63.5, -63, -62.5, -62, -61.5, 62, 62.5, 63, 63.5, 64], np.float32)
    unsigned, signed = [0, 1, 2, 3, 4, 251, 252, 253, 254, 255], [-128, -127, -126, -125, -124, 123, 124, 125, 126, 127]
    for dtype, zero_point, codes in (("uint8", 127, unsigned), ("int8", -1, signed)):
        given: dict[str, Attribute] = {"scale": real(0.5), "zero_point": number(zero_point)}
        quantized = {**given, "out_dtype": element_type(dtype)}
        net.expect(f"to {dtype}", net.add(qnn.QuantizeOp, [net.argument(reals)], quantized), codes)
        net.expect(f"of {dtype}", net.add(qnn.DequantizeOp, [net.argument(np.array(codes, dtype))], given), reals)
    each: dict[str, Attribute] = {
        "scale": elements([0.5, 0.25], np.float32, label="scale"),
        "zero_point": elements([127, 123], np.int32, label="zero_point"),
        "axis": IntegerAttr(0, i64),
    }
    rows = np.array([[-63.5, -63, -62.5, -62, -61.5], [30, 31, 31.5, 31.75, 32]], np.float32)
    codes = np.array([[0, 1, 2, 3, 4], [243, 247, 249, 250, 251]], np.uint8)
    quantized = {**each, "out_dtype": element_type("uint8")}
    net.expect("to channels", net.add(qnn.QuantizeOp, [net.argument(rows)], quantized), codes)
    net.expect("of channels", net.add(qnn.DequantizeOp, [net.argument(codes)], each), rows)
    scalar: dict[str, Attribute] = {"scale": real(0.5), "zero_point": number(-1)}
    net.expect("a scalar", net.add(qnn.DequantizeOp, [net.argument(np.array(-128, np.int8))], scalar), -63.5)
    wide: dict[str, Attribute] = {"scale": real(0.0057968604), "zero_point": number(0)}
    sums = np.array([113, 29, -1052], np.int32)
    answer = np.array([0.6550452, 0.16810896, -6.098297], np.float32)
    net.expect("of int32", net.add(qnn.DequantizeOp, [net.argument(sums)], wide), answer)
    net.finish()


def test_d1_dense() -> None:
    net = Answers()
    data = np.array([[1, 3, 5, 7, 9, 11, 13, 15, -19, -21], [1, 3, 5, 7, 9, 11, 13, -17, 17, -21]], np.int8)
    kernel = np.broadcast_to(np.arange(1, 20, 2, dtype=np.int8), (3, 10)).copy()
    properties: dict[str, Attribute] = {
        "input_scale": real(0.5),
        "input_zero_point": number(-1),
        "kernel_scale": real(0.5),
        "kernel_zero_point": number(-1),
    }
    sums = net.add(qnn.DenseOp, [net.argument(data), net.constant(kernel)], properties)
    net.expect("sums", sums, [92] * 3 + [228] * 3)
    biased = net.add(relay.BiasAddOp, [sums, net.constant(np.array([4, 8, 12], np.int32))], {})
    net.expect("bias", biased, [96, 100, 104, 232, 236, 240])
    net.expect("codes", requantize(net, biased, (0.25, 1.0), (0, -1)), [23, 24, 25, 57, 58, 59])
    channels = [0.5 * 0.5, 0.5 * 0.3, 0.5 * 0.4]
    net.expect("channels", requantize(net, biased, (channels, 1.0), (0, -1)), [23, 14, 20, 57, 34, 47])
    net.finish()


def test_b1_batch_matmul() -> None:
    net = Answers()
    x = np.array([1, 3, 5, 7, 9, 11, 13, 15, -19, -21, 1, 3, 5, 7, 9, 11, 13, -17, 17, -21], np.int8).reshape(1, 4, 5)
    y = np.array([1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 1, 3, 5, 7, 9], np.int8).reshape(1, 3, 5)
    first, second = net.argument(x), net.argument(y)

    def batch_matmul(zero_points: tuple[int, int]) -> SSAValue:
        names = ("input_zero_point", "kernel_zero_point")
        given: dict[str, Attribute] = {name: number(zero) for name, zero in zip(names, zero_points, strict=True)}
        return net.add(relay.BatchMatmulOp, [first, second], {"out_dtype": i32, **given})

    plain = [165, 415, 165, -197, -207, -197, 165, 415, 165, -105, -75, -105]
    net.expect("plain", batch_matmul((0, 0)), plain)
    x64, y64 = x[0].astype(np.int64), y[0].astype(np.int64)
    for zero_points, answer in (
        ((0, -123), [3240, 3490, 3240, -320, -330, -320]),
        ((-123, 0), [3240, 9640, 3240, 2878, 9018]),
        ((-123, -123), [81960, 88360, 81960]),
    ):
        whole = ((x64 - zero_points[0]) @ (y64 - zero_points[1]).T).reshape(-1)
        assert whole[: len(answer)].tolist() == answer
        net.expect(f"zero points {zero_points}", batch_matmul(zero_points), whole)
    codes = requantize(net, net.results["plain"], (0.25, 2.0), (0, -1))
    net.expect("codes", codes, [20, 51, 20, -26, -27, -26, 20, 51, 20, -14, -10, -14])
    net.finish()


def convolve(
    net: Net, data: Array, kernel: Array, zero_points: tuple[int, int], strides: tuple[int, int] = (1, 1)
) -> SSAValue:
    """Of images and kernels with the channels first, as TVM's tests write them."""
    properties: dict[str, Attribute] = {
        "strides": ints(strides),
        "padding": ints([0, 0, 0, 0]),
        "dilation": ints([1, 1]),
        "groups": IntegerAttr(1, i64),
        "kernel_layout": StringAttr("OHWI"),
        "input_scale": real(0.5),
        "input_zero_point": number(zero_points[0]),
        "kernel_scale": real(0.5),
        "kernel_zero_point": number(zero_points[1]),
    }
    image = net.argument(np.ascontiguousarray(data.transpose(0, 2, 3, 1)))
    weights = net.constant(np.ascontiguousarray(kernel.transpose(0, 2, 3, 1)))
    sums = net.add(qnn.Conv2dOp, [image, weights], properties)
    return net.add(relay.TransposeOp, [sums], {"axes": ints([0, 3, 1, 2])})


def test_c1_to_c3_convolutions() -> None:
    net = Answers()
    data = (np.array([1, 1, 1, 1, 2, 2, 2, 2, 1, 2, 3, 4, 1, 2, 3, 4]) + 128).astype(np.uint8).reshape(2, 1, 2, 4)
    kernel = (np.array([1, 2, 3, 4, -1, 1, -1, 1, -1, -1, 1, 1]) + 128).astype(np.uint8).reshape(3, 1, 2, 2)
    answer = [17, 17, 0, 0, 2, 2, 16, 36, 2, 2, 0, 0]
    net.expect("C1", convolve(net, data, kernel, (128, 128), (2, 2)), answer)
    row = [133, 131, 129, 125, 123, 121, 135, 133, 131, 123, 121, 119, 137, 135, 133, 121, 119, 117]
    data, kernel = np.array(row, np.uint8).reshape(1, 1, 3, 6), np.array([129, 131, 133, 135], np.uint8)
    net.expect("C2", convolve(net, data, kernel.reshape(1, 1, 2, 2), (127, 127), (1, 3)), [124, -92, 164, -132])
    kernel = net.rng.integers(0, 256, (1001, 1024, 1, 1)).astype(np.uint8)
    net.expect("C3", convolve(net, np.full((1, 1024, 1, 1), 127, np.uint8), kernel, (127, 127)), [0] * 1001)
    net.finish()


@pytest.mark.parametrize("depthwise", [pytest.param(False, marks=pytest.mark.ci), True])
def test_c4_zero_points_are_subtracted(depthwise: bool) -> None:
    """Zero points, types, padding, dilation and strides against sums written out here."""
    net = Answers()
    cases = list(product(("uint8", "int8"), (0, 5), (0, 8), ((0, 0, 0, 0), (1, 0, 2, 1)), ((1, 1), (2, 1), (1, 2))))
    for dtype, data_zero, kernel_zero, padding, (stride, dilation) in cases[depthwise::4]:
        side, multiplier_ = (1 if data_zero and not padding[0] else 2), 1 + (kernel_zero == 0)
        data = net.rng.integers(0, 100, (1, 6, 5, 3)).astype(dtype)
        kernel = net.rng.integers(0, 100, (side, side, 3, multiplier_) if depthwise else (4, side, side, 3))
        properties: dict[str, Attribute] = {
            "strides": ints([stride, stride]),
            "padding": ints(padding),
            "dilation": ints([dilation, dilation]),
            "groups": IntegerAttr(3 if depthwise else 1, i64),
            "kernel_layout": StringAttr("HWOI" if depthwise else "OHWI"),
            "input_scale": real(0.5),
            "input_zero_point": number(data_zero),
            "kernel_scale": real(0.5),
            "kernel_zero_point": number(kernel_zero),
        }
        sums = net.add(qnn.Conv2dOp, [net.argument(data), net.constant(kernel.astype(dtype))], properties)
        top, left, bottom, right = padding
        image = np.pad(data.astype(np.int64) - data_zero, ((0, 0), (top, bottom), (left, right), (0, 0)))
        answer = direct(image, kernel.astype(np.int64) - kernel_zero, stride, dilation, depthwise)
        net.expect(f"{dtype} {data_zero} {kernel_zero} {padding} {stride} {dilation}", sums, answer)
    net.finish()


def direct(image: Array, kernel: Array, stride: int, dilation: int, depthwise: bool) -> Array:
    """A convolution as it is written in books."""
    side = kernel.shape[0] if depthwise else kernel.shape[1]
    span = (side - 1) * dilation + 1
    rows, columns = ((size - span) // stride + 1 for size in image.shape[1:3])
    out = np.zeros((1, rows, columns, kernel.shape[2] * kernel.shape[3] if depthwise else kernel.shape[0]), np.int64)
    for y, x, ky, kx in product(range(rows), range(columns), range(side), range(side)):
        cell = image[0, y * stride + ky * dilation, x * stride + kx * dilation]
        taps = (cell[:, None] * kernel[ky, kx]).reshape(-1) if depthwise else kernel[:, ky, kx] @ cell
        out[0, y, x] += taps
    return out


def add(
    net: Net, numbers: tuple[Sequence[int], Sequence[int]], scales: Sequence[float], zero_points: Sequence[int]
) -> SSAValue:
    """Both sides requantized to the result's scale, and added."""
    each = [multiplier([scale], scales[2]) for scale in scales[:2]]
    properties: dict[str, Attribute] = {
        "rounding": StringAttr("upward"),
        "left_shift": number(0),
        **{f"lhs_{name}": attr for name, attr in each[0].items()},
        **{f"rhs_{name}": attr for name, attr in each[1].items()},
        **multiplier([1.0], 1.0),
    }
    for side, scale, zero_point in zip(("lhs", "rhs", "output"), scales, zero_points, strict=True):
        properties |= {f"{side}_scale": real(scale), f"{side}_zero_point": number(zero_point)}
    return net.add(qnn.AddOp, [net.argument(np.array(side, np.uint8)) for side in numbers], properties)


def test_a1_to_a3_sums() -> None:
    net = Answers()
    same, zeros = ([0.00784314] * 3, [127] * 3), [0, 0, 0]
    other = ([0.0156863, 0.0117647, 0.0235294], [127, 85, 128])
    for name, (scales, zero_points), lhs, rhs, answer in (
        ("A1", same, (140, 153, 165, 178), (204, 178, 165, 140), (217, 204, 203, 191)),
        ("A1 b", same, (25, 153, 178, 216), (204, 178, 191, 25), (102, 204, 242, 114)),
        ("A1 c", same, (25, 153, 216, 165), (204, 178, 25, 191), (102, 204, 114, 229)),
        ("A2", other, (76, 140, 153, 172), (136, 119, 128, 17), (120, 154, 167, 124)),
        ("A2 b", other, (133, 140, 146, 153), (136, 119, 111, 94), (158, 154, 154, 150)),
        ("A2 c", other, (76, 140, 172, 146), (136, 119, 17, 128), (120, 154, 124, 163)),
        ("A3", ([0.125] * 3, zeros), (255, 1, 1, 0), (255, 255, 128, 0), (255, 255, 129, 0)),
        ("A3 b", ([0.125, 0.125, 0.25], zeros), (255, 1, 1, 0), (255, 255, 127, 0), (255, 129, 65, 0)),
        ("A3 c", ([0.5, 0.25, 0.125], zeros), (255, 0, 1, 0), (0, 128, 64, 0), (255, 255, 132, 0)),
    ):
        net.expect(name, add(net, (lhs, rhs), scales, zero_points), answer)
    net.finish()
