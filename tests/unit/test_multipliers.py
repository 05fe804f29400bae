"""The integers by which imported ops rescale stand for their scales: multiplier * 2^(shift - 31)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import Operation

from relay.dialects import qnn
from relay.dialects.attributes import Array, to_numpy
from relay.frontend import from_tflite

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
MODELS = sorted(path for path in (ROOT / "../shared/models").glob("*.tflite") if "f32" not in path.name)


def number(op: Operation, name: str) -> Array:
    return to_numpy(op.properties[name]).astype(np.float64)


def real(op: Operation, prefix: str = "") -> Array:
    """The factor that a multiplier and a shift stand for."""
    return number(op, f"{prefix}multiplier") * 2.0 ** (number(op, f"{prefix}shift") - 31)


def factors(op: Operation) -> list[tuple[Array, Array]]:
    """(the integers' factor, the factor of the scales) for every rescale of the op."""
    match op:
        case qnn.RequantizeOp():
            return [(real(op), number(op, "input_scale") / number(op, "output_scale"))]
        case qnn.AddOp() | qnn.SubtractOp():
            lhs, rhs = number(op, "lhs_scale"), number(op, "rhs_scale")
            unit = 2 * np.maximum(lhs, rhs)
            output = unit / (2.0 ** number(op, "left_shift") * number(op, "output_scale"))
            return [(real(op, "lhs_"), lhs / unit), (real(op, "rhs_"), rhs / unit), (real(op), output)]
        case qnn.MulOp():
            return [(real(op), number(op, "lhs_scale") * number(op, "rhs_scale") / number(op, "output_scale"))]
        case _:
            return []


@pytest.mark.parametrize("path", [DIGITS, *MODELS], ids=lambda path: path.stem)
def test_multipliers_are_those_of_the_scales(path: Path):
    checked = 0
    for op in from_tflite(path).op.walk():
        for integers, scales in factors(op):
            np.testing.assert_allclose(integers, scales, rtol=1e-6, atol=2.0**-32)  # below, TFLite takes 0
            checked += 1
    assert checked or not any(op.name.startswith("qnn.requantize") for op in from_tflite(path).op.walk())


def test_models_are_checked():
    counts = [sum(len(factors(op)) for op in from_tflite(DIGITS).op.walk())]
    assert counts[0] >= 9, "the digits' convolutions and their sum rescale"
