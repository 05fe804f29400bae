// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @product
// CHECK-NEXT:    [[X:%.+]] = amx.tile_load %x[%at, %at] : memref<16x64xi8> into !amx.tile<16x64xi8>
// CHECK-NEXT:    [[W:%.+]] = amx.tile_load %w[%at], %stride : memref<1024xi8> into !amx.tile<16x64xi8>
// CHECK-NEXT:    [[S:%.+]] = amx.tile_load %s[%at], %stride : memref<256xi32> into !amx.tile<16x16xi32>
// CHECK-NEXT:    [[P:%.+]] = amx.tile_muli [[X]] zext, [[W]], [[S]] : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
// CHECK-NEXT:    [[Q:%.+]] = amx.tile_muli [[X]], [[W]] zext, [[P]] : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
// CHECK-NEXT:    amx.tile_store %s[%at], [[Q]], %stride : memref<256xi32>, !amx.tile<16x16xi32>
func.func @product(%x: memref<16x64xi8>, %w: memref<1024xi8>, %s: memref<256xi32>, %at: index, %stride: index) {
  %a = amx.tile_load %x[%at, %at] : memref<16x64xi8> into !amx.tile<16x64xi8>
  %b = amx.tile_load %w[%at], %stride : memref<1024xi8> into !amx.tile<16x64xi8>
  %c = amx.tile_load %s[%at], %stride : memref<256xi32> into !amx.tile<16x16xi32>
  %p = amx.tile_muli %a zext, %b, %c : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
  %q = amx.tile_muli %a, %b zext, %p : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
  amx.tile_store %s[%at], %q, %stride : memref<256xi32>, !amx.tile<16x16xi32>
  func.return
}
