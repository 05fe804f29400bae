func.func @norms(%x: tensor<2x5x6x8xf32>, %v: tensor<8xf32>) {
  %b = relay.nn.batch_norm %x, %v, %v, %v, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %l = relay.nn.layer_norm %x, %v, %v {epsilon = 1.000000e-03 : f32, center = false} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %m = relay.nn.rms_norm %x, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %i = relay.nn.instance_norm %x, %v, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %g = relay.nn.group_norm %x, %v, %v {epsilon = 1.000000e-03 : f32, num_groups = 4 : i64} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %n = relay.nn.l2_normalize %x {axis = array<i64: 3>, eps = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  %d = relay.nn.dropout %x {rate = 5.000000e-01 : f32} : (tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  func.return
}

// -----
// error: relay.nn.layer_norm: takes floats
func.func @layer_norm(%x: tensor<2x4xi8>, %g: tensor<4xi8>) {
  %r = relay.nn.layer_norm %x, %g, %g {epsilon = 1.0e-05 : f32} : (tensor<2x4xi8>, tensor<4xi8>, tensor<4xi8>) -> tensor<2x4xi8>
  func.return
}

// -----
// error: relay.nn.layer_norm: element types differ
func.func @layer_norm(%x: tensor<2x4xf32>, %g: tensor<4xf64>) {
  %r = relay.nn.layer_norm %x, %g, %g {epsilon = 1.0e-05 : f32} : (tensor<2x4xf32>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.nn.layer_norm: a vector of [3] for axis of 4
func.func @layer_norm(%x: tensor<2x4xf32>, %g: tensor<3xf32>) {
  %r = relay.nn.layer_norm %x, %g, %g {epsilon = 1.0e-05 : f32} : (tensor<2x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.nn.group_norm: 6 channels in 4 groups
func.func @group_norm(%x: tensor<2x4x6xf32>, %g: tensor<6xf32>) {
  %r = relay.nn.group_norm %x, %g, %g {epsilon = 1.0e-05 : f32, num_groups = 4 : i64} : (tensor<2x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  func.return
}

// -----
// error: relay.nn.group_norm: axis 0 is that of the images
func.func @group_norm(%x: tensor<2x4x6xf32>, %g: tensor<6xf32>) {
  %r = relay.nn.group_norm %x, %g, %g {epsilon = 1.0e-05 : f32, num_groups = 1 : i64, axis = 0 : i64} : (tensor<2x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  func.return
}

// -----
// error: relay.nn.l2_normalize: takes floats
func.func @l2_normalize(%x: tensor<2x4xi8>) {
  %r = relay.nn.l2_normalize %x {axis = array<i64: 1>, eps = 1.0e-05 : f32} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  func.return
}
