// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.sum: axis 3 is outside a tensor of rank 2
func.func @sum(%x: tensor<2x3xf32>) {
  %r = relay.sum %x {axis = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: relay.argmax: takes one axis
func.func @argmax(%x: tensor<2x3xf32>) {
  %r = relay.argmax %x {axis = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<i32>
  func.return
}

// -----

// CHECK: relay.argmin: dtype must be i32 or i64
func.func @argmin(%x: tensor<2x3xf32>) {
  %r = relay.argmin %x {axis = array<i64: 0>, dtype = i8} : (tensor<2x3xf32>) -> tensor<3xi8>
  func.return
}

// -----

// CHECK: relay.all: takes i1, not f32
func.func @all(%x: tensor<2x3xf32>) {
  %r = relay.all %x {axis = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}
