// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.logical_not: takes i1, not i8
func.func @logical_not(%x: tensor<4xi8>) {
  %r = relay.logical_not %x : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.logical_and: takes i1, not i8
func.func @logical_and(%x: tensor<4xi8>) {
  %r = relay.logical_and %x, %x : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----

// CHECK: relay.bitwise_not: takes integers, not f32
func.func @bitwise_not(%x: tensor<4xf32>) {
  %r = relay.bitwise_not %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.bitwise_xor: takes integers, not f32
func.func @bitwise_xor(%x: tensor<4xf32>) {
  %r = relay.bitwise_xor %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: relay.isnan: takes floats, not i32
func.func @isnan(%x: tensor<4xi32>) {
  %r = relay.isnan %x : (tensor<4xi32>) -> tensor<4xi1>
  func.return
}

// -----

// CHECK: relay.shape_of: the shape must be known
func.func @shape_of(%x: tensor<?xi32>) {
  %r = relay.shape_of %x : (tensor<?xi32>) -> tensor<1xi32>
  func.return
}

// -----

// CHECK: relay.ndarray_size: dtype must be i32 or i64
func.func @ndarray_size(%x: tensor<4xf32>) {
  %r = relay.ndarray_size %x {dtype = i8} : (tensor<4xf32>) -> tensor<i8>
  func.return
}
