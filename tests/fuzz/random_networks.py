"""Random `.tflite` networks: layers on images of 1 to 65 channels, one after another, with residuals, joins of other
scales, dilation, and codes of 8 and 16 bits, floats, and floats quantised at run time. The file stores one batch and
size; `batch` and `shapes` ask for others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.random_tflite import CODES, Graph, Value, stretched_scale
from tests.numeric.litert_cases import activation, dims, integers, like, pick, scale, windowed, zero_point
from tests.numeric.litert_models import Array, T, random_numbers
from tests.numeric.litert_quantised_cases import bias_of, bias_type, kernel_of, options_of

CHANNELS = (1, 3, 7, 8, 16, 17, 32, 65)
TERMS = {"int8": 74.0, "uint8": 74.0, "int16": 18900.0}
"""The standard deviation of codes that are equally likely."""
Layer = Callable[["Network", Value], None]


class Network(Graph):
    """A model that grows by layers."""

    def graft(self, step: int) -> None:
        if not self.values:
            rng, self.rng = self.rng, np.random.default_rng([self.seed, 1 << 20])
            self.begin()
            self.rng = rng
        images = [value for value in self.values if len(value.spec.value) == 4]
        x = images[-1 - int(self.rng.integers(min(len(images), 4)))] if self.rng.random() < 0.4 else images[-1]
        LAYERS[int(self.rng.integers(len(LAYERS)))](self, x)

    def begin(self) -> None:
        """The inputs: images of one size."""
        rng, size = self.rng, dims(self.rng, 2, 3, 15)
        dtype = pick(rng, "int8", "int8", "uint8", "int16", "float32")
        for _ in range(int(rng.integers(1, 3))):
            spec = self.coded([1, *size, int(rng.choice(CHANNELS[:6]))], dtype)
            self.values.append(Value(self.tensor(spec), spec, True))
            self.graph.inputs.append(self.values[-1].index)
            self.read.add(self.values[-1].index)
            self.feeds.append(spec)

    def resize(self, rng: np.random.Generator) -> dict[str, Any]:
        """Numbers of another batch, or images of other sizes, from now on; the importer's options for that."""
        size = None if rng.integers(2) else [int(n) for n in rng.integers(3, 15, 2)]
        batch = int(rng.integers(2, 4)) if size is None or rng.integers(2) else 1
        specs = [f for f in self.feeds if isinstance(f, T)]
        resized = [replace(f, value=[batch, *(size or f.value[1:3]), f.value[3]]) for f in specs]
        self.feeds = [*resized]
        if size is None:
            return {"batch": batch}
        names = [self.graph.tensors[index].name.decode() for index in self.graph.inputs]
        return {"shapes": {name: list(f.value) for name, f in zip(names, resized, strict=True)}}

    def numbers(self, rng: np.random.Generator) -> list[Array]:
        """Floats near 1, so that few are cut off."""
        return [array / np.float32(10) if array.dtype == np.float32 else array for array in super().numbers(rng)]

    def coded(self, shape: list[int], dtype: str, natural: float = 0.0, kind: str = "") -> T:
        """A tensor of codes whose scale is near the natural one, or any; of floats one without."""
        if dtype not in CODES:
            return T(shape, dtype)
        rng = self.rng
        step = natural * scale(rng, 0.3, 3) if natural else scale(rng, *((1e-5, 1e-3) if dtype == "int16" else ()))
        made = T(shape, dtype, float(np.float32(step)), zero_point(rng, dtype))
        return stretched_scale(made, rng, kind) if self.stretched and natural and rng.random() < 0.3 else made

    def next(
        self, kind: str, inputs: Sequence[Value | T | None], out: T, options: str = "", version: int = 1, **values: Any
    ) -> Value:
        return self.one(kind, inputs, out, options, values, version)

    def partner(self, x: Value) -> Value:
        """Another value of this shape and type, or the same."""
        found = [v for v in self.values if v.spec.value == x.spec.value and v.spec.dtype == x.spec.dtype]
        return found[int(self.rng.integers(len(found)))]

    def requantized(self, x: Value, spec: T) -> Value:
        """The value, as codes of this type, scale and zero point."""
        wanted = replace(spec, value=x.spec.value)
        return x if x.spec == wanted else self.next("QUANTIZE", [x], wanted, "QuantizeOptions")


