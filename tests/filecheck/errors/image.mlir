// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.image.resize2d: takes floats or integers
func.func @resize2d(%x: tensor<1x4x4x3xindex>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>} : (tensor<1x4x4x3xindex>) -> tensor<1x8x8x3xindex>
  func.return
}

// -----

// CHECK: relay.image.resize2d: size must be positive
func.func @resize2d(%x: tensor<1x4x4x3xi8>) {
  %r = relay.image.resize2d %x {size = array<i64: 0, 8>} : (tensor<1x4x4x3xi8>) -> tensor<1x0x8x3xi8>
  func.return
}
