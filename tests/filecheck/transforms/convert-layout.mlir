// RUN: relay-opt %s -p convert-layout | filecheck %s
// RUN: relay-opt %s -p 'convert-layout{target="NHWC4c"}' | filecheck %s --check-prefix PACKED
// RUN: relay-opt %s -p 'convert-layout{operators="nn.max_pool2d" keep="conv2d"}' | filecheck %s --check-prefix POOL
// RUN: relay-opt %s -p 'convert-layout{skip=0}' | filecheck %s --check-prefix SKIP

// One transpose before, one after; bias, rescaling and pooling in between take the layout, the parameters their axis.
func.func @chain(%x: tensor<1x8x8x4xi8>, %k: tensor<8x3x3x4xi8>, %b: tensor<8xi32>) -> tensor<1x4x4x8xi8> {
  %0 = qnn.conv2d %x, %k {padding = array<i64: 1, 1, 1, 1>, input_scale = 1.0 : f32, input_zero_point = 3 : i32, kernel_scale = 1.0 : f32} : (tensor<1x8x8x4xi8>, tensor<8x3x3x4xi8>) -> tensor<1x8x8x8xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x8x8x8xi32>, tensor<8xi32>) -> tensor<1x8x8x8xi32>
  %2 = qnn.requantize %1 {input_scale = dense<1.0> : tensor<8xf32>, output_scale = 1.0 : f32, output_zero_point = 0 : i32, multiplier = dense<1073741824> : tensor<8xi32>, shift = dense<[-1, -2, -3, -4, -5, -6, -7, -8]> : tensor<8xi32>, out_dtype = i8} : (tensor<1x8x8x8xi32>) -> tensor<1x8x8x8xi8>
  %3 = relay.nn.max_pool2d %2 {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x8x8x8xi8>) -> tensor<1x4x4x8xi8>
  func.return %3 : tensor<1x4x4x8xi8>
}
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    [[K:%.+]] = relay.transpose %k {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    [[X:%.+]] = relay.transpose %x {axes = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:    [[C:%.+]] = qnn.conv2d [[X]], [[K]] {{.*}}data_layout = "NCHW"{{.*}}-> tensor<1x8x8x8xi32>
// CHECK-NEXT:    [[B:%.+]] = relay.nn.bias_add [[C]], %b {axis = 1 : i64}
// CHECK-NEXT:    [[R:%.+]] = qnn.requantize [[B]] {{.*}}axis = 1 : i64
// CHECK-NEXT:    [[P:%.+]] = relay.nn.max_pool2d [[R]] {{.*}}layout = "NCHW"{{.*}}-> tensor<1x8x4x4xi8>
// CHECK-NEXT:    [[T:%.+]] = relay.transpose [[P]] {axes = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:    func.return [[T]]
// PACKED-LABEL: func.func @chain
// PACKED-NEXT:    [[X:%.+]] = relay.reshape %x {newshape = array<i64: 1, 8, 8, 1, 4>}
// PACKED-NEXT:    [[C:%.+]] = qnn.conv2d [[X]], %k {{.*}}data_layout = "NHWC4c"{{.*}}-> tensor<1x8x8x2x4xi32>
// PACKED-NEXT:    [[BIAS:%.+]] = relay.reshape %b {newshape = array<i64: 1, 1, 1, 2, 4>}
// PACKED-NEXT:    [[B:%.+]] = relay.add [[C]], [[BIAS]]
// PACKED-NEXT:    qnn.requantize [[B]] {{.*}}multiplier = {{.*}}tensor<1x1x1x2x4xi32>
// PACKED-NEXT:    relay.nn.max_pool2d {{.*}}layout = "NHWC4c"
// PACKED-NEXT:    relay.reshape
// PACKED-NEXT:    func.return
// POOL-LABEL: func.func @chain
// POOL:         qnn.conv2d %x, %k
// POOL-NOT:     data_layout
// POOL:         qnn.requantize
// POOL-NEXT:    relay.transpose
// POOL-NEXT:    relay.nn.max_pool2d {{.*}}layout = "NCHW"
// SKIP-LABEL: func.func @chain
// SKIP-NOT:     NCHW
// SKIP:         func.return

// Transposes that are there are cancelled.
func.func @cancel(%x: tensor<1x4x8x8xf32>, %k: tensor<4x1x1x4xf32>) -> tensor<1x4x8x8xf32> {
  %0 = relay.transpose %x {axes = array<i64: 0, 2, 3, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x8x8x4xf32>
  %1 = relay.nn.conv2d %0, %k {out_dtype = f32} : (tensor<1x8x8x4xf32>, tensor<4x1x1x4xf32>) -> tensor<1x8x8x4xf32>
  %2 = relay.transpose %1 {axes = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x4xf32>) -> tensor<1x4x8x8xf32>
  func.return %2 : tensor<1x4x8x8xf32>
}
// CHECK-LABEL: func.func @cancel
// CHECK-NEXT:    [[K:%.+]] = relay.reshape %k {newshape = array<i64: 4, 4, 1, 1>}
// CHECK-NEXT:    [[R:%.+]] = relay.nn.conv2d %x, [[K]]
// CHECK-NEXT:    func.return [[R]]

// The branch that needs no transpose keeps none: both sides of the addition are converted, and what is smaller moves.
func.func @residual(%x: tensor<1x8x8x4xi8>, %k: tensor<4x1x1x4xi8>) -> tensor<1x8x8x4xi8> {
  %0 = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<4x1x1x4xi8>) -> tensor<1x8x8x4xi32>
  %1 = relay.cast %x {dtype = i32} : (tensor<1x8x8x4xi8>) -> tensor<1x8x8x4xi32>
  %2 = relay.add %0, %1 : (tensor<1x8x8x4xi32>, tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  %3 = relay.cast %2 {dtype = i8} : (tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi8>
  func.return %3 : tensor<1x8x8x4xi8>
}
// CHECK-LABEL: func.func @residual
// CHECK:         [[X:%.+]] = relay.transpose %x
// CHECK-NOT:     transpose
// CHECK:         relay.cast [[X]]
// CHECK:         [[R:%.+]] = relay.cast {{.*}}-> tensor<1x4x8x8xi8>
// CHECK-NEXT:    relay.transpose [[R]]

// Axes move: of a slice, a concatenation, a padding, a sum over height and width (then nothing is left to transpose).
func.func @axes(%x: tensor<1x8x8x4xi8>, %k: tensor<4x1x1x4xi8>) -> tensor<1x8xi32> {
  %0 = relay.nn.conv2d %x, %k : (tensor<1x8x8x4xi8>, tensor<4x1x1x4xi8>) -> tensor<1x8x8x4xi32>
  %1 = relay.concatenate %0, %0 {axis = -1 : i64} : (tensor<1x8x8x4xi32>, tensor<1x8x8x4xi32>) -> tensor<1x8x8x8xi32>
  %2 = relay.strided_slice %1 {begin = array<i64: 0, 1, 2, 0>, end = array<i64: 1, 8, 8, 8>, strides = array<i64: 1, 1, 2, 1>} : (tensor<1x8x8x8xi32>) -> tensor<1x7x3x8xi32>
  %3 = relay.nn.pad %2 {pad_width = array<i64: 0, 0, 1, 2, 3, 4, 0, 0>, pad_value = 0 : i32} : (tensor<1x7x3x8xi32>) -> tensor<1x10x10x8xi32>
  %4 = relay.sum %3 {axis = array<i64: 1, 2>} : (tensor<1x10x10x8xi32>) -> tensor<1x8xi32>
  func.return %4 : tensor<1x8xi32>
}
// CHECK-LABEL: func.func @axes
// CHECK:         relay.concatenate {{.*}}axis = 1 : i64
// CHECK-NEXT:    relay.strided_slice {{.*}}begin = array<i64: 0, 0, 1, 2>, end = array<i64: 1, 8, 8, 8>, strides = array<i64: 1, 1, 1, 2>
// CHECK-NEXT:    relay.nn.pad {{.*}}pad_width = array<i64: 0, 0, 0, 0, 1, 2, 3, 4>
// CHECK-NEXT:    [[S:%.+]] = relay.sum {{.*}}axis = array<i64: 2, 3>
// CHECK-NEXT:    func.return [[S]]

// What reads the last axis stays where it was.
func.func @softmax(%x: tensor<1x8x8x4xf32>, %k: tensor<4x1x1x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<1x8x8x4xf32>, tensor<4x1x1x4xf32>) -> tensor<1x8x8x4xf32>
  %1 = relay.nn.softmax %0 {beta = 1.0 : f32} : (tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>
  func.return %1 : tensor<1x8x8x4xf32>
}
// CHECK-LABEL: func.func @softmax
// CHECK:         [[C:%.+]] = relay.nn.conv2d
// CHECK-NEXT:    [[T:%.+]] = relay.transpose [[C]]
// CHECK-NEXT:    relay.nn.softmax [[T]]

// Three channels are no whole blocks: the data stays, the result is packed. A depthwise kernel is OIHW too.
func.func @first(%x: tensor<1x8x8x3xi8>, %k: tensor<8x1x1x3xi8>, %d: tensor<3x3x8x1xi8>) -> tensor<1x6x6x8xi32> {
  %0 = relay.nn.conv2d %x, %k : (tensor<1x8x8x3xi8>, tensor<8x1x1x3xi8>) -> tensor<1x8x8x8xi32>
  %1 = relay.cast %0 {dtype = i8} : (tensor<1x8x8x8xi32>) -> tensor<1x8x8x8xi8>
  %2 = relay.nn.conv2d %1, %d {groups = 8 : i64, kernel_layout = "HWOI"} : (tensor<1x8x8x8xi8>, tensor<3x3x8x1xi8>) -> tensor<1x6x6x8xi32>
  func.return %2 : tensor<1x6x6x8xi32>
}
// CHECK-LABEL: func.func @first
// CHECK:         [[D:%.+]] = relay.transpose %d {axes = array<i64: 2, 3, 0, 1>}
// CHECK:         relay.nn.conv2d {{%.+}}, [[D]] {groups = 8 : i64, kernel_layout = "OIHW"
// PACKED-LABEL: func.func @first
// PACKED-NEXT:    relay.nn.conv2d %x, %k {out_layout = "NHWC4c"} : (tensor<1x8x8x3xi8>, tensor<8x1x1x3xi8>) -> tensor<1x8x8x2x4xi32>
// PACKED:         relay.nn.conv2d {{.*}}data_layout = "NHWC4c"
