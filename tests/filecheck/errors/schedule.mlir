// RUN: not relay-opt %s --split-input-file -p schedule 2>&1 | filecheck %s

// CHECK: @fill: relay.schedule: fill: flat = "yes" is not possible; possible: true, false
func.func private @fill(%r: memref<64xi32>) attributes {relay.schedule = {strategy = "fill", flat = "yes"}} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<64xi32>)
  func.return
}

// -----

// CHECK: linalg.fill in @dynamic: has the dynamic shape memref<?xi32>; give all buffers static shapes
func.func private @dynamic(%r: memref<?xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%r : memref<?xi32>)
  func.return
}
