// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @indices(%buffer: memref<4x8xi8>, %i: index) {
  // CHECK: memref.prefetch: 1 indices for 2 dimensions
  memref.prefetch %buffer[%i], read, locality<2>, data : memref<4x8xi8>
  func.return
}

// -----

func.func @locality(%buffer: memref<4xi8>, %i: index) {
  // CHECK: memref.prefetch: localityHint 4 is not 0 to 3
  memref.prefetch %buffer[%i], read, locality<4>, data : memref<4xi8>
  func.return
}
