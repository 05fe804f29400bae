// RUN: relay-opt %s -p fast-math | filecheck %s

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf16>) -> (tensor<4xf32>, tensor<4xf16>) {
  %0 = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.sigmoid %y : (tensor<4xf16>) -> tensor<4xf16>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf16>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    relay.clip %x {a_min = -7.500000e+00 : f32, a_max = 7.500000e+00 : f32}
// CHECK:         [[Q:%.+]] = relay.divide
// CHECK-NEXT:    [[R:%.+]] = relay.clip [[Q]] {a_min = -1.000000e+00 : f32, a_max = 1.000000e+00 : f32}
// CHECK-NEXT:    [[S:%.+]] = relay.sigmoid %y
// CHECK-NEXT:    func.return [[R]], [[S]]
