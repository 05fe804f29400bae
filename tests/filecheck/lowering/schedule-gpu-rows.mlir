// RUN: relay-opt %s -p 'attach-target{target="cuda"},schedule-gpu' | filecheck %s

// A row of 8 numbers is two threads', four each, as are 8 rows: the sum is joined by a shuffle, and divides them.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME:    strategy = "rows", lanes = 4 : i64, team = 2 : i64, shuffles = true, block = 32 : i64
// CHECK-NOT:   memref.alloc
// CHECK:       [[X:%.+]] = vector.load %x
// CHECK-NOT:   vector.load
// CHECK:       llvm.call_intrinsic "llvm.nvvm.shfl.sync.bfly.f32"
// CHECK:       [[SUM:%.+]] = vector.broadcast {{.+}} : f32 to vector<4xf32>
// CHECK-NEXT:  [[SHARES:%.+]] = arith.divf [[X]], [[SUM]] : vector<4xf32>
// CHECK:       vector.store [[SHARES]], %y
func.func private @rows(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %z = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<8xf32>
  linalg.fill ins(%z : f32) outs(%s : memref<8xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : memref<8x8xf32>) outs(%s : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  }
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %s : memref<8x8xf32>, memref<8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  }
  func.return
}
