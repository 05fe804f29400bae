// RUN: relay-opt %s -p 'attach-target{target="cuda"},expand-apply-scale' | filecheck %s

// What is below 2^22 for any x, and does not matter below zero: another addition makes an integer of the lowest bits.

// CHECK-LABEL: func.func private @positive
// CHECK-NOT:     copysign
// CHECK:         [[V:%.+]] = llvm.call_intrinsic "llvm.nvvm.fma.rz.f"
// CHECK-NEXT:    [[FAR:%.+]] = llvm.call_intrinsic "llvm.nvvm.fma.rz.f"([[V]], {{%.+}}, {{%.+}})
// CHECK-NEXT:    [[BITS:%.+]] = arith.bitcast [[FAR]] : f32 to i32
// CHECK-NEXT:    arith.subi [[BITS]], {{%.+}} : i32
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
  %e = arith.constant dense<[-12, -13]> : tensor<2xi32>
  %r = func.call @positive(%x, %m, %e) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %r : tensor<2xi8>
}
