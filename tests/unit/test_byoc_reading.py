"""What compilers read of a region: kernels through composites, products decoded, a scale for every tensor of codes."""

from __future__ import annotations

import numpy as np
import pytest

from relay import IRModule
from relay.byoc import Refusal
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.quantized import Codes, Product, read_product
from relay.byoc.regions import Region
from relay.byoc.registry import load
from relay.byoc.scales import UNKNOWN, find_scales
from relay.dialects import qnn, relay
from relay.dialects.context import make_context
from relay.errors import Unsupported

CONVOLUTION = """
func.func @main(%x: tensor<1x6x6x2xi8>) -> tensor<1x3x3x3xi8> {
  %k = relay.constant dense<7> : tensor<3x3x3x2xi8>
  %b = relay.constant dense<[1, 2, 3]> : tensor<3xi32>
  %c = qnn.conv2d %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_scale = 0.5 : f32,
    input_zero_point = -3 : i32, kernel_scale = dense<[0.25, 0.5, 1.0]> : tensor<3xf32>, out_dtype = i32}
    : (tensor<1x6x6x2xi8>, tensor<3x3x3x2xi8>) -> tensor<1x3x3x3xi32>
  %d = relay.nn.bias_add %c, %b : (tensor<1x3x3x3xi32>, tensor<3xi32>) -> tensor<1x3x3x3xi32>
  %r = qnn.requantize %d {input_scale = dense<[0.125, 0.25, 0.5]> : tensor<3xf32>, output_scale = 2.0 : f32,
    output_zero_point = 4 : i32, multiplier = dense<1073741824> : tensor<3xi32>, shift = dense<[-3, -2, -1]>
    : tensor<3xi32>, min = 4 : i32, max = 127 : i32, out_dtype = i8} : (tensor<1x3x3x3xi32>) -> tensor<1x3x3x3xi8>
  func.return %r : tensor<1x3x3x3xi8>
}
"""


def region(text: str) -> Region:
    return Region(IRModule.parse(text)["main"])


def product(text: str) -> Product | Refusal:
    return read_product([op for kernel in region(text).kernels for op in kernel.ops])


def test_product_of_codes() -> None:
    found = product(CONVOLUTION)
    assert isinstance(found, Product) and found.window is not None and found.quantization is not None
    assert (found.window.size, found.window.strides, found.window.padding) == ((3, 3), (2, 2), (0, 0, 1, 1))
    assert found.bias is not None and found.bias.tolist() == [1, 2, 3]
    assert (found.low, found.high) == (4, None)
    assert found.quantization.input == Codes(0.5, -3) and found.quantization.output == Codes(2.0, 4)
    assert found.quantization.per_channel and found.channels == 3 and not found.depthwise
    assert found.quantization.real_multipliers.tolist() == [0.0625, 0.125, 0.25]


def test_product_of_floats_with_a_clamp() -> None:
    found = product("""
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
      %k = relay.constant dense<1.0> : tensor<4x3xf32>
      %d = relay.nn.dense %x, %k {out_dtype = f32} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
      %r = relay.clip %d {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
      func.return %r : tensor<2x4xf32>
    }
    """)
    assert isinstance(found, Product) and found.window is None and found.quantization is None
    assert (found.low, found.high, found.bias, found.channels) == (0.0, 6.0, None, 4)


def test_kernel_that_is_computed_is_refused() -> None:
    text = CONVOLUTION.replace("%k = relay.constant dense<7> : tensor<3x3x3x2xi8>", "")
    text = text.replace("(%x: ", "(%k: tensor<3x3x3x2xi8>, %x: ")
    assert product(text) == Refusal("its kernel is computed at run time")


def test_sums_that_are_used_as_such_are_refused() -> None:
    ops = [op for kernel in region(CONVOLUTION).kernels for op in kernel.ops]
    assert read_product(ops[:2]) == Refusal("its sums are used as such, without a requantisation")
    assert read_product(ops[2:]) == Refusal("qnn.requantize is no part of a product")
    assert read_product([]) == Refusal("there is no convolution or product with a matrix")


