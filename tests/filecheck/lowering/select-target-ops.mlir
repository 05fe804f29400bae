// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f,+avx512vnni"},select-target-ops' | filecheck %s --check-prefix VNNI
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx,+avx2"},select-target-ops' | filecheck %s --check-prefix AVX2
// RUN: relay-opt %s -p 'attach-target{target="aarch64 -mattr=+dotprod"},select-target-ops' | filecheck %s --check-prefix NEON
// RUN: relay-opt %s -p 'attach-target{target="aarch64 -mattr=+dotprod,+i8mm"},select-target-ops' | filecheck %s --check-prefix MMLA
// RUN: relay-opt %s -p 'attach-target{target="aarch64 -mattr=+fullfp16"},select-target-ops' | filecheck %s --check-prefix FP16
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f,+avx512bf16"},select-target-ops' | filecheck %s --check-prefix BF16
// RUN: relay-opt %s -p 'attach-target{target="cortex-m0"},select-target-ops' | filecheck %s --check-prefix M0
// RUN: relay-opt %s -p select-target-ops | filecheck %s

// One instruction; four of a quarter of the lanes; without any, products of what is widened. The functions go.


// VNNI-LABEL: func.func @bytes
// VNNI-NEXT:    [[R:%.+]] = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%acc, %x, %w)
// VNNI-NEXT:    func.return [[R]]

// CHECK-LABEL: func.func @bytes
// CHECK-NEXT:    [[X:%.+]] = vector.shuffle %x, %x [0, 4, 8, 12
// CHECK-NEXT:    [[W:%.+]] = vector.shuffle %w, %w [0, 4, 8, 12
// CHECK-NEXT:    [[A:%.+]] = arith.extui [[X]] : vector<16xi8> to vector<16xi32>
// CHECK-NEXT:    [[B:%.+]] = arith.extsi [[W]] : vector<16xi8> to vector<16xi32>
// CHECK-NEXT:    [[P:%.+]] = arith.muli [[A]], [[B]] : vector<16xi32>
// CHECK-NEXT:    arith.addi %acc, [[P]] : vector<16xi32>
// CHECK-COUNT-3: arith.muli
// CHECK-NOT:     func.call
func.func @bytes(%acc: vector<16xi32>, %x: vector<64xi8>, %w: vector<64xi8>) -> vector<16xi32> {
  %r = func.call @dot_product_16x4_ui8(%acc, %x, %w) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
  func.return %r : vector<16xi32>
}

// NEON-LABEL: func.func @signed
// NEON-NEXT:    [[A:%.+]] = vector.shuffle %acc, %acc [0, 1, 2, 3] : vector<8xi32>, vector<8xi32>
// NEON-NEXT:    [[W:%.+]] = vector.shuffle %w, %w [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// NEON-NEXT:    [[X:%.+]] = vector.shuffle %x, %x [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// NEON-NEXT:    [[L:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"([[A]], [[W]], [[X]])
// NEON:         [[H:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"
// NEON-NEXT:    vector.shuffle [[L]], [[H]] [0, 1, 2, 3, 4, 5, 6, 7]
func.func @signed(%acc: vector<8xi32>, %x: vector<32xi8>, %w: vector<32xi8>) -> vector<8xi32> {
  %r = func.call @dot_product_8x4_si8(%acc, %x, %w) : (vector<8xi32>, vector<32xi8>, vector<32xi8>) -> vector<8xi32>
  func.return %r : vector<8xi32>
}

// Two rows by two columns: one instruction for each block of weights, all of the same data.

