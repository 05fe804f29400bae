// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: byoc.compiler_begin: result 0 is tensor<4xi8>; expected tensor<4xf32>
func.func @compiler_begin(%x: tensor<4xf32>) {
  %r = byoc.compiler_begin %x {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: byoc.region: the block's arguments must have the operands' types
func.func @region(%x: tensor<4xf32>) {
  %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<3xf32>):
    byoc.yield %y : tensor<3xf32>
  }
  func.return
}

// -----

// CHECK: byoc.region: byoc.yield must give values of the result types
func.func @region(%x: tensor<4xf32>) {
  %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<4xf32>):
    byoc.yield
  }
  func.return
}
