// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @reduce(
func.func @reduce(%x: tensor<2x3x4xi32>) {
  // CHECK: %sum = relay.sum %x {axis = array<i64: 1>} : (tensor<2x3x4xi32>) -> tensor<2x4xi32>
  %sum = relay.sum %x {axis = array<i64: 1>} : (tensor<2x3x4xi32>) -> tensor<2x4xi32>
  // CHECK: %max = relay.max %x {axis = array<i64: -1>, keepdims = true} : (tensor<2x3x4xi32>) -> tensor<2x3x1xi32>
  %max = relay.max %x {axis = array<i64: -1>, keepdims = true} : (tensor<2x3x4xi32>) -> tensor<2x3x1xi32>
  // CHECK: %min = relay.min %x {axis = array<i64>} : (tensor<2x3x4xi32>) -> tensor<i32>
  %min = relay.min %x {axis = array<i64>} : (tensor<2x3x4xi32>) -> tensor<i32>
  func.return
}

// CHECK-LABEL: func.func @index(
func.func @index(%x: tensor<2x3xf32>) {
  // CHECK: %argmax = relay.argmax %x {axis = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xi32>
  %argmax = relay.argmax %x {axis = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xi32>
  // CHECK: %argmin = relay.argmin %x {axis = array<i64: 0>, dtype = i64} : (tensor<2x3xf32>) -> tensor<3xi64>
  %argmin = relay.argmin %x {axis = array<i64: 0>, dtype = i64} : (tensor<2x3xf32>) -> tensor<3xi64>
  func.return
}

// CHECK-LABEL: func.func @combine(
func.func @combine(%x: tensor<2x3x4xf32>, %b: tensor<2x3x4xi1>, %m: tensor<2x1x4xf32>) {
  // CHECK: %prod = relay.prod %x {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %prod = relay.prod %x {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: %all = relay.all %b {axis = array<i64: 0, 2>, keepdims = true} : (tensor<2x3x4xi1>) -> tensor<1x3x1xi1>
  %all = relay.all %b {axis = array<i64: 0, 2>, keepdims = true} : (tensor<2x3x4xi1>) -> tensor<1x3x1xi1>
  // CHECK: %any = relay.any %b {axis = array<i64>} : (tensor<2x3x4xi1>) -> tensor<i1>
  %any = relay.any %b {axis = array<i64>} : (tensor<2x3x4xi1>) -> tensor<i1>
  // CHECK: %mean = relay.mean %x {axis = array<i64: 1>, exclude = true} : (tensor<2x3x4xf32>) -> tensor<3xf32>
  %mean = relay.mean %x {axis = array<i64: 1>, exclude = true} : (tensor<2x3x4xf32>) -> tensor<3xf32>
  // CHECK: %variance = relay.variance %x, %m {axis = array<i64: 1>, unbiased = true} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4xf32>
  %variance = relay.variance %x, %m {axis = array<i64: 1>, unbiased = true} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4xf32>
  func.return
}
