// RUN: relay-opt %s -p gpu-kernel-outlining | filecheck %s

// A thread loads by itself what tells it where to write, and the host computes nothing.
// CHECK:       "gpu.func"() <{function_type = (memref<8xf32>, memref<2xi64>) -> ()
// CHECK:       ^bb0([[ROW:%.+]]: memref<8xf32>, [[AT:%.+]]: memref<2xi64>):
// CHECK:         [[START:%.+]] = memref.load [[AT]]
// CHECK-NEXT:    [[I:%.+]] = arith.index_cast [[START]] : i64 to index
// CHECK:         memref.store {{%.+}}, [[ROW]][[[I]]]
// CHECK:       func.func @store_at
// CHECK-NOT:     memref.load
// CHECK:         func.return
func.func @store_at(%at: memref<2xi64>, %row: memref<8xf32>) {
  %one = arith.constant 1 : index
  %start = memref.load %at[%one] : memref<2xi64>
  %i = arith.index_cast %start : i64 to index
  "gpu.launch"(%one, %one, %one, %one, %one, %one) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({
  ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index, %gx: index, %gy: index, %gz: index, %sx: index, %sy: index, %sz: index):
    %v = arith.constant 1.0 : f32
    memref.store %v, %row[%i] : memref<8xf32>
    "gpu.terminator"() : () -> ()
  }) : (index, index, index, index, index, index) -> ()
  func.return
}
