// RUN: not relay-opt %s -p schedule-gpu 2>&1 | filecheck %s

// CHECK: linalg.fill in @dynamic: has the dynamic shape memref<?xi32>; give all buffers static shapes
func.func private @dynamic(%r: memref<?xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<?xi32>)
  func.return
}
