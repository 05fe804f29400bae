func.func @constants() {
  %splat = relay.constant dense<0> : tensor<2x3xi8>
  %weights = relay.constant {label = "conv/kernel"} dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>
  %large = relay.constant {label = "dense/kernel"} dense_resource<w_dense_kernel_0123456789ab> : tensor<64x64xi8>
  func.return
}

func.func @views(%x: tensor<2x3xi8>) {
  %reshape = relay.reshape %x {newshape = array<i64: -1, 2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  %transpose = relay.transpose %x {axes = array<i64: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  %broadcast = relay.broadcast_to %x {shape = array<i64: 4, 2, 3>} : (tensor<2x3xi8>) -> tensor<4x2x3xi8>
  %slice = relay.strided_slice %x {begin = array<i64: 1, 2>, end = array<i64: -1, 0>, strides = array<i64: -1, -2>} : (tensor<2x3xi8>) -> tensor<2x1xi8>
  func.return
}

func.func @gather(%x: tensor<5x3xf32>, %i: tensor<2x4xi32>, %j: tensor<7x2xi32>) {
  %row = relay.take %x, %i : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %take = relay.take %x, %i {axis = 0 : i64} : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  %gather = relay.gather_nd %x, %j : (tensor<5x3xf32>, tensor<7x2xi32>) -> tensor<7xf32>
  func.return
}

func.func @join(%x: tensor<1x2xi8>, %y: tensor<1x3xi8>) {
  %joined = relay.concatenate %x, %y {axis = 1 : i64} : (tensor<1x2xi8>, tensor<1x3xi8>) -> tensor<1x5xi8>
  %padded = relay.nn.pad %joined {pad_width = array<i64: 0, 0, 1, 2>, pad_value = -128 : i8} : (tensor<1x5xi8>) -> tensor<1x8xi8>
  func.return
}

// -----
// error: relay.reshape: [2, 3] does not fill [4, -1]
func.func @reshape(%x: tensor<2x3xf32>) {
  %r = relay.reshape %x {newshape = array<i64: 4, -1>} : (tensor<2x3xf32>) -> tensor<4x1xf32>
  func.return
}

// -----
// error: relay.transpose: [0, 0] is no permutation of the axes
func.func @transpose(%x: tensor<2x3xf32>) {
  %r = relay.transpose %x {axes = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  func.return
}

// -----
// error: relay.broadcast_to: cannot reach [3]
func.func @broadcast_to(%x: tensor<2x3xf32>) {
  %r = relay.broadcast_to %x {shape = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}

// -----
// error: relay.concatenate: ranks differ
func.func @concatenate(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %r = relay.concatenate %x, %y {axis = 0 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  func.return
}

// -----
// error: relay.strided_slice: 0:4:1 is outside an axis of 3
func.func @strided_slice(%x: tensor<3xf32>) {
  %r = relay.strided_slice %x {begin = array<i64: 0>, end = array<i64: 4>, strides = array<i64: 1>} : (tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.take: indices must be integers
func.func @take(%x: tensor<3xf32>) {
  %r = relay.take %x, %x {axis = 0 : i64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----
// error: relay.gather_nd: indices have too many coordinates
func.func @gather_nd(%x: tensor<3xf32>, %i: tensor<1x2xi32>) {
  %r = relay.gather_nd %x, %i : (tensor<3xf32>, tensor<1x2xi32>) -> tensor<1xf32>
  func.return
}

// -----
// error: relay.nn.pad: pad_value is not i8
func.func @pad(%x: tensor<3xi8>) {
  %r = relay.nn.pad %x {pad_width = array<i64: 1, 1>, pad_value = 0 : i32} : (tensor<3xi8>) -> tensor<5xi8>
  func.return
}

// -----
// error: relay.constant: holds a tensor, not vector<2xi8>
func.func @constant() {
  %r = "relay.constant"() <{value = dense<1> : vector<2xi8>}> : () -> tensor<2xi8>
  func.return
}

// -----
// error: relay.reshape: bad newshape [-1, -1]
func.func @reshape(%x: tensor<4xi8>) {
  %r = relay.reshape %x {newshape = array<i64: -1, -1>} : (tensor<4xi8>) -> tensor<2x2xi8>
  func.return
}

// -----
// error: relay.reshape: [4] has not the elements of [3]
func.func @reshape(%x: tensor<4xi8>) {
  %r = relay.reshape %x {newshape = array<i64: 3>} : (tensor<4xi8>) -> tensor<3xi8>
  func.return
}

// -----
// error: relay.concatenate: takes at least one operand
func.func @concatenate() {
  %r = "relay.concatenate"() <{axis = 0 : i64}> : () -> tensor<0xi8>
  func.return
}

// -----
// error: relay.concatenate: element types differ
func.func @concatenate(%x: tensor<2xi8>, %y: tensor<2xi16>) {
  %r = relay.concatenate %x, %y {axis = 0 : i64} : (tensor<2xi8>, tensor<2xi16>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.concatenate: axis 1 differs
func.func @concatenate(%x: tensor<2x3xi8>, %y: tensor<2x4xi8>) {
  %r = relay.concatenate %x, %y {axis = 0 : i64} : (tensor<2x3xi8>, tensor<2x4xi8>) -> tensor<4x3xi8>
  func.return
}

// -----
// error: relay.strided_slice: one number per axis is needed
func.func @strided_slice(%x: tensor<2x3xi8>) {
  %r = relay.strided_slice %x {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 1>} : (tensor<2x3xi8>) -> tensor<1x3xi8>
  func.return
}

// -----
// error: relay.strided_slice: a stride is zero
func.func @strided_slice(%x: tensor<2xi8>) {
  %r = relay.strided_slice %x {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 0>} : (tensor<2xi8>) -> tensor<1xi8>
  func.return
}

// -----
// error: relay.gather_nd: indices must be integers
func.func @gather_nd(%x: tensor<2x3xi8>, %y: tensor<2x1xf32>) {
  %r = relay.gather_nd %x, %y : (tensor<2x3xi8>, tensor<2x1xf32>) -> tensor<2x3xi8>
  func.return
}

// -----
// error: relay.nn.pad: pad_width needs two numbers per axis
func.func @pad(%x: tensor<2x3xi8>) {
  %r = relay.nn.pad %x {pad_width = array<i64: 1, 1>, pad_value = 0 : i8} : (tensor<2x3xi8>) -> tensor<4x3xi8>
  func.return
}

// -----
// error: relay.nn.pad: pad_width must not be negative
func.func @pad(%x: tensor<2xi8>) {
  %r = relay.nn.pad %x {pad_width = array<i64: -1, 0>, pad_value = 0 : i8} : (tensor<2xi8>) -> tensor<1xi8>
  func.return
}
