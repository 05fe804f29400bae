func.func @gather(%a0: tensor<3x5x4xf32>, %a1: tensor<3x2x4xi32>) {
  %r0 = relay.gather %a0, %a1 {axis = 1 : i64} : (tensor<3x5x4xf32>, tensor<3x2x4xi32>) -> tensor<3x2x4xf32>
  func.return
}

func.func @adv_index(%a0: tensor<3x5x4xf32>, %a1: tensor<2x1xi32>, %a2: tensor<6xi32>) {
  %r0 = relay.adv_index %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<2x1xi32>, tensor<6xi32>) -> tensor<2x6x4xf32>
  func.return
}

func.func @reverse_sequence(%a0: tensor<3x5x4xf32>, %a1: tensor<3xi32>) {
  %r0 = relay.reverse_sequence %a0, %a1 : (tensor<3x5x4xf32>, tensor<3xi32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @scatter(%a0: tensor<3x5x4xf32>, %a1: tensor<6x5x4xi32>, %a2: tensor<6x5x4xf32>) {
  %r0 = relay.scatter %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<6x5x4xi32>, tensor<6x5x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @scatter_add(%a0: tensor<3x5x4xf32>, %a1: tensor<6x5x4xi32>, %a2: tensor<6x5x4xf32>) {
  %r0 = relay.scatter_add %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<6x5x4xi32>, tensor<6x5x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @scatter_nd(%a0: tensor<3x5x4xf32>, %a1: tensor<7x2xi32>, %a2: tensor<7x4xf32>) {
  %r0 = relay.scatter_nd %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<7x2xi32>, tensor<7x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @scatter_nd_product(%a0: tensor<3x5x4xf32>, %a1: tensor<7x2xi32>, %a2: tensor<7x4xf32>) {
  %r0 = relay.scatter_nd %a0, %a1, %a2 {mode = "mul"} : (tensor<3x5x4xf32>, tensor<7x2xi32>, tensor<7x4xf32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @scatter_nd_smallest(%a0: tensor<3x5xf32>, %a1: tensor<9x1xi64>, %a2: tensor<9x5xf32>) {
  %r0 = relay.scatter_nd %a0, %a1, %a2 {mode = "min"} : (tensor<3x5xf32>, tensor<9x1xi64>, tensor<9x5xf32>) -> tensor<3x5xf32>
  func.return
}

func.func @scatter_nd_largest(%a0: tensor<3x5xi8>, %a1: tensor<9x2xi64>, %a2: tensor<9xi8>) {
  %r0 = relay.scatter_nd %a0, %a1, %a2 {mode = "max"} : (tensor<3x5xi8>, tensor<9x2xi64>, tensor<9xi8>) -> tensor<3x5xi8>
  func.return
}

func.func @strided_set(%a0: tensor<3x5x4xf32>, %a1: tensor<3x2x2xf32>) {
  %r0 = relay.strided_set %a0, %a1 {begin = array<i64: 0, 1, 0>, end = array<i64: 3, 5, 4>, strides = array<i64: 1, 2, 3>} : (tensor<3x5x4xf32>, tensor<3x2x2xf32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @dynamic_update_slice(%a0: tensor<3x5x4xf32>, %a1: tensor<3x2x4xf32>, %a2: tensor<3xi32>) {
  %r0 = relay.dynamic_update_slice %a0, %a1, %a2 : (tensor<3x5x4xf32>, tensor<3x2x4xf32>, tensor<3xi32>) -> tensor<3x5x4xf32>
  func.return
}

func.func @invert_permutation(%a0: tensor<9xi32>) {
  %r0 = relay.invert_permutation %a0 : (tensor<9xi32>) -> tensor<9xi32>
  func.return
}

func.func @unravel_index(%a0: tensor<2x3xi32>) {
  %r0 = relay.unravel_index %a0 {shape = array<i64: 2, 3, 4>} : (tensor<2x3xi32>) -> tensor<3x2x3xi32>
  func.return
}

// -----
// error: relay.gather: indices must be integers
func.func @gather(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) {
  %r = relay.gather %x, %y {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.gather: indices of shape [2, 4] do not fit [2, 3] along axis 0
func.func @gather(%x: tensor<2x3xf32>, %y: tensor<2x4xi32>) {
  %r = relay.gather %x, %y {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.adv_index: takes at least one operand
func.func @adv_index() {
  %r = relay.adv_index : () -> tensor<1xf32>
  func.return
}

// -----
// error: relay.adv_index: takes one index tensor for each of the first axes
func.func @adv_index(%x: tensor<3xf32>, %y: tensor<2xi32>) {
  %r = relay.adv_index %x, %y, %y : (tensor<3xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----
// error: relay.adv_index: indices must be of one integer type
func.func @adv_index(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) {
  %r = relay.adv_index %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.reverse_sequence: seq_axis and batch_axis are the same
func.func @reverse_sequence(%x: tensor<2x3xf32>, %y: tensor<2xi32>) {
  %r = relay.reverse_sequence %x, %y {seq_axis = 0 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.reverse_sequence: lengths must be integers
func.func @reverse_sequence(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  %r = relay.reverse_sequence %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.reverse_sequence: one length per index of axis 0 is needed
func.func @reverse_sequence(%x: tensor<2x3xf32>, %y: tensor<3xi32>) {
  %r = relay.reverse_sequence %x, %y : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter: element types differ: f32 and i32
func.func @scatter(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>, %z: tensor<2x3xi32>) {
  %r = relay.scatter %x, %y, %z : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter: indices must be integers
func.func @scatter(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>) {
  %r = relay.scatter %x, %y, %z : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter_nd: indices must be integers
func.func @scatter_nd(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>, %z: tensor<2x3xf32>) {
  %r = relay.scatter_nd %x, %y, %z : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter: the shape must be known
func.func @scatter(%x: tensor<?x3xf32>, %y: tensor<?x3xi32>, %z: tensor<?x3xf32>) {
  %r = relay.scatter %x, %y, %z : (tensor<?x3xf32>, tensor<?x3xi32>, tensor<?x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter_add: updates have not the shape of indices
func.func @scatter_add(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>, %z: tensor<2x2xf32>) {
  %r = relay.scatter_add %x, %y, %z : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter_nd: mode must be one of update, add, mul, min, max
func.func @scatter_nd(%x: tensor<2x3xf32>, %y: tensor<2x1xi32>, %z: tensor<2x3xf32>) {
  %r = relay.scatter_nd %x, %y, %z {mode = "mean"} : (tensor<2x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter_nd: indices have too many coordinates
func.func @scatter_nd(%x: tensor<2x3xf32>, %y: tensor<2x3xi32>, %z: tensor<2xf32>) {
  %r = relay.scatter_nd %x, %y, %z : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.scatter_nd: updates must have shape [4, 3]
func.func @scatter_nd(%x: tensor<2x3xf32>, %y: tensor<4x1xi32>, %z: tensor<2x3xf32>) {
  %r = relay.scatter_nd %x, %y, %z : (tensor<2x3xf32>, tensor<4x1xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.strided_set: one number per axis is needed
func.func @strided_set(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) {
  %r = relay.strided_set %x, %y {begin = array<i64: 0>, end = array<i64: 2>, strides = array<i64: 1>} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.strided_set: a slice is outside its axis or not forward
func.func @strided_set(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) {
  %r = relay.strided_set %x, %y {begin = array<i64: 0, 2>, end = array<i64: 2, 1>, strides = array<i64: 1, -1>} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.strided_set: the value must be tensor<2x2xf32>, not tensor<2x1xf32>
func.func @strided_set(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) {
  %r = relay.strided_set %x, %y {begin = array<i64: 0, 0>, end = array<i64: 2, 3>, strides = array<i64: 1, 2>} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.invert_permutation: takes a vector of integers
func.func @invert_permutation(%x: tensor<2x3xf32>) {
  %r = relay.invert_permutation %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.unravel_index: indices must be integers
func.func @unravel_index(%x: tensor<2x3xf32>) {
  %r = relay.unravel_index %x {shape = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.unravel_index: the shape must be positive
func.func @unravel_index(%x: tensor<2x3xi32>) {
  %r = relay.unravel_index %x {shape = array<i64: 0>} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.unravel_index: the shape has too many elements
func.func @unravel_index(%x: tensor<2x3xi32>) {
  %r = relay.unravel_index %x {shape = array<i64: 65536, 65536>} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.take: mode must be clip, fast or wrap
func.func @take(%x: tensor<2x3xf32>, %y: tensor<2xi32>) {
  %r = relay.take %x, %y {axis = 0 : i64, mode = "bounce"} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.take: there is nothing to take along an axis of 0 elements
func.func @take_of_nothing(%x: tensor<2x0xf32>, %y: tensor<2xi32>) {
  %r = relay.take %x, %y {axis = 1 : i64} : (tensor<2x0xf32>, tensor<2xi32>) -> tensor<2x2xf32>
  func.return
}

// -----
// error: relay.gather_nd: there is nothing to take along an axis of 0 elements
func.func @gather_nd_of_nothing(%x: tensor<2x0x4xf32>, %y: tensor<3x2xi32>) {
  %r = relay.gather_nd %x, %y : (tensor<2x0x4xf32>, tensor<3x2xi32>) -> tensor<3x4xf32>
  func.return
}

// -----
// error: relay.gather_nd: the number of coordinates must be known
func.func @gather_nd_of_any(%x: tensor<2x4xf32>, %y: tensor<3x?xi32>) {
  %r = relay.gather_nd %x, %y : (tensor<2x4xf32>, tensor<3x?xi32>) -> tensor<3x4xf32>
  func.return
}

// -----
// error: relay.gather: there is nothing to take along an axis of 0 elements
func.func @gather_of_nothing(%x: tensor<2x0xf32>, %y: tensor<2x1xi32>) {
  %r = relay.gather %x, %y {axis = 1 : i64} : (tensor<2x0xf32>, tensor<2x1xi32>) -> tensor<2x1xf32>
  func.return
}

// -----
// error: relay.adv_index: there is nothing to take along an axis of 0 elements
func.func @adv_index_of_nothing(%x: tensor<0x4xf32>, %y: tensor<2xi32>) {
  %r = relay.adv_index %x, %y : (tensor<0x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.dynamic_update_slice: element types differ: f32 and i8
func.func @dynamic_update_slice(%x: tensor<2x3xf32>, %u: tensor<2x1xi8>, %s: tensor<2xi32>) {
  %r = relay.dynamic_update_slice %x, %u, %s : (tensor<2x3xf32>, tensor<2x1xi8>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.dynamic_update_slice: start must be integers
func.func @dynamic_update_slice(%x: tensor<2x3xf32>, %u: tensor<2x1xf32>, %s: tensor<2xf32>) {
  %r = relay.dynamic_update_slice %x, %u, %s : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.dynamic_update_slice: start must be a vector of 2 numbers
func.func @dynamic_update_slice(%x: tensor<2x3xf32>, %u: tensor<2x1xf32>, %s: tensor<3xi32>) {
  %r = relay.dynamic_update_slice %x, %u, %s : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.dynamic_update_slice: the shape must be known
func.func @dynamic_update_slice(%x: tensor<?x3xf32>, %u: tensor<2x1xf32>, %s: tensor<2xi32>) {
  %r = relay.dynamic_update_slice %x, %u, %s : (tensor<?x3xf32>, tensor<2x1xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  func.return
}

// -----
// error: relay.dynamic_update_slice: an update of shape [2, 4] does not fit [2, 3]
func.func @dynamic_update_slice(%x: tensor<2x3xf32>, %u: tensor<2x4xf32>, %s: tensor<2xi32>) {
  %r = relay.dynamic_update_slice %x, %u, %s : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}
