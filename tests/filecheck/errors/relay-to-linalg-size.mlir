// RUN: not relay-opt %s -p relay-to-linalg 2>&1 | filecheck %s

// CHECK: relay-to-linalg-size.mlir:5:3: relay.broadcast_to in @f: has too many elements: tensor<1099511627776x4xf32>; use a smaller shape, or batch
func.func @f(%x: tensor<4xf32>) -> tensor<1099511627776x4xf32> {
  %r = relay.broadcast_to %x {shape = array<i64: 1099511627776, 4>} : (tensor<4xf32>) -> tensor<1099511627776x4xf32>
  func.return %r : tensor<1099511627776x4xf32>
}
