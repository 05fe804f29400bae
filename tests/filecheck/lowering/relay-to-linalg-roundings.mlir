// RUN: relay-opt %s -p relay-to-linalg | filecheck %s

// Halves away from zero, in i64: (p + 2^(s-1) - (p < 0)) >> s.

// CHECK-LABEL: func.func @to_nearest
// CHECK-DAG:       [[ONE:%.+]] = arith.constant 1 : i64
// CHECK-DAG:       [[LAST:%.+]] = arith.constant 63 : i64
// CHECK:           [[P:%.+]] = arith.muli
// CHECK:           [[S:%.+]] = arith.extsi {{%.+}} : i32 to i64
// CHECK-NEXT:      [[N:%.+]] = arith.subi [[S]], [[ONE]] : i64
// CHECK-NEXT:      [[HALF:%.+]] = arith.shli [[ONE]], [[N]] : i64
// CHECK-NEXT:      [[SIGN:%.+]] = arith.shrsi [[P]], [[LAST]] : i64
// CHECK-NEXT:      [[A:%.+]] = arith.addi [[P]], [[HALF]] : i64
// CHECK-NEXT:      [[B:%.+]] = arith.addi [[A]], [[SIGN]] : i64
// CHECK-NEXT:      [[R:%.+]] = arith.shrsi [[B]], [[S]] : i64
// CHECK-NEXT:      arith.trunci [[R]] : i64 to i32
func.func @to_nearest(%x: tensor<4xi32>, %m: tensor<i32>, %e: tensor<i32>) -> tensor<4xi32> {
  %r = relay.fixed_point_multiply %x, %m, %e {rounding = "tonearest"} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
  func.return %r : tensor<4xi32>
}

// A single rounding does not wrap before: a positive exponent is a smaller shift.

// CHECK-LABEL: func.func @upward
// CHECK-DAG:     [[M:%.+]] = arith.constant 1610612736 : i32
// CHECK-DAG:     [[S:%.+]] = arith.constant 28 : i8
// CHECK-NOT:       arith.shli
// CHECK:           "tosa.apply_scale"({{%.+}}, [[M]], [[S]]) <{rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>}> : (i32, i32, i8) -> i32
func.func @upward(%x: tensor<4xi32>) -> tensor<4xi32> {
  %m = relay.constant dense<1610612736> : tensor<i32>
  %e = relay.constant dense<3> : tensor<i32>
  %r = relay.fixed_point_multiply %x, %m, %e {rounding = "upward"} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
  func.return %r : tensor<4xi32>
}
