"""Relay's form of `ConvertLayout`: a mapping from operators to the layouts of data and kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay
from relay.errors import InvalidArgument, Unsupported
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


def open_convolution(first: str) -> relay.IRModule:
    """One whose images have open sizes, padded to 4 channels a block."""
    kinds = f"(tensor<?x{first}x8x8xf32>, tensor<8x1x1x8xf32>) -> tensor<?x{first}x8x8xf32>"
    return relay.IRModule.parse(f"""
func.func @main(%x: tensor<?x{first}x8x8xf32>, %w: tensor<8x1x1x8xf32>) -> tensor<?x{first}x8x8xf32> {{
  %y = relay.nn.conv2d %x, %w {{out_dtype = f32}} : {kinds}
  func.return %y : tensor<?x{first}x8x8xf32>
}}""")


def test_one_size_may_be_open():
    """The number of images; of several, no reshape can be written."""
    x, w = samples(2, dims=(3, 6, 8, 8))[0], samples(1, dims=(8, 1, 1, 8))[0]
    blocked = ConvertLayout("NHWC", "NHWC4c")(open_convolution("6"))
    assert "NHWC4c" in str(blocked)
    (wanted,), (found,) = run(open_convolution("6"), [x, w]), run(blocked, [x, w])
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(Unsupported, match="of several unknown sizes; give the shapes"):
        ConvertLayout("NHWC", "NHWC4c")(open_convolution("?"))
