// RUN: relay-opt %s -p 'dynamic-to-static{sizes=3}' | filecheck %s

func.func @main(%x: tensor<?x4x4x2xf32>, %k: tensor<2x1x1x2xf32>) -> tensor<?x32xf32> {
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<?x4x4x2xf32>, tensor<2x1x1x2xf32>) -> tensor<?x4x4x2xf32>
  %1 = relay.reshape %0 {newshape = array<i64: -1, 32>} : (tensor<?x4x4x2xf32>) -> tensor<?x32xf32>
  func.return %1 : tensor<?x32xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<3x4x4x2xf32>, %k: tensor<2x1x1x2xf32>) -> tensor<3x32xf32>
// CHECK-NEXT:    relay.nn.conv2d {{.*}}-> tensor<3x4x4x2xf32>
// CHECK-NEXT:    relay.reshape {{.*}}-> tensor<3x32xf32>
