// RUN: relay-opt %s -p 'attach-target{target="cuda -mattr=-shuffle"},schedule-gpu' | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="cuda -mattr=-shuffle"},schedule-gpu,convert-parallel-loops-to-gpu' | filecheck %s --check-prefix=LAUNCH

// 64 x 32 sums a block, in stages of 64 codes: the weights are packed, with what the sums are off by, for both rows of a thread.
// CHECK-LABEL: func.func @main
// CHECK:         func.call @dense({{.+}}) : (memref<64x128xi8>, memref<4096xi8>, memref<64xi32>, memref<64x32xi32>) -> ()
// CHECK-LABEL: func.func private @dense
// CHECK-SAME:    (%x: memref<64x128xi8>, {{%.+}}: memref<4096xi8>, [[START:%.+]]: memref<64xi32>, %y: memref<64x32xi32>)
// CHECK-SAME:    relay.schedule = {strategy = "mma", tile = array<i64: 64, 32>, warps = array<i64: 4, 1>, stages = 2 : i64, splits = 1 : i64, slices = 1 : i64, lanes = 8 : i64,
// CHECK-SAME:      block = 128 : i64, other_blocks = array<i64>, shared = 12288 : i64,
// CHECK:           gpu.dynamic_shared_memory {bytes = 12288 : i64}
// CHECK:           "nvgpu.device_async_copy"
// CHECK:           "nvgpu.device_async_create_group"
// CHECK:           [[OFF:%.+]] = vector.load [[START]]
// CHECK:           [[FOUR:%.+]] = vector.load [[START]]
// CHECK:           [[PAIR:%.+]] = vector.shuffle [[OFF]], [[FOUR]]
// CHECK:           [[ALL:%.+]] = vector.shuffle [[PAIR]],
// CHECK:           [[SUM:%.+]] = vector.extract [[ALL]]
// CHECK:           scf.for {{.+}} iter_args({{.+}} = [[SUM]]
// CHECK:             "nvgpu.device_async_wait"({{.+}}) <{numGroups = 0 : i32}>
// CHECK-NEXT:        gpu.barrier
// CHECK:             scf.if
// CHECK:               "nvgpu.device_async_copy"
// CHECK:             "nvgpu.ldmatrix"
// CHECK:             llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.s8"
// CHECK:           vector.store {{.+}}, %y

// LAUNCH:        [[BYTES:%.+]] = arith.constant 12288 : i32
// LAUNCH:        "gpu.launch"({{.+}}, [[BYTES]])
func.func @main(%x: memref<64x128xi8>, %y: memref<64x32xi32>) {
  %c = arith.constant dense<1> : tensor<32x128xi8>
  %w = bufferization.to_buffer %c read_only : tensor<32x128xi8> to memref<32x128xi8>
  func.call @dense(%x, %w, %y) : (memref<64x128xi8>, memref<32x128xi8>, memref<64x32xi32>) -> ()
  func.return
}
func.func private @dense(%x: memref<64x128xi8>, %w: memref<32x128xi8>, %y: memref<64x32xi32>) {
  %z = arith.constant 0 : i32
  %p = arith.constant 3 : i32
  linalg.fill ins(%z : i32) outs(%y : memref<64x32xi32>)
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
                     affine_map<(d0, d1, d2) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%x, %w : memref<64x128xi8>, memref<32x128xi8>) outs(%y : memref<64x32xi32>) {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %ae = arith.extsi %a : i8 to i32
    %ao = arith.subi %ae, %p : i32
    %be = arith.extsi %b : i8 to i32
    %m = arith.muli %ao, %be : i32
    %t = arith.addi %s, %m : i32
    linalg.yield %t : i32
  }
  func.return
}
