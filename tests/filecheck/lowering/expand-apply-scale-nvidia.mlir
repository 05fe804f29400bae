// RUN: relay-opt %s -p 'attach-target{target="cuda"},expand-apply-scale' | filecheck %s

// A product of 32 x 32 bits and a constant of 64, half a unit and the zero point: its upper word is shifted.

// CHECK-LABEL: func.func private @positive
// CHECK:      [[W:%.+]] = arith.addi {{%.+}}, {{%.+}} : i64
// CHECK-NEXT: [[U:%.+]] = arith.shrui [[W]], {{%.+}} : i64
// CHECK-NEXT: [[H:%.+]] = arith.trunci [[U]] : i64 to i32
// CHECK-NEXT: [[R:%.+]] = arith.shrsi [[H]], {{%.+}} : i32
// CHECK-NEXT: arith.maxsi [[R]]
func.func private @positive(%x: tensor<2xi32>, %m: tensor<2xi32>, %e: tensor<2xi32>) -> tensor<2xi8> {
  %c31 = arith.constant 31 : i32
  %low = arith.constant -128 : i32
  %high = arith.constant 127 : i32
  %empty = tensor.empty() : tensor<2xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %m, %e : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi8>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i8):
    %0 = arith.subi %c31, %c : i32
    %1 = arith.trunci %0 : i32 to i8
    %2 = tosa.apply_scale %a, %b, %1 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %3 = arith.addi %2, %low : i32
    %4 = arith.maxsi %3, %low : i32
    %5 = arith.minsi %4, %high : i32
    %6 = arith.trunci %5 : i32 to i8
    linalg.yield %6 : i8
  } -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

func.func @positive_caller(%x: tensor<2xi32>) -> tensor<2xi8> {
  %m = arith.constant dense<[1100000000, 1900000000]> : tensor<2xi32>
  %e = arith.constant dense<[-12, -13]> : tensor<2xi32>
  %r = func.call @positive(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

// With both signs the factor is unsigned, and what rounds away from zero is the sign that is added to the upper word.

// CHECK-LABEL: func.func @signed
// CHECK:      [[X:%.+]] = arith.addi {{%.+}}, {{%.+}} : i32
// CHECK-NEXT: arith.extui [[X]] : i32 to i64
// CHECK:      [[H:%.+]] = arith.trunci {{%.+}} : i64 to i32
// CHECK-NEXT: [[S:%.+]] = arith.shrui [[X]], {{%.+}} : i32
// CHECK-NEXT: [[T:%.+]] = arith.addi [[H]], [[S]] : i32
// CHECK-NEXT: [[R:%.+]] = arith.shrsi [[T]], {{%.+}} : i32
// CHECK-NEXT: linalg.yield [[R]] : i32
func.func @signed(%x: tensor<2x3xi8>) -> tensor<2x3xi32> {
  %m = arith.constant 1100000000 : i32
  %s = arith.constant 34 : i8
  %c = arith.constant 70000 : i32
  %empty = tensor.empty() : tensor<2x3xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x3xi8>) outs(%empty : tensor<2x3xi32>) {
  ^bb0(%a: i8, %d: i32):
    %0 = arith.extsi %a : i8 to i32
    %1 = arith.muli %0, %c : i32
    %2 = tosa.apply_scale %1, %m, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    linalg.yield %2 : i32
  } -> tensor<2x3xi32>
  func.return %r : tensor<2x3xi32>
}
