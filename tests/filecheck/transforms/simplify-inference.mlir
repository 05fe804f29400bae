// RUN: relay-opt %s -p simplify-inference | filecheck %s

// A factor and a sum per channel, computed from vectors alone; along another axis the vectors are reshaped.
func.func @batch_norm(%x: tensor<1x4x6x6xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  %r = relay.nn.batch_norm %x, %g, %b, %m, %v {axis = 1 : i64, epsilon = 0.001 : f32} : (tensor<1x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  func.return %r : tensor<1x4x6x6xf32>
}
// CHECK-LABEL: func.func @batch_norm
// CHECK-NEXT:    [[E:%.+]] = relay.constant dense<1.000000e-03>
// CHECK-NEXT:    [[A:%.+]] = relay.add %v, [[E]]
// CHECK-NEXT:    [[Q:%.+]] = relay.sqrt [[A]]
// CHECK-NEXT:    [[S:%.+]] = relay.divide %g, [[Q]]
// CHECK-NEXT:    [[P:%.+]] = relay.multiply %m, [[S]]
// CHECK-NEXT:    [[O:%.+]] = relay.subtract %b, [[P]]
// CHECK-NEXT:    [[S2:%.+]] = relay.reshape [[S]] {newshape = array<i64: 4, 1, 1>}
// CHECK-NEXT:    [[M:%.+]] = relay.multiply %x, [[S2]]
// CHECK-NEXT:    [[O2:%.+]] = relay.reshape [[O]]
// CHECK-NEXT:    [[R:%.+]] = relay.add [[M]], [[O2]]
// CHECK-NEXT:    func.return [[R]]

func.func @dropout(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = relay.nn.dropout %x {rate = 0.5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @dropout
// CHECK-NEXT:    func.return %x

func.func @l2(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %r = relay.nn.l2_normalize %x {axis = array<i64: 1>, eps = 0.001 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %r : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @l2
// CHECK:         relay.sum {{.*}}keepdims = true
// CHECK-NOT:     l2_normalize
