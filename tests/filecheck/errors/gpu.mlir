// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: gpu.func has no body
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = () -> ()}> ({}) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()

// -----

// CHECK: the arguments of gpu.func's first block are not those of its type
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (i32) -> ()}> ({
  ^bb0(%x: i64):
    gpu.return
  }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()

// -----

// CHECK: a kernel gives no results
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = () -> (i32)}> ({
    gpu.return
  }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
