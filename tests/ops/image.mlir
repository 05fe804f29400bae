func.func @resize(%x: tensor<1x4x4x3xi8>) {
  %linear = relay.image.resize2d %x {size = array<i64: 8, 8>, half_pixel_centers = true} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  %nearest = relay.image.resize2d %x {size = array<i64: 2, 6>, method = "nearest_neighbor", align_corners = true} : (tensor<1x4x4x3xi8>) -> tensor<1x2x6x3xi8>
  func.return
}

// -----
// error: relay.image.resize2d: takes floats or integers
func.func @resize2d(%x: tensor<1x4x4x3xindex>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>} : (tensor<1x4x4x3xindex>) -> tensor<1x8x8x3xindex>
  func.return
}

// -----
// error: relay.image.resize2d: size must be positive
func.func @resize2d(%x: tensor<1x4x4x3xi8>) {
  %r = relay.image.resize2d %x {size = array<i64: 0, 8>} : (tensor<1x4x4x3xi8>) -> tensor<1x0x8x3xi8>
  func.return
}

// -----
// error: relay.image.resize2d: roi must have 4 numbers, has 0
func.func @resize2d(%x: tensor<1x4x4x3xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, method = "nearest_neighbor", coordinate_transformation_mode = "tf_crop_and_resize"} : (tensor<1x4x4x3xf32>) -> tensor<1x8x8x3xf32>
  func.return
}

// -----
// error: relay.image.resize2d: roi must have 4 numbers, has 2
func.func @resize2d(%x: tensor<1x4x4x3xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, method = "nearest_neighbor", coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.0, 1.0>} : (tensor<1x4x4x3xf32>) -> tensor<1x8x8x3xf32>
  func.return
}

// -----
// error: relay.image.resize2d: roi must be finite
func.func @resize2d(%x: tensor<1x4x4x3xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, method = "nearest_neighbor", coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.0, 0.0, 1.0, 1.0e999>} : (tensor<1x4x4x3xf32>) -> tensor<1x8x8x3xf32>
  func.return
}

// -----
// error: relay.image.resize2d: i8 has no extrapolation_value 128.0
func.func @resize2d(%x: tensor<1x4x4x3xi8>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, method = "nearest_neighbor", coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.0, 0.0, 1.0, 1.0>, extrapolation_value = 128.0 : f64} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  func.return
}

// -----
// error: relay.nn.upsampling3d: has no region for tf_crop_and_resize
func.func @upsampling_has_no_region(%x: tensor<1x2x4x4x3xf32>) {
  %r = relay.nn.upsampling3d %x {scale_d = 1.0 : f64, scale_h = 2.0 : f64, scale_w = 2.0 : f64, method = "nearest_neighbor", coordinate_transformation_mode = "tf_crop_and_resize"} : (tensor<1x2x4x4x3xf32>) -> tensor<1x2x8x8x3xf32>
  func.return
}
