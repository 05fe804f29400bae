// RUN: relay-opt %s -p schedule | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f,+avx512vnni"},schedule' | filecheck %s --check-prefix DOT
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mcpu=haswell"},schedule' | filecheck %s --check-prefix AVX2

// A product whose weights its caller gives as constants: the weights are packed, [reduction][16 units] in i16, and the
// accumulators start at minus the zero point times their sums; the fill is gone.

// CHECK-LABEL: func.func private @dense
// CHECK-SAME:    (%x: memref<4x8xi8>, [[W:%.+]]: memref<128xi16>, [[S:%.+]]: memref<16xi32>, [[R:%.+]]: memref<4x3xi32>) attributes {relay.schedule = {strategy = "contraction", tile = array<i64: 2, 16>, {{.*}}codes_per_step = 1 : i64, {{.*}}flat = true, {{.*}}why = "132 cycles, the least of all"}} {
// CHECK-NOT:     linalg
// CHECK:         scf.for
// CHECK:           [[START:%.+]] = vector.load [[S]]
// CHECK:           scf.for {{.*}} iter_args({{%.+}} = [[START]]
// CHECK:             [[V:%.+]] = vector.load [[W]]{{.*}} : memref<128xi16>, vector<16xi16>
// CHECK-NEXT:        [[WIDE:%.+]] = arith.extsi [[V]] : vector<16xi16> to vector<16xi32>
// CHECK:             [[B:%.+]] = vector.broadcast {{%.+}} : i32 to vector<16xi32>
// CHECK-NEXT:        [[P:%.+]] = arith.muli [[B]], [[WIDE]] : vector<16xi32>
// CHECK-NEXT:        arith.addi {{%.+}}, [[P]] : vector<16xi32>
// CHECK:           [[A:%.+]] = vector.shuffle {{.+}} [0, 1] : vector<16xi32>, vector<16xi32>
// CHECK-NEXT:      vector.store [[A]], [[R]]
// CHECK:         func.return

// With 8-bit dot products, four codes a step, two steps without a loop; signed data is made unsigned by flipping its
// top bits.

// DOT-LABEL:   func.func private @dense
// DOT-SAME:      (%x: memref<4x8xi8>, [[W:%.+]]: memref<128xi8>, [[S:%.+]]: memref<16xi32>,
// DOT:           [[FLIP:%.+]] = arith.constant dense<-2139062144> : vector<16xi32>
// DOT:             [[V:%.+]] = vector.load [[W]]{{.*}} : memref<128xi8>, vector<64xi8>
// DOT:             [[F:%.+]] = vector.load {{.*}} vector<4xi8>
// DOT:             [[X:%.+]] = arith.xori {{%.+}}, [[FLIP]] : vector<16xi32>
// DOT-NEXT:        [[Y:%.+]] = vector.bitcast [[X]] : vector<16xi32> to vector<64xi8>
// DOT-NEXT:        func.call @dot_product_16x4_ui8({{%.+}}, [[Y]], [[V]]) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// DOT-NOT:         scf.yield
// DOT:             vector.load [[W]]{{.*}} : memref<128xi8>, vector<64xi8>
func.func private @dense(%x: memref<4x8xi8>, %w: memref<3x8xi8>, %r: memref<4x3xi32>) {
  %zero = arith.constant 0 : i32
  %zp = arith.constant 5 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<4x3xi32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4x8xi8>, memref<3x8xi8>) outs(%r : memref<4x3xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %0 = arith.extsi %a : i8 to i32
    %1 = arith.subi %0, %zp : i32
    %2 = arith.extsi %b : i8 to i32
    %3 = arith.muli %1, %2 : i32
    %4 = arith.addi %c, %3 : i32
    linalg.yield %4 : i32
  }
  func.return
}

