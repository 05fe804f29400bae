func.func @reduce(%x: tensor<2x3x4xi32>) {
  %sum = relay.sum %x {axis = array<i64: 1>} : (tensor<2x3x4xi32>) -> tensor<2x4xi32>
  %max = relay.max %x {axis = array<i64: -1>, keepdims = true} : (tensor<2x3x4xi32>) -> tensor<2x3x1xi32>
  %min = relay.min %x {axis = array<i64>} : (tensor<2x3x4xi32>) -> tensor<i32>
  func.return
}

func.func @index(%x: tensor<2x3xf32>) {
  %argmax = relay.argmax %x {axis = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xi32>
  %argmin = relay.argmin %x {axis = array<i64: 0>, dtype = i64} : (tensor<2x3xf32>) -> tensor<3xi64>
  func.return
}

func.func @combine(%x: tensor<2x3x4xf32>, %b: tensor<2x3x4xi1>, %m: tensor<2x1x4xf32>) {
  %prod = relay.prod %x {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %all = relay.all %b {axis = array<i64: 0, 2>, keepdims = true} : (tensor<2x3x4xi1>) -> tensor<1x3x1xi1>
  %any = relay.any %b {axis = array<i64>} : (tensor<2x3x4xi1>) -> tensor<i1>
  %mean = relay.mean %x {axis = array<i64: 1>, exclude = true} : (tensor<2x3x4xf32>) -> tensor<3xf32>
  %variance = relay.variance %x, %m {axis = array<i64: 1>, unbiased = true} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.sum: axis 3 is outside a tensor of rank 2
func.func @sum(%x: tensor<2x3xf32>) {
  %r = relay.sum %x {axis = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<2xf32>
  func.return
}

// -----
// error: relay.argmax: takes one axis
func.func @argmax(%x: tensor<2x3xf32>) {
  %r = relay.argmax %x {axis = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<i32>
  func.return
}

// -----
// error: relay.argmin: dtype must be i32 or i64
func.func @argmin(%x: tensor<2x3xf32>) {
  %r = relay.argmin %x {axis = array<i64: 0>, dtype = i8} : (tensor<2x3xf32>) -> tensor<3xi8>
  func.return
}

// -----
// error: relay.all: takes i1, not f32
func.func @all(%x: tensor<2x3xf32>) {
  %r = relay.all %x {axis = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}

// -----
// error: relay.variance: takes floats, not i32
func.func @variance(%x: tensor<2x3xi32>, %y: tensor<2x3xi32>) {
  %r = relay.variance %x, %y {axis = array<i64: 0>} : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<3xi32>
  func.return
}

// -----
// error: relay.variance: element types differ: f32 and i32
func.func @variance(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>) {
  %r = relay.variance %x, %y {axis = array<i64: 0>} : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<3xf32>
  func.return
}

// -----
// error: relay.variance: the mean has more axes than the input
func.func @variance(%x: tensor<3xf32>, %y: tensor<2x3xf32>) {
  %r = relay.variance %x, %y {axis = array<i64: 0>} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<f32>
  func.return
}
