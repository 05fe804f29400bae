// RUN: relay-opt %s -p "parallelize{fork=100 least=1000}" | filecheck %s

// The outermost loop has enough turns; it is the only one shared, and no mark is left.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME:    relay.schedule = "threads share loops of 64 turns"
// CHECK:         "scf.parallel"(%{{.+}}, %{{.+}}, %{{.+}}) {{.+}} ({
// CHECK:           scf.for
// CHECK-NOT:     relay.independent
// CHECK:           scf.reduce
func.func private @rows(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 64 : index
  scf.for %i = %zero to %rows step %one {
    scf.for %j = %zero to %rows step %one {
      %a = memref.load %x[%i, %j] : memref<64x64xf32>
      %e = math.exp %a : f32
      memref.store %e, %y[%i, %j] : memref<64x64xf32>
    } {relay.independent}
  } {relay.independent}
  func.return
}

// Three turns are few for two threads: the inner loop is shared three times.
// CHECK-LABEL: func.func private @few
// CHECK-SAME:    relay.schedule = "chosen before; threads share loops of 4096 turns"
// CHECK:         scf.for
// CHECK:           "scf.parallel"
func.func private @few(%x: memref<3x4096xf32>, %y: memref<3x4096xf32>) attributes {relay.schedule = "chosen before"} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 3 : index
  %columns = arith.constant 4096 : index
  scf.for %i = %zero to %rows step %one {
    scf.for %j = %zero to %columns step %one {
      %a = memref.load %x[%i, %j] : memref<3x4096xf32>
      %e = math.exp %a : f32
      memref.store %e, %y[%i, %j] : memref<3x4096xf32>
    } {relay.independent}
  } {relay.independent}
  func.return
}

// What is not marked stays, and so does what is over sooner than threads are there.
// CHECK-LABEL: func.func private @alone
// CHECK-NOT:     scf.parallel
func.func private @alone(%x: memref<4096xf32>, %y: memref<4096xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %few = arith.constant 4 : index
  %many = arith.constant 4096 : index
  scf.for %i = %zero to %many step %one {
    %a = memref.load %x[%i] : memref<4096xf32>
    %e = math.exp %a : f32
    memref.store %e, %y[%i] : memref<4096xf32>
  }
  scf.for %i = %zero to %few step %one {
    %a = memref.load %x[%i] : memref<4096xf32>
    memref.store %a, %y[%i] : memref<4096xf32>
  } {relay.independent}
  func.return
}
