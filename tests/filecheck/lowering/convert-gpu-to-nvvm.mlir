// RUN: relay-opt %s -p convert-gpu-to-nvvm | filecheck %s

// CHECK:      {{%.+}} = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
// CHECK-NEXT: {{%.+}} = arith.index_cast {{%.+}} : i32 to index
// CHECK-NEXT: {{%.+}} = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.y"() : () -> i32
// CHECK-NEXT: {{%.+}} = arith.index_cast {{%.+}} : i32 to index
// CHECK-NEXT: [[ALL:%.+]] = arith.constant 0 : i32
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"([[ALL]]) : (i32) -> ()
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xi8>) -> (), known_block_size = array<i32: 256, 1, 1>}> ({
  ^bb0(%x: memref<256xi8>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %b = "gpu.block_id"() <{dimension = #gpu<dim y>}> : () -> index
    gpu.barrier
    %v = memref.load %x[%b] : memref<256xi8>
    memref.store %v, %x[%t] : memref<256xi8>
    gpu.return
  }) {sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()


// Numbers that are clipped to codes, or to some of them, are narrowed and packed by saturation.

// CHECK:      [[L:%.+]] = arith.maxsi
// CHECK:      [[A:%.+]] = vector.extract [[L]][0]
// CHECK-NEXT: [[B:%.+]] = vector.extract [[L]][1]
// CHECK-NEXT: [[C:%.+]] = vector.extract [[L]][2]
// CHECK-NEXT: [[D:%.+]] = vector.extract [[L]][3]
// CHECK-NEXT: [[U:%.+]] = llvm.inline_asm asm_dialect = att "cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3;", "=r,r,r,r" [[D]], [[C]], {{%.+}} :
// CHECK-NEXT: [[W:%.+]] = llvm.inline_asm asm_dialect = att "cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3;", "=r,r,r,r" [[B]], [[A]], [[U]] :
// CHECK-NEXT: [[V:%.+]] = vector.broadcast [[W]] : i32 to vector<1xi32>
// CHECK-NEXT: vector.bitcast [[V]] : vector<1xi32> to vector<4xi8>
"gpu.module"() <{sym_name = "packs"}> ({
  "gpu.func"() <{function_type = (memref<4xi32>, memref<4xi8>) -> (), known_block_size = array<i32: 256, 1, 1>}> ({
  ^bb0(%x: memref<4xi32>, %y: memref<4xi8>):
    %low = arith.constant dense<-100> : vector<4xi32>
    %high = arith.constant dense<127> : vector<4xi32>
    %zero = arith.constant 0 : index
    %v = vector.load %x[%zero] : memref<4xi32>, vector<4xi32>
    %a = arith.maxsi %v, %low : vector<4xi32>
    %b = arith.minsi %a, %high : vector<4xi32>
    %c = arith.trunci %b : vector<4xi32> to vector<4xi8>
    vector.store %c, %y[%zero] : memref<4xi8>, vector<4xi8>
    gpu.return
  }) {sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64} : () -> ()
}) : () -> ()
