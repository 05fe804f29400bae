// RUN: relay-opt %s --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: arith.cmpi: unknown predicate less
func.func @cmpi(%x: i32) {
  %r = arith.cmpi less, %x, %x : i32
  func.return
}

// -----

// CHECK: relay.constant holds dense<...> or dense_resource<...>
func.func @constant() {
  %r = relay.constant 1 : i32
  func.return
}

// -----

// CHECK: the text holds no operation
