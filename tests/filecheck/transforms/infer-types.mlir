// RUN: relay-opt %s -p infer-types | filecheck %s

// Unknown sizes become known, through ops, calls and results.
func.func @main(%x: tensor<2x3xf32>) -> tensor<?x3xf32> {
  %0 = relay.abs %x : (tensor<2x3xf32>) -> tensor<?x3xf32>
  %1 = func.call @callee(%x) : (tensor<2x3xf32>) -> tensor<?x3xf32>
  %2 = relay.add %0, %1 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %2 : tensor<?x3xf32>
}
func.func private @callee(%x: tensor<2x3xf32>) -> tensor<?x3xf32> {
  %0 = relay.negative %x : (tensor<2x3xf32>) -> tensor<?x3xf32>
  func.return %0 : tensor<?x3xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-SAME:    -> tensor<2x3xf32>
// CHECK-NEXT:    relay.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    func.call @callee(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    relay.add {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT:    func.return {{.*}} : tensor<2x3xf32>
// CHECK-LABEL: func.func private @callee
// CHECK-SAME:    -> tensor<2x3xf32>
