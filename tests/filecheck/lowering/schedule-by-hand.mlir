// RUN: relay-opt %s -p 'schedule,parallelize' | filecheck %s

// An attribute that is there is obeyed as far as it says something; the rest is as is best.

// CHECK-LABEL: func.func private @tile
// CHECK-SAME:    relay.schedule = {strategy = "contraction", tile = array<i64: 1, 16>, {{.*}}why = "asked for: 263 cycles, 132 at least"}
#data = affine_map<(d0, d1, d2) -> (d0, d2)>
#kernel = affine_map<(d0, d1, d2) -> (d1, d2)>
#sums = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func private @tile(%x: memref<4x8xi8>, %w: memref<3x8xi8>, %r: memref<4x3xi32>) attributes {relay.schedule = {strategy = "contraction", tile = [1, 16]}} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<4x3xi32>)
  linalg.generic {indexing_maps = [#data, #kernel, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4x8xi8>, memref<3x8xi8>) outs(%r : memref<4x3xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %0 = arith.extsi %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %c, %2 : i32
    linalg.yield %3 : i32
  }
  func.return
}

// Plain loops over the product alone; the fill before is one of its own.

// CHECK-LABEL: func.func private @nest
// CHECK-SAME:    relay.schedule = {ops = [{strategy = "fill", op = 0 : i64, {{.*}}}, {strategy = "nest", op = 1 : i64, order = array<i64: 0, 2, 1>, {{.*}}}]}
// CHECK-NOT:     vector.
// CHECK:         func.return
func.func private @nest(%x: memref<4x8xi8>, %w: memref<3x8xi8>, %r: memref<4x3xi32>) attributes {relay.schedule = {strategy = "nest"}} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<4x3xi32>)
  linalg.generic {indexing_maps = [#data, #kernel, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4x8xi8>, memref<3x8xi8>) outs(%r : memref<4x3xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %0 = arith.extsi %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %c, %2 : i32
    linalg.yield %3 : i32
  }
  func.return
}

// Threads share what is named, however little it is.

// CHECK-LABEL: func.func private @threads
// CHECK-SAME:    relay.schedule = {strategy = "fill", {{.*}}, threads = [{loop = 0 : i64, around = 0 : i64, turns = 64 : i64}]}
// CHECK:         scf.parallel
func.func private @threads(%r: memref<64xi32>) attributes {relay.schedule = {threads = [{loop = 0}]}} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<64xi32>)
  func.return
}

func.func @main(%x: memref<4x8xi8>, %r: memref<4x3xi32>, %t: memref<64xi32>) {
  %w = arith.constant dense<1> : tensor<3x8xi8>
  %wb = bufferization.to_buffer %w read_only : tensor<3x8xi8> to memref<3x8xi8>
  func.call @tile(%x, %wb, %r) : (memref<4x8xi8>, memref<3x8xi8>, memref<4x3xi32>) -> ()
  func.call @nest(%x, %wb, %r) : (memref<4x8xi8>, memref<3x8xi8>, memref<4x3xi32>) -> ()
  func.call @threads(%t) : (memref<64xi32>) -> ()
  func.return
}
