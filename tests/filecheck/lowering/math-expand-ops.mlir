// RUN: relay-opt %s -p math-expand-ops | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx2,+fma"},math-expand-ops' | filecheck %s --check-prefix FUSED
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f"},math-expand-ops' | filecheck %s --check-prefix WIDE

// Where products are fused with sums, those of polynomials are.
// FUSED-LABEL: gpu.module
// FUSED:         math.fma {{.+}} : f32
// FUSED:         math.fma {{.+}} : vector<4xf32>

// What has an instruction stays; integers come from the lowest bits of a sum, powers of two from those of the exponent.
// CHECK-LABEL: gpu.module
// CHECK:         arith.constant 1.44269502 : f32
// CHECK:         arith.constant 0x4B400000 : f32
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

// On processors functions of f64 are the library's.
// CHECK-LABEL: func.func private @both
// CHECK-NOT:     math.erf
// CHECK:         arith.select {{.+}} : vector<16xi1>, vector<16xf32>
// CHECK:         math.exp {{%.+}} : f64
// CHECK:         arith.extf {{%.+}} : f32 to f64
// CHECK-NOT:     math.sin
// CHECK:         arith.truncf {{%.+}} : f64 to f32
func.func private @both(%x: memref<16xf32>, %y: memref<1xf64>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %e = math.erf %v : vector<16xf32>
  vector.store %e, %x[%c0] : memref<16xf32>, vector<16xf32>
  %d = memref.load %y[%c0] : memref<1xf64>
  %f = math.exp %d : f64
  memref.store %f, %y[%c0] : memref<1xf64>
  %s = memref.load %x[%c0] : memref<16xf32>
  %t = math.sin %s : f32
  memref.store %t, %x[%c0] : memref<16xf32>
  func.return
}

// x * (1 + erf(x / sqrt(2))) / 2 is one function of x: nothing is divided.
// CHECK-LABEL: func.func private @gelu
// CHECK:         math.absf %x : vector<16xf32>
// CHECK-NOT:     arith.divf
// CHECK:         func.return
func.func private @gelu(%x: vector<16xf32>) -> vector<16xf32> {
  %root = arith.constant dense<1.41421354> : vector<16xf32>
  %one = arith.constant dense<1.0> : vector<16xf32>
  %half = arith.constant dense<0.5> : vector<16xf32>
  %0 = arith.divf %x, %root : vector<16xf32>
  %1 = math.erf %0 : vector<16xf32>
  %2 = arith.addf %1, %one : vector<16xf32>
  %3 = arith.mulf %x, %2 : vector<16xf32>
  %4 = arith.mulf %3, %half : vector<16xf32>
  func.return %4 : vector<16xf32>
}

// Few processors round f64 to 16 bits; by way of f32 it is rounded once, as what is lost is kept in the last bit.
// CHECK-LABEL: func.func private @narrow
// CHECK:         [[N:%.+]] = arith.truncf [[X:%.+]] : f64 to f32
// CHECK-NEXT:    arith.extf [[N]] : f32 to f64
// CHECK:         arith.ori
// CHECK-NEXT:    [[B:%.+]] = arith.bitcast {{%.+}} : i32 to f32
// CHECK-NEXT:    arith.truncf [[B]] : f32 to f16
func.func private @narrow(%x: memref<1xf64>, %y: memref<1xf16>) {
  %c0 = arith.constant 0 : index
  %d = memref.load %x[%c0] : memref<1xf64>
  %f = arith.truncf %d : f64 to f16
  memref.store %f, %y[%c0] : memref<1xf16>
  func.return
}

// AVX-512 inverts nearly; where the root is 0 or infinite, that is all.
// CHECK-LABEL: func.func private @inverse_root
// CHECK:         arith.divf
// WIDE-LABEL:  func.func private @inverse_root
// WIDE:          [[N:%.+]] = llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"
// WIDE-NOT:      arith.divf
// WIDE:          arith.select {{%.+}}, {{%.+}}, [[N]] :
func.func private @inverse_root(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : vector<16xf32>
  %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %s = math.sqrt %v : vector<16xf32>
  %r = arith.divf %one, %s : vector<16xf32>
  vector.store %r, %x[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}
