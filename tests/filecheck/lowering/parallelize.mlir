// RUN: relay-opt %s -p "parallelize{fork=100 least=1000}" | filecheck %s

// The outermost loop has enough turns; it is the only one shared, and no mark is left.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME:    relay.schedule = {threads = [{loop = {{.+}} : i64, around = {{.+}} : i64, turns = 64 : i64}]}
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
// CHECK-SAME:    relay.schedule = {strategy = "chosen before", threads = [{loop = 1 : i64, around = 1 : i64, turns = 4096 : i64}]}
// CHECK:         scf.for
// CHECK:           "scf.parallel"
func.func private @few(%x: memref<3x4096xf32>, %y: memref<3x4096xf32>) attributes {relay.schedule = {strategy = "chosen before"}} {
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

// Blocks that are better on one core: each thread takes some rows, once, for all blocks.
// CHECK-LABEL: func.func private @blocks
// CHECK-SAME:    relay.schedule = {threads = [{loop = {{.+}} : i64, around = {{.+}} : i64, turns = 64 : i64}]}
// CHECK:         scf.for
// CHECK:           "scf.parallel"
// CHECK:         } {relay.shared}
func.func private @blocks(%x: memref<64xf32>, %y: memref<8x64xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %blocks = arith.constant 8 : index
  %rows = arith.constant 64 : index
  scf.for %i = %zero to %blocks step %one {
    %more = arith.addi %i, %one : index
    scf.for %j = %zero to %rows step %one {
      %a = memref.load %x[%j] : memref<64xf32>
      %e = math.exp %a : f32
      memref.store %e, %y[%i, %j] : memref<8x64xf32>
    } {relay.independent}
  } {relay.independent = 5000 : i64}
  func.return
}

// As before, but each block ends with something that only one thread may do: they share the rows of each block.
// CHECK-LABEL: func.func private @effects
// CHECK-SAME:    relay.schedule = {threads = [{loop = {{.+}} : i64, around = {{.+}} : i64, turns = 64 : i64}]}
// CHECK:         "scf.parallel"
// CHECK-NOT:     relay.shared
// CHECK:         func.return
func.func private @effects(%x: memref<64xf32>, %y: memref<8x64xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %blocks = arith.constant 8 : index
  %rows = arith.constant 64 : index
  scf.for %i = %zero to %blocks step %one {
    scf.for %j = %zero to %rows step %one {
      %a = memref.load %x[%j] : memref<64xf32>
      %e = math.exp %a : f32
      memref.store %e, %y[%i, %j] : memref<8x64xf32>
    } {relay.independent}
    %sum = memref.load %y[%i, %zero] : memref<8x64xf32>
    memref.store %sum, %y[%i, %one] : memref<8x64xf32>
  } {relay.independent = 5000 : i64}
  func.return
}
