// RUN: relay-opt %s -p fuse-ops | filecheck %s

// An anchor and the elementwise ops after it are a kernel. Scalars are cloned into it, other constants are arguments.
func.func @main(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>) -> tensor<8xi8> {
  %bias = relay.constant {label = "bias"} dense<[1, 2, 3, 4]> : tensor<4xi32>
  %amount = relay.constant dense<3> : tensor<i32>
  %0 = relay.nn.dense %x, %w {out_dtype = i32} : (tensor<2x3xi8>, tensor<4x3xi8>) -> tensor<2x4xi32>
  %1 = relay.nn.bias_add %0, %bias : (tensor<2x4xi32>, tensor<4xi32>) -> tensor<2x4xi32>
  %2 = relay.rounding_right_shift %1, %amount : (tensor<2x4xi32>, tensor<i32>) -> tensor<2x4xi32>
  %3 = relay.cast %2 {dtype = i8} : (tensor<2x4xi32>) -> tensor<2x4xi8>
  %4 = relay.reshape %3 {newshape = array<i64: 8>} : (tensor<2x4xi8>) -> tensor<8xi8>
  func.return %4 : tensor<8xi8>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[B:%.+]] = relay.constant {label = "bias"}
// CHECK-NEXT:    [[R:%.+]] = func.call @dense_0(%x, %w, [[B]])
// CHECK-NEXT:    [[S:%.+]] = relay.reshape [[R]]
// CHECK-NEXT:    func.return [[S]]

// A chain of elementwise ops is a kernel; the same chain elsewhere is the same kernel.
func.func @twice(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = relay.abs %x : (tensor<5xf32>) -> tensor<5xf32>
  %1 = relay.sqrt %0 : (tensor<5xf32>) -> tensor<5xf32>
  %2 = relay.reshape %1 {newshape = array<i64: 5>} : (tensor<5xf32>) -> tensor<5xf32>
  %3 = relay.abs %2 : (tensor<5xf32>) -> tensor<5xf32>
  %4 = relay.sqrt %3 : (tensor<5xf32>) -> tensor<5xf32>
  func.return %4 : tensor<5xf32>
}
// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    [[A:%.+]] = func.call @elementwise_0(%x)
// CHECK-NEXT:    [[M:%.+]] = relay.reshape [[A]]
// CHECK-NEXT:    [[E:%.+]] = func.call @elementwise_0([[M]])
// CHECK-NEXT:    func.return [[E]]

// A mask of a position is computed again for each op that uses it, also where that is in a branch.
func.func @in_branches(%c: tensor<i1>, %p: tensor<1xi32>, %x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %k = relay.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
  %m = relay.add %k, %p : (tensor<4xi32>, tensor<1xi32>) -> tensor<4xi32>
  %s = tensor.extract %c[] : tensor<i1>
  %r = scf.if %s -> (tensor<4xi32>) {
    %a = relay.multiply %x, %m : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    scf.yield %a : tensor<4xi32>
  } else {
    scf.yield %x : tensor<4xi32>
  }
  %o = relay.subtract %x, %m : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return %r, %o : tensor<4xi32>, tensor<4xi32>
}
// CHECK-LABEL: func.func @in_branches
// CHECK:         [[M:%.+]] = func.call @elementwise_1(%k, %p)
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      func.call @elementwise_3(%x, [[M]])
// CHECK:         func.call @elementwise_2(%k, %p, %x)

// CHECK-LABEL: func.func private @dense_0(
// CHECK-NEXT:    [[K:%.+]] = relay.constant dense<3> : tensor<i32>
// CHECK-NEXT:    [[D:%.+]] = relay.nn.dense
// CHECK-NEXT:    [[P:%.+]] = relay.nn.bias_add [[D]]
// CHECK-NEXT:    [[Q:%.+]] = relay.rounding_right_shift [[P]], [[K]]
// CHECK-NEXT:    [[C:%.+]] = relay.cast [[Q]]
// CHECK-NEXT:    func.return [[C]]
// CHECK-LABEL: func.func private @elementwise_0(
// CHECK-NEXT:    relay.abs
// CHECK-NEXT:    relay.sqrt
// CHECK-NEXT:    func.return
// CHECK:       func.func private @elementwise_3(
// CHECK-NOT:   func.func