def test_region_sees_through_composites() -> None:
    mod = IRModule.parse(CONVOLUTION)
    MergeComposite("xnnpack").apply(make_context(), mod.op)
    found = Region(mod["main"])
    (kernel,) = found.kernels
    assert kernel.entry == "conv2d" and isinstance(kernel.root, qnn.RequantizeOp)
    assert isinstance(kernel.ops[0], qnn.Conv2dOp)
    assert found.of(kernel.ops[0].data) is found.inputs[0]
    assert found.outputs == (kernel.root.result,)


def test_region_needs_a_function_that_returns() -> None:
    mod = IRModule.parse("func.func private @main(tensor<1xi8>) -> tensor<1xi8>")
    with pytest.raises(Unsupported, match="give a partitioned function"):
        Region(mod["main"])


POOLED = """
func.func @main(%x: tensor<1x4x4x1xi8>, %y: tensor<1x2x2x1xi8>) -> (tensor<1x4xi8>, tensor<1x2x2x1xi8>) {
  %p = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x4x1xi8>)
    -> tensor<1x2x2x1xi8>
  %q = qnn.requantize %p {input_scale = 0.5 : f32, input_zero_point = 3 : i32, output_scale = 0.25 : f32,
    output_zero_point = -7 : i32, multiplier = 1073741824 : i32, shift = 2 : i32, out_dtype = i8}
    : (tensor<1x2x2x1xi8>) -> tensor<1x2x2x1xi8>
  %r = relay.reshape %q {newshape = array<i64: 1, 4>} : (tensor<1x2x2x1xi8>) -> tensor<1x4xi8>
  %m = relay.maximum %y, %y : (tensor<1x2x2x1xi8>, tensor<1x2x2x1xi8>) -> tensor<1x2x2x1xi8>
  func.return %r, %m : tensor<1x4xi8>, tensor<1x2x2x1xi8>
}
"""


def test_scales_reach_what_is_only_moved() -> None:
    found = region(POOLED)
    scales = find_scales(found)
    pool, rescale, reshape, maximum = (kernel.root for kernel in found.kernels)
    assert scales[found.inputs[0]] == scales[pool.results[0]] == Codes(0.5, 3)
    assert scales[rescale.results[0]] == scales[reshape.results[0]] == Codes(0.25, -7)
    assert scales[found.inputs[1]] == scales[maximum.results[0]] == UNKNOWN


@pytest.mark.parametrize("name", ["onednn", "onnxruntime", "xnnpack", "litert", "systolic"])
@pytest.mark.parametrize("options", ["dilation = array<i64: 2, 2>", "ceil_mode = true", "count_include_pad = true"])
def test_pools_that_are_not_plain_are_refused(name: str, options: str) -> None:
    size = 2 if "dilation" in options else 3
    (kernel,) = region(f"""
    func.func @main(%x: tensor<1x4x4x8xi8>) -> tensor<1x{size}x{size}x8xi8> {{
      %p = relay.nn.avg_pool2d %x {{pool_size = array<i64: 2, 2>, {options}}} : (tensor<1x4x4x8xi8>)
        -> tensor<1x{size}x{size}x8xi8>
      func.return %p : tensor<1x{size}x{size}x8xi8>
    }}
    """).kernels
    reason = "its windows have gaps, reach over the padding, or count the padding"
    assert load(name)().supports(kernel.root) == Refusal(reason)


@pytest.mark.parametrize("name", ["onednn", "onnxruntime", "xnnpack", "litert"])
def test_resizing_by_other_rules_than_tflites_is_refused(name: str) -> None:
    (kernel,) = region("""
    func.func @main(%x: tensor<1x4x4x8xf32>) -> tensor<1x7x7x8xf32> {
      %p = relay.image.resize2d %x {size = array<i64: 7, 7>, coordinate_transformation_mode = "half_pixel"}
        : (tensor<1x4x4x8xf32>) -> tensor<1x7x7x8xf32>
      func.return %p : tensor<1x7x7x8xf32>
    }
    """).kernels
    assert load(name)().supports(kernel.root) == Refusal("it is resized by Relay's rules")


def test_floats_have_no_scales() -> None:
    found = region("""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
    """)
    assert find_scales(found) == {} and isinstance(found.kernels[0].root, relay.ExpOp)


def test_scale_is_the_float32_of_the_op() -> None:
    found = region(POOLED.replace("0.5 : f32", "0.1 : f32"))
    assert find_scales(found)[found.inputs[0]].scale == float(np.float32(0.1))
