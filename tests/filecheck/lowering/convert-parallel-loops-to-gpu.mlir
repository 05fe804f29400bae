// RUN: relay-opt %s -p convert-parallel-loops-to-gpu | filecheck %s

// Blocks are the first of the body's arguments, threads the fourth.
// CHECK-LABEL: func.func @add
// CHECK:         [[N:%[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT:    "gpu.launch"(%blocks, [[N]], [[N]], %threads, [[N]], [[N]])
// CHECK-NEXT:    ^bb0([[B:%[^:]+]]: index, {{%[^:]+}}: index, {{%[^:]+}}: index, [[T:%[^:]+]]: index, {{.*}}):
// CHECK-NEXT:      [[FIRST:%.+]] = arith.muli [[B]], %threads : index
// CHECK-NEXT:      [[I:%.+]] = arith.addi [[FIRST]], [[T]] : index
// CHECK-NEXT:      [[X:%.+]] = memref.load %x{{.}}[[I]]{{.}}
// CHECK-NEXT:      memref.store [[X]], %y{{.}}[[I]]{{.}}
// CHECK-NEXT:      "gpu.terminator"() : () -> ()
// CHECK-NOT:     scf.parallel
func.func @add(%x: memref<512xf32>, %y: memref<512xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %blocks = arith.constant 4 : index
  %threads = arith.constant 128 : index
  "scf.parallel"(%zero, %blocks, %one) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%b: index):
    %first = arith.muli %b, %threads : index
    "scf.parallel"(%zero, %threads, %one) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
    ^bb0(%t: index):
      %i = arith.addi %first, %t : index
      %v = memref.load %x[%i] : memref<512xf32>
      memref.store %v, %y[%i] : memref<512xf32>
      scf.reduce
    }) {mapping = [#gpu.loop_dim_map<processor = thread_x, map = (d0) -> (d0), bound = (d0) -> (d0)>]} : (index, index, index) -> ()
    scf.reduce
  }) {mapping = [#gpu.loop_dim_map<processor = block_x, map = (d0) -> (d0), bound = (d0) -> (d0)>]} : (index, index, index) -> ()
  func.return
}
