// RUN: relay-opt %s -p 'attach-target{target="aarch64"},expand-apply-scale' | filecheck %s

// AArch64 rescales numbers of any size by instructions of 32-bit integers. One is taken from what is below zero before
// it is shifted, where results below zero matter.

// CHECK:         i32 = 6 : i64
// CHECK-LABEL: func.func private @signed
// CHECK:         ^bb0([[X:%.+]]: i32, [[M:%.+]]: i32, [[E:%.+]]: i32, {{%.+}}: i8):
// CHECK-NEXT:      [[H:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.sqrdmulh.i32"([[X]], [[M]])
// CHECK-NEXT:      [[N:%.+]] = arith.andi [[H]], [[E]] : i32
// CHECK-NEXT:      [[S:%.+]] = arith.shrsi [[N]], {{%.+}} : i32
// CHECK-NEXT:      [[A:%.+]] = arith.addi [[H]], [[S]] : i32
// CHECK-NEXT:      llvm.call_intrinsic "llvm.aarch64.neon.sqrshl.i32"([[A]], [[E]])
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

func.func @signed_caller(%x: tensor<2xi32>) -> tensor<2xi8> {
  %m = arith.constant dense<[1100000000, 1900000000]> : tensor<2xi32>
  %e = arith.constant dense<[-5, -4]> : tensor<2xi32>
  %r = func.call @signed(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

// CHECK-LABEL: func.func private @positive
// CHECK:         [[H:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.sqrdmulh.i32"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.aarch64.neon.sqrshl.i32"([[H]], {{%.+}})
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

// Rounded once, what the product's lower half adds is cut off: it is less than any half.

// CHECK-LABEL: func.func private @upward
// CHECK:         [[E:%.+]] = arith.constant -5 : i32
// CHECK:         [[H:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.sqdmulh.i32"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.aarch64.neon.sqrshl.i32"([[H]], [[E]])
func.func private @upward(%x: tensor<2xi32>, %m: tensor<2xi32>, %e: tensor<2xi32>) -> tensor<2xi8> {
  %c31 = arith.constant 31 : i32
  %low = arith.constant 0 : i32
  %high = arith.constant 255 : i32
  %empty = tensor.empty() : tensor<2xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %m, %e : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) outs(%empty : tensor<2xi8>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i8):
    %0 = arith.subi %c31, %c : i32
    %1 = arith.trunci %0 : i32 to i8
    %2 = tosa.apply_scale %a, %b, %1 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
    %3 = arith.maxsi %2, %low : i32
    %4 = arith.minsi %3, %high : i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}

func.func @upward_caller(%x: tensor<2xi32>) -> tensor<2xi8> {
  %m = arith.constant dense<[1100000000, 1900000000]> : tensor<2xi32>
  %e = arith.constant dense<[-5, -5]> : tensor<2xi32>
  %r = func.call @upward(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}
