// RUN: relay-opt %s --load %S/../compilers.py -p prune-regions | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "prune-regions{compute=false min_ops=3}" | filecheck %s --check-prefix SMALL

// CHECK-LABEL: func.func @nothing_to_compute(
// CHECK-NEXT:    relay.negative %x {byoc.refused = {beta = "a region without convolution, product, pooling or recurrent layer is not worth leaving the host"}}
// CHECK-NEXT:    relay.abs
// SMALL-LABEL: func.func @nothing_to_compute(
// SMALL-NEXT:    relay.negative %x {byoc.refused = {beta = "a region of 2 ops is smaller than min_ops = 3"}}
func.func @nothing_to_compute(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = byoc.region "beta"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<4xf32>):
    %c = byoc.composite "beta.negative_abs" from "negative_abs_"(%y) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb1(%z: tensor<4xf32>):
      %n = relay.negative %z : (tensor<4xf32>) -> tensor<4xf32>
      %a = relay.abs %n : (tensor<4xf32>) -> tensor<4xf32>
      byoc.yield %a : tensor<4xf32>
    }
    byoc.yield %c : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @convolution(
// CHECK:         byoc.region "alpha"
func.func @convolution(%x: tensor<1x4x4x1xf32>) -> tensor<1x4x4x1xf32> {
  %r = byoc.region "alpha"(%x) : (tensor<1x4x4x1xf32>) -> tensor<1x4x4x1xf32> {
  ^bb0(%y: tensor<1x4x4x1xf32>):
    %k = relay.constant dense<1.0> : tensor<1x3x3x1xf32>
    %c = relay.nn.conv2d %y, %k {padding = array<i64: 1, 1, 1, 1>, out_dtype = f32} : (tensor<1x4x4x1xf32>, tensor<1x3x3x1xf32>) -> tensor<1x4x4x1xf32>
    byoc.yield %c : tensor<1x4x4x1xf32>
  }
  func.return %r : tensor<1x4x4x1xf32>
}