def step_of(spec: T) -> float:
    return spec.scale if isinstance(spec.scale, float) else 1.0


def windows(net: Network, x: Value, kernel: list[int], dilated: bool) -> tuple[dict[str, int], list[int]]:
    """Strides, padding and dilation, and the size of the result."""
    rng, size = net.rng, x.spec.value[1:3]
    stride, dilation = [1, 1], [1, 1]
    if rng.random() < 0.3:
        stride = dims(rng, 2, 1, 4)
    elif dilated and rng.random() < 0.4:
        dilation = dims(rng, 2, 1, 4)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = int(rng.integers(2)) if all(e <= s for e, s in zip(extents, size, strict=True)) else 0
    result = [windowed(int(s), k, t, d, padding) for s, k, t, d in zip(size, kernel, stride, dilation, strict=True)]
    values = {"padding": padding, "strideH": stride[0], "strideW": stride[1]}
    return values | ({"dilationHFactor": dilation[0], "dilationWFactor": dilation[1]} if dilated else {}), result


def at_limits(net: Network, kernel: T, bias: T | None) -> None:
    """Weights of the ends only, and a large bias, at times."""
    if net.stretched and net.rng.random() < 0.3 and isinstance(kernel.value, np.ndarray):
        low, high = (0, 255) if kernel.dtype == "uint8" else (-127, 127)
        kernel.value = np.where(kernel.value > np.median(kernel.value), high, low).astype(kernel.dtype)
    if net.stretched and net.rng.random() < 0.2 and bias is not None and isinstance(bias.value, np.ndarray):
        bias.value = np.where(bias.value > 0, 1 << 29, -(1 << 29)).astype(bias.value.dtype)


def product(
    net: Network, x: Value, shape: list[int], out: int, terms: int, axis: int, narrow: bool
) -> tuple[list[T | None], float]:
    """Weights and a bias, and the natural scale of the sums. `narrow`: floats by weights of int8."""
    rng, dtype = net.rng, x.spec.dtype
    if dtype == "float32":
        weights = T((rng.standard_normal(shape) / math.sqrt(terms)).astype(np.float32), dtype)
        if narrow:
            weights = kernel_of(rng, shape, "int8", out, axis)
        return [weights, T(rng.standard_normal(out).astype(np.float32), dtype) if rng.integers(3) else None], 1.0
    weights = kernel_of(rng, shape, dtype, out, axis)
    bias = bias_of(rng, out, x.spec, weights, axis == 3) if rng.integers(4) or axis == 3 else None
    at_limits(net, weights, bias)
    mean = float(np.exp(np.mean(np.log(np.atleast_1d(np.asarray(weights.scale, np.float64))))))
    return [weights, bias], step_of(x.spec) * mean * TERMS[dtype] * 74 * math.sqrt(terms) / (TERMS[dtype] / 2)


def convolution(net: Network, x: Value, narrow: bool = False) -> None:
    rng, channels, kernel = net.rng, int(x.spec.value[3]), dims(net.rng, 2, 1, 5) if net.rng.integers(2) else [1, 1]
    out = int(rng.choice(CHANNELS))
    values, size = windows(net, x, kernel, True)
    given, natural = product(net, x, [out, *kernel, channels], out, math.prod(kernel) * channels, 0, narrow)
    types = bias_type(given[1]) if x.spec.dtype == "int16" else {}
    result = net.coded([x.spec.value[0], *size, out], x.spec.dtype, natural)
    version = 6 if types else 3
    net.next("CONV_2D", [x, *given], result, "Conv2DOptions", version, **values, **activation(rng), **types)


def depthwise(net: Network, x: Value) -> None:
    rng, channels, kernel, times = (
        net.rng,
        int(x.spec.value[3]),
        dims(net.rng, 2, 1, 5),
        int(net.rng.choice([1, 1, 2, 3])),
    )
    values, size = windows(net, x, kernel, True)
    given, natural = product(net, x, [1, *kernel, channels * times], channels * times, math.prod(kernel), 3, False)
    result = net.coded([x.spec.value[0], *size, channels * times], x.spec.dtype, natural)
    values |= {"depthMultiplier": times, **activation(rng)}
    net.next("DEPTHWISE_CONV_2D", [x, *given], result, "DepthwiseConv2DOptions", 5, **values)


