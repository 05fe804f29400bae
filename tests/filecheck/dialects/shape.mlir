// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @constants(
func.func @constants() {
  // CHECK: %splat = relay.constant dense<0> : tensor<2x3xi8>
  %splat = relay.constant dense<0> : tensor<2x3xi8>
  // CHECK: %weights = relay.constant {label = "conv/kernel"} dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>
  %weights = relay.constant {label = "conv/kernel"} dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>
  // CHECK: %large = relay.constant {label = "dense/kernel"} dense_resource<w_dense_kernel_0123456789ab> : tensor<64x64xi8>
  %large = relay.constant {label = "dense/kernel"} dense_resource<w_dense_kernel_0123456789ab> : tensor<64x64xi8>
  func.return
}

// CHECK-LABEL: func.func @views(
func.func @views(%x: tensor<2x3xi8>) {
  // CHECK: %reshape = relay.reshape %x {newshape = array<i64: -1, 2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  %reshape = relay.reshape %x {newshape = array<i64: -1, 2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  // CHECK: %transpose = relay.transpose %x {axes = array<i64: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  %transpose = relay.transpose %x {axes = array<i64: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  // CHECK: %broadcast = relay.broadcast_to %x {shape = array<i64: 4, 2, 3>} : (tensor<2x3xi8>) -> tensor<4x2x3xi8>
  %broadcast = relay.broadcast_to %x {shape = array<i64: 4, 2, 3>} : (tensor<2x3xi8>) -> tensor<4x2x3xi8>
  // CHECK: %slice = relay.strided_slice %x {begin = array<i64: 1, 2>, end = array<i64: -1, 0>, strides = array<i64: -1, -2>} : (tensor<2x3xi8>) -> tensor<2x1xi8>
  %slice = relay.strided_slice %x {begin = array<i64: 1, 2>, end = array<i64: -1, 0>, strides = array<i64: -1, -2>} : (tensor<2x3xi8>) -> tensor<2x1xi8>
  func.return
}

// CHECK-LABEL: func.func @gather(
func.func @gather(%x: tensor<5x3xf32>, %i: tensor<2x4xi32>, %j: tensor<7x2xi32>) {
  // CHECK: %row = relay.take %x, %i : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %row = relay.take %x, %i : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  // CHECK: %take = relay.take %x, %i {axis = 0 : i64} : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  %take = relay.take %x, %i {axis = 0 : i64} : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  // CHECK: %gather = relay.gather_nd %x, %j : (tensor<5x3xf32>, tensor<7x2xi32>) -> tensor<7xf32>
  %gather = relay.gather_nd %x, %j : (tensor<5x3xf32>, tensor<7x2xi32>) -> tensor<7xf32>
  func.return
}

// CHECK-LABEL: func.func @join(
func.func @join(%x: tensor<1x2xi8>, %y: tensor<1x3xi8>) {
  // CHECK: %joined = relay.concatenate %x, %y {axis = 1 : i64} : (tensor<1x2xi8>, tensor<1x3xi8>) -> tensor<1x5xi8>
  %joined = relay.concatenate %x, %y {axis = 1 : i64} : (tensor<1x2xi8>, tensor<1x3xi8>) -> tensor<1x5xi8>
  // CHECK: %padded = relay.nn.pad %joined {pad_width = array<i64: 0, 0, 1, 2>, pad_value = -128 : i8} : (tensor<1x5xi8>) -> tensor<1x8xi8>
  %padded = relay.nn.pad %joined {pad_width = array<i64: 0, 0, 1, 2>, pad_value = -128 : i8} : (tensor<1x5xi8>) -> tensor<1x8xi8>
  func.return
}
