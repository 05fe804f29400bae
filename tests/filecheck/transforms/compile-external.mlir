// RUN: relay-opt %s -p compile-external | filecheck %s

// The plug-in abacus compiles its function: a declaration with the artifact is left. The host's functions stay.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @sum(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func private @sum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "abacus", global_symbol = "sum"} {
  %0 = relay.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[R:%.+]] = func.call @sum(%x, %x)
// CHECK-NEXT:    relay.add [[R]], %x
// CHECK:       func.func private @sum(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-SAME:     attributes {compiler = "abacus", global_symbol = "sum"
// CHECK-SAME:    byoc.operators = [{op = "relay.add", source = "{{[^"]*}}compile-external.mlir:10:3"
// CHECK-SAME:    byoc.artifact = dense<{{[^:]*}}> : tensor<{{[0-9]+}}xui8>
// CHECK-SAME:    , byoc.types = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, byoc.version = "2"
// CHECK-SAME:    , byoc.sources = {txt = dense<{{[^:]*}}> : tensor<10xui8>}, byoc.requirement = "relay-abacus"}
