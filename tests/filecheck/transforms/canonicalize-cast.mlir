// RUN: relay-opt %s -p canonicalize-cast | filecheck %s

func.func @main(%x: tensor<4xi8>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi8>, tensor<4xi8>) {
  %w = relay.cast %x {dtype = i32} : (tensor<4xi8>) -> tensor<4xi32>
  %0 = relay.add %w, %w : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = relay.multiply %w, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %n = relay.cast %y {dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
  %2 = relay.negative %n : (tensor<4xi8>) -> tensor<4xi8>
  %3 = relay.abs %n : (tensor<4xi8>) -> tensor<4xi8>
  func.return %0, %1, %2, %3 : tensor<4xi32>, tensor<4xi32>, tensor<4xi8>, tensor<4xi8>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %w = relay.cast %x
// CHECK-NEXT:    relay.add %w, %w
// CHECK-NEXT:    [[C:%.+]] = relay.cast %x
// CHECK-NEXT:    relay.multiply [[C]], %y
// CHECK-NEXT:    %n = relay.cast %y
// CHECK-NEXT:    relay.negative %n
// CHECK-NEXT:    relay.abs %n
