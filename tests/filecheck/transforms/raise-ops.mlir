// RUN: relay-opt %s -p raise-ops | filecheck %s

func.func @softmax(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %0 = relay.max %x {axis = array<i64: 0>, keepdims = true} : (tensor<2x5xf32>) -> tensor<1x5xf32>
  %1 = relay.subtract %x, %0 : (tensor<2x5xf32>, tensor<1x5xf32>) -> tensor<2x5xf32>
  %2 = relay.exp %1 : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %3 = relay.sum %2 {axis = array<i64: 0>, keepdims = true} : (tensor<2x5xf32>) -> tensor<1x5xf32>
  %4 = relay.divide %2, %3 : (tensor<2x5xf32>, tensor<1x5xf32>) -> tensor<2x5xf32>
  func.return %4 : tensor<2x5xf32>
}
// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    [[R:%.+]] = relay.nn.softmax %x {beta = 1.000000e+00 : f32, axis = 0 : i64}
// CHECK-NEXT:    func.return [[R]]

func.func @other_axes(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %0 = relay.max %x {axis = array<i64: 0>, keepdims = true} : (tensor<5x5xf32>) -> tensor<1x5xf32>
  %1 = relay.subtract %x, %0 : (tensor<5x5xf32>, tensor<1x5xf32>) -> tensor<5x5xf32>
  %2 = relay.exp %1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %3 = relay.sum %2 {axis = array<i64: 1>, keepdims = true} : (tensor<5x5xf32>) -> tensor<5x1xf32>
  %4 = relay.divide %2, %3 : (tensor<5x5xf32>, tensor<5x1xf32>) -> tensor<5x5xf32>
  func.return %4 : tensor<5x5xf32>
}
// CHECK-LABEL: func.func @other_axes
// CHECK:         [[D:%.+]] = relay.subtract
// CHECK-NEXT:    [[R:%.+]] = relay.nn.softmax [[D]]
// CHECK-NEXT:    func.return [[R]]

func.func @sigmoid(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = relay.constant dense<1.0> : tensor<f32>
  %1 = relay.negative %x : (tensor<5xf32>) -> tensor<5xf32>
  %2 = relay.exp %1 : (tensor<5xf32>) -> tensor<5xf32>
  %3 = relay.add %2, %0 : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %4 = relay.divide %0, %3 : (tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  func.return %4 : tensor<5xf32>
}
// CHECK-LABEL: func.func @sigmoid
// CHECK-NEXT:    [[R:%.+]] = relay.sigmoid %x
// CHECK-NEXT:    func.return [[R]]

func.func @hard_swish(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = relay.constant dense<3.0> : tensor<f32>
  %1 = relay.constant dense<6.0> : tensor<f32>
  %2 = relay.add %x, %0 : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %3 = relay.clip %2 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<5xf32>) -> tensor<5xf32>
  %4 = relay.multiply %x, %3 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %5 = relay.divide %4, %1 : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  func.return %5 : tensor<5xf32>
}
// CHECK-LABEL: func.func @hard_swish
// CHECK-NOT:     relay.divide
// CHECK:         relay.clip
// CHECK:         [[S:%.+]] = relay.constant dense<0.166666672> : tensor<f32>
// CHECK-NEXT:    [[G:%.+]] = relay.multiply {{%.+}}, [[S]]
// CHECK-NEXT:    [[R:%.+]] = relay.multiply %x, [[G]]
// CHECK-NEXT:    func.return [[R]]
