// RUN: relay-opt %s -p combine-parallel-dense | filecheck %s

func.func @main(%x: tensor<2x4xi8>) -> (tensor<2x1xi32>, tensor<2x2xi32>, tensor<2x3xi32>) {
  %a = relay.constant dense<1> : tensor<1x4xi8>
  %b = relay.constant dense<2> : tensor<2x4xi8>
  %c = relay.constant dense<3> : tensor<3x4xi8>
  %0 = qnn.dense %x, %a {input_scale = 1.0 : f32, input_zero_point = 3 : i32, kernel_scale = 0.5 : f32} : (tensor<2x4xi8>, tensor<1x4xi8>) -> tensor<2x1xi32>
  %1 = qnn.dense %x, %b {input_scale = 1.0 : f32, input_zero_point = 3 : i32, kernel_scale = 0.25 : f32} : (tensor<2x4xi8>, tensor<2x4xi8>) -> tensor<2x2xi32>
  %2 = qnn.dense %x, %c {input_scale = 1.0 : f32, input_zero_point = 3 : i32, kernel_scale = 0.5 : f32} : (tensor<2x4xi8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  func.return %0, %1, %2 : tensor<2x1xi32>, tensor<2x2xi32>, tensor<2x3xi32>
}
// CHECK-LABEL: func.func @main
// CHECK:         [[C:%.+]] = qnn.dense {{.*}}kernel_scale = dense<[5.000000e-01, 2.500000e-01, 2.500000e-01, 5.000000e-01, 5.000000e-01, 5.000000e-01]>{{.*}}-> tensor<2x6xi32>
// CHECK-NEXT:    relay.strided_slice [[C]] {begin = array<i64: 0, 0>, end = array<i64: 2, 1>
// CHECK-NEXT:    relay.strided_slice [[C]] {begin = array<i64: 0, 1>, end = array<i64: 2, 3>
// CHECK-NEXT:    relay.strided_slice [[C]] {begin = array<i64: 0, 3>, end = array<i64: 2, 6>
