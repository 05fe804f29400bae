"""As `importer_message_cases`: operators on plain numbers, and models that are refused with certain arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numeric.litert_models import Case, T
from tests.unit.importer_message_cases import codes, f32, ints, one, two

WORDS, SHORT, BYTES = T([4], "int32"), T([4], "int16"), T([4], "uint8")


def three(kind: str, inputs: tuple[T, T, T], out: T, options: str = "", **values: Any) -> Case:
    return Case(kind, inputs, [out], options, values)


PLAIN: dict[str, Callable[[], Case]] = {
    "has 2 numbers, not one": lambda: Case("TOPK_V2", [f32(4), ints(1, 2)], [f32(1), T([1], "int32")], "TopKV2Options"),
    "FILL 'out0': takes no FLOAT32, INT32": lambda: two("FILL", ints(4), f32(), WORDS, "FillOptions"),
    "ZEROS_LIKE 'out0': takes no INT16": lambda: one("ZEROS_LIKE", SHORT, SHORT, "ZerosLikeOptions"),
    "RANGE 'out0': takes no INT32, INT32, INT32, FLOAT32": lambda: three(
        "RANGE", (ints(0), ints(4), ints(1)), f32(4), "RangeOptions"
    ),
    "or delta is 0": lambda: three("RANGE", (ints(0), ints(4), ints(0)), WORDS, "RangeOptions"),
    "a range of": lambda: three("RANGE", (ints(0), ints(1 << 30), ints(1)), WORDS, "RangeOptions"),
    "SHAPE 'out0': takes no FLOAT32": lambda: one("SHAPE", f32(4), f32(1), "ShapeOptions"),
    "RANK 'out0': takes no FLOAT32": lambda: one("RANK", f32(4), f32(), "RankOptions"),
    "ONE_HOT 'out0': takes no FLOAT32": lambda: Case(
        "ONE_HOT", [f32(4), ints(3), f32(), f32()], [f32(4, 3)], "OneHotOptions"
    ),
    "BROADCAST_ARGS 'out0': takes no FLOAT32": lambda: two("BROADCAST_ARGS", f32(2), f32(2), f32(2)),
    "COS 'out0': takes no INT32": lambda: one("COS", WORDS, WORDS, "CosOptions"),
    "LESS 'out0': takes no FLOAT32, INT32": lambda: two("LESS", f32(4), WORDS, T([4], "bool"), "LessOptions"),
    "SELECT 'out0': takes no FLOAT32": lambda: three("SELECT", (f32(4), f32(4), f32(4)), f32(4), "SelectOptions"),
    "the inputs differ in shape": lambda: two("ADD_N", f32(4), f32(1), f32(4), "AddNOptions"),
    "REDUCE_PROD 'out0': takes no INT16": lambda: two("REDUCE_PROD", SHORT, ints(0), T([], "int16"), "ReducerOptions"),
    "CUMSUM 'out0': takes no BOOL": lambda: two("CUMSUM", T([4], "bool"), ints(0), T([4], "bool"), "CumsumOptions"),
    "CUMSUM 'out0': has 2 axes": lambda: two("CUMSUM", f32(2, 2), ints(0, 1), f32(2, 2), "CumsumOptions"),
    "1 multiples for shape (2, 2)": lambda: two("TILE", f32(2, 2), ints(1), f32(2, 2), "TileOptions"),
    "REVERSE_SEQUENCE 'out0': takes no FLOAT32": lambda: two(
        "REVERSE_SEQUENCE", f32(2, 2), f32(2), f32(2, 2), "ReverseSequenceOptions"
    ),
    "the input has rank 0": lambda: one("MATRIX_DIAG", f32(), f32(1, 1), "MatrixDiagOptions"),
    "SCATTER_ND 'out0': takes no FLOAT32": lambda: three(
        "SCATTER_ND", (f32(1, 1), f32(1), ints(4)), f32(4), "ScatterNdOptions"
    ),
    "DYNAMIC_UPDATE_SLICE 'out0': takes no FLOAT32": lambda: three(
        "DYNAMIC_UPDATE_SLICE", (f32(4), f32(2), f32(1)), f32(4), "DynamicUpdateSliceOptions"
    ),
    "TOPK_V2 'out0': takes no FLOAT32, INT64": lambda: Case(
        "TOPK_V2", [f32(4), ints(1)], [f32(1), T([1], "int64")], "TopKV2Options"
    ),
    "BITCAST 'out0': takes no FLOAT32, INT16": lambda: one("BITCAST", f32(4), SHORT, "BitcastOptions"),
    "takes no UINT8, UINT8": lambda: two("FLOOR_DIV", BYTES, BYTES, BYTES, "FloorDivOptions"),
    "TRANSPOSE_CONV 'out0': takes no FLOAT32, INT32": lambda: three(
        "TRANSPOSE_CONV", (ints(1, 4, 4, 2), T([2, 3, 3, 2], "float32"), T([1, 2, 2, 2], "int32")), f32(1, 4, 4, 2)
    ),
    "CONV_3D 'out0': takes no FLOAT32, INT32": lambda: two(
        "CONV_3D", f32(1, 2, 2, 2, 1), T([1, 1, 1, 1, 1], "int32"), f32(1, 2, 2, 2, 1), "Conv3DOptions"
    ),
}

CODES = codes(1, 4)
ZEROS = T(np.zeros((2, 2), np.int32), "int32")
WITH: dict[str, tuple[Callable[[], Case], dict[str, Any]]] = {
    "has no integers for it on INT8": (lambda: one("GELU", CODES, CODES, "GeluOptions"), {"numerics": "tflm"}),
    "ADD 'out0': takes no INT8, UINT8": (
        lambda: two("ADD", CODES, codes(1, 4, dtype="uint8"), CODES, "AddOptions"),
        {"numerics": "tvm"},
    ),
    "QUANTIZE 'out0': takes no INT32": (
        lambda: one("QUANTIZE", T([4], "int32", 0.5), codes(4)),
        {"numerics": "tvm"},
    ),
    "CONCATENATION 'out0': takes no INT8, UINT8": (
        lambda: two("CONCATENATION", CODES, codes(1, 4, dtype="uint8"), codes(1, 8), "ConcatenationOptions"),
        {"numerics": "tvm"},
    ),
    "AVERAGE_POOL_2D 'out0': takes no UINT8": (
        lambda: one("AVERAGE_POOL_2D", T([1, 4, 4, 2], "uint8"), T([1, 4, 4, 2], "uint8"), "Pool2DOptions"),
        {"numerics": "tvm"},
    ),
    "the mean of no elements": (
        lambda: two("MEAN", codes(2, 0), ints(1), codes(2), "ReducerOptions"),
        {"numerics": "tvm"},
    ),
    "it is not known to keep the images of a batch apart": (
        lambda: Case("BATCH_TO_SPACE_ND", [f32(1, 2, 2, 1), ints(1, 1), ZEROS], [f32(1, 2, 2, 1)]),
        {"batch": 2},
    ),
    "is computed from the stored shapes, of another batch": (
        lambda: one("SHAPE", f32(1, 4), T([2], "int32"), "ShapeOptions"),
        {"batch": 2},
    ),
    "batch 2: 1 problem:": (
        lambda: Case("BATCH_TO_SPACE_ND", [f32(1, 2, 2, 1), ints(1, 1), ZEROS], [f32(1, 2, 2, 1)]),
        {"batch": 2},
    ),
    "has too many elements": (lambda: one("SQRT", f32(1, 1 << 20), f32(1, 1 << 20)), {"batch": 1 << 22}),
    "batch needs inputs of one leading axis": (
        lambda: two("ADD", f32(1, 4), f32(4), f32(1, 4), "AddOptions"),
        {"batch": 2},
    ),
    "has no leading axis of 2 images": (
        lambda: two("RESHAPE", f32(2, 3), ints(3, 2), f32(3, 2)),
        {"batch": 4},
    ),
}
"""The model, and the arguments of `from_tflite` with which it is refused."""
