// RUN: relay-opt %s -p convert-gpu-to-nvvm | filecheck %s

// CHECK:      {{%.+}} = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
// CHECK-NEXT: {{%.+}} = arith.index_cast {{%.+}} : i32 to index
// CHECK-NEXT: {{%.+}} = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.y"() : () -> i32
// CHECK-NEXT: {{%.+}} = arith.index_cast {{%.+}} : i32 to index
// CHECK-NEXT: [[ALL:%.+]] = arith.constant 0 : i32
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"([[ALL]]) : (i32) -> ()
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xi8>) -> (), known_block_size = array<i32: 256, 1, 1>}> ({
  ^bb0(%x: memref<256xi8>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %b = "gpu.block_id"() <{dimension = #gpu<dim y>}> : () -> index
    gpu.barrier
    %v = memref.load %x[%b] : memref<256xi8>
    memref.store %v, %x[%t] : memref<256xi8>
    gpu.return
  }) {sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
