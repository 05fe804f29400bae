// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.nn.leaky_relu: takes floats, not i8
func.func @leaky_relu(%x: tensor<4xi8>) {
  %r = relay.nn.leaky_relu %x {alpha = 0.5 : f32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.nn.prelu: alpha [3] for axis of 4
func.func @prelu(%x: tensor<2x4xf32>, %a: tensor<3xf32>) {
  %r = relay.nn.prelu %x, %a : (tensor<2x4xf32>, tensor<3xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: relay.nn.log_softmax: axis 2 is outside a tensor of rank 2
func.func @log_softmax(%x: tensor<2x4xf32>) {
  %r = relay.nn.log_softmax %x {axis = 2 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: relay.nn.log_softmax: takes floats, not i8
func.func @log_softmax(%x: tensor<4xi8>) {
  %r = relay.nn.log_softmax %x : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.nn.prelu: takes floats, not i8
func.func @prelu(%x: tensor<2x4xi8>, %y: tensor<4xi8>) {
  %r = relay.nn.prelu %x, %y : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi8>
  func.return
}

// -----

// CHECK: relay.nn.prelu: element types differ
func.func @prelu(%x: tensor<2x4xf32>, %y: tensor<4xf64>) {
  %r = relay.nn.prelu %x, %y : (tensor<2x4xf32>, tensor<4xf64>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: relay.nn.lrn: size must be positive
func.func @lrn(%x: tensor<2x4xf32>) {
  %r = relay.nn.lrn %x {size = 0 : i64, bias = 1.0 : f32, alpha = 1.0 : f32, beta = 1.0 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: relay.nn.cross_entropy: takes floats, not i8
func.func @cross_entropy(%x: tensor<2x4xi8>, %y: tensor<2x4xi8>) {
  %r = relay.nn.cross_entropy %x, %y : (tensor<2x4xi8>, tensor<2x4xi8>) -> tensor<i8>
  func.return
}

// -----

// CHECK: relay.nn.cross_entropy: predictions are tensor<2x4xf32>, targets tensor<2x3xf32>
func.func @cross_entropy(%x: tensor<2x4xf32>, %y: tensor<2x3xf32>) {
  %r = relay.nn.cross_entropy %x, %y : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<f32>
  func.return
}
