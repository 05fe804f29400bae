// RUN: relay-opt %s -p 'distribute-loops{longest=8}' | filecheck %s
// RUN: relay-opt %s -p 'distribute-loops' | filecheck %s --check-prefix SHORT

// SHORT-NOT:     relay.rolled

// What is the same in every turn goes first. Nine operations wait for each other; of the two loops, the second one
// needs one vector of the first, and reads itself what only it needs.
// CHECK-LABEL: func.func private @chain
// CHECK:         math.absf
// CHECK:         %[[ROOM:.+]] = memref.alloca() {{.+}} : memref<128xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         scf.for
// CHECK-NOT:       %other
// CHECK:           math.sqrt
// CHECK:           vector.store {{%.+}}, %[[ROOM]][{{%.+}}] : memref<128xf32>, vector<16xf32>
// CHECK:         } {relay.rolled}
// CHECK:         scf.for
// CHECK:           vector.load %[[ROOM]][{{%.+}}] : memref<128xf32>, vector<16xf32>
// CHECK-NOT:       math.sqrt
// CHECK:           vector.load {{.+}} : memref<8x16xf32>, vector<16xf32>
// CHECK:           vector.store {{.+}} : memref<8x16xf32>, vector<16xf32>
// CHECK:         } {relay.rolled}
func.func private @chain(%x: memref<8x16xf32>, %other: memref<8x16xf32>, %y: memref<8x16xf32>, %scale: vector<16xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 8 : index
  scf.for %i = %zero to %rows step %one {
    %size = math.absf %scale : vector<16xf32>
    %a = vector.load %x[%i, %zero] : memref<8x16xf32>, vector<16xf32>
    %b = arith.mulf %a, %size : vector<16xf32>
    %c = math.sqrt %b : vector<16xf32>
    %d = arith.addf %c, %c : vector<16xf32>
    %e = arith.mulf %d, %size : vector<16xf32>
    %f = arith.negf %e : vector<16xf32>
    %g = math.ceil %f : vector<16xf32>
    %o = vector.load %other[%i, %zero] : memref<8x16xf32>, vector<16xf32>
    %h = arith.addf %g, %o : vector<16xf32>
    vector.store %h, %y[%i, %zero] : memref<8x16xf32>, vector<16xf32>
  }
  func.return
}

// What the first loop would read, an earlier turn of the second one has written.
// CHECK-LABEL: func.func private @in_place
// CHECK-NOT:     relay.rolled
func.func private @in_place(%x: memref<64xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = arith.constant 8 : index
  scf.for %i = %zero to %turns step %one {
    %a = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
    %b = arith.mulf %a, %a : vector<16xf32>
    %c = math.sqrt %b : vector<16xf32>
    %d = arith.addf %c, %c : vector<16xf32>
    %e = arith.mulf %d, %d : vector<16xf32>
    %f = arith.negf %e : vector<16xf32>
    %g = math.ceil %f : vector<16xf32>
    %h = arith.addf %g, %g : vector<16xf32>
    vector.store %h, %x[%i] : memref<64xf32>, vector<16xf32>
  }
  func.return
}

// 1,056 numbers of a value are more than are kept on the stack: two loops for every 64 turns, which threads may share,
// and two for the 2 turns that are left.
// CHECK-LABEL: func.func private @long
// CHECK:         %[[WIDTH:.+]] = arith.constant 1024 : index
// CHECK:         scf.for %[[START:.+]] = {{%.+}} to %[[WIDTH]] step %[[WIDTH]] {
// CHECK:           scf.for
// CHECK:             arith.addi %[[START]], {{%.+}} : index
// CHECK:             math.sqrt
// CHECK:           } {relay.rolled}
// CHECK:           scf.for
// CHECK:           } {relay.rolled}
// CHECK:         } {relay.independent}
// CHECK:         scf.for
// CHECK:         } {relay.rolled}
// CHECK:         scf.for
// CHECK:         } {relay.rolled}
func.func private @long(%x: memref<1056xf32>, %y: memref<1056xf32>) {
  %zero = arith.constant 0 : index
  %lanes = arith.constant 16 : index
  %size = arith.constant 1056 : index
  scf.for %i = %zero to %size step %lanes {
    %a = vector.load %x[%i] : memref<1056xf32>, vector<16xf32>
    %b = arith.mulf %a, %a : vector<16xf32>
    %c = math.sqrt %b : vector<16xf32>
    %d = arith.addf %c, %c : vector<16xf32>
    %e = arith.mulf %d, %d : vector<16xf32>
    %f = arith.negf %e : vector<16xf32>
    %g = math.ceil %f : vector<16xf32>
    %h = arith.addf %g, %g : vector<16xf32>
    vector.store %h, %y[%i] : memref<1056xf32>, vector<16xf32>
  } {relay.independent}
  func.return
}

// An index that is loaded is no place that both loops can compute, and no vector: there is no cut.
// CHECK-LABEL: func.func private @by_an_index
// CHECK-NOT:     relay.rolled
func.func private @by_an_index(%codes: memref<64xi8>, %table: memref<257x16xf32>, %y: memref<64x16xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = arith.constant 64 : index
  scf.for %i = %zero to %turns step %one {
    %a = memref.load %codes[%i] : memref<64xi8>
    %b = arith.extui %a : i8 to i32
    %c = arith.index_cast %b : i32 to index
    %d = vector.load %table[%c, %zero] : memref<257x16xf32>, vector<16xf32>
    %e = math.sqrt %d : vector<16xf32>
    %f = arith.addf %e, %e : vector<16xf32>
    %g = math.sqrt %f : vector<16xf32>
    %h = arith.addf %g, %g : vector<16xf32>
    %next = arith.addi %c, %one : index
    %again = vector.load %table[%next, %zero] : memref<257x16xf32>, vector<16xf32>
    %r = arith.addf %h, %again : vector<16xf32>
    vector.store %r, %y[%i, %zero] : memref<64x16xf32>, vector<16xf32>
  }
  func.return
}
