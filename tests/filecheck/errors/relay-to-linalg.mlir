// RUN: not relay-opt %s -p relay-to-linalg 2>&1 | filecheck %s

// CHECK: argument 0 (%x) of @f: has the dynamic shape tensor<?xf32>; give the inputs a static shape
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = relay.abs %x : (tensor<?xf32>) -> tensor<?xf32>
  func.return %r : tensor<?xf32>
}
