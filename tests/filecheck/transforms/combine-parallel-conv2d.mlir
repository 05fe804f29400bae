// RUN: relay-opt %s -p 'combine-parallel-conv2d{min_num_branches=2}' | filecheck %s
// RUN: relay-opt %s -p combine-parallel-conv2d | filecheck %s --check-prefix THREE

// Two of a kind become one; the third has another window.
func.func @main(%x: tensor<1x4x4x2xi8>) -> (tensor<1x4x4x1xi32>, tensor<1x4x4x2xi32>, tensor<1x2x2x1xi32>) {
  %a = relay.constant dense<1> : tensor<1x1x1x2xi8>
  %b = relay.constant dense<2> : tensor<2x1x1x2xi8>
  %c = relay.constant dense<3> : tensor<1x3x3x2xi8>
  %0 = relay.nn.conv2d %x, %a : (tensor<1x4x4x2xi8>, tensor<1x1x1x2xi8>) -> tensor<1x4x4x1xi32>
  %1 = relay.nn.conv2d %x, %b : (tensor<1x4x4x2xi8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = relay.nn.conv2d %x, %c : (tensor<1x4x4x2xi8>, tensor<1x3x3x2xi8>) -> tensor<1x2x2x1xi32>
  func.return %0, %1, %2 : tensor<1x4x4x1xi32>, tensor<1x4x4x2xi32>, tensor<1x2x2x1xi32>
}
// CHECK-LABEL: func.func @main
// CHECK:         [[W:%.+]] = relay.constant {{.*}}tensor<3x1x1x2xi8>
// CHECK-NEXT:    [[C:%.+]] = relay.nn.conv2d %x, [[W]] : {{.*}}-> tensor<1x4x4x3xi32>
// CHECK-NEXT:    [[A:%.+]] = relay.strided_slice [[C]] {begin = array<i64: 0, 0, 0, 0>, end = array<i64: 1, 4, 4, 1>
// CHECK-NEXT:    [[B:%.+]] = relay.strided_slice [[C]] {begin = array<i64: 0, 0, 0, 1>, end = array<i64: 1, 4, 4, 3>
// CHECK-NEXT:    [[O:%.+]] = relay.nn.conv2d %x
// CHECK-NEXT:    func.return [[A]], [[B]], [[O]]
// THREE-LABEL: func.func @main
// THREE-NOT:     strided_slice
