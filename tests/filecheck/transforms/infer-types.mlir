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

// What a branch and a loop give; a size in which branches differ stays unknown.
func.func @blocks(%c: i1, %x: tensor<2x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
  %0:2 = scf.if %c -> (tensor<?x3xf32>, tensor<?x3xf32>) {
    %1 = relay.abs %x : (tensor<2x3xf32>) -> tensor<?x3xf32>
    %2 = relay.concatenate %x, %x {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
    scf.yield %1, %2 : tensor<?x3xf32>, tensor<?x3xf32>
  } else {
    %3 = relay.negative %x : (tensor<2x3xf32>) -> tensor<?x3xf32>
    scf.yield %3, %3 : tensor<?x3xf32>, tensor<?x3xf32>
  }
  %4 = scf.while (%5 = %0#0) : (tensor<?x3xf32>) -> tensor<?x3xf32> {
    scf.condition(%c) %5 : tensor<?x3xf32>
  } do {
  ^bb0(%6: tensor<?x3xf32>):
    %7 = relay.abs %6 : (tensor<?x3xf32>) -> tensor<?x3xf32>
    scf.yield %7 : tensor<?x3xf32>
  }
  func.return %4, %0#1 : tensor<?x3xf32>, tensor<?x3xf32>
}
// CHECK-LABEL: func.func @blocks
// CHECK-SAME:    -> (tensor<2x3xf32>, tensor<?x3xf32>)
// CHECK-NEXT:    scf.if %c -> (tensor<2x3xf32>, tensor<?x3xf32>)
// CHECK:         scf.yield %{{.*}} : tensor<2x3xf32>, tensor<4x3xf32>
// CHECK:         scf.yield %{{.*}} : tensor<2x3xf32>, tensor<2x3xf32>
// CHECK:         scf.while ({{.*}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:      scf.condition(%c) %{{.*}} : tensor<2x3xf32>
// CHECK:           scf.yield %{{.*}} : tensor<2x3xf32>
