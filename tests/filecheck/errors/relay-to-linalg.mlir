// RUN: not relay-opt %s -p relay-to-linalg 2>&1 | filecheck %s

// CHECK: relay.fixed_point_multiply in @f: rounding "tonearest" has no lowering; use one of tflite, tflite_single, upward
func.func @f(%x: tensor<4xi32>, %m: tensor<i32>, %e: tensor<i32>) -> tensor<4xi32> {
  %r = relay.fixed_point_multiply %x, %m, %e {rounding = "tonearest"} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
  func.return %r : tensor<4xi32>
}