// CHECK-LABEL: func.func @main
// CHECK:         [[W:%.+]] = arith.constant dense_resource<{{.*}}> : tensor<128xi16>
// CHECK-NEXT:    [[WB:%.+]] = bufferization.to_buffer [[W]] read_only
// CHECK:         [[S:%.+]] = arith.constant {{.*}} : tensor<16xi32>
// CHECK-NEXT:    [[SB:%.+]] = bufferization.to_buffer [[S]] read_only
// CHECK:         func.call @dense(%x, [[WB]], [[SB]], %r)
func.func @main(%x: memref<4x8xi8>, %r: memref<4x3xi32>) {
  %w = arith.constant dense<1> : tensor<3x8xi8>
  %wb = bufferization.to_buffer %w read_only : tensor<3x8xi8> to memref<3x8xi8>
  func.call @dense(%x, %wb, %r) : (memref<4x8xi8>, memref<3x8xi8>, memref<4x3xi32>) -> ()
  func.return
}

// Elementwise: 16 lanes at a time over all dimensions as one; the last of them overlap.

// CHECK-LABEL: func.func @elementwise
// CHECK-DAG:     [[X:%.+]] = memref.collapse_shape %x {{.*}} : memref<5x7xf32> into memref<35xf32>
// CHECK-DAG:     [[R:%.+]] = memref.collapse_shape %r {{.*}} : memref<5x7xf32> into memref<35xf32>
// CHECK:         scf.for
// CHECK-NEXT:      [[V:%.+]] = vector.load [[X]][[[I:%.+]]] : memref<35xf32>, vector<16xf32>
// CHECK-NEXT:      [[N:%.+]] = arith.negf [[V]] : vector<16xf32>
// CHECK-NEXT:      vector.store [[N]], [[R]][[[I]]]
// CHECK:           [[V1:%.+]] = vector.load [[X]][[[L:%.+]]] : memref<35xf32>, vector<16xf32>
// CHECK-NEXT:      [[N1:%.+]] = arith.negf [[V1]] : vector<16xf32>
// CHECK-NEXT:      vector.store [[N1]], [[R]][[[L]]]
// CHECK-NOT:       memref.load
func.func @elementwise(%x: memref<5x7xf32>, %r: memref<5x7xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<5x7xf32>) outs(%r : memref<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  func.return
}

// Operations on the same rows: each stage of them on both rows before the next one; the rows' sums are on the stack.

// CHECK-LABEL: func.func @normalized
// CHECK-SAME:    strategy = "in_turn"
// CHECK-SAME:    rows = 2 : i64
// CHECK-NOT:     memref.alloc()
// CHECK:         [[SUMS:%.+]] = memref.alloca() {{.+}} : memref<2xf32>
// CHECK-NEXT:    scf.for [[I:%.+]] =
// CHECK:           vector.load %x[[[I]], {{%.+}}]
// CHECK:           [[T:%.+]] = vector.extract {{%.+}}[0] : f32 from vector<1xf32>
// CHECK-NEXT:      [[S:%.+]] = arith.addf [[T]], %zero
// CHECK-NEXT:      memref.store [[S]], [[SUMS]][[[I]]]
// CHECK:         scf.for [[J:%.+]] =
// CHECK-NEXT:      [[M:%.+]] = memref.load [[SUMS]][[[J]]]
// CHECK-NEXT:      scf.for [[K:%.+]] =
// CHECK-NEXT:        [[X:%.+]] = vector.load %x[[[J]], [[K]]]
// CHECK-NEXT:        [[B:%.+]] = vector.broadcast [[M]]
// CHECK-NEXT:        [[R:%.+]] = arith.divf [[X]], [[B]]
// CHECK-NEXT:        vector.store [[R]], %r[[[J]], [[K]]]
func.func @normalized(%x: memref<2x32xf32>, %r: memref<2x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<2xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<2xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2x32xf32>) outs(%s : memref<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<2x32xf32>, memref<2xf32>) outs(%r : memref<2x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  func.return
}

