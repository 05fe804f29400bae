// RUN: relay-opt %s -t llvm-ir | filecheck %s

// Memrefs are pointers that do not alias; private functions are internal and stay functions of their own.

// CHECK-LABEL: define internal void @kernel(ptr noalias {{.*}}%arg0, ptr noalias {{.*}}%arg1, ptr noalias {{.*}}%arg2) noinline
// CHECK:         [[I:%.+]] = phi i64 [ 0, %entry ], [ [[NEXT:%.+]], %{{.+}} ]
// CHECK-NEXT:    [[C:%.+]] = icmp slt i64 [[I]], 32
// CHECK-NEXT:    br i1 [[C]]
// CHECK:         [[P:%.+]] = getelementptr inbounds float, ptr %arg0, i64 [[I]]
// CHECK-NEXT:    [[V:%.+]] = load <16 x float>, ptr [[P]], align 4
// CHECK-NEXT:    [[S:%.+]] = fadd <16 x float> [[V]], [[V]]
// CHECK:         store <16 x float> [[S]], ptr
// CHECK:         [[NEXT]] = add nsw i64 [[I]], 16
// CHECK:         ret void
func.func private @kernel(%x: memref<32xf32>, %y: memref<4x8xi8>, %r: memref<32xf32>) {
  %0 = arith.constant 0 : index
  %16 = arith.constant 16 : index
  %32 = arith.constant 32 : index
  scf.for %i = %0 to %32 step %16 {
    %v = vector.load %x[%i] : memref<32xf32>, vector<16xf32>
    %s = arith.addf %v, %v : vector<16xf32>
    vector.store %s, %r[%i] : memref<32xf32>, vector<16xf32>
  }
  func.return
}

// Tiles: shapes in rows and bytes, strides in bytes.

// CHECK-LABEL: define internal void @tiles
// CHECK:         [[P:%.+]] = getelementptr inbounds i8, ptr %arg0, i64 %arg3
// CHECK-NEXT:    [[X:%.+]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 5, i16 64, ptr [[P]], i64 %arg4)
// CHECK-NEXT:    [[W:%.+]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 48, ptr %arg1, i64 96)
// CHECK-NEXT:    [[S:%.+]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 5, i16 48, ptr %arg2, i64 0)
// CHECK:         [[I:%.+]] = phi i64
// CHECK-NEXT:    [[A:%.+]] = phi x86_amx [ [[S]], %entry ], [ [[R:%.+]], %{{.+}} ]
// CHECK:         [[L:%.+]] = call x86_amx @llvm.x86.tdpbusd.internal(i16 5, i16 48, i16 64, x86_amx [[A]], x86_amx [[X]], x86_amx [[W]])
// CHECK-NEXT:    [[R]] = call x86_amx @llvm.x86.tdpbssd.internal(i16 5, i16 48, i16 64, x86_amx [[L]], x86_amx [[X]], x86_amx [[W]])
// CHECK:         [[B:%.+]] = mul nsw i64 %arg4, 4
// CHECK:         call void @llvm.x86.tilestored64.internal(i16 5, i16 48, ptr %{{.+}}, i64 [[B]], x86_amx [[A]])
func.func private @tiles(%x: memref<900xi8>, %w: memref<1536xi8>, %s: memref<99xi32>, %at: index, %stride: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %96 = arith.constant 96 : index
  %a = amx.tile_load %x[%at], %stride : memref<900xi8> into !amx.tile<5x64xi8>
  %b = amx.tile_load %w[%0], %96 : memref<1536xi8> into !amx.tile<16x48xi8>
  %c = amx.tile_load %s[%0], %0 : memref<99xi32> into !amx.tile<5x12xi32>
  %r = scf.for %i = %0 to %96 step %1 iter_args(%sum = %c) -> (!amx.tile<5x12xi32>) {
    %u = amx.tile_muli %a zext, %b, %sum : !amx.tile<5x64xi8>, !amx.tile<16x48xi8>, !amx.tile<5x12xi32>
    %v = amx.tile_muli %a, %b, %u : !amx.tile<5x64xi8>, !amx.tile<16x48xi8>, !amx.tile<5x12xi32>
    scf.yield %v : !amx.tile<5x12xi32>
  }
  amx.tile_store %s[%at], %r, %stride : memref<99xi32>, !amx.tile<5x12xi32>
  func.return
}

// A hint may be behind the buffer, so its address is not said to be inside.

// CHECK-LABEL: define internal void @hint
// CHECK:         [[P:%.+]] = getelementptr i8, ptr %arg0, i64 %arg1
// CHECK-NEXT:    call void @llvm.prefetch.p0(ptr [[P]], i32 0, i32 2, i32 1)
func.func private @hint(%x: memref<64xi8>, %i: index) {
  memref.prefetch %x[%i], read, locality<2>, data : memref<64xi8>
  func.return
}

// Static strides and offsets of a view are part of the address; carried values are phis.

