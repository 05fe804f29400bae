// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @annotate(
func.func @annotate(%x: tensor<4xf32>) {
  // CHECK: %in = byoc.compiler_begin %x {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
  %in = byoc.compiler_begin %x {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %out = byoc.compiler_end %in {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
  %out = byoc.compiler_end %in {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// CHECK-LABEL: func.func @region(
func.func @region(%x: tensor<4xf32>) {
  // CHECK: %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%inner: tensor<4xf32>):
    // CHECK: %n = relay.negative %inner : (tensor<4xf32>) -> tensor<4xf32>
    %n = relay.negative %inner : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: byoc.yield %n : tensor<4xf32>
    byoc.yield %n : tensor<4xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @composite(
func.func @composite(%x: tensor<4xf32>) {
  // CHECK: %c = byoc.composite "dsp.twice" from "negative_negative_"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  %c = byoc.composite "dsp.twice" from "negative_negative_"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%inner: tensor<4xf32>):
    %n = relay.negative %inner : (tensor<4xf32>) -> tensor<4xf32>
    %m = relay.negative %n : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: byoc.yield %m : tensor<4xf32>
    byoc.yield %m : tensor<4xf32>
  }
  func.return
}