// Fill and copy: loops; a strided view keeps its dimensions.

// CHECK-LABEL: func.func @pad
// CHECK:         [[F:%.+]] = memref.collapse_shape %r {{.*}} : memref<4x4xi8> into memref<16xi8>
// CHECK:         scf.for
// CHECK-NEXT:      memref.store {{%.+}}, [[F]]
// CHECK:         [[V:%.+]] = memref.subview %r[1, 1] [2, 2] [1, 1]
// CHECK:         scf.for [[I:%.+]] =
// CHECK-NEXT:      scf.for [[J:%.+]] =
// CHECK-NEXT:        [[E:%.+]] = memref.load %x[[[I]], [[J]]]
// CHECK-NEXT:        memref.store [[E]], [[V]][[[I]], [[J]]]
func.func @pad(%x: memref<2x2xi8>, %r: memref<4x4xi8>) {
  %v = arith.constant -5 : i8
  linalg.fill ins(%v : i8) outs(%r : memref<4x4xi8>)
  %s = memref.subview %r[1, 1] [2, 2] [1, 1] : memref<4x4xi8> to memref<2x2xi8, strided<[4, 1], offset: 5>>
  "memref.copy"(%x, %s) : (memref<2x2xi8>, memref<2x2xi8, strided<[4, 1], offset: 5>>) -> ()
  func.return
}

// A dot product is a function of the module, of upstream's ops.

// DOT-LABEL:   func.func private @dot_product_16x4_ui8
// DOT:           [[X:%.+]] = arith.extui {{%.+}} : vector<16x4xi8> to vector<16x4xi32>
// DOT-NEXT:      [[W:%.+]] = arith.extsi {{%.+}} : vector<16x4xi8> to vector<16x4xi32>
// DOT-NEXT:      vector.contract {{.*}} [[X]], [[W]], %accumulator : vector<16x4xi32>, vector<16x4xi32> into vector<16xi32>

// Float weights of more than 24 KiB, on registers of 8 floats: sums go to scratch memory after each block of steps.

// AVX2-LABEL:   func.func private @floats
// AVX2-SAME:      relay.schedule = {strategy = "blocked_reduction", tile = array<i64: 5, 16>, skip_border = false, steps = 192 : i64, strip = 9 : i64, prefetch_stride = 64 : i64, masks = false
// AVX2:           [[SUMS:%.+]] = memref.alloca() {alignment = 64 : i64} : memref<144xf32>
// AVX2:             vector.load [[SUMS]]
// AVX2:             scf.for
// AVX2:               memref.prefetch
// AVX2:               vector.fma
// AVX2:             vector.store {{%.+}}, [[SUMS]]
// AVX2:           [[SUM:%.+]] = vector.load [[SUMS]]
// AVX2-NEXT:      vector.store [[SUM]]
func.func private @floats(%x: memref<1x5x5x64xf32>, %w: memref<16x3x3x64xf32>, %r: memref<1x3x3x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%r : memref<1x3x3x16xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, y, x, o, i, j, c) -> (n, y + i, x + j, c)>, affine_map<(n, y, x, o, i, j, c) -> (o, i, j, c)>, affine_map<(n, y, x, o, i, j, c) -> (n, y, x, o)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : memref<1x5x5x64xf32>, memref<16x3x3x64xf32>) outs(%r : memref<1x3x3x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  }
  func.return
}
func.func @constants(%x: memref<1x5x5x64xf32>, %r: memref<1x3x3x16xf32>) {
  %w = arith.constant dense<1.0> : tensor<16x3x3x64xf32>
  %wb = bufferization.to_buffer %w read_only : tensor<16x3x3x64xf32> to memref<16x3x3x64xf32>
  func.call @floats(%x, %wb, %r) : (memref<1x5x5x64xf32>, memref<16x3x3x64xf32>, memref<1x3x3x16xf32>) -> ()
  func.return
}
