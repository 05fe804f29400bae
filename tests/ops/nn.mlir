func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>, %bias: tensor<6xi32>) {
  %conv = relay.nn.conv2d %x, %k {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = -128 : i32} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x4x4x6xi32>
  %biased = relay.nn.bias_add %conv, %bias : (tensor<1x4x4x6xi32>, tensor<6xi32>) -> tensor<1x4x4x6xi32>
  func.return
}

func.func @depthwise(%x: tensor<?x8x8x4xf32>, %k: tensor<3x3x4x2xf32>) {
  %conv = relay.nn.conv2d %x, %k {dilation = array<i64: 2, 2>, groups = 4 : i64, kernel_layout = "HWOI", out_dtype = f32} : (tensor<?x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<?x4x4x8xf32>
  func.return
}

func.func @dense(%x: tensor<2x16xui8>, %k: tensor<10x16xui8>) {
  %r = relay.nn.dense %x, %k {input_zero_point = 128 : i32, kernel_zero_point = 127 : i32} : (tensor<2x16xui8>, tensor<10x16xui8>) -> tensor<2x10xi32>
  func.return
}

func.func @weight_only(%x: tensor<?x32xf32>, %c: tensor<10x2x16xui8>, %s: tensor<10x2xf32>, %z: tensor<10x2xui8>) {
  %q = relay.nn.weight_only_dense %x, %c, %s, %z {data_bits = 8 : i64} : (tensor<?x32xf32>, tensor<10x2x16xui8>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<?x10xf32>
  %r = relay.nn.weight_only_dense %x, %c, %s, %z : (tensor<?x32xf32>, tensor<10x2x16xui8>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<?x10xf32>
  func.return
}

func.func @weight_only_floats(%x: tensor<?x32xf32>, %c: tensor<10x2x16xf8E4M3FN>, %s: tensor<10x2xf32>, %z: tensor<10x2xui8>) {
  %q = relay.nn.weight_only_dense %x, %c, %s, %z : (tensor<?x32xf32>, tensor<10x2x16xf8E4M3FN>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<?x10xf32>
  func.return
}

func.func @pool(%x: tensor<1x6x6x3xi8>) {
  %max = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x6x6x3xi8>) -> tensor<1x3x3x3xi8>
  %avg = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x6x6x3xi8>) -> tensor<1x6x6x3xi8>
  %gaps = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilation = array<i64: 2, 1>, ceil_mode = true} : (tensor<1x6x6x3xi8>) -> tensor<1x3x3x3xi8>
  %ceil = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, ceil_mode = true, count_include_pad = true} : (tensor<1x6x6x3xi8>) -> tensor<1x4x4x3xi8>
  func.return
}

func.func @softmax(%x: tensor<1x10xf32>) {
  %r = relay.nn.softmax %x {beta = 1.000000e+00 : f32} : (tensor<1x10xf32>) -> tensor<1x10xf32>
  func.return
}

func.func @layouts(%x: tensor<1x4x8x8xi8>, %k: tensor<8x4x3x3xi8>) {
  %conv = relay.nn.conv2d %x, %k {data_layout = "NCHW", kernel_layout = "OIHW", out_layout = "NHWC4c"} : (tensor<1x4x8x8xi8>, tensor<8x4x3x3xi8>) -> tensor<1x6x6x2x4xi32>
  %max = relay.nn.max_pool2d %conv {pool_size = array<i64: 2, 2>, layout = "NHWC4c"} : (tensor<1x6x6x2x4xi32>) -> tensor<1x5x5x2x4xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: 4 channels, kernel takes 3 x 1 groups
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x3xi8>) {
  %r = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<6x3x3x3xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: kernel_layout must be one of
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %k {kernel_layout = "HOWI"} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: layout NHC must name N, H, W and C
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %k {data_layout = "NHC"} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: 6 output channels are no whole blocks of NHWC4c
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %k {out_layout = "NHWC4c"} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x1x4xi32>
  func.return
}

// -----
// error: relay.nn.max_pool2d: data must have rank 5
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, layout = "NHWC4c"} : (tensor<1x6x6x3xi8>) -> tensor<1x5x5x3xi8>
  func.return
}

// -----
// error: relay.nn.conv2d: a window of 9 does not fit in 8 padded to 8
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %k: tensor<6x9x9x4xi8>) {
  %r = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<6x9x9x4xi8>) -> tensor<1x1x1x6xi32>
  func.return
}

// -----
// error: relay.nn.dense: 16 inputs, kernel takes 15
func.func @dense(%x: tensor<2x16xi8>, %k: tensor<10x15xi8>) {
  %r = relay.nn.dense %x, %k : (tensor<2x16xi8>, tensor<10x15xi8>) -> tensor<2x10xi32>
  func.return
}

