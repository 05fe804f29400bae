// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: arith.cmpi: operands of one type give i1
func.func @cmpi(%x: i32, %y: i8) {
  %r = "arith.cmpi"(%x, %y) <{predicate = 0 : i64}> : (i32, i8) -> i1
  func.return
}

// -----

// CHECK: arith.cmpf: predicate 16 is unknown
func.func @cmpf(%x: f32) {
  %r = "arith.cmpf"(%x, %x) <{predicate = 16 : i64, fastmath = #arith.fastmath<none>}> : (f32, f32) -> i1
  func.return
}

// -----

// CHECK: arith.select: both values and the result have one type
func.func @select(%c: i1, %x: i32, %y: i8) {
  %r = "arith.select"(%c, %x, %y) : (i1, i32, i8) -> i32
  func.return
}

// -----

// CHECK: arith.select: vector<2xi1> does not choose among vector<4xi32>
func.func @select(%c: vector<2xi1>, %x: vector<4xi32>) {
  %r = arith.select %c, %x, %x : vector<2xi1>, vector<4xi32>
  func.return
}

// -----

// CHECK: arith.remf: operands and result have one type
func.func @remf(%x: f32, %y: f64) {
  %r = "arith.remf"(%x, %y) : (f32, f64) -> f32
  func.return
}
