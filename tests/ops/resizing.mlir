func.func @resize1d(%x: tensor<?x4x8xf32>) {
  %r = relay.image.resize1d %x {size = array<i64: 7>, method = "cubic", cubic_alpha = -7.500000e-01 : f64} : (tensor<?x4x8xf32>) -> tensor<?x7x8xf32>
  func.return
}

func.func @resize2d(%x: tensor<1x4x5x8xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 7, 9>, method = "cubic", coordinate_transformation_mode = "align_corners"} : (tensor<1x4x5x8xf32>) -> tensor<1x7x9x8xf32>
  func.return
}

func.func @resize3d(%x: tensor<1x8x4x5x6xi8>) {
  %r = relay.image.resize3d %x {layout = "NCDHW", size = array<i64: 7, 8, 9>, method = "nearest_neighbor", coordinate_transformation_mode = "asymmetric", rounding_method = "floor"} : (tensor<1x8x4x5x6xi8>) -> tensor<1x8x7x8x9xi8>
  func.return
}

func.func @upsampling(%x: tensor<1x4x5x8xi8>) {
  %r = relay.nn.upsampling %x {scale_h = 2.000000e+00 : f64, scale_w = 1.500000e+00 : f64} : (tensor<1x4x5x8xi8>) -> tensor<1x8x8x8xi8>
  func.return
}

func.func @upsampling3d(%x: tensor<1x4x5x6x8xf32>) {
  %r = relay.nn.upsampling3d %x {method = "trilinear", scale_d = 2.000000e+00 : f64, scale_h = 2.000000e+00 : f64, scale_w = 2.000000e+00 : f64} : (tensor<1x4x5x6x8xf32>) -> tensor<1x8x10x12x8xf32>
  func.return
}

func.func @region(%x: tensor<1x4x5x8xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 3, 3>, coordinate_transformation_mode = "tf_crop_and_resize", roi = array<f64: 0.000000e+00, 2.500000e-01, 5.000000e-01, 1.500000e+00>, extrapolation_value = 2.000000e+00 : f64} : (tensor<1x4x5x8xf32>) -> tensor<1x3x3x8xf32>
  func.return
}

// -----
// error: relay.image.resize1d: linear takes floats, not i8
func.func @resize1d(%x: tensor<1x4x4xi8>) {
  %r = relay.image.resize1d %x {size = array<i64: 3>} : (tensor<1x4x4xi8>) -> tensor<1x3x4xi8>
  func.return
}

// -----
// error: relay.image.resize2d: coordinate_transformation_mode must be one of
func.func @resize2d(%x: tensor<1x4x4x4xf32>) {
  %r = relay.image.resize2d %x {size = array<i64: 3, 3>, coordinate_transformation_mode = "half"} : (tensor<1x4x4x4xf32>) -> tensor<1x3x3x4xf32>
  func.return
}

// -----
// error: relay.nn.upsampling: factors must be positive
func.func @upsampling(%x: tensor<1x4x4x4xf32>) {
  %r = relay.nn.upsampling %x {scale_h = -2.0 : f64, scale_w = 2.0 : f64} : (tensor<1x4x4x4xf32>) -> tensor<1x8x8x4xf32>
  func.return
}

// -----
// error: relay.image.resize1d: method must be one of
func.func @resize1d(%x: tensor<1x4x8xf32>) {
  %r = relay.image.resize1d %x {size = array<i64: 7>, method = "best"} : (tensor<1x4x8xf32>) -> tensor<1x7x8xf32>
  func.return
}

// -----
// error: relay.image.resize1d: rounding_method must be one of
func.func @resize1d(%x: tensor<1x4x8xf32>) {
  %r = relay.image.resize1d %x {size = array<i64: 7>, rounding_method = "up"} : (tensor<1x4x8xf32>) -> tensor<1x7x8xf32>
  func.return
}

// -----
// error: relay.image.resize1d: size needs a number for each spatial axis
func.func @resize1d(%x: tensor<1x4x8xf32>) {
  %r = relay.image.resize1d %x {size = array<i64: 7, 7>} : (tensor<1x4x8xf32>) -> tensor<1x7x8xf32>
  func.return
}

// -----
// error: relay.image.resize1d: size must be positive
func.func @resize1d(%x: tensor<1x4x8xf32>) {
  %r = relay.image.resize1d %x {size = array<i64: 0>} : (tensor<1x4x8xf32>) -> tensor<1x0x8xf32>
  func.return
}

// -----
// error: relay.image.resize1d: takes no empty data
func.func @resize1d(%x: tensor<1x0x8xf32>) {
  %r = relay.image.resize1d %x {size = array<i64: 7>} : (tensor<1x0x8xf32>) -> tensor<1x7x8xf32>
  func.return
}

// -----
// error: relay.nn.upsampling: method must be one of
func.func @upsampling(%x: tensor<1x2x2x8xf32>) {
  %r = relay.nn.upsampling %x {scale_h = 2.0 : f64, scale_w = 2.0 : f64, method = "best"} : (tensor<1x2x2x8xf32>) -> tensor<1x4x4x8xf32>
  func.return
}

// -----
// error: relay.nn.upsampling: bilinear takes floats
func.func @upsampling(%x: tensor<1x2x2x8xi8>) {
  %r = relay.nn.upsampling %x {scale_h = 2.0 : f64, scale_w = 2.0 : f64, method = "bilinear"} : (tensor<1x2x2x8xi8>) -> tensor<1x4x4x8xi8>
  func.return
}

// -----
// error: relay.nn.upsampling: takes and leaves no empty data
func.func @upsampling(%x: tensor<1x0x2x8xf32>) {
  %r = relay.nn.upsampling %x {scale_h = 2.0 : f64, scale_w = 2.0 : f64} : (tensor<1x0x2x8xf32>) -> tensor<1x0x4x8xf32>
  func.return
}
