"""Relay's form of `ConvertLayout`: a mapping from operators to the layouts of data and kernel."""

from __future__ import annotations

from typing import Any

import pytest

import relay
from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.quantize import Quantize
from relay.transform import ConvertLayout
from tests.unit.quantize_models import calibrated, samples, small

BOTH: Any = {"nn.conv2d": ["NCHW", "default"], "qnn.conv2d": ["NCHW", "default"]}


def test_the_mapping_is_the_pass_of_its_layouts():
    mod = small()
    quantised = Quantize(calibration=calibrated(mod, samples(2)), skip_layers=(0,))(mod)
    step = ConvertLayout(BOTH)
    for each in (mod, quantised):
        assert str(step(each)) == str(ConvertLayout("NHWC", "NCHW")(each)) != str(each)
    (again,) = relay.transform.Pipeline.parse(str(step))
    assert again == step and 'layouts="nn.conv2d:NCHW:default","qnn' in str(step)


def test_from_any_layout_and_back():
    mod, x = small(), samples(1)
    back: Any = {"nn.conv2d": ["NHWC", "OHWI"]}
    there = ConvertLayout(BOTH)(mod)
    returned = ConvertLayout(back)(there)
    assert "NCHW" in str(there) and "NCHW" not in str(returned)
    assert abs(run(returned, x)[0] - run(mod, x)[0]).max() < 1e-6
    default: Any = {"nn.conv2d": ["default", "default"]}
    assert str(ConvertLayout(default)(mod)) == str(mod)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nn.conv2d": "NCHW"}, "'nn.conv2d': 'NCHW' is no pair of layouts"),
        ({"nn.conv2d": []}, "is no pair of layouts"),
        ({"nn.conv2d": ["NCHW", "OIHW", "x"]}, "is no pair of layouts"),
        ({3: ["NCHW"]}, "is no pair of layouts"),
        ({"nn.dense": ["NCHW"]}, "'nn.dense' is no operator with a layout"),
        ({"nn.conv2d": ["NCWW"]}, "layout"),
        ({"nn.conv2d": ["NCHW", "HOIW"]}, "kernel_layout is 'HOIW'"),
    ],
)
def test_wrong_mappings(wrong: Any, message: str):
    with pytest.raises(InvalidArgument, match=message):
        ConvertLayout(wrong)(small())
