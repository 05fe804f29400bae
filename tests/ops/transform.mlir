func.func @expand_dims(%a0: tensor<2x3x4xf32>) {
  %r0 = relay.expand_dims %a0 {axis = 1 : i64, num_newaxis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x1x1x3x4xf32>
  func.return
}

func.func @squeeze(%a0: tensor<1x3x1xf32>) {
  %r0 = relay.squeeze %a0 {axis = array<i64: -1>} : (tensor<1x3x1xf32>) -> tensor<1x3xf32>
  func.return
}

func.func @stack(%a0: tensor<2x3x4xf32>, %a1: tensor<2x3x4xf32>) {
  %r0 = relay.stack %a0, %a1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x2x3x4xf32>
  func.return
}

func.func @repeat(%a0: tensor<2x3x4xf32>) {
  %r0 = relay.repeat %a0 {repeats = 3 : i64, axis = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<6x3x4xf32>
  func.return
}

func.func @split(%a0: tensor<2x3x4xf32>) {
  %r0, %r1 = relay.split %a0 {indices_or_sections = 2 : i64, axis = -1 : i64} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>)
  func.return
}

func.func @tile(%a0: tensor<2x3x4xf32>) {
  %r0 = relay.tile %a0 {reps = array<i64: 2, 1, 3>} : (tensor<2x3x4xf32>) -> tensor<4x3x12xf32>
  func.return
}

func.func @reverse(%a0: tensor<2x3x4xf32>) {
  %r0 = relay.reverse %a0 {axis = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

func.func @meshgrid(%a0: tensor<3xf32>, %a1: tensor<f32>, %a2: tensor<4xf32>) {
  %r0, %r1, %r2 = relay.meshgrid %a0, %a1, %a2 : (tensor<3xf32>, tensor<f32>, tensor<4xf32>) -> (tensor<3x1x4xf32>, tensor<3x1x4xf32>, tensor<3x1x4xf32>)
  func.return
}

func.func @cast_like(%a0: tensor<2x3x4xf32>, %a1: tensor<6x4xi16>) {
  %r0 = relay.cast_like %a0, %a1 : (tensor<2x3x4xf32>, tensor<6x4xi16>) -> tensor<2x3x4xi16>
  func.return
}

func.func @reshape_like(%a0: tensor<2x3x4xf32>, %a1: tensor<6x4xi16>) {
  %r0 = relay.reshape_like %a0, %a1 : (tensor<2x3x4xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

func.func @broadcast_to_like(%a0: tensor<6x1xf32>, %a1: tensor<6x4xi16>) {
  %r0 = relay.broadcast_to_like %a0, %a1 : (tensor<6x1xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

func.func @collapse_sum_like(%a0: tensor<5x6x4xf32>, %a1: tensor<6x4xi16>) {
  %r0 = relay.collapse_sum_like %a0, %a1 : (tensor<5x6x4xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

func.func @slice_like(%a0: tensor<7x5xf32>, %a1: tensor<6x4xi16>) {
  %r0 = relay.slice_like %a0, %a1 {axes = array<i64>} : (tensor<7x5xf32>, tensor<6x4xi16>) -> tensor<6x4xf32>
  func.return
}

func.func @collapse_sum_to(%a0: tensor<2x3x4xf32>) {
  %r0 = relay.collapse_sum_to %a0 {shape = array<i64: 3, 1>} : (tensor<2x3x4xf32>) -> tensor<3x1xf32>
  func.return
}

func.func @layout_transform(%a0: tensor<2x3x4x8xf32>) {
  %r0 = relay.layout_transform %a0 {src_layout = "NHWC", dst_layout = "NCHW"} : (tensor<2x3x4x8xf32>) -> tensor<2x8x3x4xf32>
  func.return
}

func.func @reinterpret(%a0: tensor<2x3x4xf32>) {
  %r0 = relay.reinterpret %a0 {dtype = i32} : (tensor<2x3x4xf32>) -> tensor<2x3x4xi32>
  func.return
}

// -----
// error: relay.expand_dims: num_newaxis must not be negative
func.func @expand_dims(%x: tensor<2x3xf32>) {
  %r = relay.expand_dims %x {axis = 1 : i64, num_newaxis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.squeeze: an axis is not of size 1
func.func @squeeze(%x: tensor<2x3xf32>) {
  %r = relay.squeeze %x {axis = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.stack: takes at least one operand
func.func @stack() {
  %r = relay.stack : () -> tensor<1xf32>
  func.return
}

// -----
// error: relay.stack: the operands' types differ
func.func @stack(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %r = relay.stack %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.split: 3 is not divisible in 2 parts
func.func @split(%x: tensor<2x3xf32>) {
  %r = relay.split %x {indices_or_sections = 2 : i64, axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.split: the axis must be known
func.func @split(%x: tensor<?x3xf32>) {
  %r = relay.split %x {indices_or_sections = 2 : i64, axis = 0 : i64} : (tensor<?x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.split: indices are not in order
func.func @split(%x: tensor<2x3xf32>) {
  %r = relay.split %x {indices_or_sections = array<i64: 2, 1>, axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.tile: reps must not be negative
func.func @tile(%x: tensor<2x3xf32>) {
  %r = relay.tile %x {reps = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.repeat: repeats must be positive
func.func @repeat(%x: tensor<2x3xf32>) {
  %r = relay.repeat %x {repeats = 0 : i64, axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.meshgrid: indexing must be ij or xy
func.func @meshgrid(%x: tensor<3xf32>) {
  %r = relay.meshgrid %x {indexing = "yx"} : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----
// error: relay.meshgrid: takes vectors and scalars
func.func @meshgrid(%x: tensor<2x3xf32>) {
  %r = relay.meshgrid %x : (tensor<2x3xf32>) -> tensor<6xf32>
  func.return
}

// -----
// error: relay.reshape_like: [2, 3] has not the elements of [7]
func.func @reshape_like(%x: tensor<2x3xf32>, %y: tensor<7xf32>) {
  %r = relay.reshape_like %x, %y : (tensor<2x3xf32>, tensor<7xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.reshape_like: the shape must be known
func.func @reshape_like(%x: tensor<2x3xf32>, %y: tensor<?xf32>) {
  %r = relay.reshape_like %x, %y : (tensor<2x3xf32>, tensor<?xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.broadcast_to_like: shapes [2, 3] and [2, 4] do not broadcast
func.func @broadcast_to_like(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  %r = relay.broadcast_to_like %x, %y : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.broadcast_to_like: cannot reach [2, 3]
func.func @broadcast_to_like(%x: tensor<4x2x3xf32>, %y: tensor<2x3xf32>) {
  %r = relay.broadcast_to_like %x, %y : (tensor<4x2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.collapse_sum_to: [4, 2, 3] does not broadcast to it
func.func @collapse_sum_to(%x: tensor<2x3xf32>) {
  %r = relay.collapse_sum_to %x {shape = array<i64: 4, 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.collapse_sum_like: [4, 2, 3] does not broadcast to it
func.func @collapse_sum_like(%x: tensor<2x3xf32>, %y: tensor<4x2x3xf32>) {
  %r = relay.collapse_sum_like %x, %y : (tensor<2x3xf32>, tensor<4x2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.slice_like: axis 1 is longer in the other tensor, or not there
func.func @slice_like(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  %r = relay.slice_like %x, %y {axes = array<i64: 1>} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.layout_transform: layout 'A?': is no layout; write for example NHWC, NCHW or NHWC4c
func.func @layout_transform(%x: tensor<2x3xf32>) {
  %r = relay.layout_transform %x {src_layout = "AB", dst_layout = "A?"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.layout_transform: AB and AC have other axes
func.func @layout_transform(%x: tensor<2x3xf32>) {
  %r = relay.layout_transform %x {src_layout = "AB", dst_layout = "AC"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.layout_transform: ABC has not the input's rank
func.func @layout_transform(%x: tensor<2x3xf32>) {
  %r = relay.layout_transform %x {src_layout = "ABC", dst_layout = "ACB"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.layout_transform: B is no multiple of the split
func.func @layout_transform(%x: tensor<2x3xf32>) {
  %r = relay.layout_transform %x {src_layout = "AB", dst_layout = "AB2b"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.reinterpret: f32 and i8 differ in width
func.func @reinterpret(%x: tensor<2x3xf32>) {
  %r = relay.reinterpret %x {dtype = i8} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
