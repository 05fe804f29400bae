"""The profiles of `from_tflite(..., numerics=)`: which runtime's integers, how far they are known."""

from __future__ import annotations

import numpy as np

from relay.frontend.tflite.operators import tflm, tvm, xnnpack
from relay.frontend.tflite.profile import LITERT, Profile

_INT8 = ("INT8",)
_CODES = ("INT8", "UINT8")
_ANY = ("INT8", "UINT8", "INT16")

_MOVEMENT = dict.fromkeys(
    (
        "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "PAD", "PADV2", "PACK", "UNPACK", "SPLIT", "SPLIT_V",
        "SLICE", "STRIDED_SLICE", "GATHER", "GATHER_ND", "MAX_POOL_2D", "MAXIMUM", "MINIMUM", "REDUCE_MAX",
        "REDUCE_MIN", "ARG_MAX", "ARG_MIN", "RESIZE_NEAREST_NEIGHBOR", "CAST", "DEQUANTIZE",
    ),
    _ANY,
)  # fmt: skip
"""Kinds whose results are codes of their inputs, or that have one formula in every runtime."""

_TFLM = dict.fromkeys(
    (
        "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MEAN", "SOFTMAX",
        "LOGISTIC", "TANH", "CONCATENATION", "RELU", "RELU6", "RESIZE_BILINEAR", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF",
    ),
    _INT8,
)  # fmt: skip

PROFILES = {
    profile.name: profile
    for profile in (
        LITERT,
        Profile("litert-1.2", dense="tflite"),
        Profile(
            "tflm",
            dense="tflite",
            curves="tflm",
            factors=np.float64,
            rows=tflm.ROWS,
            kinds=_MOVEMENT | _TFLM | {"QUANTIZE": _ANY},
        ),
        Profile("xnnpack", products="f32_even", dense="f32_even", rows=xnnpack.ROWS),
        Profile("ort", products="f32_even", dense="f32_even"),
        Profile(
            "tvm",
            products="upward",
            dense="upward",
            bounds_to_even=True,
            rows=tvm.ROWS,
            kinds=_MOVEMENT | dict.fromkeys((*tvm.ROWS, "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _CODES),
        ),
    )
}
"""By name."""
