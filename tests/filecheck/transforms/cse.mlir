// RUN: relay-opt %s -p cse | filecheck %s

// Equal ops and equal constants are one; ops that differ in a property stay.

// CHECK-LABEL: func.func @main
// CHECK:         [[E:%.+]] = relay.exp %x
// CHECK-NEXT:    [[C:%.+]] = relay.constant dense<1.000000e+00>
// CHECK-NEXT:    [[A:%.+]] = relay.add [[E]], [[C]]
// CHECK-NEXT:    [[L:%.+]] = relay.clip [[A]] {{.*}}a_max = 2.000000e+00 : f32
// CHECK-NEXT:    [[H:%.+]] = relay.clip [[A]] {{.*}}a_max = 3.000000e+00 : f32
// CHECK-NEXT:    func.return [[L]], [[H]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %d = relay.constant dense<1.0> : tensor<4xf32>
  %2 = relay.add %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = relay.add %1, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = relay.clip %2 {a_min = 0.0 : f32, a_max = 2.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = relay.clip %3 {a_min = 0.0 : f32, a_max = 3.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %4, %5 : tensor<4xf32>, tensor<4xf32>
}
