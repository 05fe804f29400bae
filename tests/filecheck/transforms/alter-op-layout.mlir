// RUN: relay-opt %s -p alter-op-layout | filecheck %s

func.func @nchw(%x: tensor<1x4x8x8xi8>, %k: tensor<8x4x1x1xi8>, %d: tensor<8x1x3x3xi8>) -> tensor<1x8x6x6xi32> {
  %0 = relay.nn.conv2d %x, %k {data_layout = "NCHW", kernel_layout = "OIHW"} : (tensor<1x4x8x8xi8>, tensor<8x4x1x1xi8>) -> tensor<1x8x8x8xi32>
  %1 = relay.cast %0 {dtype = i8} : (tensor<1x8x8x8xi32>) -> tensor<1x8x8x8xi8>
  %2 = relay.nn.conv2d %1, %d {data_layout = "NCHW", kernel_layout = "OIHW", groups = 8 : i64} : (tensor<1x8x8x8xi8>, tensor<8x1x3x3xi8>) -> tensor<1x8x6x6xi32>
  func.return %2 : tensor<1x8x6x6xi32>
}
// CHECK-LABEL: func.func @nchw
// CHECK-NEXT:    [[K:%.+]] = relay.reshape %k {newshape = array<i64: 8, 1, 1, 4>}
// CHECK-NEXT:    [[X:%.+]] = relay.transpose %x {axes = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:    [[C:%.+]] = relay.nn.conv2d [[X]], [[K]] : (tensor<1x8x8x4xi8>, tensor<8x1x1x4xi8>)
// CHECK-NEXT:    [[N:%.+]] = relay.cast [[C]]
// CHECK-NEXT:    [[D:%.+]] = relay.transpose %d {axes = array<i64: 2, 3, 0, 1>}
// CHECK-NEXT:    [[R:%.+]] = relay.nn.conv2d [[N]], [[D]] {kernel_layout = "HWOI", groups = 8 : i64}
// CHECK-NEXT:    [[T:%.+]] = relay.transpose [[R]] {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    func.return [[T]]

func.func @already(%x: tensor<1x4x8x8xf32>) -> tensor<1x7x7x4xf32> {
  %0 = relay.transpose %x {axes = array<i64: 0, 2, 3, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x8x8x4xf32>
  %1 = relay.nn.max_pool2d %0 {pool_size = array<i64: 2, 2>} : (tensor<1x8x8x4xf32>) -> tensor<1x7x7x4xf32>
  func.return %1 : tensor<1x7x7x4xf32>
}
// CHECK-LABEL: func.func @already
// CHECK-NEXT:    relay.transpose %x
// CHECK-NEXT:    relay.nn.max_pool2d

func.func @by_its_largest(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %0 = relay.nn.max_pool2d %x {pool_size = array<i64: 3, 3>, layout = "NCHW"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.max %0 {axis = array<i64: 0, 1, 2, 3>} : (tensor<1x4x6x6xf32>) -> tensor<f32>
  %2 = relay.nn.avg_pool2d %0 {pool_size = array<i64: 1, 1>, layout = "NCHW"} : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %3 = relay.multiply %2, %1 : (tensor<1x4x6x6xf32>, tensor<f32>) -> tensor<1x4x6x6xf32>
  func.return %3 : tensor<1x4x6x6xf32>
}
// CHECK-LABEL: func.func @by_its_largest
// CHECK:         [[P:%.+]] = relay.nn.max_pool2d
// CHECK-NEXT:    [[M:%.+]] = relay.max [[P]] {axis = array<i64: 0, 1, 2, 3>} : (tensor<1x6x6x4xf32>) -> tensor<f32>
// CHECK-NEXT:    [[A:%.+]] = relay.nn.avg_pool2d [[P]]
// CHECK-NEXT:    relay.multiply [[A]], [[M]] : (tensor<1x6x6x4xf32>, tensor<f32>) -> tensor<1x6x6x4xf32>
