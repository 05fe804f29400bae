// RUN: relay-opt %s -p expand-apply-scale | filecheck %s

// A shift of at least 31 rounds at bit 31 in i64, then at the exponent in i32.

// CHECK-LABEL: func.func @exponent
// CHECK-NOT:     arith.trunci {{%.+}} : i32 to i8
// CHECK:         [[X:%.+]] = arith.extsi %x : i32 to i64
// CHECK-NEXT:    [[M:%.+]] = arith.extsi %m : i32 to i64
// CHECK-NEXT:    [[P:%.+]] = arith.muli [[X]], [[M]] : i64
// CHECK:         [[N:%.+]] = arith.addi [[P]], {{%.+}} : i64
// CHECK:         [[H64:%.+]] = arith.shrsi [[N]], {{%.+}} : i64
// CHECK-NEXT:    [[H:%.+]] = arith.trunci [[H64]] : i64 to i32
// CHECK:         [[K:%.+]] = arith.subi {{%.+}}, %e : i32
// CHECK:         [[NEGATIVE:%.+]] = arith.cmpi slt, [[H]], {{%.+}} : i32
// CHECK:         [[UP:%.+]] = arith.cmpi sgt
// CHECK-NEXT:    [[Q:%.+]] = arith.shrsi [[H]], [[K]] : i32
// CHECK-NEXT:    [[ONE:%.+]] = arith.extui [[UP]] : i1 to i32
// CHECK-NEXT:    [[R:%.+]] = arith.addi [[Q]], [[ONE]] : i32
// CHECK-NEXT:    func.return [[R]] : i32
func.func @exponent(%x: i32, %m: i32, %e: i32) -> i32 {
  %c31 = arith.constant 31 : i32
  %0 = arith.subi %c31, %e : i32
  %s = arith.trunci %0 : i32 to i8
  %r = tosa.apply_scale %x, %m, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
  func.return %r : i32
}

// CHECK-LABEL: func.func @known_long
// CHECK:         [[MASK:%.+]] = arith.constant 511 : i32
// CHECK:         [[HALF:%.+]] = arith.constant 255 : i32
// CHECK:         [[H:%.+]] = arith.trunci {{%.+}} : i64 to i32
// CHECK:         arith.addi [[HALF]], {{%.+}} : i32
// CHECK-NEXT:    arith.andi [[H]], [[MASK]] : i32
func.func @known_long(%x: i32, %m: i32) -> i32 {
  %s = arith.constant 40 : i8
  %r = tosa.apply_scale %x, %m, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
  func.return %r : i32
}

// CHECK-LABEL: func.func @known_single
// CHECK:         [[HALF:%.+]] = arith.constant 549755813888 : i64
// CHECK:         [[N:%.+]] = arith.addi {{%.+}}, [[HALF]] : i64
// CHECK:         [[S:%.+]] = arith.shrsi [[N]], {{%.+}} : i64
// CHECK-NEXT:    [[R:%.+]] = arith.trunci [[S]] : i64 to i32
// CHECK-NEXT:    func.return [[R]]
func.func @known_single(%x: i32, %m: i32) -> i32 {
  %s = arith.constant 40 : i8
  %r = tosa.apply_scale %x, %m, %s {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
  func.return %r : i32
}

// Any shift: the specification's formula.

// CHECK-LABEL: func.func @any
// CHECK:         [[S:%.+]] = arith.extui %s : i8 to i64
// CHECK:         [[NUDGE:%.+]] = arith.select
// CHECK:         [[LONG:%.+]] = arith.cmpi sgt, [[S]], {{%.+}} : i64
// CHECK:         arith.select [[LONG]], [[NUDGE]], {{%.+}} : i64
// CHECK:         arith.shrsi {{%.+}}, [[S]] : i64
func.func @any(%x: i32, %m: i32, %s: i8) -> i32 {
  %r = tosa.apply_scale %x, %m, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
  func.return %r : i32
}

// Inside a loop nest the constants stand before it.

// CHECK-LABEL: func.func @body
// CHECK:         [[ROUND:%.+]] = arith.constant 1073741824 : i64
// CHECK:         linalg.generic
// CHECK-NOT:     arith.constant
// CHECK:           arith.addi {{%.+}}, [[ROUND]] : i64
// CHECK:           linalg.yield
func.func @body(%x: tensor<4xi32>, %init: tensor<4xi32>) -> tensor<4xi32> {
  %m = arith.constant 1073741824 : i32
  %s = arith.constant 31 : i8
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%init : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = tosa.apply_scale %a, %m, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    linalg.yield %0 : i32
  } -> tensor<4xi32>
  func.return %r : tensor<4xi32>
}

// A code times a scale and another number, added in float64 and rounded to float32, is one multiply-add where float64 rounds nothing.

// CHECK-LABEL: func.func @products
// CHECK:         [[A:%.+]] = arith.uitofp %a : i8 to f32
// CHECK-NEXT:    [[Y:%.+]] = math.fma [[A]], {{%.+}}, {{%.+}} : f32
// CHECK-NEXT:    [[B:%.+]] = arith.uitofp %b : i8 to f32
// CHECK-NEXT:    [[X:%.+]] = math.fma [[B]], {{%.+}}, [[Y]] : f32
// CHECK-NEXT:    arith.uitofp %a : i8 to f64
// CHECK:         [[F:%.+]] = arith.truncf
// CHECK-NEXT:    func.return [[X]], [[F]]
func.func @products(%a: i8, %b: i8) -> (f32, f32) {
  %half = arith.constant 0.5 : f64
  %three = arith.constant 3.0 : f64
  %small = arith.constant 1.0e-30 : f64
  %0 = arith.uitofp %a : i8 to f64
  %1 = arith.mulf %0, %half : f64
  %2 = arith.addf %1, %three : f64
  %3 = arith.truncf %2 : f64 to f32
  %4 = arith.extf %3 : f32 to f64
  %5 = arith.uitofp %b : i8 to f64
  %6 = arith.mulf %5, %three : f64
  %7 = arith.addf %4, %6 : f64
  %8 = arith.truncf %7 : f64 to f32
  %9 = arith.uitofp %a : i8 to f64
  %10 = arith.mulf %9, %small : f64
  %11 = arith.addf %10, %three : f64
  %12 = arith.truncf %11 : f64 to f32
  func.return %8, %12 : f32, f32
}
