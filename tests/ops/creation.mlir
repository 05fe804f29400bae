func.func @zeros() {
  %r0 = relay.zeros {shape = array<i64: 2, 3>, dtype = f32} : tensor<2x3xf32>
  func.return
}

func.func @ones() {
  %r0 = relay.ones {shape = array<i64: 2, 3>, dtype = f32} : tensor<2x3xf32>
  func.return
}

func.func @full(%a0: tensor<f32>) {
  %r0 = relay.full %a0 {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  func.return
}

func.func @full_like(%a0: tensor<4x2xf32>, %a1: tensor<f32>) {
  %r0 = relay.full_like %a0, %a1 : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  func.return
}

func.func @arange() {
  %r0 = relay.arange {start = 7 : i32, stop = -3 : i32, step = -3 : i32} : tensor<4xi32>
  func.return
}

func.func @one_hot(%a0: tensor<2x3xi32>, %a1: tensor<f32>, %a2: tensor<f32>) {
  %r0 = relay.one_hot %a0, %a1, %a2 {depth = 5 : i64} : (tensor<2x3xi32>, tensor<f32>, tensor<f32>) -> tensor<2x3x5xf32>
  func.return
}

func.func @cumsum(%a0: tensor<2x4x3xf32>) {
  %r0 = relay.cumsum %a0 {axis = 1 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  func.return
}

func.func @cumprod(%a0: tensor<2x4x3xf32>) {
  %r0 = relay.cumprod %a0 {axis = 1 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  func.return
}

func.func @sequence_mask(%a0: tensor<4x5x2xf32>, %a1: tensor<5xi32>) {
  %r0 = relay.sequence_mask %a0, %a1 {mask_value = 3.000000e+00 : f32} : (tensor<4x5x2xf32>, tensor<5xi32>) -> tensor<4x5x2xf32>
  func.return
}

func.func @matrix_set_diag(%a0: tensor<2x3x4xf32>, %a1: tensor<2x3xf32>) {
  %r0 = relay.matrix_set_diag %a0, %a1 : (tensor<2x3x4xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----
// error: relay.zeros: the shape must be known
func.func @zeros() {
  %r = relay.zeros {shape = array<i64: -1>, dtype = f32} : tensor<2xf32>
  func.return
}

// -----
// error: relay.full: the fill value must be a scalar
func.func @full(%x: tensor<2x3xf32>) {
  %r = relay.full %x {shape = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.full: the shape must be known
func.func @full(%x: tensor<f32>) {
  %r = relay.full %x {shape = array<i64: -1>} : (tensor<f32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.full_like: the fill value must be a scalar
func.func @full_like(%x: tensor<2x3xf32>, %y: tensor<1xf32>) {
  %r = relay.full_like %x, %y : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.full_like: element types differ: f32 and i32
func.func @full_like(%x: tensor<2x3xf32>, %y: tensor<i32>) {
  %r = relay.full_like %x, %y : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.arange: start, stop and step must be of one type
func.func @arange() {
  %r = relay.arange {start = 0 : i32, stop = 4 : i64, step = 1 : i32} : tensor<4xi32>
  func.return
}

// -----
// error: relay.arange: the step is zero
func.func @arange() {
  %r = relay.arange {start = 0 : i32, stop = 4 : i32, step = 0 : i32} : tensor<4xi32>
  func.return
}

// -----
// error: relay.one_hot: indices must be integers
func.func @one_hot(%x: tensor<2x3xf32>, %y: tensor<f32>, %z: tensor<f32>) {
  %r = relay.one_hot %x, %y, %z {depth = 2 : i64} : (tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.one_hot: on_value and off_value must be scalars of one type
func.func @one_hot(%x: tensor<2x3xi32>, %y: tensor<f32>, %z: tensor<i8>) {
  %r = relay.one_hot %x, %y, %z {depth = 2 : i64} : (tensor<2x3xi32>, tensor<f32>, tensor<i8>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.one_hot: the depth must not be negative
func.func @one_hot(%x: tensor<2x3xi32>, %y: tensor<f32>, %z: tensor<f32>) {
  %r = relay.one_hot %x, %y, %z {depth = -2 : i64} : (tensor<2x3xi32>, tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.sequence_mask: the axis must be 0 or 1, of at least two
func.func @sequence_mask(%x: tensor<2x3xf32>, %y: tensor<2xi32>) {
  %r = relay.sequence_mask %x, %y {mask_value = 0.0 : f32, axis = 2 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.sequence_mask: lengths must be integers
func.func @sequence_mask(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %r = relay.sequence_mask %x, %y {mask_value = 0.0 : f32} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.sequence_mask: one length per index of axis 1 is needed
func.func @sequence_mask(%x: tensor<2x3xf32>, %y: tensor<2xi32>) {
  %r = relay.sequence_mask %x, %y {mask_value = 0.0 : f32} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.sequence_mask: mask_value is not f32
func.func @sequence_mask(%x: tensor<2x3xf32>, %y: tensor<3xi32>) {
  %r = relay.sequence_mask %x, %y {mask_value = 0 : i32} : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.matrix_set_diag: k is one number or two
func.func @matrix_set_diag(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  %r = relay.matrix_set_diag %x, %y {k = array<i64: 0, 1, 2>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.matrix_set_diag: takes matrices
func.func @matrix_set_diag(%x: tensor<3xf32>, %y: tensor<2xf32>) {
  %r = relay.matrix_set_diag %x, %y : (tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.matrix_set_diag: align must be one of LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT
func.func @matrix_set_diag(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  %r = relay.matrix_set_diag %x, %y {align = "MIDDLE"} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.matrix_set_diag: element types differ
func.func @matrix_set_diag(%x: tensor<2x3xf32>, %y: tensor<2xi32>) {
  %r = relay.matrix_set_diag %x, %y : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.matrix_set_diag: diagonals 3 to 3 are not in the matrix
func.func @matrix_set_diag(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  %r = relay.matrix_set_diag %x, %y {k = array<i64: 3>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.matrix_set_diag: the diagonals must have shape [2]
func.func @matrix_set_diag(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %r = relay.matrix_set_diag %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.cumsum: takes numbers, not i1; cast them first
func.func @cumsum_of_booleans(%a: tensor<2x3xi1>) {
  %r = relay.cumsum %a {axis = 1 : i64} : (tensor<2x3xi1>) -> tensor<2x3xi1>
  func.return
}
