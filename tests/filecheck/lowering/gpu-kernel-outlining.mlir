// RUN: relay-opt %s -p gpu-kernel-outlining | filecheck %s

// Constants and views are made inside; of each buffer there is one argument.
// CHECK:       builtin.module attributes {gpu.container_module} {
// CHECK-NEXT:    "gpu.module"() <{sym_name = "kernels"}> ({
// CHECK-NEXT:      "gpu.func"() <{function_type = (memref<4x128xf32>) -> (), known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 4, 1, 1>}> ({
// CHECK-NEXT:      ^bb0([[X:%.+]]: memref<4x128xf32>):
// CHECK-NEXT:        [[B:%.+]] = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
// CHECK-NEXT:        [[T:%.+]] = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
// CHECK-NEXT:        {{%.+}} = arith.constant 128 : index
// CHECK-NEXT:        [[FLAT:%.+]] = memref.collapse_shape [[X]]
// CHECK:             gpu.return
// CHECK-NEXT:      }) {sym_name = "double_kernel", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
// CHECK:         func.func @double([[GIVEN:%.+]]: memref<4x128xf32>) {
// CHECK:           "gpu.launch_func"(%blocks, %one, %one, %threads, %one, %one, [[GIVEN]])
// CHECK-SAME:        kernel = @kernels::@double_kernel
func.func @double(%x: memref<4x128xf32>) {
  %one = arith.constant 1 : index
  %blocks = arith.constant 4 : index
  %threads = arith.constant 128 : index
  %flat = memref.collapse_shape %x [[0 : i64, 1 : i64]] : memref<4x128xf32> into memref<512xf32>
  "gpu.launch"(%blocks, %one, %one, %threads, %one, %one) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({
  ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index, %gx: index, %gy: index, %gz: index, %sx: index, %sy: index, %sz: index):
    %first = arith.muli %bx, %threads : index
    %i = arith.addi %first, %tx : index
    %v = memref.load %flat[%i] : memref<512xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %flat[%i] : memref<512xf32>
    "gpu.terminator"() : () -> ()
  }) : (index, index, index, index, index, index) -> ()
  func.return
}
