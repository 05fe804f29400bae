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

// As a file of its own, this text is refused: it holds no operation.

// -----

// CHECK: operand #0 of relay.abs is not computed before it is used
func.func @late(%x: tensor<4xf32>) {
  %a = relay.abs %b : (tensor<4xf32>) -> tensor<4xf32>
  %b = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: Operation relay.negtive is not registered; did you mean relay.negative?
func.func @misspelled(%x: tensor<4xf32>) {
  %a = relay.negtive %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: an integer type has at most
func.func private @wide(i99999999)

// -----

// CHECK: cannot be read: Format not implemented for i65
func.func private @f() attributes {a = dense<1> : tensor<1xi65>}

// -----

// CHECK: f8E5M2 has 8 bits
func.func private @f() attributes {a = dense<[0x1FF]> : tensor<1xf8E5M2>}

// -----

// CHECK: Hex string in denseAttr is invalid
func.func private @f() attributes {a = dense<"0xZZ"> : tensor<2xi4>}

// -----

// CHECK: Shape mismatch in dense literal. Expected 3 elements from the type, but got 2 elements.
func.func private @f() attributes {a = dense<"0x0102"> : tensor<3xi4>}

// -----

// CHECK: Shape mismatch in dense literal. Expected [3] shape from the type, but got [2] shape.
func.func private @f() attributes {a = dense<[1, 2]> : tensor<3xi4>}

// -----

// CHECK: amx.tile: !amx.tile<17x64xi8> is not up to 16 rows of up to 64 bytes in whole words
func.func @too_many_rows(%t: !amx.tile<17x64xi8>) {
  func.return
}

// -----

// CHECK: amx.tile: !amx.tile<16x63xi8> is not up to 16 rows of up to 64 bytes in whole words
func.func @part_of_a_word(%t: !amx.tile<16x63xi8>) {
  func.return
}

// -----

// CHECK: amx.tile: only rows and columns of i8 and i32 are known here
func.func @halves(%t: !amx.tile<16x32xi16>) {
  func.return
}
