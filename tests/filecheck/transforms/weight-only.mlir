// RUN: relay-opt %s -p 'weight-only{bits=4 block=4 least=8}' | filecheck %s
// RUN: relay-opt %s -p 'weight-only{dtype="f8E4M3FN" block=4 least=8}' | filecheck %s --check-prefix FLOATS
// RUN: relay-opt %s -p 'weight-only' | filecheck %s --check-prefix FEW

// The largest number of each block becomes the lowest code, which is 8 below the middle.
// CHECK-LABEL: @main
// CHECK-DAG: [[CODES:%.*]] = relay.constant dense<{{\[\[\[}}0, 4, 8, 12], [8, 8, 8, 0]], {{\[\[}}8, 8, 8, 8], [0, 8, 8, 8]]]> : tensor<2x2x4xui8>
// CHECK-DAG: [[SCALES:%.*]] = relay.constant {{.*}} : tensor<2x2xf32>
// CHECK-DAG: [[ZEROS:%.*]] = relay.constant dense<8> : tensor<2x2xui8>
// CHECK: relay.nn.weight_only_dense %x, [[CODES]], [[SCALES]], [[ZEROS]]
// FLOATS-LABEL: @main
// FLOATS-DAG: [[CODES:%.*]] = relay.constant {{.*}} : tensor<2x2x4xf8E4M3FN>
// FLOATS-DAG: [[ZEROS:%.*]] = relay.constant dense<0> : tensor<2x2xui8>
// FLOATS: relay.nn.weight_only_dense %x, [[CODES]], {{%.*}}, [[ZEROS]]
// FEW-LABEL: @main
// FEW: relay.nn.dense
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x2xf32> {
  %w = relay.constant dense<[[-8.0, -4.0, 0.0, 4.0, 0.0, 0.0, 0.0, 16.0], [0.0, 0.0, 0.0, 0.0, -0.5, 0.0, 0.0, 0.0]]> : tensor<2x8xf32>
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<1x8xf32>, tensor<2x8xf32>) -> tensor<1x2xf32>
  func.return %0 : tensor<1x2xf32>
}
