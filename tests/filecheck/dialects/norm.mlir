// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @norms(
func.func @norms(%x: tensor<2x5x6x8xf32>, %v: tensor<8xf32>) {
  // CHECK: %b = relay.nn.batch_norm %x, %v, %v, %v, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %b = relay.nn.batch_norm %x, %v, %v, %v, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: %l = relay.nn.layer_norm %x, %v, %v {epsilon = 1.000000e-03 : f32, center = false} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %l = relay.nn.layer_norm %x, %v, %v {epsilon = 1.000000e-03 : f32, center = false} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: %i = relay.nn.instance_norm %x, %v, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %i = relay.nn.instance_norm %x, %v, %v {epsilon = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: %g = relay.nn.group_norm %x, %v, %v {epsilon = 1.000000e-03 : f32, num_groups = 4 : i64} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  %g = relay.nn.group_norm %x, %v, %v {epsilon = 1.000000e-03 : f32, num_groups = 4 : i64} : (tensor<2x5x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: %n = relay.nn.l2_normalize %x {axis = array<i64: 3>, eps = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  %n = relay.nn.l2_normalize %x {axis = array<i64: 3>, eps = 1.000000e-03 : f32} : (tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  // CHECK: %d = relay.nn.dropout %x {rate = 5.000000e-01 : f32} : (tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  %d = relay.nn.dropout %x {rate = 5.000000e-01 : f32} : (tensor<2x5x6x8xf32>) -> tensor<2x5x6x8xf32>
  func.return
}
