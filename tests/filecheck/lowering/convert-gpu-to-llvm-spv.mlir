// RUN: relay-opt %s -p convert-gpu-to-llvm-spv | filecheck %s

// CHECK:      [[X:%.+]] = arith.constant 0 : i32
// CHECK-NEXT: [[T:%.+]] = llvm.call @_Z12get_local_idj([[X]]) : (i32) -> i64
// CHECK-NEXT: {{%.+}} = arith.index_cast [[T]] : i64 to index
// CHECK-NEXT: [[Y:%.+]] = arith.constant 1 : i32
// CHECK-NEXT: {{%.+}} = llvm.call @_Z12get_group_idj([[Y]]) : (i32) -> i64
// CHECK:      [[FENCE:%.+]] = arith.constant 1 : i32
// CHECK-NEXT: llvm.call @_Z7barrierj([[FENCE]]) : (i32) -> ()
// CHECK:      [[D:%.+]] = llvm.call @_Z20dot_4x8packed_us_intjj(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK-NEXT: {{%.+}} = arith.addi %{{.*}}, [[D]] : i32
// CHECK-DAG:  llvm.func {{.*}}@_Z20dot_4x8packed_us_intjj(i32, i32) -> i32
// CHECK-DAG:  llvm.func {{.*}}@_Z12get_local_idj(i32) -> i64
// CHECK-DAG:  llvm.func {{.*}}@_Z7barrierj(i32)
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xi8>) -> (), known_block_size = array<i32: 256, 1, 1>}> ({
  ^bb0(%x: memref<256xi8>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %b = "gpu.block_id"() <{dimension = #gpu<dim y>}> : () -> index
    gpu.barrier
    %v = memref.load %x[%b] : memref<256xi8>
    memref.store %v, %x[%t] : memref<256xi8>
    %w = arith.extsi %v : i8 to i32
    %d = llvm.call_intrinsic "llvm.nvvm.idp4a.u.s"(%w, %w, %w) : (i32, i32, i32) -> i32
    gpu.return
  }) {sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