def transposed(net: Network, x: Value) -> None:
    rng, (batch, height, width, channels) = net.rng, [int(d) for d in x.spec.value]
    if height * width > 200:
        return
    kernel, stride, out = dims(rng, 2, 1, 4), dims(rng, 2, 1, 3), int(rng.choice(CHANNELS[:6]))
    given, natural = product(net, x, [out, *kernel, channels], out, math.prod(kernel) * channels, 0, False)
    shape = [batch, height * stride[0], width * stride[1], out]
    values = {"padding": 0, "strideH": stride[0], "strideW": stride[1], **activation(rng)}
    values |= bias_type(given[1]) if x.spec.dtype == "int16" else {}
    inputs = [integers(*shape), given[0], x, *given[1:]]
    result = net.coded(shape, x.spec.dtype, natural)
    net.next("TRANSPOSE_CONV", inputs, result, "TransposeConvOptions", 3, **values)


def flat(net: Network, x: Value) -> None:
    """A mean over the image, then FULLY_CONNECTED, perhaps SOFTMAX."""
    rng, dtype = net.rng, x.spec.dtype
    average(net, x)
    x = net.values[-1]
    channels, units = int(x.spec.value[3]), int(rng.choice(CHANNELS))
    given, natural = product(net, x, [units, channels], units, channels, 0, False)
    types = bias_type(given[1]) if dtype == "int16" else {}
    result = net.coded([x.spec.value[0], units], dtype, natural, "FULLY_CONNECTED")
    made = net.next("FULLY_CONNECTED", [x, *given], result, "FullyConnectedOptions", 7, **activation(rng), **types)
    if rng.integers(2):
        shares = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}.get(dtype, (None, 0))
        net.next("SOFTMAX", [made], T(made.spec.value, dtype, *shares), "SoftmaxOptions", 3, beta=1.0)


def average(net: Network, x: Value) -> None:
    shape = [x.spec.value[0], 1, 1, x.spec.value[3]]
    natural = step_of(x.spec) / 2
    net.next("MEAN", [x, integers(1, 2)], net.coded(shape, x.spec.dtype, natural), "ReducerOptions", 3, keepDims=True)


def residual(net: Network, x: Value) -> None:
    """A sum, difference or product with a value of the same shape, of one number for each channel, or of one."""
    rng, dtype = net.rng, x.spec.dtype
    kind, (batch, _, _, channels) = pick(rng, "ADD", "ADD", "SUB", "MUL"), x.spec.value
    other: Value | T = net.partner(x)
    if rng.random() < 0.3:
        pooled = [v for v in net.values if v.spec.value == [batch, 1, 1, channels] and v.spec.dtype == dtype]
        shape = [1, 1, 1, int(channels) if rng.integers(2) else 1]
        spec, numbers = net.coded(shape, dtype), random_numbers(rng, shape, dtype)
        constant = replace(spec, value=numbers / np.float32(10) if dtype == "float32" else numbers)
        other = pooled[-1] if pooled and rng.integers(2) else constant
    steps = [step_of(x.spec), step_of(other.spec if isinstance(other, Value) else other)]
    natural = math.prod(steps) * TERMS.get(dtype, 1) if kind == "MUL" else 1.4 * max(steps)
    values: dict[str, Any] = activation(rng) | ({} if kind == "MUL" else {"potScaleInt16": False})
    inputs = [x, other] if rng.integers(2) else [other, x]
    net.next(kind, inputs, net.coded([*x.spec.value], dtype, natural), options_of(kind), 2, **values)


