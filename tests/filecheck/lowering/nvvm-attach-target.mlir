// RUN: relay-opt %s -p 'nvvm-attach-target{chip="sm_90a" features="+ptx80"}' | filecheck %s

// CHECK: "gpu.module"() <{sym_name = "kernels", targets = [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx80">]}>
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = () -> ()}> ({
    gpu.return
  }) {sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
