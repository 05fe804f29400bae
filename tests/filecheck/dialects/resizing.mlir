// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @resize1d(
func.func @resize1d(%x: tensor<?x4x8xf32>) {
  // CHECK: %r = relay.image.resize1d %x {size = array<i64: 7>, method = "cubic", cubic_alpha = -7.500000e-01 : f64} : (tensor<?x4x8xf32>) -> tensor<?x7x8xf32>
  %r = relay.image.resize1d %x {size = array<i64: 7>, method = "cubic", cubic_alpha = -7.500000e-01 : f64} : (tensor<?x4x8xf32>) -> tensor<?x7x8xf32>
  func.return
}

// CHECK-LABEL: func.func @resize2d(
func.func @resize2d(%x: tensor<1x4x5x8xf32>) {
  // CHECK: %r = relay.image.resize2d %x {size = array<i64: 7, 9>, method = "cubic", coordinate_transformation_mode = "align_corners"} : (tensor<1x4x5x8xf32>) -> tensor<1x7x9x8xf32>
  %r = relay.image.resize2d %x {size = array<i64: 7, 9>, method = "cubic", coordinate_transformation_mode = "align_corners"} : (tensor<1x4x5x8xf32>) -> tensor<1x7x9x8xf32>
  func.return
}

// CHECK-LABEL: func.func @resize3d(
func.func @resize3d(%x: tensor<1x8x4x5x6xi8>) {
  // CHECK: %r = relay.image.resize3d %x {layout = "NCDHW", size = array<i64: 7, 8, 9>, method = "nearest_neighbor", coordinate_transformation_mode = "asymmetric", rounding_method = "floor"} : (tensor<1x8x4x5x6xi8>) -> tensor<1x8x7x8x9xi8>
  %r = relay.image.resize3d %x {layout = "NCDHW", size = array<i64: 7, 8, 9>, method = "nearest_neighbor", coordinate_transformation_mode = "asymmetric", rounding_method = "floor"} : (tensor<1x8x4x5x6xi8>) -> tensor<1x8x7x8x9xi8>
  func.return
}

// CHECK-LABEL: func.func @upsampling(
func.func @upsampling(%x: tensor<1x4x5x8xi8>) {
  // CHECK: %r = relay.nn.upsampling %x {scale_h = 2.000000e+00 : f64, scale_w = 1.500000e+00 : f64} : (tensor<1x4x5x8xi8>) -> tensor<1x8x8x8xi8>
  %r = relay.nn.upsampling %x {scale_h = 2.000000e+00 : f64, scale_w = 1.500000e+00 : f64} : (tensor<1x4x5x8xi8>) -> tensor<1x8x8x8xi8>
  func.return
}

// CHECK-LABEL: func.func @upsampling3d(
func.func @upsampling3d(%x: tensor<1x4x5x6x8xf32>) {
  // CHECK: %r = relay.nn.upsampling3d %x {method = "trilinear", scale_d = 2.000000e+00 : f64, scale_h = 2.000000e+00 : f64, scale_w = 2.000000e+00 : f64} : (tensor<1x4x5x6x8xf32>) -> tensor<1x8x10x12x8xf32>
  %r = relay.nn.upsampling3d %x {method = "trilinear", scale_d = 2.000000e+00 : f64, scale_h = 2.000000e+00 : f64, scale_w = 2.000000e+00 : f64} : (tensor<1x4x5x6x8xf32>) -> tensor<1x8x10x12x8xf32>
  func.return
}

// CHECK-LABEL: func.func @region(
func.func @region(%x: tensor<1x4x5x8xf32>) {
  // CHECK: %r = relay.image.resize2d %x {size = array<i64: 3, 3>, coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.000000e+00, 2.500000e-01, 5.000000e-01, 1.500000e+00>, extrapolation_value = 2.000000e+00 : f64} : (tensor<1x4x5x8xf32>) -> tensor<1x3x3x8xf32>
  %r = relay.image.resize2d %x {size = array<i64: 3, 3>, coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.000000e+00, 2.500000e-01, 5.000000e-01, 1.500000e+00>, extrapolation_value = 2.000000e+00 : f64} : (tensor<1x4x5x8xf32>) -> tensor<1x3x3x8xf32>
  func.return
}