// MMLA-LABEL: func.func @matrix
// MMLA-NEXT:    [[A:%.+]] = vector.shuffle %acc, %acc [0, 1, 2, 3] : vector<8xi32>, vector<8xi32>
// MMLA-NEXT:    [[W:%.+]] = vector.shuffle %w, %w [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// MMLA-NEXT:    [[L:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.smmla.v4i32.v16i8"([[A]], %x, [[W]])
// MMLA:         [[H:%.+]] = llvm.call_intrinsic "llvm.aarch64.neon.smmla.v4i32.v16i8"
// MMLA-NEXT:    vector.shuffle [[L]], [[H]] [0, 1, 2, 3, 4, 5, 6, 7]
// NEON-LABEL: func.func @matrix
// NEON-NEXT:    vector.shuffle %x, %x [0, 0, 8, 8, 0, 0, 8, 8]
// NEON-NEXT:    vector.shuffle %w, %w [0, 8, 0, 8, 16, 24, 16, 24]
// NEON-COUNT-8: arith.muli
func.func @matrix(%acc: vector<8xi32>, %x: vector<16xi8>, %w: vector<32xi8>) -> vector<8xi32> {
  %r = func.call @matrix_product_2x2x2x8_si8(%acc, %x, %w) : (vector<8xi32>, vector<16xi8>, vector<32xi8>) -> vector<8xi32>
  func.return %r : vector<8xi32>
}

// An instruction that does not add to an accumulator.

// AVX2-LABEL: func.func @words
// AVX2-NEXT:    [[P:%.+]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%x, %w)
// AVX2-NEXT:    arith.addi %acc, [[P]] : vector<8xi32>
func.func @words(%acc: vector<8xi32>, %x: vector<16xi16>, %w: vector<16xi16>) -> vector<8xi32> {
  %r = func.call @dot_product_8x2_si16(%acc, %x, %w) : (vector<8xi32>, vector<16xi16>, vector<16xi16>) -> vector<8xi32>
  func.return %r : vector<8xi32>
}

// Bits of bf16: their sums are of f32.

// BF16-LABEL: func.func @halves
// BF16-NEXT:    [[X:%.+]] = vector.bitcast %x : vector<32xi16> to vector<32xbf16>
// BF16-NEXT:    [[W:%.+]] = vector.bitcast %w : vector<32xi16> to vector<32xbf16>
// BF16-NEXT:    [[R:%.+]] = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%acc, [[X]], [[W]])
// BF16-NEXT:    func.return [[R]]
// CHECK-LABEL: func.func @halves
// CHECK:         [[X:%.+]] = vector.bitcast %x
// CHECK:         [[E:%.+]] = vector.shuffle [[X]], [[X]] [0, 2, 4,
// CHECK:         arith.extf [[E]] : vector<16xbf16> to vector<16xf32>
// CHECK-COUNT-2: arith.mulf {{.*}} : vector<16xf32>
func.func @halves(%acc: vector<16xf32>, %x: vector<32xi16>, %w: vector<32xi16>) -> vector<16xf32> {
  %r = func.call @dot_product_16x2_bf16(%acc, %x, %w) : (vector<16xf32>, vector<32xi16>, vector<32xi16>) -> vector<16xf32>
  func.return %r : vector<16xf32>
}

// The lowest 4 bits of bytes by signed ones: sums of two products, which saturate in 16 bits where those were larger.

// AVX2-LABEL: func.func @nibbles
// AVX2-NEXT:    [[M:%.+]] = arith.constant dense<15> : vector<64xi8>
// AVX2-NEXT:    [[X:%.+]] = arith.andi %x, [[M]] : vector<64xi8>
// AVX2-NEXT:    [[XL:%.+]] = vector.shuffle [[X]], [[X]] [0, 1, 2,
// AVX2-NEXT:    [[WL:%.+]] = vector.shuffle %w, %w [0, 1, 2,
// AVX2-NEXT:    [[L:%.+]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"([[XL]], [[WL]])
// AVX2:         [[H:%.+]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// AVX2-NEXT:    [[P:%.+]] = vector.shuffle [[L]], [[H]]
// AVX2-NEXT:    arith.addi %acc, [[P]] : vector<32xi16>
// CHECK-LABEL: func.func @nibbles
// CHECK:         [[X:%.+]] = arith.andi %x
// CHECK-NEXT:    vector.shuffle [[X]], [[X]] [0, 2, 4,
// CHECK-COUNT-2: arith.muli {{.*}} : vector<32xi16>
func.func @nibbles(%acc: vector<32xi16>, %x: vector<64xi8>, %w: vector<64xi8>) -> vector<32xi16> {
  %r = func.call @nibble_product_32x2(%acc, %x, %w) : (vector<32xi16>, vector<64xi8>, vector<64xi8>) -> vector<32xi16>
  func.return %r : vector<32xi16>
}

