"""Small models of one operator that `from_tflite` refuses, by words of the error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.numeric.litert_models import Case, T, flexbuffer
from tests.numeric.litert_shape_cases import CASES as RANDOM


def codes(*shape: int, scale: float = 0.5, dtype: str = "int8") -> T:
    return T(shape, dtype, scale, 3 if dtype == "int8" else 0)


def f32(*shape: int) -> T:
    return T(shape, "float32")


def ints(*values: int, dtype: str = "int32") -> T:
    return T(np.array(values), dtype)


def weights(*shape: int, dtype: str = "int8", scale: float | Sequence[float] = 0.1, axis: int = 0) -> T:
    return T(np.ones(shape), dtype, scale if dtype == "int8" else None, axis=axis)


def conv(inputs: Sequence[T], out: T, **values: Any) -> Case:
    return Case("CONV_2D", inputs, [out], "Conv2DOptions", {"padding": 1, "strideH": 1, "strideW": 1} | values)


def depthwise(inputs: Sequence[T]) -> Case:
    values = {"padding": 1, "strideH": 1, "strideW": 1, "depthMultiplier": 1}
    return Case("DEPTHWISE_CONV_2D", inputs, [codes(1, 2, 2, 2)], "DepthwiseConv2DOptions", values)


def dense(inputs: Sequence[T | None], out: T, **values: Any) -> Case:
    return Case("FULLY_CONNECTED", inputs, [out], "FullyConnectedOptions", values)


def in_blocks(**changed: T | int) -> Case:
    """A product by weights of 4 bits in blocks, with other fields that describe these."""
    blocks: dict[str, T | int] = {"scales": T(np.ones((2, 2)), "float16"), "blockSize": 32, **changed}
    return dense([f32(1, 64), T(np.ones((2, 64)), "int4", blocks=blocks)], f32(1, 2))


def transposed(kernel: T, data: T, out: T) -> Case:
    values = {"padding": 1, "strideH": 1, "strideW": 1}
    return Case("TRANSPOSE_CONV", [ints(1, 4, 4, 2), kernel, data], [out], "TransposeConvOptions", values)


def slice_(begin: Sequence[int], sizes: Sequence[int]) -> Case:
    return Case("SLICE", [codes(4, 4), ints(*begin), ints(*sizes)], [codes(4, 4)], "SliceOptions")


def strided(begin: Sequence[int], strides: Sequence[int], **values: Any) -> Case:
    inputs = [codes(4, 4), ints(*begin), ints(4, 4), ints(*strides)]
    return Case("STRIDED_SLICE", inputs, [codes(4, 4)], "StridedSliceOptions", values)


def recurrent(kind: str, changed: Mapping[int, T | None] = {}, **values: Any) -> Case:
    """A layer that imports, with other inputs or options."""
    case = RANDOM[kind](np.random.default_rng(0), kind)
    case.inputs = [changed.get(i, tensor) for i, tensor in enumerate(case.inputs)]
    case.values = {**case.values, **values}
    return case


def lstm(changed: Mapping[int, T | None] = {}, **values: Any) -> Case:
    return recurrent("UNIDIRECTIONAL_SEQUENCE_LSTM", changed, **values)


def without_intermediates() -> Case:
    case = lstm()
    case.intermediates = ()
    return case


def other_hidden_zero_point() -> Case:
    case = lstm()
    last = case.intermediates[4]
    case.intermediates = [*case.intermediates[:4], T(last.value, last.dtype, last.scale, last.zero_point + 1)]
    return case


def one(kind: str, data: T, out: T, options: str = "", **values: Any) -> Case:
    return Case(kind, [data], [out], options, values)


def two(kind: str, data: T, other: T, out: T, options: str = "", **values: Any) -> Case:
    return Case(kind, [data, other], [out], options, values)


def suppression(*changes: T, at: int = 0, kind: str = "NON_MAX_SUPPRESSION_V5") -> Case:
    """Non-maximum suppression with one other input."""
    given = [f32(5, 4), f32(5), T(np.asarray(2), "int32"), *(T(np.asarray(n), "float32") for n in (0.5, 0.0, 0.0))]
    given[at : at + len(changes)] = changes
    return Case(kind, given, [T([2], "int32"), f32(2), T([], "int32")], "NonMaxSuppressionV5Options")


def detections(options: bytes | None = None, **given: T) -> Case:
    """TFLite_Detection_PostProcess of five boxes and three classes."""
    numbers = {"max_detections": 1, "max_classes_per_detection": 1, "num_classes": 3, "nms_iou_threshold": 0.5}
    scales = {"y_scale": 1.0, "x_scale": 1.0, "h_scale": 1.0, "w_scale": 1.0}
    tensors = {"boxes": f32(1, 5, 4), "scores": f32(1, 5, 3), "anchors": T(np.ones((5, 4)), "float32")} | given
    out = [f32(1, 1, 4), f32(1, 1), f32(1, 1), f32(1)]
    written = flexbuffer(**numbers, **scales) if options is None else options
    code = "TFLite_Detection_PostProcess"
    return Case("CUSTOM", [*tensors.values()], out, custom_code=code, custom_options=written)


IMAGE = codes(1, 4, 4, 2)
SIZE = ints(8, 8)

CASES: dict[str, Callable[[], Case]] = {
    "tensor 3 'in3' has 2 numbers, not 1": lambda: suppression(T(np.zeros(2), "float32"), at=3),
    "'out0': takes no INT8, FLOAT32": lambda: suppression(codes(5, 4)),
    "takes up to -1 boxes": lambda: suppression(T(np.asarray(-1), "int32"), at=2),
    "its sigma is 0.5: scores decay by overlaps; 0 is": lambda: suppression(T(np.asarray(0.5), "float32"), at=5),
    "its options cannot be read: it is no map": lambda: detections(b"\x01\x02\x03"),
    "takes 0 detections of 0 of 0 classes, 100 of each": lambda: detections(flexbuffer(y_scale=1.0)),
    "divides by a scale of 0": lambda: detections(
        flexbuffer(max_detections=1, max_classes_per_detection=1, num_classes=3)
    ),
    "has 2 batches of boxes and 1 of scores": lambda: detections(boxes=f32(2, 5, 4)),
    "takes 4 boxes of 4 numbers, scores of 5 and anchors of (5, 4)": lambda: detections(boxes=f32(1, 4, 4)),
    "has scores of 5 classes for 3": lambda: detections(scores=f32(1, 5, 5)),
    "takes no INT8; FLOAT32 and UINT8 are supported": lambda: detections(boxes=codes(1, 5, 4)),
    "has not the elements of": lambda: one("RESHAPE", f32(6), f32(4), "ReshapeOptions", newShape=[4]),
    "has no scale": lambda: one("SOFTMAX", codes(4), T([4], "int8"), "SoftmaxOptions", beta=1.0),
    "intermediate 4 is missing": without_intermediates,
    "the fused activation is RELU": lambda: Case(
        "CONCATENATION", [f32(2)], [f32(2)], "ConcatenationOptions", {"axis": 0, "fusedActivationFunction": 1}
    ),
    "is FLOAT32, not INT32 or INT64": lambda: two("EXPAND_DIMS", f32(4), f32(1), f32(1, 4), "ExpandDimsOptions"),
    "has 1025 numbers": lambda: two("TRANSPOSE", f32(4), T(np.zeros(1025), "int32"), f32(4)),
    "has 2 scales; only weights": lambda: one(
        "SOFTMAX", T([2], "int8", [0.5, 0.25]), codes(2, scale=1 / 256), "SoftmaxOptions", beta=1.0
    ),
    "leaves no code to the activation": lambda: one("RELU6", IMAGE, codes(1, 4, 4, 2, scale=1e-38)),
    "beta is 0.0": lambda: one("SOFTMAX", f32(4), f32(4), "SoftmaxOptions", beta=0.0),
    "operator 0 SOFTMAX 'out0': takes no INT8, UINT8": lambda: one(
        "SOFTMAX", codes(4), codes(4, dtype="uint8"), "SoftmaxOptions", beta=1.0
    ),
    "operator 0 TANH 'out0': takes no INT8, UINT8": lambda: one("TANH", codes(4), codes(4, dtype="uint8")),
    "operator 0 RELU 'out0': takes no INT8, UINT8": lambda: one("RELU", codes(4), codes(4, dtype="uint8")),
    "operator 0 SQRT 'out0': takes no INT32, INT32": lambda: one("SQRT", T([4], "int32"), T([4], "int32")),
    "with pot_scale_int16, scales of 2^-1 and 2^-1 for a result of 2^-2; one operand": lambda: Case(
        "ADD", [codes(4, dtype="int16")] * 2, [codes(4, dtype="int16", scale=0.25)], "AddOptions"
    ),
    "with pot_scale_int16, shapes (4,) and (2, 4) of two scales; make": lambda: Case(
        "ADD",
        [codes(4, dtype="int16"), codes(2, 4, dtype="int16", scale=0.25)],
        [codes(2, 4, dtype="int16")],
        "AddOptions",
    ),
    "has a scale of 0": lambda: two("ADD", codes(4), codes(4, scale=0.0), codes(4), "AddOptions"),
    "operator 0 MAXIMUM 'out0': takes no INT8, FLOAT32": lambda: two("MAXIMUM", codes(4), f32(4), codes(4)),
    "a kernel of shape (1, 3, 3, 3) does not fit an input of 2": lambda: depthwise([IMAGE, weights(1, 3, 3, 3)]),
    "the weights are SHUFFLED4x16INT8": lambda: dense([codes(1, 4), weights(2, 4)], codes(1, 2), weightsFormat=1),
    "the weights have no columns": lambda: dense([codes(1, 2, 2), weights(2, 0)], codes(1, 2)),
    "takes no INT8, UINT8, INT8": lambda: dense([codes(1, 4), T(np.ones((2, 4)), "uint8", 0.1)], codes(1, 2)),
    "'in1' is quantised in blocks of 30": lambda: in_blocks(blockSize=30),
    "scales of blocks are tensor 9, but there are 3": lambda: in_blocks(scales=9),
    "shape (2, 3), blocks take (2, 2)": lambda: in_blocks(scales=T(np.ones((2, 3)), "float16")),
    "'in1' has zero points": lambda: in_blocks(zeroPoints=T(np.ones((2, 2)), "int8")),
    "the weights have 2 scales along axis 1": lambda: dense(
        [f32(1, 2), weights(2, 2, scale=[0.1, 0.2], axis=1)], f32(1, 2)
    ),
    "operator 0 RESIZE_BILINEAR 'out0': takes no INT8, FLOAT32": lambda: two(
        "RESIZE_BILINEAR", IMAGE, SIZE, f32(1, 8, 8, 2), "ResizeBilinearOptions"
    ),
    "an empty image": lambda: two("RESIZE_BILINEAR", f32(1, 0, 4, 2), SIZE, f32(1, 8, 8, 2), "ResizeBilinearOptions"),
    "align_corners and half_pixel_centers exclude each other": lambda: Case(
        "RESIZE_BILINEAR",
        [IMAGE, SIZE],
        [codes(1, 8, 8, 2)],
        "ResizeBilinearOptions",
        {"alignCorners": True, "halfPixelCenters": True},
    ),
    "operator 0 MAX_POOL_2D 'out0': takes no INT8, FLOAT32": lambda: one("MAX_POOL_2D", IMAGE, f32(1, 4, 4, 2)),
    "tensor 1 'out0' has no scale": lambda: Case(
        "MAX_POOL_2D",
        [T([1, 4, 4, 2], "int8")],
        [T([1, 4, 4, 2], "int8")],
        "Pool2DOptions",
        {"padding": 1, "strideH": 1, "strideW": 1, "filterHeight": 1, "filterWidth": 1},
    ),
    "operator 0 QUANTIZE 'out0': takes no INT8, INT32": lambda: one("QUANTIZE", codes(4), T([4], "int32", 0.5)),
    "operator 0 DEQUANTIZE 'out0': takes no FLOAT32": lambda: one("DEQUANTIZE", f32(4), f32(4)),
    "the recurrent weights are diagonal": lambda: lstm(diagonalRecurrentTensors=True),
    "differ": other_hidden_zero_point,
    "takes no FLOAT32, INT32": lambda: lstm({12: T(np.zeros(2), "float32")}),
    "the gates' weights have shapes": lambda: lstm({2: weights(2, 9)}),
    "operator 0 SVDF 'out0': takes no": lambda: recurrent("SVDF", {1: T(np.ones((2, 2)), "uint8", 0.1)}),
    "SVDF 'out0': takes no INT8, INT16, INT32": lambda: recurrent("SVDF", {2: weights(2, 2)}),
    "the fused activation is NONE, not RELU": lambda: recurrent("SVDF", fusedActivationFunction=0),
    "operator 0 MEAN 'out0': takes no INT8, FLOAT32": lambda: two(
        "MEAN", codes(2, 2), ints(1), f32(2), "ReducerOptions"
    ),
    "REDUCE_MAX 'out0': takes no INT8, FLOAT32": lambda: two(
        "REDUCE_MAX", codes(2, 2), ints(1), f32(2), "ReducerOptions"
    ),
    "MEAN 'out0': nothing is reduced": lambda: two("MEAN", codes(0, 2), ints(0), codes(2), "ReducerOptions"),
    "nothing is reduced": lambda: two("SUM", f32(0, 2), ints(0), f32(2), "ReducerOptions"),
    "ARG_MAX 'out0': takes no INT8, FLOAT32": lambda: two("ARG_MAX", codes(2, 2), ints(1), f32(2), "ArgMaxOptions"),
    "an index along axes (0, 1)": lambda: two("ARG_MAX", codes(2, 2), ints(0, 1), T([2], "int32"), "ArgMaxOptions"),
    "cannot squeeze [1]": lambda: one("SQUEEZE", f32(1, 2), f32(2), "SqueezeOptions", squeezeDims=[1]),
    "has 2 axes": lambda: two("EXPAND_DIMS", f32(4), ints(0, 1), f32(1, 1, 4), "ExpandDimsOptions"),
    "is no filler for INT8": lambda: Case(
        "PADV2", [codes(2), T(np.zeros((1, 2)), "int32"), T(np.zeros(1), "float32")], [codes(2)], "PadV2Options"
    ),
    "CONCATENATION 'out0': takes no INT8, FLOAT32": lambda: one(
        "CONCATENATION", codes(2), f32(2), "ConcatenationOptions"
    ),
    "the scales and zero points of inputs and output differ": lambda: one(
        "CONCATENATION", codes(2), codes(2, scale=0.25), "ConcatenationOptions", axis=0
    ),
    "the inputs differ in shape or type": lambda: two(
        "PACK", f32(2), f32(3), f32(2, 2), "PackOptions", axis=0, valuesCount=2
    ),
    "has 1 outputs, but dimension 0": lambda: one("UNPACK", f32(2, 2), f32(2), "UnpackOptions", num=1, axis=0),
    "cannot split axes (0,) of shape (3,) in 2": lambda: Case(
        "SPLIT", [ints(0), f32(3)], [f32(1), f32(2)], "SplitOptions", {"numSplits": 2}
    ),
    "cannot split axes (0,) of shape (3,) in [1, 1]": lambda: Case(
        "SPLIT_V", [f32(3), ints(1, 1), ints(0)], [f32(1), f32(1)], "SplitVOptions", {"numSplits": 2}
    ),
    "1 begins and 2 sizes": lambda: slice_([0], [1, 1]),
    "is outside shape (4, 4)": lambda: slice_([0, 3], [1, 2]),
    "its ends are offsets from its begins; give": lambda: strided([0, 0], [1, 1], offset=True),
    "2 ellipses": lambda: strided([0, 0], [1, 1], ellipsisMask=3),
    "an ellipsis of no axis": lambda: Case(
        "STRIDED_SLICE",
        [codes(4, 4), ints(0, 0, 0, 0), ints(4, 4, 4, 4), ints(1, 1, 1, 1)],
        [codes(4, 4)],
        "StridedSliceOptions",
        {"ellipsisMask": 1, "newAxisMask": 8},
    ),
    "numbers for shape (4, 4)": lambda: strided([0], [1, 1]),
    "the stride of axis 1 is 0": lambda: strided([0, 0], [1, 0]),
    "index 7 is outside dimension 1": lambda: strided([0, 7], [1, 1], shrinkAxisMask=2),
    "batch dimensions": lambda: two("GATHER", f32(2, 2), ints(0), f32(1, 2), "GatherOptions", batchDims=1),
    "indices of UINT8": lambda: two("GATHER_ND", f32(2, 2), ints(0, dtype="uint8"), f32(2), "GatherNdOptions"),
    "GATHER 'out0': indices of UINT8": lambda: two(
        "GATHER", f32(2, 2), ints(0, dtype="uint8"), f32(2), "GatherOptions"
    ),
    "codes of 1 bits from": lambda: one("FAKE_QUANT", f32(4), f32(4), "FakeQuantOptions", max=1.0, numBits=1),
    "EMBEDDING_LOOKUP 'out0': takes no INT64": lambda: two(
        "EMBEDDING_LOOKUP", T([2], "int64"), weights(2, 2, dtype="float32"), f32(2, 2)
    ),
    "has no rows, or empty ones": lambda: two("EMBEDDING_LOOKUP", T([2], "int32"), weights(2, 0), f32(2, 0)),
    "'in1' has no blocks": lambda: dense(
        [f32(1, 0), T(np.ones((2, 0)), "int8", blocks={"scales": T(np.ones((2, 0)), "float16"), "blockSize": 32})],
        f32(1, 2),
    ),
    "has zero points, or scales along axis 1": lambda: two(
        "EMBEDDING_LOOKUP", T([2], "int32"), weights(2, 2, scale=[0.1, 0.2], axis=1), f32(2, 2)
    ),
    "with a zero point of 3 for rank 2": lambda: two(
        "BATCH_MATMUL", f32(2, 2), codes(2, 2), f32(2, 2), "BatchMatMulOptions"
    ),
    "shift": lambda: one("QUANTIZE", codes(4, scale=1e30), codes(4, scale=1e-30)),
    "16-bit codes with a zero point": lambda: one("EXP", T([4], "int16", 0.5, 1), T([4], "int16", 0.5, 1)),
    "is below 1/128 of the input's": lambda: one("HARD_SWISH", codes(4), codes(4, scale=1e-3)),
    "the output's scale and zero point are 0.5 and 3": lambda: one(
        "L2_NORMALIZATION", codes(1, 4), codes(1, 4), "L2NormOptions"
    ),
    "the output's scale is 0.5, not 2^-15": lambda: one("LOGISTIC", T([4], "int16", 0.5), T([4], "int16", 0.5)),
    "operator 0 SOFTMAX 'out0': beta is -1.0": lambda: one(
        "SOFTMAX", T([4], "int16", 0.5), T([4], "int16", 2.0**-15), "SoftmaxOptions", beta=-1.0
    ),
    "SUM 'out0': nothing is reduced": lambda: two(
        "SUM", codes(2, 2), T(np.zeros(0), "int32"), codes(2, 2), "ReducerOptions"
    ),
    "SUM 'out0': takes no INT8, FLOAT32": lambda: two("SUM", codes(2, 2), ints(1), f32(2), "ReducerOptions"),
    "SUM 'out0': takes no INT32, FLOAT32": lambda: two("SUM", T([2, 2], "int32"), ints(1), f32(2), "ReducerOptions"),
    "ELU 'out0': takes no INT32": lambda: one("ELU", T([4], "int32"), T([4], "int32")),
    "a radius of -1 for 2 channels": lambda: one(
        "LOCAL_RESPONSE_NORMALIZATION", f32(1, 4, 4, 2), f32(1, 4, 4, 2), "LocalResponseNormalizationOptions", radius=-1
    ),
    "BATCH_MATMUL 'out0': takes no FLOAT32, INT32": lambda: two(
        "BATCH_MATMUL", f32(1, 2, 2), T([1, 2, 2], "int32"), f32(1, 2, 2), "BatchMatMulOptions"
    ),
    "BATCH_MATMUL 'out0': takes no INT8, INT16": lambda: two(
        "BATCH_MATMUL", codes(1, 2, 2), codes(1, 2, 2, dtype="int16"), codes(1, 2, 2), "BatchMatMulOptions"
    ),
    "SQUARED_DIFFERENCE 'out0': takes no INT8, UINT8": lambda: two(
        "SQUARED_DIFFERENCE", codes(4), codes(4, dtype="uint8"), codes(4), "SquaredDifferenceOptions"
    ),
    "ADD 'out0': takes no INT32, FLOAT32": lambda: two("ADD", T([4], "int32"), f32(4), T([4], "int32"), "AddOptions"),
    "TRANSPOSE_CONV 'out0': takes no INT8, FLOAT32": lambda: transposed(
        weights(2, 3, 3, 2), f32(1, 2, 2, 2), f32(1, 4, 4, 2)
    ),
    "TRANSPOSE_CONV 'out0': takes no UINT8, INT8": lambda: transposed(
        T(np.ones((2, 3, 3, 2)), "uint8", 0.1), codes(1, 2, 2, 2), codes(1, 4, 4, 2)
    ),
    "the shape of the result is (1, 0, 4, 2)": lambda: Case(
        "TRANSPOSE_CONV",
        [ints(1, 0, 4, 2), weights(2, 3, 3, 2, dtype="float32"), f32(1, 2, 2, 2)],
        [f32(1, 4, 4, 2)],
        "TransposeConvOptions",
        {"padding": 1, "strideH": 1, "strideW": 1},
    ),
}
