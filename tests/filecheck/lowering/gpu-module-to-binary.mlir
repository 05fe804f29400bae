// RUN: relay-opt %s -p "nvvm-attach-target,convert-gpu-to-nvvm,gpu-module-to-binary" | filecheck %s

// CHECK:      "gpu.binary"() <{sym_name = "kernels", objects = [#gpu.object<#nvvm.target<O = 3, chip = "sm_80", features = "+ptx70">, assembly = "
// CHECK-SAME: .target sm_80
// CHECK-SAME: .visible .entry copy(
// CHECK-SAME: .reqntid 256
// CHECK-SAME: ld.global.nc.b8
// CHECK-SAME: st.global.b8
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xi8>, memref<256xi8>) -> (), known_block_size = array<i32: 256, 1, 1>}> ({
  ^bb0(%x: memref<256xi8>, %y: memref<256xi8>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %v = memref.load %x[%t] : memref<256xi8>
    memref.store %v, %y[%t] : memref<256xi8>
    gpu.return
  }) {sym_name = "copy", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
