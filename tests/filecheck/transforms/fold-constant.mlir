// RUN: relay-opt %s -p fold-constant | filecheck %s
// RUN: relay-opt %s -p 'fold-constant{max-bytes=8}' | filecheck %s --check-prefix=SMALL

// What is known is computed; a constant that is only reshaped keeps its label.
func.func @main(%x: tensor<2x2xi32>) -> tensor<2x2xi32> {
  %a = relay.constant {label = "weight"} dense<[1, 2, 3, 4]> : tensor<4xi32>
  %b = relay.constant dense<3> : tensor<i32>
  %0 = relay.reshape %a {newshape = array<i64: 2, 2>} : (tensor<4xi32>) -> tensor<2x2xi32>
  %1 = relay.add %b, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = relay.negative %1 : (tensor<i32>) -> tensor<i32>
  %3 = relay.multiply %x, %0 : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  %4 = relay.add %3, %2 : (tensor<2x2xi32>, tensor<i32>) -> tensor<2x2xi32>
  %5 = relay.broadcast_to %b {shape = array<i64: 2, 2>} : (tensor<i32>) -> tensor<2x2xi32>
  %6 = relay.add %4, %5 : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  func.return %6 : tensor<2x2xi32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[W:%.+]] = relay.constant {label = "weight"} dense<{{.+}}1, 2], [3, 4]]> : tensor<2x2xi32>
// CHECK-NEXT:    [[S:%.+]] = relay.constant dense<-6> : tensor<i32>
// CHECK-NEXT:    [[M:%.+]] = relay.multiply %x, [[W]]
// CHECK-NEXT:    [[A:%.+]] = relay.add [[M]], [[S]]
// CHECK-NEXT:    [[B:%.+]] = relay.constant dense<3> : tensor<2x2xi32>
// CHECK-NEXT:    relay.add [[A]], [[B]]

// A result over the bound stays to be computed, unless it has the operand's numbers.
// SMALL-LABEL: func.func @main
// SMALL-NEXT:    relay.constant dense<3> : tensor<i32>
// SMALL-NEXT:    relay.constant {label = "weight"} dense<{{.+}}1, 2], [3, 4]]> : tensor<2x2xi32>
// SMALL-NEXT:    relay.constant dense<-6> : tensor<i32>
// SMALL:         relay.broadcast_to

// So is what an op of one operand makes of no more elements.
func.func @halved() -> tensor<2xi32> {
  %a = relay.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = relay.negative %a : (tensor<4xi32>) -> tensor<4xi32>
  %1 = relay.strided_slice %0 {begin = array<i64: 0>, end = array<i64: 4>, strides = array<i64: 2>}
    : (tensor<4xi32>) -> tensor<2xi32>
  func.return %1 : tensor<2xi32>
}
// SMALL-LABEL: func.func @halved
// SMALL-NEXT:    relay.constant dense<[-1, -3]> : tensor<2xi32>
// SMALL-NEXT:    func.return