// -----
// error: relay.nn.dense: integers accumulate in i32 or i64, not i16
func.func @dense(%x: tensor<2x16xi8>, %k: tensor<10x16xi8>) {
  %r = relay.nn.dense %x, %k {out_dtype = i16} : (tensor<2x16xi8>, tensor<10x16xi8>) -> tensor<2x10xi16>
  func.return
}

// -----
// error: relay.nn.bias_add: bias [3] for axis of 4
func.func @bias_add(%x: tensor<2x4xi32>, %b: tensor<3xi32>) {
  %r = relay.nn.bias_add %x, %b : (tensor<2x4xi32>, tensor<3xi32>) -> tensor<2x4xi32>
  func.return
}

// -----
// error: relay.nn.max_pool2d: a window may not lie wholly in the padding
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, padding = array<i64: 2, 0, 0, 0>} : (tensor<1x6x6x3xi8>) -> tensor<1x7x5x3xi8>
  func.return
}

// -----
// error: relay.nn.softmax: takes floats, not i8
func.func @softmax(%x: tensor<4xi8>) {
  %r = relay.nn.softmax %x {beta = 1.0 : f32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.image.resize2d: unknown method "cubic"
func.func @resize2d(%x: tensor<1x4x4x3xi8>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, method = "cubic"} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  func.return
}

// -----
// error: relay.image.resize2d: align_corners and half_pixel_centers exclude each other
func.func @resize2d(%x: tensor<1x4x4x3xi8>) {
  %r = relay.image.resize2d %x {size = array<i64: 8, 8>, align_corners = true, half_pixel_centers = true} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  func.return
}

// -----
// error: relay.nn.conv2d: kernel, strides and dilation must be positive
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %y {strides = array<i64: 0, 1>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: strides must have 2 numbers, has 1
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %y {strides = array<i64: 1>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: padding must have 4 numbers, has 2
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %y {padding = array<i64: 1, 1>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: padding must not be negative
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %y {padding = array<i64: 0, 0, 0, -1>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.max_pool2d: axis c of NHWC4c has 3
func.func @max_pool2d(%x: tensor<1x6x6x1x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, layout = "NHWC4c"} : (tensor<1x6x6x1x3xi8>) -> tensor<1x5x5x1x3xi8>
  func.return
}

// -----
// error: relay.nn.max_pool2d: layout '?': is no layout; write for example NHWC, NCHW or NHWC4c
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, layout = "?"} : (tensor<1x6x6x3xi8>) -> tensor<1x5x5x3xi8>
  func.return
}

// -----
// error: relay.nn.max_pool2d: layout NHWC2w may split C only
func.func @max_pool2d(%x: tensor<1x6x6x3x2xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 2, 2>, layout = "NHWC2w"} : (tensor<1x6x6x3x2xi8>) -> tensor<1x5x5x3x2xi8>
  func.return
}

// -----
// error: relay.nn.conv2d: the kernel must have rank 4
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<6x3x3xi8>) {
  %r = relay.nn.conv2d %x, %y : (tensor<1x8x8x4xi8>, tensor<6x3x3xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: groups must be positive
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<6x3x3x4xi8>) {
  %r = relay.nn.conv2d %x, %y {groups = 0 : i64} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>) -> tensor<1x6x6x6xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: a HWOI kernel of 3 groups where groups = 4
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<3x3x3x1xi8>) {
  %r = relay.nn.conv2d %x, %y {groups = 4 : i64, kernel_layout = "HWOI"} : (tensor<1x8x8x4xi8>, tensor<3x3x3x1xi8>) -> tensor<1x6x6x4xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: 5 channels where groups = 4
func.func @conv2d(%x: tensor<1x8x8x5xi8>, %y: tensor<3x3x4x1xi8>) {
  %r = relay.nn.conv2d %x, %y {groups = 4 : i64, kernel_layout = "HWOI"} : (tensor<1x8x8x5xi8>, tensor<3x3x4x1xi8>) -> tensor<1x6x6x4xi32>
  func.return
}

// -----
// error: relay.nn.conv2d: 5 output channels are not divisible by 2 groups
func.func @conv2d(%x: tensor<1x8x8x4xi8>, %y: tensor<5x3x3x2xi8>) {
  %r = relay.nn.conv2d %x, %y {groups = 2 : i64} : (tensor<1x8x8x4xi8>, tensor<5x3x3x2xi8>) -> tensor<1x6x6x5xi32>
  func.return
}

// -----
// error: relay.nn.dense: float operands and result must have one type, got f32, f32, i32
func.func @dense(%x: tensor<2x16xf32>, %y: tensor<10x16xf32>) {
  %r = relay.nn.dense %x, %y : (tensor<2x16xf32>, tensor<10x16xf32>) -> tensor<2x10xi32>
  func.return
}

// -----
// error: relay.nn.dense: takes floats or 8/16-bit codes, not i32
func.func @dense(%x: tensor<2x16xi32>, %y: tensor<10x16xi32>) {
  %r = relay.nn.dense %x, %y : (tensor<2x16xi32>, tensor<10x16xi32>) -> tensor<2x10xi32>
  func.return
}

// -----
// error: relay.nn.dense: data must have rank 1 or more, the kernel rank 2
func.func @dense(%x: tensor<2x16xi8>, %y: tensor<16xi8>) {
  %r = relay.nn.dense %x, %y : (tensor<2x16xi8>, tensor<16xi8>) -> tensor<2xi32>
  func.return
}

// -----
// error: relay.nn.bias_add: element types differ
func.func @bias_add(%x: tensor<2x4xi32>, %y: tensor<4xi8>) {
  %r = relay.nn.bias_add %x, %y : (tensor<2x4xi32>, tensor<4xi8>) -> tensor<2x4xi32>
  func.return
}

// -----
// error: relay.nn.softmax: takes rank 1 or more
func.func @softmax(%x: tensor<f32>) {
  %r = relay.nn.softmax %x {beta = 1.0 : f32} : (tensor<f32>) -> tensor<f32>
  func.return
}

// -----
// error: relay.nn.max_pool2d: a window of 7 does not fit in 6
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 3, 3>, dilation = array<i64: 3, 1>} : (tensor<1x6x6x3xi8>) -> tensor<1x1x4x3xi8>
  func.return
}