def joined(net: Network, x: Value) -> None:
    """With another along the channels: LiteRT rescales uint8 in the operator, other codes before it."""
    rng, size, dtype = net.rng, x.spec.value[:3], x.spec.dtype
    found = [v for v in net.values if v.spec.value[:3] == size and len(v.spec.value) == 4 and v.spec.dtype == dtype]
    parts = [x, *(found[int(rng.integers(len(found)))] for _ in range(int(rng.integers(1, 3))))]
    channels = sum(int(v.spec.value[3]) for v in parts)
    if channels > 140:
        return
    spec = net.coded([*size, channels], dtype, 1.2 * max(step_of(v.spec) for v in parts))
    if dtype != "uint8" or rng.integers(2):
        parts = [net.requantized(v, spec) if dtype != "float32" else v for v in parts]
    net.next("CONCATENATION", [*parts], spec, "ConcatenationOptions", 3, axis=int(rng.choice([3, -1])))


def pool(net: Network, x: Value) -> None:
    kind, kernel = pick(net.rng, "AVERAGE_POOL_2D", "MAX_POOL_2D"), dims(net.rng, 2, 1, 4)
    values, size = windows(net, x, kernel, False)
    values |= {"filterHeight": kernel[0], "filterWidth": kernel[1], **activation(net.rng)}
    net.next(kind, [x], like(x.spec, [x.spec.value[0], *size, x.spec.value[3]]), "Pool2DOptions", 3, **values)


def function(net: Network, x: Value) -> None:
    rng, dtype, shape = net.rng, x.spec.dtype, x.spec.value
    kinds = ["LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU", *(["HARD_SWISH"] if dtype != "int16" else [])]
    kind, step = pick(rng, *kinds), step_of(x.spec)
    wide = dtype == "int16" and step >= 16 / 3 and kind in ("LOGISTIC", "TANH")
    kind = "RELU" if wide or kind == "RELU6" and step < 1e-6 else kind
    out = net.coded([*shape], dtype, step, kind)
    ends = {"LOGISTIC": (1 / 256, -128, 0), "TANH": (1 / 128, 0, 128)}
    if kind in ends and dtype in CODES:
        found, signed, unsigned = ends[kind]
        out = T(
            shape, dtype, 1 / 32768 if dtype == "int16" else found, {"int8": signed, "uint8": unsigned}.get(dtype, 0)
        )
    options = {"LEAKY_RELU": "LeakyReluOptions", "HARD_SWISH": "HardSwishOptions"}.get(kind, "")
    values = {"alpha": float(np.float32(rng.uniform(-0.5, 1.5)))} if kind == "LEAKY_RELU" else {}
    version = {"LEAKY_RELU": 2, "HARD_SWISH": 1}.get(kind, 3 if dtype == "int16" else 2)
    net.next(kind, [x], out, options, version, **values)


def slopes(net: Network, x: Value) -> None:
    """PRELU."""
    if x.spec.dtype == "int16":
        return function(net, x)
    shape = [1, 1, int(x.spec.value[3])]
    alpha = net.coded(shape, x.spec.dtype)
    alpha.value = random_numbers(net.rng, shape, alpha.dtype)
    if alpha.dtype == "float32":
        alpha.value = alpha.value / np.float32(20)
    natural = step_of(x.spec) * step_of(alpha) * 74
    net.next("PRELU", [x, alpha], net.coded([*x.spec.value], x.spec.dtype, max(natural, step_of(x.spec))))
    return None


def padded(net: Network, x: Value) -> None:
    widths = np.zeros((4, 2), np.int32)
    widths[1:3] = net.rng.integers(0, 3, (2, 2))
    size = [int(d + w.sum()) for d, w in zip(x.spec.value, widths, strict=True)]
    net.next("PAD", [x, T(widths, "int32")], like(x.spec, size), "PadOptions", 4 if x.spec.dtype == "int16" else 2)


