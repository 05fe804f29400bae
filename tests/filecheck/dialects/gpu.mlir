// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

builtin.module attributes {gpu.container_module} {
  // CHECK: "gpu.module"() <{sym_name = "kernels", targets = [#nvvm.target<O = 3, chip = "sm_90">, #nvvm.target, #xevm.target<triple = "spirv64v1.2-unknown-unknown", chip = "">]}> ({
  "gpu.module"() <{sym_name = "kernels", targets = [#nvvm.target<O = 3, chip = "sm_90">, #nvvm.target, #xevm.target<triple = "spirv64v1.2-unknown-unknown", chip = "">]}> ({
    // CHECK: "gpu.func"() <{function_type = (memref<64xf32>) -> (), known_block_size = array<i32: 64, 1, 1>}> ({
    "gpu.func"() <{function_type = (memref<64xf32>) -> (), known_block_size = array<i32: 64, 1, 1>}> ({
    ^bb0(%x: memref<64xf32>):
      // CHECK: {{%.+}} = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %s = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      // CHECK-NEXT: gpu.barrier
      gpu.barrier
      // CHECK-NEXT: gpu.return
      gpu.return
    // CHECK-NEXT: }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
    }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
  }) : () -> ()
  // CHECK: "gpu.binary"() <{sym_name = "other", objects = [#gpu.object<#nvvm.target, assembly = "text\00">], offloadingHandler = #gpu.select_object}> : () -> ()
  "gpu.binary"() <{sym_name = "other", objects = [#gpu.object<#nvvm.target, assembly = "text\00">], offloadingHandler = #gpu.select_object}> : () -> ()
}
