// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @apply_scale(
func.func @apply_scale(%x: i32, %multiplier: i32, %shift: i8) {
  // CHECK: %double = "tosa.apply_scale"(%x, %multiplier, %shift) <{rounding_mode = #tosa.rounding_mode<DOUBLE_ROUND>}> : (i32, i32, i8) -> i32
  %double = tosa.apply_scale %x, %multiplier, %shift {rounding_mode = DOUBLE_ROUND} : (i32, i32, i8) -> i32
  // CHECK: %single = "tosa.apply_scale"(%x, %multiplier, %shift) <{rounding_mode = #tosa.rounding_mode<SINGLE_ROUND>}> : (i32, i32, i8) -> i32
  %single = tosa.apply_scale %x, %multiplier, %shift rounding_mode<SINGLE_ROUND> : (i32, i32, i8) -> i32
  func.return
}
