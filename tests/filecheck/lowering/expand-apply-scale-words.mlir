// RUN: relay-opt %s -p 'attach-target{target="cortex-m4"},expand-apply-scale' | filecheck %s

// In registers of one number, the product's upper word is shifted. By how much stands in 8 bits for each channel, 33
// less than the shift: nothing is computed of the exponents.

// CHECK-LABEL: func.func @channels
// CHECK:         [[S:%.+]] = arith.constant dense_resource<{{.+}}> : tensor<2xi8>
// CHECK:         ins(%x, %m, [[S]] :
// CHECK:         ^bb0([[X:%.+]]: i32, [[M:%.+]]: i32, [[N:%.+]]: i8, {{%.+}}: i32):
// CHECK-NOT:       arith.subi
// CHECK:           [[P:%.+]] = arith.muli
// CHECK:           [[U:%.+]] = arith.trunci {{%.+}} : i64 to i32
// CHECK-NEXT:      [[W:%.+]] = arith.extui [[N]] : i8 to i32
// CHECK-NEXT:      [[D:%.+]] = arith.shrsi [[U]], [[W]] : i32
// CHECK-NEXT:      [[H:%.+]] = arith.addi [[D]], {{%.+}} : i32
// CHECK-NEXT:      [[R:%.+]] = arith.shrsi [[H]], {{%.+}} : i32
// CHECK-NEXT:      linalg.yield [[R]] : i32
func.func @channels(%x: tensor<3x2xi32>) -> tensor<3x2xi32> {
  %m = arith.constant dense<[1500000001, 1300000007]> : tensor<2xi32>
  %e = arith.constant dense<[-6, -11]> : tensor<2xi32>
  %c31 = arith.constant 31 : i32
  %empty = tensor.empty() : tensor<3x2xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %e : tensor<3x2xi32>, tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<3x2xi32>) {
  ^bb0(%a: i32, %multiplier: i32, %exponent: i32, %b: i32):
    %0 = arith.subi %c31, %exponent : i32
    %1 = arith.trunci %0 : i32 to i8
    %2 = tosa.apply_scale %a, %multiplier, %1 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    linalg.yield %2 : i32
  } -> tensor<3x2xi32>
  func.return %r : tensor<3x2xi32>
}
