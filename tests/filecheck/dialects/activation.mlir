// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @relu(
func.func @relu(%x: tensor<?x4xi8>) {
  // CHECK: %r = relay.nn.relu %x : (tensor<?x4xi8>) -> tensor<?x4xi8>
  %r = relay.nn.relu %x : (tensor<?x4xi8>) -> tensor<?x4xi8>
  func.return
}

// CHECK-LABEL: func.func @slopes(
func.func @slopes(%x: tensor<1x4x5xf32>, %a: tensor<4xf32>) {
  // CHECK: %r = relay.nn.leaky_relu %x {alpha = 2.000000e-01 : f32} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %r = relay.nn.leaky_relu %x {alpha = 2.000000e-01 : f32} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  // CHECK: %s = relay.nn.prelu %r, %a {axis = 1 : i64} : (tensor<1x4x5xf32>, tensor<4xf32>) -> tensor<1x4x5xf32>
  %s = relay.nn.prelu %r, %a {axis = 1 : i64} : (tensor<1x4x5xf32>, tensor<4xf32>) -> tensor<1x4x5xf32>
  func.return
}

// CHECK-LABEL: func.func @rows(
func.func @rows(%x: tensor<1x4x5xf32>) {
  // CHECK: %r = relay.nn.log_softmax %x : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %r = relay.nn.log_softmax %x : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  // CHECK: %s = relay.nn.fast_softmax %r {axis = 1 : i64} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %s = relay.nn.fast_softmax %r {axis = 1 : i64} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  // CHECK: %t = relay.nn.lrn %s {size = 3 : i64, bias = 1.000000e+00 : f32, alpha = 5.000000e-01 : f32, beta = 7.500000e-01 : f32} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %t = relay.nn.lrn %s {size = 3 : i64, bias = 1.000000e+00 : f32, alpha = 5.000000e-01 : f32, beta = 7.500000e-01 : f32} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  func.return
}

// CHECK-LABEL: func.func @losses(
func.func @losses(%x: tensor<4x5xf32>, %y: tensor<4x5xf32>) {
  // CHECK: %r = relay.nn.cross_entropy %x, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<f32>
  %r = relay.nn.cross_entropy %x, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<f32>
  // CHECK: %s = relay.nn.cross_entropy_with_logits %x, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<f32>
  %s = relay.nn.cross_entropy_with_logits %x, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<f32>
  func.return
}
