"""One small model for each operator and type of its data: what the operator's cases have, as another type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from relay.frontend import supported_operators
from tests.numeric.litert_cases import Rng
from tests.numeric.litert_models import Array, Case, Reference, T
from tests.numeric.litert_product_cases import QUANTISED
from tests.numeric.litert_shape_cases import CASES

SCALES = {"int8": (0.05, 3), "uint8": (0.05, 120), "int16": (0.01, 0)}
"""Scale and zero point that codes get."""
RESULTS = {
    ("LOGISTIC", "int8"): (1 / 256, -128),
    ("LOGISTIC", "uint8"): (1 / 256, 0),
    ("LOG_SOFTMAX", "int8"): (16 / 256, 127),
    ("LOG_SOFTMAX", "uint8"): (16 / 256, 255),
    ("SOFTMAX", "int8"): (1 / 256, -128),
    ("SOFTMAX", "uint8"): (1 / 256, 0),
    ("TANH", "int8"): (1 / 128, 0),
    ("TANH", "uint8"): (1 / 128, 128),
}
"""Scale and zero point of results where LiteRT takes no other ones."""
OWN = {("UNIDIRECTIONAL_SEQUENCE_LSTM", "int8")}
"""What no model of floats becomes by other types: its cells and what is between have scales of their own."""
APART = {
    "CUSTOM:TFLite_Detection_PostProcess",
    "IF",
    "WHILE",
    "CALL_ONCE",
    "VAR_HANDLE",
    "READ_VARIABLE",
    "ASSIGN_VARIABLE",
    "DENSIFY",
    "RFFT2D",
}
"""Operators that are no model by themselves: test_control_flow_, test_variables_, test_sparse_, test_spectra_."""
TYPES = ("float32", *SCALES, "int32", "int64", "bool")
FROM = ("float32", "bool", "int8", "uint8", "int16", "int64")
"""What data may be before; int32 is what axes and shapes are of."""


def data_of(case: Case) -> T:
    """The tensor whose type names that of the case."""
    free = [spec for spec in case.inputs if spec is not None and not isinstance(spec.value, np.ndarray)]
    return next((spec for spec in free if spec.dtype != "int32"), case.outputs[0])


def templates(kind: str, tries: int = 12) -> Iterator[Case]:
    """Cases of that kind whose data can be told from its indices."""
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        makers = [CASES[kind]] if kind in CASES else []
        found = [make(rng, kind) for make in makers]
        found += [make(rng, kind, dtype) for (each, dtype), make in QUANTISED.items() if each == kind]
        yield from (case for case in found if data_of(case).dtype in FROM)


def typed(kind: str, dtype: str) -> Case | None:
    """A model of the kind on data of that type: one of its own cases, if there are any, else another made to be so."""
    if (kind, dtype) in OWN:
        return None
    if (kind, dtype) in QUANTISED:
        return QUANTISED[kind, dtype](np.random.default_rng(0), kind, dtype)
    for case in sorted(templates(kind), key=lambda case: data_of(case).dtype == "bool"):
        old = data_of(case).dtype
        inputs = [spec and retyped(spec, old, dtype) for spec in case.inputs]
        feeds = {
            i: numbers(array, spec.dtype) for i, array in case.custom_inputs.items() if (spec := inputs[i]) is not None
        }
        outputs = [retyped(spec, old, dtype) for spec in case.outputs]
        if (kind, dtype) in RESULTS:
            scale, zero_point = RESULTS[kind, dtype]
            outputs = [replace(spec, scale=scale, zero_point=zero_point) for spec in outputs]
        return replace(case, inputs=inputs, outputs=outputs, version=version_of(kind), custom_inputs=feeds)
    return None


@cache
def version_of(kind: str) -> int:
    """The highest version that is known both here and to LiteRT."""
    case = next(templates(kind))
    for version in range(supported_operators()[kind][1], 1, -1):
        try:
            Reference(replace(case, version=version).model(), case.kernels)
        except (RuntimeError, ValueError) as error:
            if "Didn't find op" in str(error):
                continue
        return version
    return 1


def retyped(spec: T, old: str, dtype: str) -> T:
    """The tensor as that type where it has the old one."""
    if spec.dtype != old:
        return spec
    scale, zero_point = SCALES.get(dtype, (None, 0))
    value = numbers(spec.value, dtype) if isinstance(spec.value, np.ndarray) else spec.value
    return replace(spec, value=value, dtype=dtype, scale=scale, zero_point=zero_point)


def numbers(array: Array, dtype: str) -> Array:
    """Small numbers from 1 on, that every type has."""
    return np.array(np.maximum(np.abs(np.nan_to_num(array.astype(np.float64))) % 7, 1)).astype(dtype)


def feeds_of(case: Case, rng: Rng) -> list[Array]:
    """Data of which no divisor is 0."""
    return [np.maximum(a, 1) if a.dtype.name in ("int32", "int64") else a for a in case.feeds(rng)]
