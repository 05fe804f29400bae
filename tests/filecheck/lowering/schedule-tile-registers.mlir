// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx2,+amx-tile,+amx-int8"},schedule' | filecheck %s
// RUN: ! relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx2,+amx-tile"},schedule' 2>&1 | filecheck %s --check-prefix NONE

// 40 rows of 80 codes by 20 columns, in tile registers of 16 rows of 64 codes: blocks of 32 rows and 32 columns, what is
// left of rows at the end of a block that ends with them, and of codes in a step that has 48 again, by zeros.

// CHECK-LABEL: func.func private @dense
// CHECK-SAME:    (%x: memref<40x80xi8>, [[W:%.+]]: memref<4096xi8>, [[S:%.+]]: memref<32xi32>, [[R:%.+]]: memref<40x20xi32>) attributes {relay.schedule = {strategy = "contraction", tile = array<i64: 32, 32>, {{.*}}codes_per_step = 64 : i64, {{.*}}sign_flip = "none", {{.*}}flat = true
// CHECK-DAG:     [[N0:%.+]] = arith.constant 0 : index
// CHECK-DAG:     [[N16:%.+]] = arith.constant 16 : index
// CHECK-DAG:     [[N32:%.+]] = arith.constant 32 : index
// CHECK-DAG:     [[N80:%.+]] = arith.constant 80 : index
// CHECK-DAG:     [[N128:%.+]] = arith.constant 128 : index
// CHECK:         scf.if
// CHECK:           [[START:%.+]] = amx.tile_load [[S]]{{\[}}[[N0]]], [[N0]] : memref<32xi32> into !amx.tile<16x16xi32>
// CHECK-NEXT:      amx.tile_load [[S]]{{\[}}[[N16]]], [[N0]]
// CHECK-COUNT-2:   amx.tile_load [[S]]
// CHECK:           scf.for {{.*}} iter_args([[A:%.+]] = [[START]],
// CHECK:             [[AT:%.+]] = arith.minui {{%.+}}, [[N16]] : index
// CHECK:             [[W0:%.+]] = amx.tile_load [[W]]{{.*}}, [[N128]] : memref<4096xi8> into !amx.tile<16x64xi8>
// CHECK:             [[W1:%.+]] = amx.tile_load [[W]]{{.*}}, [[N128]] : memref<4096xi8> into !amx.tile<16x64xi8>
// CHECK:             [[X0:%.+]] = amx.tile_load {{%.+}}, [[N80]] : memref<3200xi8> into !amx.tile<16x64xi8>
// CHECK-NEXT:        [[P0:%.+]] = amx.tile_muli [[X0]] zext, [[W0]], [[A]] :
// CHECK-NEXT:        amx.tile_muli [[X0]] zext, [[W1]],
// CHECK:             [[X1:%.+]] = amx.tile_load {{%.+}}, [[N80]]
// CHECK-COUNT-2:     amx.tile_muli [[X1]] zext
// CHECK:             scf.yield [[P0]],
// CHECK:           [[SUMS:%.+]] = memref.alloca() {alignment = 64 : i64} : memref<1024xi32>
// CHECK-NEXT:      amx.tile_store [[SUMS]]{{\[}}[[N0]]], {{%.+}}, [[N32]]
// CHECK-NEXT:      amx.tile_store [[SUMS]]{{\[}}[[N16]]], {{%.+}}, [[N32]]
// CHECK-COUNT-2:   amx.tile_store [[SUMS]]
// CHECK:         } else {
// CHECK:           scf.for {{.*}} -> (!amx.tile<16x16xi32>, !amx.tile<16x16xi32>) {
// CHECK:           vector.load
// CHECK:         func.return

// Without the instruction for codes, they are refused.

// NONE: @dense: relay.schedule: op 1: contraction: codes_per_step = 64 is not possible; possible: 2, 1

#data = affine_map<(d0, d1, d2) -> (d0, d2)>
#kernel = affine_map<(d0, d1, d2) -> (d1, d2)>
#sums = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func private @dense(%x: memref<40x80xi8>, %w: memref<20x80xi8>, %r: memref<40x20xi32>) attributes {relay.schedule = {strategy = "contraction", codes_per_step = 64, tile = [32, 32]}} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<40x20xi32>)
  linalg.generic {indexing_maps = [#data, #kernel, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<40x80xi8>, memref<20x80xi8>) outs(%r : memref<40x20xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %0 = arith.extui %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %c, %2 : i32
    linalg.yield %3 : i32
  }
  func.return
}

// A single row has none either: its weights are read once.

// CHECK-LABEL: func.func private @row
// CHECK-SAME:    codes_per_step = 2
// CHECK-NOT:     amx
// CHECK:         func.return
func.func private @row(%x: memref<1x80xi8>, %w: memref<20x80xi8>, %r: memref<1x20xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<1x20xi32>)
  linalg.generic {indexing_maps = [#data, #kernel, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<1x80xi8>, memref<20x80xi8>) outs(%r : memref<1x20xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %0 = arith.extui %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %c, %2 : i32
    linalg.yield %3 : i32
  }
  func.return
}

func.func @main(%x: memref<40x80xi8>, %r: memref<40x20xi32>, %y: memref<1x80xi8>, %s: memref<1x20xi32>) {
  %w = arith.constant dense<1> : tensor<20x80xi8>
  %wb = bufferization.to_buffer %w read_only : tensor<20x80xi8> to memref<20x80xi8>
  func.call @dense(%x, %wb, %r) : (memref<40x80xi8>, memref<20x80xi8>, memref<40x20xi32>) -> ()
  func.call @row(%y, %wb, %s) : (memref<1x80xi8>, memref<20x80xi8>, memref<1x20xi32>) -> ()
  func.return
}
