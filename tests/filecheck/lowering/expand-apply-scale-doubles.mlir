// RUN: relay-opt %s -p 'attach-target{target="cortex-m4"},expand-apply-scale' | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+fma"},expand-apply-scale' | filecheck %s --check-prefix=FLOAT

// A product in float64 that is rounded and clamped: without a unit for float64, the upper word of a product of integers.

// FLOAT:         math.round
// CHECK-LABEL: func.func @codes
// CHECK:         ^bb0([[X:%.+]]: i32, {{%.+}}: i8):
// CHECK-NEXT:      [[W:%.+]] = arith.extsi [[X]] : i32 to i64
// CHECK-NEXT:      [[M:%.+]] = arith.extsi {{%.+}} : i32 to i64
// CHECK-NEXT:      [[P:%.+]] = arith.muli [[W]], [[M]] : i64
// CHECK-NEXT:      [[H:%.+]] = arith.shrsi [[P]], {{%.+}} : i64
// CHECK-NEXT:      [[U:%.+]] = arith.trunci [[H]] : i64 to i32
// CHECK-NEXT:      [[A:%.+]] = arith.addi [[U]], {{%.+}} : i32
// CHECK-NEXT:      [[R:%.+]] = arith.shrsi [[A]], {{%.+}} : i32
// CHECK-NEXT:      arith.addi [[R]], {{%.+}} : i32
func.func @codes(%x: tensor<8xi32>) -> tensor<8xi8> {
  %scale = arith.constant 0.0029795077706658361 : f64
  %zero = arith.constant 3 : i32
  %low = arith.constant -128 : i32
  %high = arith.constant 127 : i32
  %empty = tensor.empty() : tensor<8xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xi32>) outs(%empty : tensor<8xi8>) {
  ^bb0(%a: i32, %b: i8):
    %0 = arith.sitofp %a : i32 to f64
    %1 = arith.mulf %0, %scale : f64
    %2 = math.round %1 : f64
    %3 = arith.fptosi %2 : f64 to i32
    %4 = arith.addi %3, %zero : i32
    %5 = arith.maxsi %4, %low : i32
    %6 = arith.minsi %5, %high : i32
    %7 = arith.trunci %6 : i32 to i8
    linalg.yield %7 : i8
  } -> tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// A decimal scale, of which float64 misses some halves: magnitudes, and less where the leading bits are above a number.

// CHECK-LABEL: func.func @decimal
// CHECK:         ^bb0([[X:%.+]]: i32, {{%.+}}: i8):
// CHECK-NEXT:      [[A:%.+]] = math.absi [[X]] : i32
// CHECK-NEXT:      [[U:%.+]] = arith.minui [[A]], {{%.+}} : i32
// CHECK-NEXT:      [[W:%.+]] = arith.extui [[U]] : i32 to i64
// CHECK-NEXT:      [[P:%.+]] = arith.muli [[W]], {{%.+}} : i64
// CHECK:           [[Z:%.+]] = math.ctlz [[B:%.+]] : i32
// CHECK-NEXT:      [[L:%.+]] = arith.shli [[B]], [[Z]] : i32
// CHECK-NEXT:      [[C:%.+]] = arith.cmpi ugt, [[L]], {{%.+}} : i32
// CHECK-NEXT:      [[H:%.+]] = arith.select [[C]], {{%.+}}, {{%.+}} : i64
// CHECK-NEXT:      arith.addi [[P]], [[H]] : i64
// CHECK-NOT:       f64
func.func @decimal(%x: tensor<8xi32>) -> tensor<8xi8> {
  %scale = arith.constant 1.500000e-04 : f64
  %low = arith.constant -128 : i32
  %high = arith.constant 127 : i32
  %empty = tensor.empty() : tensor<8xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xi32>) outs(%empty : tensor<8xi8>) {
  ^bb0(%a: i32, %b: i8):
    %0 = arith.sitofp %a : i32 to f64
    %1 = arith.mulf %0, %scale : f64
    %2 = math.round %1 : f64
    %3 = arith.fptosi %2 : f64 to i32
    %5 = arith.maxsi %3, %low : i32
    %6 = arith.minsi %5, %high : i32
    %7 = arith.trunci %6 : i32 to i8
    linalg.yield %7 : i8
  } -> tensor<8xi8>
  func.return %r : tensor<8xi8>
}
