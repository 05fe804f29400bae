// RUN: not relay-opt %s -p bufferize 2>&1 | filecheck %s

// CHECK: linalg.fill in @dynamic: has the dynamic shape tensor<?xi32>; give all tensors static shapes
func.func private @log(tensor<?xi32>)
func.func @dynamic(%x: tensor<?xi32>) {
  %zero = arith.constant 0 : i32
  %r = linalg.fill ins(%zero : i32) outs(%x : tensor<?xi32>) -> tensor<?xi32>
  func.call @log(%r) : (tensor<?xi32>) -> ()
  func.return
}
