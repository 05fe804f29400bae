// RUN: relay-opt %s -p 'print-ir{header="as it was"},simplify,PrintIR' 2>&1 >/dev/null | filecheck %s

// CHECK:      // as it was
// CHECK-NEXT: builtin.module {
// CHECK:        relay.reshape
// CHECK:      builtin.module {
// CHECK-NOT:    relay.reshape
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = relay.reshape %x {newshape = array<i64: 4>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
