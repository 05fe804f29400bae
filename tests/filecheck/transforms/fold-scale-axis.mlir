// RUN: relay-opt %s -p fold-scale-axis | filecheck %s

func.func @after(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  %k = relay.constant dense<[[[[1.0, 2.0]]], [[[3.0, 4.0]]]]> : tensor<2x1x1x2xf32>
  %s = relay.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %b = relay.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<1x4x4x2xf32>, tensor<2x1x1x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x4x2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %2 = relay.multiply %1, %s : (tensor<1x4x4x2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  func.return %2 : tensor<1x4x4x2xf32>
}
// CHECK-LABEL: func.func @after
// CHECK-NEXT:    [[K:%.+]] = relay.constant {{.*}}2.000000e+00, 4.000000e+00{{.*}}3.000000e+01, 4.000000e+01
// CHECK-NEXT:    [[C:%.+]] = relay.nn.conv2d %x, [[K]]
// CHECK-NEXT:    [[B:%.+]] = relay.constant dense<[1.000000e+01, 6.000000e+01]>
// CHECK-NEXT:    [[R:%.+]] = relay.add [[C]], [[B]]
// CHECK-NEXT:    func.return [[R]]

func.func @before(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  %k = relay.constant dense<[[[[1.0], [2.0]]]]> : tensor<1x1x2x1xf32>
  %s = relay.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %0 = relay.multiply %s, %x : (tensor<2xf32>, tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = relay.nn.conv2d %0, %k {out_dtype = f32, groups = 2 : i64, kernel_layout = "HWOI"} : (tensor<1x4x4x2xf32>, tensor<1x1x2x1xf32>) -> tensor<1x4x4x2xf32>
  func.return %1 : tensor<1x4x4x2xf32>
}
// CHECK-LABEL: func.func @before
// CHECK-NEXT:    [[K:%.+]] = relay.constant {{.*}}2.000000e+00{{.*}}2.000000e+01
// CHECK-NEXT:    [[R:%.+]] = relay.nn.conv2d %x, [[K]]

// Batch normalization goes into the weights whole.
func.func @batch_norm(%x: tensor<1x3xf32>) -> tensor<1x2xf32> {
  %k = relay.constant dense<1.0> : tensor<2x3xf32>
  %g = relay.constant dense<3.0> : tensor<2xf32>
  %z = relay.constant dense<0.5> : tensor<2xf32>
  %v = relay.constant dense<1.0> : tensor<2xf32>
  %0 = relay.nn.dense %x, %k {out_dtype = f32} : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<1x2xf32>
  %1 = relay.nn.batch_norm %0, %g, %z, %z, %v {epsilon = 0.0 : f32} : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  func.return %1 : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @batch_norm
// CHECK:         [[K:%.+]] = relay.constant dense<3.000000e+00> : tensor<2x3xf32>
// CHECK:         [[D:%.+]] = relay.nn.dense %x, [[K]]
// CHECK-NOT:     relay.multiply
// CHECK:         relay.add

// What is read unscaled too, or scaled along another axis, stays.
func.func @stays(%x: tensor<1x2x2x2xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) {
  %k = relay.constant dense<1.0> : tensor<2x1x1x2xf32>
  %s = relay.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %t = relay.constant dense<[[2.0], [10.0]]> : tensor<2x1xf32>
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<1x2x2x2xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x2x2xf32>
  %1 = relay.multiply %0, %s : (tensor<1x2x2x2xf32>, tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %2 = relay.nn.conv2d %1, %k {out_dtype = f32, padding = array<i64: 0, 0, 0, 0>} : (tensor<1x2x2x2xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x2x2xf32>
  %3 = relay.multiply %2, %t : (tensor<1x2x2x2xf32>, tensor<2x1xf32>) -> tensor<1x2x2x2xf32>
  func.return %0, %1, %3 : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>
}
// CHECK-LABEL: func.func @stays
// CHECK:         relay.nn.conv2d
// CHECK-NEXT:    relay.multiply
// CHECK-NEXT:    relay.nn.conv2d
// CHECK-NEXT:    relay.multiply
