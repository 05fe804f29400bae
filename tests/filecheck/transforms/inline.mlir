// RUN: relay-opt %s -p inline | filecheck %s
// RUN: relay-opt %s -p 'inline{every=true}' | filecheck %s --check-prefix EVERY

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[N:%.+]] = relay.negative %x
// CHECK-NEXT:    [[R:%.+]] = func.call @plain([[N]])
// CHECK-NEXT:    func.return [[R]]
// CHECK-NOT:     @marked
// CHECK:         func.func private @plain
// EVERY-LABEL: func.func @main
// EVERY-NEXT:    relay.negative %x
// EVERY-NEXT:    relay.abs
// EVERY-NEXT:    func.return
// EVERY-NOT:     func.func
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @marked(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r = func.call @plain(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
func.func private @marked(%x: tensor<4xf32>) -> tensor<4xf32> attributes {inline} {
  %r = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
func.func private @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