// -----
// error: relay.nn.avg_pool2d: dilation must be positive
func.func @avg_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.avg_pool2d %x {pool_size = array<i64: 3, 3>, dilation = array<i64: 0, 1>} : (tensor<1x6x6x3xi8>) -> tensor<1x4x4x3xi8>
  func.return
}

// -----
// error: relay.nn.max_pool2d: dilation must have 2 numbers, has 1
func.func @max_pool2d(%x: tensor<1x6x6x3xi8>) {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 3, 3>, dilation = array<i64: 1>} : (tensor<1x6x6x3xi8>) -> tensor<1x4x4x3xi8>
  func.return
}

// -----
// error: relay.nn.weight_only_dense: data must have rank 1 or more, the codes rank 3
func.func @weight_only(%x: tensor<2x32xf32>, %c: tensor<10x32xui8>, %s: tensor<10x2xf32>, %z: tensor<10x2xui8>) {
  %r = relay.nn.weight_only_dense %x, %c, %s, %z : (tensor<2x32xf32>, tensor<10x32xui8>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<2x10xf32>
  func.return
}

// -----
// error: relay.nn.weight_only_dense: 30 inputs, codes take 32
func.func @weight_only(%x: tensor<2x30xf32>, %c: tensor<10x2x16xui8>, %s: tensor<10x2xf32>, %z: tensor<10x2xui8>) {
  %r = relay.nn.weight_only_dense %x, %c, %s, %z : (tensor<2x30xf32>, tensor<10x2x16xui8>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<2x10xf32>
  func.return
}

// -----
// error: relay.nn.weight_only_dense: zero points must have shape [10, 2]
func.func @weight_only(%x: tensor<2x32xf32>, %c: tensor<10x2x16xui8>, %s: tensor<10x2xf32>, %z: tensor<10x1xui8>) {
  %r = relay.nn.weight_only_dense %x, %c, %s, %z : (tensor<2x32xf32>, tensor<10x2x16xui8>, tensor<10x2xf32>, tensor<10x1xui8>) -> tensor<2x10xf32>
  func.return
}

// -----
// error: relay.nn.weight_only_dense: data_bits may be 8, not 4
func.func @weight_only(%x: tensor<2x32xf32>, %c: tensor<10x2x16xui8>, %s: tensor<10x2xf32>, %z: tensor<10x2xui8>) {
  %r = relay.nn.weight_only_dense %x, %c, %s, %z {data_bits = 4 : i64} : (tensor<2x32xf32>, tensor<10x2x16xui8>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<2x10xf32>
  func.return
}

// -----
// error: relay.nn.weight_only_dense: takes f32, ui8, f32 and ui8
func.func @weight_only(%x: tensor<2x32xf32>, %c: tensor<10x2x16xi8>, %s: tensor<10x2xf32>, %z: tensor<10x2xui8>) {
  %r = relay.nn.weight_only_dense %x, %c, %s, %z : (tensor<2x32xf32>, tensor<10x2x16xi8>, tensor<10x2xf32>, tensor<10x2xui8>) -> tensor<2x10xf32>
  func.return
}
