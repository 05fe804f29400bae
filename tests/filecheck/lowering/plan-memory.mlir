// RUN: relay-opt %s -p plan-memory | filecheck %s
// RUN: relay-opt %s -p plan-memory,plan-memory | filecheck %s

// CHECK:         relay.constants = [{name = "w", offset = 0 : i64, value = dense<[1, 2]> : tensor<2xi32>}, {name = "v", offset = 128 : i64,
// CHECK-SAME:    relay.buffers = [{name = "buffer_0", offset = 0 : i64, size = 4000 : i64, {{.*}}}, {name = "buffer_1", offset = 4096 : i64, size = 4000 : i64, {{.*}}}, {name = "buffer_2", offset = 0 : i64, size = 4000 : i64, {{.*}}}, {name = "scratch_0", offset = 8192 : i64, size = 256 : i64,

// A kernel's scratch becomes its last argument.

// CHECK-LABEL: func.func private @kernel
// CHECK-SAME:    (%x: memref<1000xi32>, %y: memref<1000xi32>, [[S:%.+]]: memref<256xi8>) {
// CHECK:         [[A:%.+]] = memref.view [[S]][{{%.+}}][] : memref<256xi8> to memref<2xi32>
// CHECK:         [[AT:%.+]] = arith.constant 128 : index
// CHECK-NEXT:    [[B:%.+]] = memref.view [[S]][[[AT]]][] : memref<256xi8> to memref<16xi8>
// CHECK:         "memref.copy"(%x, %y)
func.func private @kernel(%x: memref<1000xi32>, %y: memref<1000xi32>) {
  %i = arith.constant 0 : index
  %a = memref.alloc() {alignment = 64 : i64} : memref<2xi32>
  %b = memref.alloc() {alignment = 64 : i64} : memref<16xi8>
  %0 = memref.load %a[%i] : memref<2xi32>
  %1 = memref.load %b[%i] : memref<16xi8>
  "memref.copy"(%x, %y) : (memref<1000xi32>, memref<1000xi32>) -> ()
  func.return
}

// CHECK:         func.func private @plain(memref<1000xi32>, memref<2xi32>, memref<1000xi32>) -> ()
func.func private @plain(memref<1000xi32>, memref<2xi32>, memref<1000xi32>) -> ()

// The third buffer lives when the first is dead: they share memory. Equal constants are one; one that nothing reads is
// left out.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%x: memref<1000xi32>, %y: memref<1000xi32>, %constants: memref<256xi8>, %arena: memref<8512xi8>) {
// CHECK-NOT:     alloc
// CHECK-NOT:     to_buffer
// CHECK:         [[W:%.+]] = memref.view %constants[{{%.+}}][] : memref<256xi8> to memref<2xi32>
// CHECK:         [[A:%.+]] = memref.view %arena[{{%.+}}][] : memref<8512xi8> to memref<1000xi32>
// CHECK:         func.call @plain(%x, [[W]], [[A]])
// CHECK:         [[B:%.+]] = memref.view %arena[{{%.+}}][] : memref<8512xi8> to memref<1000xi32>
// CHECK:         [[S:%.+]] = memref.view %arena[{{%.+}}][] : memref<8512xi8> to memref<256xi8>
// CHECK-NEXT:    func.call @kernel([[A]], [[B]], [[S]])
// CHECK:         func.return
func.func @main(%x: memref<1000xi32>, %y: memref<1000xi32>) {
  %w = arith.constant dense<[1, 2]> : tensor<2xi32>
  %w_buffer = bufferization.to_buffer %w read_only : tensor<2xi32> to memref<2xi32>
  %again = arith.constant dense<[1, 2]> : tensor<2xi32>
  %again_buffer = bufferization.to_buffer %again read_only : tensor<2xi32> to memref<2xi32>
  %v = arith.constant dense<[3, 4]> : tensor<2xi32>
  %v_buffer = bufferization.to_buffer %v read_only : tensor<2xi32> to memref<2xi32>
  %unused = arith.constant dense<[5, 6]> : tensor<2xi32>
  %unused_buffer = bufferization.to_buffer %unused read_only : tensor<2xi32> to memref<2xi32>
  %a = memref.alloc() {alignment = 64 : i64} : memref<1000xi32>
  func.call @plain(%x, %w_buffer, %a) : (memref<1000xi32>, memref<2xi32>, memref<1000xi32>) -> ()
  %b = memref.alloc() {alignment = 64 : i64} : memref<1000xi32>
  func.call @kernel(%a, %b) : (memref<1000xi32>, memref<1000xi32>) -> ()
  %c = memref.alloc() {alignment = 64 : i64} : memref<1000xi32>
  func.call @plain(%b, %again_buffer, %c) : (memref<1000xi32>, memref<2xi32>, memref<1000xi32>) -> ()
  func.call @plain(%c, %v_buffer, %y) : (memref<1000xi32>, memref<2xi32>, memref<1000xi32>) -> ()
  func.return
}
