"""Certificates of products whose codes meet vectors and other tensors, of attention, norms and lookups by index, of
slopes, and of sums that change no result."""

from __future__ import annotations

import os

import numpy as np
import pytest

import relay
from benchmarks.planted_defects import with_constants
from relay.module import IRModule
from relay.runtime import archive
from relay.validation import certify

X86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="kernels are called by themselves on x86-64 only")
CODES_OF_CHANNELS = """
func.func @main(%x: tensor<3x16xi8>, %y: tensor<3x8xi8>, %z: tensor<3x8xi8>) -> (tensor<3x8xi8>, tensor<3x8xf32>) {
  %w = relay.constant dense<WEIGHTS> : tensor<8x16xi8>
  %bias = relay.constant dense<[-3.0, 1.0, 7.5, 0.25, -9.0, 2.0, 40.0, -0.5]> : tensor<8xf32>
  %scale = relay.constant dense<0.03> : tensor<f32>
  %s = relay.nn.dense %x, %w : (tensor<3x16xi8>, tensor<8x16xi8>) -> tensor<3x8xi32>
  %f = relay.cast %s {dtype = f32} : (tensor<3x8xi32>) -> tensor<3x8xf32>
  %g = relay.multiply %f, %scale : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  %h = relay.round %g : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %inside = relay.clip %h {a_min = -128.0 : f32, a_max = 127.0 : f32} : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %code = relay.cast %inside {dtype = i8} : (tensor<3x8xf32>) -> tensor<3x8xi8>
  %real = relay.cast %code {dtype = f32} : (tensor<3x8xi8>) -> tensor<3x8xf32>
BEHIND}"""
VECTOR = """
  %sum = relay.add %real, %bias : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %near = relay.round %sum : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %kept = relay.clip %near {a_min = -128.0 : f32, a_max = 127.0 : f32} : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %result = relay.cast %kept {dtype = i8} : (tensor<3x8xf32>) -> tensor<3x8xi8>
  func.return %result : tensor<3x8xi8>
"""
TENSORS = """
  %a = relay.cast %y {dtype = f32} : (tensor<3x8xi8>) -> tensor<3x8xf32>
  %b = relay.cast %z {dtype = f32} : (tensor<3x8xi8>) -> tensor<3x8xf32>
  %c = relay.add %real, %a : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %d = relay.add %c, %b : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %zero = relay.constant dense<0.0> : tensor<f32>
  %result = relay.maximum %d, %zero : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  func.return %result : tensor<3x8xf32>
"""


@X86
@pytest.mark.parametrize(
    ("behind", "result"),
    ((VECTOR, "tensor<3x8xi8>"), pytest.param(TENSORS, "tensor<3x8xf32>", marks=pytest.mark.ci)),
    ids=("vector", "tensors"),
)
def test_products_whose_codes_meet_vectors_and_tensors_are_tested(behind: str, result: str):
    """A vector of the channels behind the codes of sums was called wrong code; several tensors were not checked."""
    weights = np.random.default_rng(3).integers(-128, 128, (8, 16)).tolist()
    text = CODES_OF_CHANNELS.replace("WEIGHTS", str(weights)).replace("BEHIND", behind)
    exe = relay.build(IRModule.parse(text.replace("(tensor<3x8xi8>, tensor<3x8xf32>) {", f"{result} {{")))
    report = exe.certify()
    assert report.ok and report.levels["tested"] == 1, str(report)
    assert "weights of 8 channels" in str(report) and "below 2^-64" in str(report)
    saved = archive.saved(archive.read(exe.to_bytes())[0], "product")
    assert saved.constants is not None
    constants = saved.constants.copy()
    constants[int(np.flatnonzero(constants)[5])] ^= 64
    assert certify(archive.pack(with_constants(saved, constants)), bits=8, first=True).wrong


@X86
def test_attention_norms_and_gathers_are_tested():
    module = IRModule.parse("""
func.func @main(%a: tensor<2x3x8xi8>, %b: tensor<2x8x5xi8>, %i: tensor<4xi64>)
    -> (tensor<2x3x5xi32>, tensor<4x8xf32>) {
  %product = relay.nn.batch_matmul %a, %b
      {input_zero_point = 4 : i32, kernel_zero_point = -1 : i32, transpose_b = false}
      : (tensor<2x3x8xi8>, tensor<2x8x5xi8>) -> tensor<2x3x5xi32>
  %table = relay.constant dense<[[1, 2, 3, -4, 5, 6, 7, 8], [9, 1, -7, 3, 1, 1, 0, 2]]> : tensor<2x8xi8>
  %rows = relay.take %table, %i {axis = 0 : i64} : (tensor<2x8xi8>, tensor<4xi64>) -> tensor<4x8xi8>
  %real = relay.cast %rows {dtype = f32} : (tensor<4x8xi8>) -> tensor<4x8xf32>
  %v = relay.constant dense<[1.0, 0.5, -2.0, 3.0, 1.0, 1.0, 0.25, 4.0]> : tensor<8xf32>
  %norm = relay.nn.layer_norm %real, %v, %v {epsilon = 1.0e-3 : f32}
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %product, %norm : tensor<2x3x5xi32>, tensor<4x8xf32>
}""")
    report = relay.build(module).certify(bits=4)
    assert report.ok and {"nn.batch_matmul", "nn.layer_norm"} <= {
        f"nn.{word}" for part in report.parts for word in part.formula.split()
    }, str(report)


