// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// Upstream's custom form of scf.parallel is read; it is printed in the generic one.
// CHECK-LABEL: func.func @parallel
func.func @parallel(%buffer: memref<8x4xf32>, %x: f32, %a: index, %b: index, %c: index) -> f32 {
  // CHECK: "scf.parallel"(%a, %a, %b, %c, %c, %a) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  // CHECK-NEXT: ^bb0(%i: index, %j: index):
  // CHECK-NEXT: memref.store %x, %buffer[%i, %j] : memref<8x4xf32>
  // CHECK-NEXT: scf.reduce
  // CHECK-NEXT: }) {relay.independent} : (index, index, index, index, index, index) -> ()
  scf.parallel (%i, %j) = (%a, %a) to (%b, %c) step (%c, %a) {
    memref.store %x, %buffer[%i, %j] : memref<8x4xf32>
  } {relay.independent}
  // CHECK: %r = "scf.parallel"(%a, %b, %c, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  // CHECK: scf.reduce(%v : f32) {
  // CHECK: }) : (index, index, index, f32) -> f32
  %r = scf.parallel (%k) = (%a) to (%b) step (%c) init (%x) -> f32 {
    %v = memref.load %buffer[%k, %a] : memref<8x4xf32>
    scf.reduce(%v : f32) {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      scf.reduce.return %s : f32
    }
  }
  func.return %r : f32
}
