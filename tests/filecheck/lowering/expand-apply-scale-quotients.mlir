// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx,+fma"},expand-apply-scale' | filecheck %s
// RUN: relay-opt %s -p expand-apply-scale | filecheck %s --check-prefix=PLAIN

// A float that is divided by a constant and becomes a clipped integer, NaN the lowest: two multiply-adds give the same integers.

// PLAIN:         arith.divf
// CHECK-LABEL: func.func @codes
// CHECK:         ^bb0([[X:%.+]]: f32, {{%.+}}: i8):
// CHECK-NEXT:      [[G:%.+]] = arith.cmpf ogt, [[X]], [[LEAST:%.+]] : f32
// CHECK-NEXT:      [[A:%.+]] = arith.select [[G]], [[X]], [[LEAST]] : f32
// CHECK-NEXT:      [[F:%.+]] = arith.minimumf [[A]], {{%.+}} : f32
// CHECK-NEXT:      [[O:%.+]] = math.copysign {{%.+}}, [[F]] : f32
// CHECK-NEXT:      [[R:%.+]] = math.fma [[F]], {{%.+}}, [[O]] : f32
// CHECK-NEXT:      [[V:%.+]] = math.fma [[F]], {{%.+}}, [[R]] : f32
// CHECK-NEXT:      [[I:%.+]] = arith.fptosi [[V]] : f32 to i32
// CHECK-NEXT:      [[S:%.+]] = arith.addi [[I]], {{%.+}} : i32
// CHECK-NEXT:      [[L:%.+]] = arith.maxsi [[S]], {{%.+}} : i32
// CHECK-NEXT:      arith.minsi [[L]], {{%.+}} : i32
func.func @codes(%x: tensor<8xf32>) -> tensor<8xi8> {
  %scale = arith.constant 5.000000e-02 : f32
  %zero = arith.constant 3 : i32
  %low = arith.constant -1.310000e+02 : f32
  %high = arith.constant 1.240000e+02 : f32
  %empty = tensor.empty() : tensor<8xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%empty : tensor<8xi8>) {
  ^bb0(%a: f32, %b: i8):
    %0 = arith.divf %a, %scale : f32
    %1 = math.round %0 : f32
    %greater = arith.cmpf ogt, %1, %low : f32
    %2 = arith.select %greater, %1, %low : f32
    %3 = arith.minimumf %2, %high : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.addi %4, %zero : i32
    %6 = arith.trunci %5 : i32 to i8
    linalg.yield %6 : i8
  } -> tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// Clipped and then rounded to even: the quotient is two products.

// CHECK-LABEL: func.func @even
// CHECK:         [[P:%.+]] = arith.mulf {{%.+}}, {{%.+}} : f32
// CHECK-NEXT:    [[Q:%.+]] = math.fma {{%.+}}, {{%.+}}, [[P]] : f32
// CHECK-NEXT:    arith.cmpf ogt, [[Q]], {{%.+}} : f32
// CHECK-NEXT:    arith.select
// CHECK-NEXT:    [[C:%.+]] = arith.minimumf
// CHECK-NEXT:    [[E:%.+]] = math.roundeven [[C]] : f32
// CHECK-NEXT:    arith.fptosi [[E]] : f32 to i32
func.func @even(%x: f32) -> i32 {
  %scale = arith.constant 5.000000e-02 : f32
  %low = arith.constant -1.280000e+02 : f32
  %high = arith.constant 1.270000e+02 : f32
  %magic = arith.constant 1.2582912e+07 : f32
  %0 = arith.divf %x, %scale : f32
  %greater = arith.cmpf ogt, %0, %low : f32
  %1 = arith.select %greater, %0, %low : f32
  %2 = arith.minimumf %1, %high : f32
  %3 = arith.addf %2, %magic : f32
  %4 = arith.subf %3, %magic : f32
  %5 = arith.fptosi %4 : f32 to i32
  func.return %5 : i32
}

// A power of two is one product.

// CHECK-LABEL: func.func @power
// CHECK:         [[P:%.+]] = arith.mulf {{%.+}}, {{%.+}} : f32
// CHECK-NEXT:    arith.cmpf ogt, [[P]], {{%.+}} : f32
func.func @power(%x: f32) -> i32 {
  %scale = arith.constant 2.500000e-01 : f32
  %low = arith.constant -1.280000e+02 : f32
  %high = arith.constant 1.270000e+02 : f32
  %magic = arith.constant 1.2582912e+07 : f32
  %0 = arith.divf %x, %scale : f32
  %greater = arith.cmpf ogt, %0, %low : f32
  %1 = arith.select %greater, %0, %low : f32
  %2 = arith.minimumf %1, %high : f32
  %3 = arith.addf %2, %magic : f32
  %4 = arith.subf %3, %magic : f32
  %5 = arith.fptosi %4 : f32 to i32
  func.return %5 : i32
}

// The quotient itself is read as well.

// CHECK-LABEL: func.func @quotient
// CHECK:         arith.divf
func.func @quotient(%x: f32) -> (f32, i32) {
  %scale = arith.constant 5.000000e-02 : f32
  %low = arith.constant -1.280000e+02 : f32
  %high = arith.constant 1.270000e+02 : f32
  %0 = arith.divf %x, %scale : f32
  %1 = math.round %0 : f32
  %greater = arith.cmpf ogt, %1, %low : f32
  %2 = arith.select %greater, %1, %low : f32
  %3 = arith.minimumf %2, %high : f32
  %4 = arith.fptosi %3 : f32 to i32
  func.return %0, %4 : f32, i32
}

// Rounded to even by a number that is added and subtracted: x86 rounds and converts in one instruction, of what is clipped
// to 2^22 at most. A float that the sum would round to a multiple of two stays.

// CHECK-LABEL: func.func @clipped
// CHECK:         [[C:%.+]] = arith.minimumf
// CHECK-NEXT:    [[E:%.+]] = math.roundeven [[C]] : f32
// CHECK-NEXT:    arith.fptosi [[E]] : f32 to i32
// PLAIN-LABEL: func.func @clipped
// PLAIN-NOT:     math.roundeven
func.func @clipped(%x: f32) -> i32 {
  %low = arith.constant -4.194304e+06 : f32
  %high = arith.constant 4.194304e+06 : f32
  %magic = arith.constant 1.2582912e+07 : f32
  %0 = arith.maximumf %x, %low : f32
  %1 = arith.minimumf %0, %high : f32
  %2 = arith.addf %1, %magic : f32
  %3 = arith.subf %2, %magic : f32
  %4 = arith.fptosi %3 : f32 to i32
  func.return %4 : i32
}

// CHECK-LABEL: func.func @large
// CHECK-NOT:     math.roundeven
func.func @large(%x: f32) -> i32 {
  %low = arith.constant 0.0 : f32
  %high = arith.constant 4.194305e+06 : f32
  %magic = arith.constant 1.2582912e+07 : f32
  %0 = arith.maximumf %x, %low : f32
  %1 = arith.minimumf %0, %high : f32
  %2 = arith.addf %1, %magic : f32
  %3 = arith.subf %2, %magic : f32
  %4 = arith.fptosi %3 : f32 to i32
  func.return %4 : i32
}
