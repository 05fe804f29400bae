// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: relay.image.resize1d: linear takes floats, not i8
func.func @resize1d(%x: tensor<1x4x4xi8>) {
  %r = relay.image.resize1d %x {size = array<i64: 3>} : (tensor<1x4x4xi8>) -> tensor<1x3x4xi8>
  func.return
}

// -----

// CHECK: relay.image.resize2d: coordinate_transformation_mode must be one of
func.func @resize2d(%x: tensor<1x4x4x4xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 3, 3>, coordinate_transformation_mode = "half"} : (tensor<1x4x4x4xf32>) -> tensor<1x3x3x4xf32>
  func.return
}

// -----

// CHECK: relay.nn.upsampling: factors must be positive
func.func @upsampling(%x: tensor<1x4x4x4xf32>) {
  %r = relay.nn.upsampling %x {scale_h = -2.0 : f64, scale_w = 2.0 : f64} : (tensor<1x4x4x4xf32>) -> tensor<1x8x8x4xf32>
  func.return
}
