// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @binary(
func.func @binary(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // CHECK: %add = relay.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %add = relay.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: %subtract = relay.subtract %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %subtract = relay.subtract %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: %multiply = relay.multiply %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %multiply = relay.multiply %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: %divide = relay.divide %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %divide = relay.divide %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: %floor_divide = relay.floor_divide %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %floor_divide = relay.floor_divide %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: %maximum = relay.maximum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %maximum = relay.maximum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: %minimum = relay.minimum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %minimum = relay.minimum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @integers(
func.func @integers(%x: tensor<2x3xi32>, %amount: tensor<i32>) {
  // CHECK: %left = relay.left_shift %x, %amount : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %left = relay.left_shift %x, %amount : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  // CHECK: %right = relay.right_shift %x, %amount : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %right = relay.right_shift %x, %amount : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  func.return
}

// CHECK-LABEL: func.func @compare(
func.func @compare(%x: tensor<?x3xui8>, %y: tensor<1x3xui8>) {
  // CHECK: %equal = relay.equal %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  %equal = relay.equal %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  // CHECK: %greater = relay.greater %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  %greater = relay.greater %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  // CHECK: %less = relay.less %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  %less = relay.less %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  // CHECK: %where = relay.where %less, %x, %y : (tensor<?x3xi1>, tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xui8>
  %where = relay.where %less, %x, %y : (tensor<?x3xi1>, tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xui8>
  func.return
}

// CHECK-LABEL: func.func @unary(
func.func @unary(%x: tensor<4xf32>) {
  // CHECK: %negative = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %negative = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %abs = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %abs = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %sqrt = relay.sqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %sqrt = relay.sqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %rsqrt = relay.rsqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %rsqrt = relay.rsqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %exp = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %exp = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %log = relay.log %x : (tensor<4xf32>) -> tensor<4xf32>
  %log = relay.log %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %sigmoid = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %sigmoid = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %tanh = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %tanh = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %round = relay.round %x : (tensor<4xf32>) -> tensor<4xf32>
  %round = relay.round %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %floor = relay.floor %x : (tensor<4xf32>) -> tensor<4xf32>
  %floor = relay.floor %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %ceil = relay.ceil %x : (tensor<4xf32>) -> tensor<4xf32>
  %ceil = relay.ceil %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// CHECK-LABEL: func.func @convert(
func.func @convert(%x: tensor<4xf32>) {
  // CHECK: %clip = relay.clip %x {a_min = 0.000000e+00 : f32, a_max = 6.000000e+00 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %clip = relay.clip %x {a_min = 0.000000e+00 : f32, a_max = 6.000000e+00 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %cast = relay.cast %clip {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  %cast = relay.cast %clip {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  func.return
}
