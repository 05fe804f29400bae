// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: nvgpu.ldmatrix: only four matrices of bytes are known here
func.func @two_matrices(%s: memref<512xi8>, %at: index) {
  %m = "nvgpu.ldmatrix"(%s, %at) <{numTiles = 2 : i32, transpose = false}> : (memref<512xi8>, index) -> vector<2x4xi8>
  func.return
}
