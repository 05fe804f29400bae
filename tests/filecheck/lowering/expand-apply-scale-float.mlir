// RUN: relay-opt %s -p expand-apply-scale | filecheck %s --check-prefixes=CHECK,PLAIN
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f"},expand-apply-scale' | filecheck %s --check-prefixes=CHECK,AVX512
// RUN: relay-opt %s -p 'expand-apply-scale{literal=true}' | filecheck %s --check-prefix=LITERAL
// RUN: relay-opt %s -p 'attach-target{target="x86_64"},expand-apply-scale' | filecheck %s --check-prefix=LITERAL

// Numbers that every caller gives as constants: the float form that is proved for all channels takes their place.
// The conversion to integers truncates; results on both sides of zero take the sign of x.

// LITERAL-NOT:   sitofp
// CHECK:         relay.rescale
// CHECK-LABEL: func.func private @signed
// CHECK-SAME:    (%x: tensor<2xi32>, {{%.+}}: tensor<2xf32>, {{%.+}}: tensor<2xf32>) -> tensor<2xi8>
// AVX512:        [[MODE:%.+]] = arith.constant 11 : i32
// CHECK:         ^bb0([[X:%.+]]: i32, [[SCALE:%.+]]: f32, [[OFFSET:%.+]]: f32, {{%.+}}: i8):
// CHECK-NEXT:      [[F:%.+]] = arith.sitofp [[X]] : i32 to f32
// CHECK-NEXT:      [[O:%.+]] = math.copysign [[OFFSET]], [[F]] : f32
// PLAIN-NEXT:      [[V:%.+]] = math.fma [[F]], [[SCALE]], [[O]] : f32
// AVX512-NEXT:     [[V:%.+]] = llvm.call_intrinsic "llvm.x86.avx512.vfmadd.f32"([[F]], [[SCALE]], [[O]], [[MODE]])
// CHECK-NEXT:      arith.fptosi [[V]] : f32 to i32
func.func private @signed(%x: tensor<2xi32>, %m: tensor<2xi32>, %e: tensor<2xi32>) -> tensor<2xi8> {
  %c31 = arith.constant 31 : i32
  %low = arith.constant -128 : i32
  %high = arith.constant 127 : i32
  %empty = tensor.empty() : tensor<2xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %m, %e : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi8>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i8):
    %0 = arith.subi %c31, %c : i32
    %1 = arith.trunci %0 : i32 to i8
    %2 = tosa.apply_scale %a, %b, %1 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %3 = arith.maxsi %2, %low : i32
    %4 = arith.minsi %3, %high : i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