// CHECK-LABEL: define internal void @sum
// CHECK:         [[I:%.+]] = phi i64
// CHECK-NEXT:    [[T:%.+]] = phi i32 [ 7, %entry ], [ [[N:%.+]], %{{.+}} ]
// CHECK:         [[L:%.+]] = mul nsw i64 [[I]], 8
// CHECK:         [[A:%.+]] = add nsw i64 10, [[L]]
// CHECK:         getelementptr inbounds i8, ptr %arg0, i64 [[A]]
// CHECK-NEXT:    [[E:%.+]] = load i8, ptr {{%.+}}, align 1
// CHECK-NEXT:    [[W:%.+]] = sext i8 [[E]] to i32
// CHECK-NEXT:    [[N]] = add i32 [[T]], [[W]]
// CHECK:         store i32 [[T]], ptr %arg1, align 4
func.func private @sum(%x: memref<4x8xi8>, %r: memref<1xi32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %7 = arith.constant 7 : i32
  %v = memref.subview %x[1, 2] [2, 1] [1, 1] : memref<4x8xi8> to memref<2x1xi8, strided<[8, 1], offset: 10>>
  %s = scf.for %i = %0 to %2 step %1 iter_args(%t = %7) -> (i32) {
    %e = memref.load %v[%i, %0] : memref<2x1xi8, strided<[8, 1], offset: 10>>
    %w = arith.extsi %e : i8 to i32
    %n = arith.addi %t, %w : i32
    scf.yield %n : i32
  }
  memref.store %s, %r[%0] : memref<1xi32>
  func.return
}

// A masked store; one lane alone is stored as a scalar, for LLVM stores too much else.

// CHECK-LABEL: define internal void @masked
// CHECK:         call void @llvm.masked.store.v4i8.p0(<4 x i8> [[V:%.+]], ptr %arg0, i32 1, <4 x i1> <i1 true, i1 true, i1 false, i1 false>)
// CHECK-NEXT:    [[E:%.+]] = extractelement <4 x i8> [[V]], i64 2
// CHECK-NEXT:    store i8 [[E]], ptr %arg0, align 1
// CHECK-NEXT:    ret void
func.func private @masked(%r: memref<4xi8>) {
  %0 = arith.constant 0 : index
  %two = arith.constant dense<[true, true, false, false]> : vector<4xi1>
  %one = arith.constant dense<[false, false, true, false]> : vector<4xi1>
  %v = vector.load %r[%0] : memref<4xi8>, vector<4xi8>
  vector.maskedstore %r[%0], %two, %v : memref<4xi8>, vector<4xi1>, vector<4xi8>
  vector.maskedstore %r[%0], %one, %v : memref<4xi8>, vector<4xi1>, vector<4xi8>
  func.return
}

// A parallel loop is a function of a range of turns: called in place, or given to the team of threads.
// CHECK-LABEL: define internal void @doubled.task0(ptr noalias nocapture %c0, ptr noalias nocapture %c1, i64 %first, i64 %end) noinline
// CHECK:         phi i64 [ %first, %entry ]
// CHECK-LABEL: define internal void @doubled.task0.entry(ptr %context, i64 %first, i64 %end)
// CHECK:         call void @doubled.task0(ptr %c0, ptr %c1, i64 %first, i64 %end)
// CHECK-LABEL: define internal void @doubled(ptr noalias nocapture %arg0, ptr noalias nocapture %arg1, ptr %team)
// CHECK:         br i1 {{%.+}}, label %[[F:forked.+]], label %[[A:alone.+]]
// CHECK:       [[A]]:
// CHECK-NEXT:    call void @doubled.task0(ptr %arg0, ptr %arg1, i64 0, i64 {{%.+}})
// CHECK:       [[F]]:
// CHECK:         call void {{%.+}}(ptr %team, ptr @doubled.task0.entry, ptr {{%.+}}, i64 {{%.+}})
func.func @doubled(%x: memref<8x4xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %end = arith.constant 32 : index
  %flat = memref.collapse_shape %x [[0, 1]] : memref<8x4xf32> into memref<32xf32>
  "scf.parallel"(%zero, %end, %four) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %a = memref.load %flat[%i] : memref<32xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%i] : memref<32xf32>
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}

// Buffers are pointers into the arena. A public function is also an entry point that takes a table of addresses.

// CHECK-LABEL: define internal void @main(
// CHECK:         [[A:%.+]] = getelementptr inbounds i8, ptr %arg1, i64 128
// CHECK-NEXT:    call void @kernel(ptr [[A]], ptr %arg0, ptr %arg1)
// CHECK-LABEL: define void @relay_main(ptr %table)
// CHECK:         [[Q:%.+]] = getelementptr ptr, ptr %table, i64 1
// CHECK-NEXT:    [[T:%.+]] = load ptr, ptr [[Q]], align 8
// CHECK:         call void @main(ptr {{%.+}}, ptr [[T]])
func.func @main(%x: memref<4x8xi8>, %arena: memref<256xi8>) {
  %0 = arith.constant 0 : index
  %128 = arith.constant 128 : index
  %a = memref.view %arena[%128][] : memref<256xi8> to memref<32xf32>
  %b = memref.view %arena[%0][] : memref<256xi8> to memref<32xf32>
  func.call @kernel(%a, %x, %b) : (memref<32xf32>, memref<4x8xi8>, memref<32xf32>) -> ()
  func.return
}
