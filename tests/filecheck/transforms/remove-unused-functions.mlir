// RUN: relay-opt %s -p remove-unused-functions | filecheck %s
// RUN: relay-opt %s -p 'remove-unused-functions{entry="other"}' | filecheck %s --check-prefix OTHER

// CHECK:         func.func @main
// CHECK:         func.func @used
// CHECK:         func.func private @leaf
// CHECK-NOT:     func.func @other
// OTHER-NOT:     func.func @main
// OTHER:         func.func @other
// OTHER-NOT:     @leaf
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
func.func @used(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @leaf(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
func.func private @leaf(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
