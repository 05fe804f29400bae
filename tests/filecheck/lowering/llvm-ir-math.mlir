// RUN: relay-opt %s -t llvm-ir | filecheck %s

// What relay-to-linalg does not make, and other compilers do.

// CHECK-LABEL: define internal void @roots
// CHECK:         [[S:%.+]] = call float @llvm.sqrt.f32(float {{%.+}})
// CHECK-NEXT:    fdiv float 0x3FF0000000000000, [[S]]
// CHECK:         [[V:%.+]] = call <4 x double> @llvm.sqrt.v4f64(<4 x double> {{%.+}})
// CHECK-NEXT:    fdiv <4 x double> splat (double {{.+}}), [[V]]
func.func private @roots(%x: memref<1xf32>, %y: memref<4xf64>) {
  %0 = arith.constant 0 : index
  %a = memref.load %x[%0] : memref<1xf32>
  %b = math.rsqrt %a : f32
  memref.store %b, %x[%0] : memref<1xf32>
  %c = vector.load %y[%0] : memref<4xf64>, vector<4xf64>
  %d = math.rsqrt %c : vector<4xf64>
  vector.store %d, %y[%0] : memref<4xf64>, vector<4xf64>
  func.return
}

// CHECK-LABEL: define internal void @size
// CHECK:         call i16 @llvm.abs.i16(i16 {{%.+}}, i1 false)
func.func private @size(%x: memref<1xi16>) {
  %0 = arith.constant 0 : index
  %a = memref.load %x[%0] : memref<1xi16>
  %b = math.absi %a : i16
  memref.store %b, %x[%0] : memref<1xi16>
  func.return
}

// Functions of half floats are those of floats, rounded.

// CHECK-LABEL: define internal void @half
// CHECK:         [[W:%.+]] = fpext half {{%.+}} to float
// CHECK-NEXT:    [[R:%.+]] = call float @erff(float [[W]])
// CHECK-NEXT:    fptrunc float [[R]] to half
func.func private @half(%x: memref<1xf16>) {
  %0 = arith.constant 0 : index
  %a = memref.load %x[%0] : memref<1xf16>
  %b = math.erf %a : f16
  memref.store %b, %x[%0] : memref<1xf16>
  func.return
}