@X86
def test_casts_beyond_a_type_are_not_checked():
    """What `relay.cast` leaves open is no fault of the code: it was called wrong on processors that do it otherwise."""
    weights = np.random.default_rng(3).integers(-128, 128, (8, 16)).tolist()
    text = CODES_OF_CHANNELS.replace("WEIGHTS", str(weights)).replace("BEHIND", VECTOR)
    text = text.replace("(tensor<3x8xi8>, tensor<3x8xf32>) {", "tensor<3x8xi8> {").replace("cast %inside", "cast %h")
    report = relay.build(IRModule.parse(text)).certify()
    assert not report.wrong and "casts floats to int8 that are beyond it" in str(report), str(report)


@X86
@pytest.mark.ci
def test_every_element_of_a_long_row_is_the_largest_alone():
    module = IRModule.parse("""
func.func @main(%x: tensor<2x700xi8>) -> tensor<2xi8> {
  %0 = relay.max %x {axis = array<i64: 1>} : (tensor<2x700xi8>) -> tensor<2xi8>
  func.return %0 : tensor<2xi8>
}""")
    report = relay.build(module).certify()
    assert report.ok and "each of 1400 elements alone is the largest" in str(report), str(report)


@X86
@pytest.mark.ci
def test_means_of_many_floats_are_within_their_bound():
    """Means that cancel were compared relative to themselves, and called wrong."""
    module = IRModule.parse("""
func.func @main(%x: tensor<1x48x64x16xf32>) -> tensor<1x1x1x16xf32> {
  %0 = relay.nn.avg_pool2d %x {pool_size = array<i64: 48, 64>} : (tensor<1x48x64x16xf32>) -> tensor<1x1x1x16xf32>
  func.return %0 : tensor<1x1x1x16xf32>
}""")
    report = relay.build(module).certify()
    assert report.ok and report.levels["compared"] == 1, str(report)


@X86
@pytest.mark.ci
def test_scales_that_are_floats_are_made_finer():
    """A channel with few results in the range of its sums had no bound."""
    weights = np.random.default_rng(4).integers(-128, 128, (8, 3, 3, 8)).tolist()
    module = IRModule.parse(
        """
func.func @main(%x: tensor<1x6x6x8xui8>) -> tensor<1x6x6x8xui8> {
  %w = relay.constant dense<WEIGHTS> : tensor<8x3x3x8xi8>
  %scale = relay.constant dense<[0.01, 0.00001, 0.01, 0.002, 0.00002, 0.01, 0.02, 0.03]> : tensor<8xf32>
  %s = relay.nn.conv2d %x, %w {padding = array<i64: 1, 1, 1, 1>}
      : (tensor<1x6x6x8xui8>, tensor<8x3x3x8xi8>) -> tensor<1x6x6x8xi32>
  %f = relay.cast %s {dtype = f32} : (tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xf32>
  %g = relay.multiply %f, %scale : (tensor<1x6x6x8xf32>, tensor<8xf32>) -> tensor<1x6x6x8xf32>
  %h = relay.round %g : (tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32>
  %k = relay.clip %h {a_min = 0.0 : f32, a_max = 255.0 : f32} : (tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32>
  %r = relay.cast %k {dtype = ui8} : (tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xui8>
  func.return %r : tensor<1x6x6x8xui8>
}""".replace("WEIGHTS", str(weights))
    )
    report = relay.build(module).certify()
    assert report.ok and "below 2^-64" in str(report), str(report)
    assert "results change at few sums" not in str(report), str(report)


def test_a_constant_of_fewer_axes_is_no_contradiction():
    """The slope of PRELU, of rank 3, for data of rank 4."""
    mod = IRModule.parse("""
func.func @main(%x: tensor<1x1x2x1xui8>) -> tensor<1x1x2x1xui8> {
  %a = relay.constant dense<222> : tensor<1x1x1xui8>
  %r = qnn.prelu %x, %a {
      input_scale = 0.01 : f32, input_zero_point = 159 : i32, alpha_scale = 0.002 : f32, alpha_zero_point = 149 : i32,
      output_scale = 0.002 : f32, output_zero_point = 122 : i32, multiplier = 1142651904 : i32, shift = 3 : i32,
      alpha_multiplier = 1926667392 : i32, alpha_shift = -7 : i32
    } : (tensor<1x1x2x1xui8>, tensor<1x1x1xui8>) -> tensor<1x1x2x1xui8>
  func.return %r : tensor<1x1x2x1xui8>
}""")
    report = relay.build(mod).certify(bits=8)
    assert report.ok and not report.wrong


def test_sums_that_change_no_result_are_no_difference():
    """All sums of the layer are below half a step of the result."""
    mod = IRModule.parse("""
func.func @main(%x: tensor<5x4xi8>) -> tensor<5x3xi8> {
  %w = relay.constant dense<[[0, 1, 0, -1], [1, 1, 0, 0], [0, 1, -1, 0]]> : tensor<3x4xi8>
  %s = qnn.dense %x, %w {
      input_scale = 0.001 : f32, input_zero_point = 4 : i32, kernel_scale = 0.001 : f32, kernel_zero_point = 0 : i32,
      out_dtype = i32
    } : (tensor<5x4xi8>, tensor<3x4xi8>) -> tensor<5x3xi32>
  %r = qnn.requantize %s {
      input_scale = 0.000001 : f32, output_scale = 0.04 : f32, output_zero_point = -3 : i32,
      multiplier = 1759218604 : i32, shift = -15 : i32, out_dtype = i8
    } : (tensor<5x3xi32>) -> tensor<5x3xi8>
  func.return %r : tensor<5x3xi8>
}""")
    assert not relay.build(mod).certify(bits=8).wrong