// CHECK-LABEL: func.func @signed_caller
// CHECK-NOT:     tensor<2xi32>, tensor<2xi32>
// CHECK:         func.call @signed({{%.+}}, {{%.+}}, {{%.+}}) : (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xi8>
func.func @signed_caller(%x: tensor<2xi32>) -> tensor<2xi8> {
  %m = arith.constant dense<[1100000000, 1900000000]> : tensor<2xi32>
  %e = arith.constant dense<[-5, -4]> : tensor<2xi32>
  %r = func.call @signed(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

// Results below zero do not matter: no sign.

// CHECK-LABEL: func.func private @positive
// CHECK:         [[F:%.+]] = arith.sitofp {{%.+}} : i32 to f32
// PLAIN-NEXT:    math.fma
// AVX512-NEXT:   llvm.call_intrinsic
func.func private @positive(%x: tensor<2xi32>, %m: tensor<2xi32>, %e: tensor<2xi32>) -> tensor<2xi8> {
  %c31 = arith.constant 31 : i32
  %low = arith.constant 0 : i32
  %high = arith.constant 255 : i32
  %empty = tensor.empty() : tensor<2xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %m, %e : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi8>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i8):
    %0 = arith.subi %c31, %c : i32
    %1 = arith.trunci %0 : i32 to i8
    %2 = tosa.apply_scale %a, %b, %1 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %3 = arith.maxsi %2, %low : i32
    %4 = arith.minsi %3, %high : i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

func.func @positive_caller(%x: tensor<2xi32>) -> tensor<2xi8> {
  %m = arith.constant dense<[1100000000, 1900000000]> : tensor<2xi32>
  %e = arith.constant dense<[-5, -4]> : tensor<2xi32>
  %r = func.call @positive(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

// A small scale takes two numbers for it, or float64.

// CHECK-LABEL: func.func private @small
// PLAIN:         [[F:%.+]] = arith.sitofp {{%.+}} : i32 to f64
// PLAIN-NEXT:    [[V:%.+]] = math.fma [[F]], {{%.+}} : f64
// PLAIN-NEXT:    arith.fptosi [[V]] : f64 to i32
// AVX512:        ^bb0({{%.+}}: i32, [[SCALE:%.+]]: f32, [[OFFSET:%.+]]: f32, [[REST:%.+]]: f32, {{%.+}}: i8):
// AVX512:        [[F:%.+]] = arith.sitofp {{%.+}} : i32 to f32
// AVX512-NEXT:   [[W:%.+]] = math.fma [[F]], [[REST]], [[OFFSET]] : f32
// AVX512-NEXT:   llvm.call_intrinsic "llvm.x86.avx512.vfmadd.f32"([[F]], [[SCALE]], [[W]], {{%.+}})
func.func private @small(%x: tensor<2xi32>, %m: tensor<2xi32>, %e: tensor<2xi32>) -> tensor<2xi8> {
  %c31 = arith.constant 31 : i32
  %low = arith.constant 0 : i32
  %high = arith.constant 255 : i32
  %empty = tensor.empty() : tensor<2xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %m, %e : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi8>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i8):
    %0 = arith.subi %c31, %c : i32
    %1 = arith.trunci %0 : i32 to i8
    %2 = tosa.apply_scale %a, %b, %1 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %3 = arith.maxsi %2, %low : i32
    %4 = arith.minsi %3, %high : i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

func.func @small_caller(%x: tensor<2xi32>) -> tensor<2xi8> {
  %m = arith.constant dense<[1134567891, 1987654321]> : tensor<2xi32>
  %e = arith.constant dense<[-12, -12]> : tensor<2xi32>
  %r = func.call @small(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

// No float form is proved where results are not clamped and x can be anything.

// CHECK-LABEL: func.func @wide
// CHECK-NOT:     sitofp
// CHECK:         arith.shrsi
func.func @wide(%x: tensor<2xi32>) -> tensor<2xi32> {
  %m = arith.constant 1987654321 : i32
  %s = arith.constant 33 : i8
  %empty = tensor.empty() : tensor<2xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<2xi32>) outs(%empty : tensor<2xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = tosa.apply_scale %a, %m, %s {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    linalg.yield %0 : i32
  } -> tensor<2xi32>
  func.return %r : tensor<2xi32>
}

// The sum of two rescaled codes, rescaled: one form, proved for all pairs of codes.

// CHECK-LABEL: func.func @sum
// CHECK:         [[A:%.+]] = arith.subi
// CHECK:         [[B:%.+]] = arith.extsi %{{.+}} : i8 to i32
// CHECK-NEXT:    [[X:%.+]] = arith.sitofp {{.+}} : i32 to f32
// CHECK-NEXT:    [[Y:%.+]] = arith.sitofp {{.+}} : i32 to f32
// CHECK-NEXT:    [[W:%.+]] = math.fma [[Y]], {{.+}} : f32
// CHECK-NEXT:    [[V:%.+]] = math.fma [[X]], {{%.+}}, [[W]] : f32
// CHECK-NEXT:    [[N:%.+]] = math.roundeven [[V]] : f32
// CHECK-NEXT:    [[R:%.+]] = arith.fptosi [[N]] : f32 to i32
// CHECK-NEXT:    arith.maxsi [[R]], {{%.+}} : i32
func.func @sum(%x: tensor<4xi8>, %y: tensor<4xi8>) -> tensor<4xi8> {
  %three = arith.constant 3 : i32
  %twenty = arith.constant 20 : i32
  %m1 = arith.constant 1073741824 : i32
  %s1 = arith.constant 31 : i8
  %m2 = arith.constant 2098085103 : i32
  %s2 = arith.constant 32 : i8
  %m3 = arith.constant 1798149737 : i32
  %s3 = arith.constant 50 : i8
  %low = arith.constant -128 : i32
  %high = arith.constant 127 : i32
  %empty = tensor.empty() : tensor<4xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %y : tensor<4xi8>, tensor<4xi8>) outs(%empty : tensor<4xi8>) {
  ^bb0(%a: i8, %b: i8, %c: i8):
    %0 = arith.extsi %a : i8 to i32
    %1 = arith.subi %0, %three : i32
    %2 = arith.shli %1, %twenty : i32
    %3 = tosa.apply_scale %2, %m1, %s1 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %4 = arith.extsi %b : i8 to i32
    %5 = arith.shli %4, %twenty : i32
    %6 = tosa.apply_scale %5, %m2, %s2 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %7 = arith.addi %3, %6 : i32
    %8 = tosa.apply_scale %7, %m3, %s3 {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
    %9 = arith.maxsi %8, %low : i32
    %10 = arith.minsi %9, %high : i32
    %11 = arith.trunci %10 : i32 to i8
    linalg.yield %11 : i8
  } -> tensor<4xi8>
  func.return %r : tensor<4xi8>
}