// Multiply-adds, where no instruction fuses them.

// VNNI-LABEL: func.func @sum
// VNNI-NEXT:    vector.fma %x, %y, %acc
// AVX2-LABEL: func.func @sum
// AVX2-NEXT:    [[P:%.+]] = arith.mulf %x, %y : vector<8xf32>
// AVX2-NEXT:    arith.addf [[P]], %acc : vector<8xf32>
func.func @sum(%acc: vector<8xf32>, %x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  %r = vector.fma %x, %y, %acc : vector<8xf32>
  func.return %r : vector<8xf32>
}

// Which number is larger, and whether the second is one.

// AVX2-LABEL: func.func @largest
// AVX2-NEXT:    [[L:%.+]] = arith.cmpf ogt, %b, %a : vector<8xf32>
// AVX2-NEXT:    [[M:%.+]] = arith.select [[L]], %b, %a
// AVX2-NEXT:    [[N:%.+]] = arith.cmpf ord, %b, %b : vector<8xf32>
// AVX2-NEXT:    arith.select [[N]], [[M]], %b
// NEON-LABEL: func.func @largest
// NEON-NEXT:    arith.maximumf
func.func @largest(%a: vector<8xf32>, %b: vector<8xf32>) -> vector<8xf32> {
  %r = arith.maximumf %a, %b : vector<8xf32>
  func.return %r : vector<8xf32>
}

// Where a number and none may give either, one comparison.

// AVX2-LABEL: func.func @either
// AVX2-NEXT:    [[L:%.+]] = arith.cmpf ogt, %b, %a : vector<8xf32>
// AVX2-NEXT:    arith.select [[L]], %b, %a
// AVX2-NEXT:    func.return
func.func @either(%a: vector<8xf32>, %b: vector<8xf32>) -> vector<8xf32> {
  %r = arith.maximumf %a, %b {relay.either} : vector<8xf32>
  func.return %r : vector<8xf32>
}

// Of two widened halves, LLVM would compare halves, one by one where there is no arithmetic of them.

// NEON-LABEL: func.func @largest_halves
// NEON:         [[A:%.+]] = arith.extf %a
// NEON-NEXT:    [[B:%.+]] = arith.extf %b
// NEON-NEXT:    arith.cmpf ogt, [[B]], [[A]]
// FP16-LABEL: func.func @largest_halves
// FP16:         arith.maximumf
func.func @largest_halves(%a: vector<8xf16>, %b: vector<8xf16>) -> vector<8xf32> {
  %x = arith.extf %a : vector<8xf16> to vector<8xf32>
  %y = arith.extf %b : vector<8xf16> to vector<8xf32>
  %r = arith.maximumf %x, %y : vector<8xf32>
  func.return %r : vector<8xf32>
}

// A function that computes something else keeps its calls, whatever its name.

// CHECK-LABEL: func.func @other
// CHECK-NEXT:    func.call @dot_product_8x2_ui16
func.func @other(%acc: vector<8xi32>, %x: vector<16xi16>, %w: vector<16xi16>) -> vector<8xi32> {
  %r = func.call @dot_product_8x2_ui16(%acc, %x, %w) : (vector<8xi32>, vector<16xi16>, vector<16xi16>) -> vector<8xi32>
  func.return %r : vector<8xi32>
}

