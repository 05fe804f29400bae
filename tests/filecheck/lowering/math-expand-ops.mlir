// RUN: relay-opt %s -p expand-math | filecheck %s

// What has an instruction stays; powers of two come from the bits of the exponent.
// CHECK-LABEL: gpu.module
// CHECK:         arith.constant 1.44269502 : f32
// CHECK:         math.roundeven
// CHECK:         math.fma
// CHECK:         arith.bitcast {{%.+}} : i32 to f32
// CHECK-NOT:     math.exp
// CHECK:         math.sqrt
// CHECK-NOT:     math.tanh
// CHECK:         math.copysign {{%.+}}, {{%.+}} : vector<4xf32>
// CHECK-NOT:     math.tanh
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xf32>) -> (), known_block_size = array<i32: 64, 1, 1>}> ({
  ^bb0(%x: memref<256xf32>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %v = memref.load %x[%t] : memref<256xf32>
    %e = math.exp %v : f32
    %s = math.sqrt %e : f32
    memref.store %s, %x[%t] : memref<256xf32>
    %w = vector.load %x[%t] : memref<256xf32>, vector<4xf32>
    %h = math.tanh %w : vector<4xf32>
    vector.store %h, %x[%t] : memref<256xf32>, vector<4xf32>
    gpu.return
  }) {sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