def resized(net: Network, x: Value) -> None:
    rng, (batch, height, width, channels) = net.rng, [int(d) for d in x.spec.value]
    size = [min(height * 2, 20), min(width * 2, 20)] if rng.integers(2) else dims(rng, 2, 1, 12)
    kind, align = pick(rng, "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), bool(rng.integers(2))
    values = {"alignCorners": align, "halfPixelCenters": not align and bool(rng.integers(2))}
    net.next(kind, [x, integers(*size)], like(x.spec, [batch, *size, channels]), options_of(kind), 3, **values)


def cut(net: Network, x: Value) -> None:
    """Rows and columns, to the end."""
    rng, size = net.rng, [int(d) for d in x.spec.value]
    begin, strides = [0, 0, 0, 0], [1, 1, 1, 1]
    for axis in (1, 2):
        begin[axis], strides[axis] = int(rng.integers(min(size[axis], 3))), int(rng.integers(1, 3))
        size[axis] = -(-(size[axis] - begin[axis]) // strides[axis])
    bounds = [integers(*each) for each in (begin, [0] * 4, strides)]
    net.next("STRIDED_SLICE", [x, *bounds], like(x.spec, size), "StridedSliceOptions", 4, beginMask=9, endMask=15)


def parted(net: Network, x: Value) -> None:
    """SPLIT_V of the channels: two results."""
    channels = int(x.spec.value[3])
    if channels < 2:
        return
    first = int(net.rng.integers(1, channels))
    outputs = [like(x.spec, [*x.spec.value[:3], n]) for n in (first, channels - first)]
    inputs = [x, integers(first, channels - first), integers([3])]
    net.several("SPLIT_V", inputs, outputs, "SplitVOptions", {"numSplits": 2}, 2)


def moved(net: Network, x: Value) -> None:
    """TRANSPOSE of rows and columns, or blocks of pixels as channels, or back."""
    batch, height, width, channels = (int(d) for d in x.spec.value)
    if channels % 4 == 0 and net.rng.integers(2):
        shape = [batch, 2 * height, 2 * width, channels // 4]
        net.next("DEPTH_TO_SPACE", [x], like(x.spec, shape), "DepthToSpaceOptions", blockSize=2)
    elif height % 2 == 0 and width % 2 == 0 and channels < 17:
        shape = [batch, height // 2, width // 2, channels * 4]
        net.next("SPACE_TO_DEPTH", [x], like(x.spec, shape), "SpaceToDepthOptions", 2, blockSize=2)
    else:
        shape = [batch, width, height, channels]
        net.next("TRANSPOSE", [x, integers(0, 2, 1, 3)], like(x.spec, shape), "TransposeOptions", 4)


def attention(net: Network, x: Value) -> None:
    """Products of rows with those of another."""
    other, dtype = net.partner(x), x.spec.dtype
    if dtype in ("uint8", "float32"):
        return residual(net, x)
    shape = [*x.spec.value[:3], x.spec.value[2]]
    terms = TERMS.get(dtype, 1) * 2 * math.sqrt(x.spec.value[3])
    result = net.coded(shape, dtype, step_of(x.spec) * step_of(other.spec) * terms)
    net.next("BATCH_MATMUL", [x, other], result, "BatchMatMulOptions", 3, adjY=True)
    return None


def retyped(net: Network, x: Value) -> None:
    """Codes of another type or scale; of exact floats, too."""
    rng, dtype = net.rng, x.spec.dtype
    target = pick(rng, *(each for each in CODES if each != dtype or rng.integers(2)), "int8")
    if dtype == "float32" and not x.exact:
        return function(net, x)
    if dtype == "float32":
        net.next("QUANTIZE", [x], net.coded([*x.spec.value], target, 10 / TERMS[target], "QUANTIZE"), "QuantizeOptions")
    else:
        natural = step_of(x.spec) * TERMS[dtype] / TERMS[target]
        net.next("QUANTIZE", [x], net.coded([*x.spec.value], target, natural), "QuantizeOptions", 3)
    return None


def hybrid(net: Network, x: Value) -> None:
    """Floats as they came, by weights of int8; from codes, of numbers near 1, DEQUANTIZE makes them."""
    if x.spec.dtype != "float32":
        if step_of(x.spec) * TERMS[x.spec.dtype] > 4:
            x = net.requantized(x, net.coded([*x.spec.value], x.spec.dtype, 2 / TERMS[x.spec.dtype]))
        x = net.next("DEQUANTIZE", [x], T(x.spec.value, "float32"), version=3)
    if x.exact:
        convolution(net, x, narrow=True)


LAYERS: list[Layer] = [
    *[convolution] * 5, *[depthwise] * 3, *[residual] * 4, *[joined] * 2, *[pool] * 2, *[function] * 2,
    transposed, flat, average, slopes, padded, resized, cut, parted, moved, attention, retyped, hybrid,
]  # fmt: skip