// CHECK-NOT: func.func private @dot_product{{.*}}si
// CHECK: func.func private @dot_product_8x2_ui16
func.func private @dot_product_16x4_ui8(%acc: vector<16xi32>, %x: vector<64xi8>, %w: vector<64xi8>) -> vector<16xi32> {
  %0 = vector.shape_cast %x : vector<64xi8> to vector<16x4xi8>
  %1 = vector.shape_cast %w : vector<64xi8> to vector<16x4xi8>
  %2 = arith.extui %0 : vector<16x4xi8> to vector<16x4xi32>
  %3 = arith.extsi %1 : vector<16x4xi8> to vector<16x4xi32>
  %4 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %2, %3, %acc : vector<16x4xi32>, vector<16x4xi32> into vector<16xi32>
  func.return %4 : vector<16xi32>
}
func.func private @dot_product_8x4_si8(%acc: vector<8xi32>, %x: vector<32xi8>, %w: vector<32xi8>) -> vector<8xi32> {
  %0 = vector.shape_cast %x : vector<32xi8> to vector<8x4xi8>
  %1 = vector.shape_cast %w : vector<32xi8> to vector<8x4xi8>
  %2 = arith.extsi %0 : vector<8x4xi8> to vector<8x4xi32>
  %3 = arith.extsi %1 : vector<8x4xi8> to vector<8x4xi32>
  %4 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %2, %3, %acc : vector<8x4xi32>, vector<8x4xi32> into vector<8xi32>
  func.return %4 : vector<8xi32>
}
func.func private @matrix_product_2x2x2x8_si8(%acc: vector<8xi32>, %x: vector<16xi8>, %w: vector<32xi8>) -> vector<8xi32> {
  %0 = vector.shape_cast %x : vector<16xi8> to vector<2x8xi8>
  %1 = vector.shape_cast %w : vector<32xi8> to vector<2x2x8xi8>
  %2 = arith.extsi %0 : vector<2x8xi8> to vector<2x8xi32>
  %3 = arith.extsi %1 : vector<2x2x8xi8> to vector<2x2x8xi32>
  %4 = vector.shape_cast %acc : vector<8xi32> to vector<2x2x2xi32>
  %5 = vector.contract {indexing_maps = [affine_map<(b, r, c, k) -> (r, k)>, affine_map<(b, r, c, k) -> (b, c, k)>, affine_map<(b, r, c, k) -> (b, r, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>} %2, %3, %4 : vector<2x8xi32>, vector<2x2x8xi32> into vector<2x2x2xi32>
  %6 = vector.shape_cast %5 : vector<2x2x2xi32> to vector<8xi32>
  func.return %6 : vector<8xi32>
}
func.func private @dot_product_8x2_si16(%acc: vector<8xi32>, %x: vector<16xi16>, %w: vector<16xi16>) -> vector<8xi32> {
  %0 = vector.shape_cast %x : vector<16xi16> to vector<8x2xi16>
  %1 = vector.shape_cast %w : vector<16xi16> to vector<8x2xi16>
  %2 = arith.extsi %0 : vector<8x2xi16> to vector<8x2xi32>
  %3 = arith.extsi %1 : vector<8x2xi16> to vector<8x2xi32>
  %4 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %2, %3, %acc : vector<8x2xi32>, vector<8x2xi32> into vector<8xi32>
  func.return %4 : vector<8xi32>
}
func.func private @dot_product_16x2_bf16(%acc: vector<16xf32>, %x: vector<32xi16>, %w: vector<32xi16>) -> vector<16xf32> {
  %a = vector.bitcast %x : vector<32xi16> to vector<32xbf16>
  %b = vector.bitcast %w : vector<32xi16> to vector<32xbf16>
  %0 = vector.shape_cast %a : vector<32xbf16> to vector<16x2xbf16>
  %1 = vector.shape_cast %b : vector<32xbf16> to vector<16x2xbf16>
  %2 = arith.extf %0 : vector<16x2xbf16> to vector<16x2xf32>
  %3 = arith.extf %1 : vector<16x2xbf16> to vector<16x2xf32>
  %4 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %2, %3, %acc : vector<16x2xf32>, vector<16x2xf32> into vector<16xf32>
  func.return %4 : vector<16xf32>
}
func.func private @nibble_product_32x2(%acc: vector<32xi16>, %x: vector<64xi8>, %w: vector<64xi8>) -> vector<32xi16> {
  %m = arith.constant dense<15> : vector<64xi8>
  %l = arith.andi %x, %m : vector<64xi8>
  %0 = vector.shape_cast %l : vector<64xi8> to vector<32x2xi8>
  %1 = vector.shape_cast %w : vector<64xi8> to vector<32x2xi8>
  %2 = arith.extui %0 : vector<32x2xi8> to vector<32x2xi16>
  %3 = arith.extsi %1 : vector<32x2xi8> to vector<32x2xi16>
  %4 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %2, %3, %acc : vector<32x2xi16>, vector<32x2xi16> into vector<32xi16>
  func.return %4 : vector<32xi16>
}
func.func private @dot_product_8x2_ui16(%acc: vector<8xi32>, %x: vector<16xi16>, %w: vector<16xi16>) -> vector<8xi32> {
  %0 = vector.shape_cast %x : vector<16xi16> to vector<8x2xi16>
  %1 = vector.shape_cast %w : vector<16xi16> to vector<8x2xi16>
  %2 = arith.extui %0 : vector<8x2xi16> to vector<8x2xi32>
  %3 = arith.extsi %1 : vector<8x2xi16> to vector<8x2xi32>
  %4 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<maxsi>} %2, %3, %acc : vector<8x2xi32>, vector<8x2xi32> into vector<8xi32>
  func.return %4 : vector<8xi32>
}

// Codes that are clamped: narrowed twice, saturated, the zero point added between; bounds inside of the codes' in bytes.

// NEON-LABEL: func.func @codes
// NEON:         [[L:%.+]] = arith.maxsi %x, {{%.+}} : vector<16xi32>
// NEON-NEXT:    [[H:%.+]] = arith.minsi [[L]], {{%.+}} : vector<16xi32>
// NEON-NEXT:    [[W:%.+]] = arith.trunci [[H]] : vector<16xi32> to vector<16xi16>
// NEON-NEXT:    [[S:%.+]] = llvm.call_intrinsic "llvm.sadd.sat.v16i16"([[W]], {{%.+}})
// NEON:         [[C:%.+]] = arith.trunci {{%.+}} : vector<16xi16> to vector<16xi8>
// NEON-NEXT:    [[R:%.+]] = arith.minui [[C]], {{%.+}} : vector<16xi8>
// NEON-NEXT:    func.return [[R]] : vector<16xi8>
// CHECK-LABEL: func.func @codes
// CHECK:         arith.trunci {{%.+}} : vector<16xi32> to vector<16xi8>
func.func @codes(%x: vector<16xi32>) -> vector<16xi8> {
  %zero = arith.constant dense<3> : vector<16xi32>
  %low = arith.constant dense<0> : vector<16xi32>
  %high = arith.constant dense<200> : vector<16xi32>
  %0 = arith.addi %x, %zero : vector<16xi32>
  %1 = arith.maxsi %0, %low : vector<16xi32>
  %2 = arith.minsi %1, %high : vector<16xi32>
  %3 = arith.trunci %2 : vector<16xi32> to vector<16xi8>
  func.return %3 : vector<16xi8>
}

// Products of 64 bits: of signed and unsigned halves of 32 bits on a Cortex-M0.

// M0-LABEL: func.func @wide
// M0-COUNT-7: arith.muli {{%.+}}, {{%.+}} : i32
// M0-NOT:     arith.muli
// M0:         func.return

// CHECK-LABEL: func.func @wide
// CHECK-NEXT:    [[R:%.+]] = arith.muli %a, %b : i64
// CHECK-NEXT:    func.return [[R]]
func.func @wide(%a: i64, %b: i64) -> i64 {
  %r = arith.muli %a, %b : i64
  func.return %r : i64
}
