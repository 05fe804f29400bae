// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @prefetch
func.func @prefetch(%buffer: memref<4x8xi8>, %i: index) {
  // CHECK: memref.prefetch %buffer[%i, %i], read, locality<2>, data : memref<4x8xi8>
  memref.prefetch %buffer[%i, %i], read, locality<2>, data : memref<4x8xi8>
  // CHECK: memref.prefetch %buffer[%i, %i], write, locality<0>, instr : memref<4x8xi8>
  memref.prefetch %buffer[%i, %i], write, locality<0>, instr : memref<4x8xi8>
  func.return
}
