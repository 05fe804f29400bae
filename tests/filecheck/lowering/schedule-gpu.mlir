// RUN: relay-opt %s -p schedule-gpu | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="cuda -mattr=-async-copy,-mma,-shuffle"},schedule-gpu' | filecheck %s --check-prefix=DOT

// Four neighbours a thread, read and written at once: 512 threads in 2 blocks.
// CHECK-LABEL: func.func private @scale
// CHECK-SAME:    relay.schedule = {strategy = "elementwise", lanes = 4 : i64, block = 256 : i64, {{.*}}why = "a thread for 4 neighbours"}
// CHECK-DAG:     [[ZERO:%.+]] = arith.constant 0 : index
// CHECK-DAG:     [[ONE:%.+]] = arith.constant 1 : index
// CHECK-DAG:     [[GRID:%.+]] = arith.constant 2 : index
// CHECK-DAG:     [[BLOCK:%.+]] = arith.constant 256 : index
// CHECK:         "scf.parallel"([[ZERO]], [[GRID]], [[ONE]])
// CHECK:           "scf.parallel"([[ZERO]], [[BLOCK]], [[ONE]])
// CHECK:             [[X:%.+]] = vector.load %x[{{.+}}] {alignment = 4 : i64} : memref<1x8x8x32xi8>, vector<4xi8>
// CHECK-NEXT:        [[S:%.+]] = vector.load %s[{{.+}}] {alignment = 16 : i64} : memref<32xf32>, vector<4xf32>
// CHECK-NEXT:        [[F:%.+]] = arith.sitofp [[X]]
// CHECK-NEXT:        [[Y:%.+]] = arith.mulf [[F]], [[S]]
// CHECK-NEXT:        vector.store [[Y]], %y
// CHECK:           mapping = [#gpu.loop_dim_map<processor = thread_x
// CHECK:         mapping = [#gpu.loop_dim_map<processor = block_x
func.func private @scale(%x: memref<1x8x8x32xi8>, %s: memref<32xf32>, %y: memref<1x8x8x32xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>,
                     affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%x, %s : memref<1x8x8x32xi8>, memref<32xf32>) outs(%y : memref<1x8x8x32xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32):
    %d = arith.sitofp %a : i8 to f32
    %e = arith.mulf %d, %b : f32
    linalg.yield %e : f32
  }
  func.return
}

// The padded copy, the sums and the bias are one nest of 140 threads, which needs no memory of its own.
// CHECK-LABEL: func.func private @padded_sum
// CHECK-NOT:     memref.alloc
// CHECK:         scf.if
// CHECK:           [[SUM:%.+]] = scf.for {{.+}} iter_args(
// CHECK:             arith.cmpi ult
// CHECK:             [[ELEMENT:%.+]] = scf.if
// CHECK-NEXT:          [[INSIDE:%.+]] = memref.load %x
// CHECK-NEXT:          scf.yield [[INSIDE]] : i8
// CHECK-NEXT:        } else {
// CHECK-NEXT:          scf.yield %p : i8
// CHECK:             arith.extsi [[ELEMENT]]
// CHECK:           [[BIAS:%.+]] = memref.load %bias
// CHECK-NEXT:      [[BIASED:%.+]] = arith.addi [[SUM]], [[BIAS]] : i32
// CHECK-NEXT:      memref.store [[BIASED]], %y
// CHECK-NOT:     scf.for
func.func private @padded_sum(%x: memref<5x7xi8>, %w: memref<3xi8>, %bias: memref<7xi32>, %y: memref<5x7xi32>) {
  %p = arith.constant -3 : i8
  %padded = memref.alloc() {alignment = 64 : i64} : memref<5x9xi8>
  linalg.fill ins(%p : i8) outs(%padded : memref<5x9xi8>)
  %v = memref.subview %padded[0, 1] [5, 7] [1, 1] : memref<5x9xi8> to memref<5x7xi8, strided<[9, 1], offset: 1>>
  "memref.copy"(%x, %v) : (memref<5x7xi8>, memref<5x7xi8, strided<[9, 1], offset: 1>>) -> ()
  %z = arith.constant 0 : i32
  %sum = memref.alloc() {alignment = 64 : i64} : memref<5x7xi32>
  linalg.fill ins(%z : i32) outs(%sum : memref<5x7xi32>)
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1 + d2)>, affine_map<(d0, d1, d2) -> (d2)>,
                     affine_map<(d0, d1, d2) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%padded, %w : memref<5x9xi8>, memref<3xi8>) outs(%sum : memref<5x7xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %d = arith.extsi %a : i8 to i32
    %e = arith.extsi %b : i8 to i32
    %f = arith.muli %d, %e : i32
    %g = arith.addi %c, %f : i32
    linalg.yield %g : i32
  }
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%sum, %bias : memref<5x7xi32>, memref<7xi32>) outs(%y : memref<5x7xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %d = arith.addi %a, %b : i32
    linalg.yield %d : i32
  }
  func.return
}

// Two readers: the buffer stays, and there are three launches.
// CHECK-LABEL: func.func private @shared
// CHECK-SAME:    relay.schedule = {ops = [{strategy = "elementwise", op = 0 : i64, {{.*}}{strategy = "elementwise", op = 1 : i64, {{.*}}{strategy = "copy", op = 2 : i64,
// CHECK:         [[BUFFER:%.+]] = memref.alloc
// CHECK-COUNT-3: processor = block_x
// CHECK-NOT:     processor = block_x
// CHECK:         func.return
func.func private @shared(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  %t = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
  linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
  } ins(%x : memref<8xf32>) outs(%t : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
  } ins(%t : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %a : f32
    linalg.yield %c : f32
  }
  "memref.copy"(%t, %z) : (memref<8xf32>, memref<8xf32>) -> ()
  func.return
}

// 16 codes of each factor are read at once; the other sum is that of the weights, for the zero point of 5.
// DOT-LABEL: func.func private @dense
// DOT-SAME:    strategy = "reduction", lanes = 1 : i64, dot = 16 : i64, team = 1 : i64
// DOT:         [[SUMS:%.+]], [[WEIGHTS:%.+]] = scf.for {{.+}} iter_args(
// DOT:           vector.load %x[{{.+}}] {alignment = 16 : i64} : memref<4x32xi8>, vector<16xi8>
// DOT:           vector.load %w[{{.+}}] {alignment = 16 : i64} : memref<8x32xi8>, vector<16xi8>
// DOT-COUNT-8:   llvm.call_intrinsic "llvm.nvvm.idp4a.s.s"
// DOT:           scf.yield
// DOT:         [[SCALED:%.+]] = arith.muli [[WEIGHTS]], {{%.+}} : i32
// DOT-NEXT:    [[SUM:%.+]] = arith.subi [[SUMS]], [[SCALED]] : i32
// DOT-NEXT:    memref.store [[SUM]], %y
func.func private @dense(%x: memref<4x32xi8>, %w: memref<8x32xi8>, %y: memref<4x8xi32>) {
  %z = arith.constant 0 : i32
  %five = arith.constant 5 : i32
  linalg.fill ins(%z : i32) outs(%y : memref<4x8xi32>)
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
                     affine_map<(d0, d1, d2) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%x, %w : memref<4x32xi8>, memref<8x32xi8>) outs(%y : memref<4x8xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %d = arith.extsi %a : i8 to i32
    %e = arith.subi %d, %five : i32
    %f = arith.extsi %b : i8 to i32
    %g = arith.muli %e, %f : i32
    %h = arith.addi %c, %g : i32
    linalg.yield %h : i32
  }
  func.return
}
