// RUN: relay-opt %s -p update-in-place | filecheck %s

// One kernel reads %past, to copy it to the result: the copy is left out where %past is null.

// CHECK:      func.func @main(
// CHECK-SAME: relay.in_place = [array<i64: 0, 2>]
// CHECK:      func.func private @update
// CHECK:        [[A:%.+]] = "memref.extract_aligned_pointer_as_index"(%past) : (memref<1x8x4xi8>) -> index
// CHECK-NEXT:   [[Z:%.+]] = arith.constant 0 : index
// CHECK-NEXT:   [[G:%.+]] = arith.cmpi ne, [[A]], [[Z]] : index
// CHECK-NEXT:   scf.if [[G]] {
// CHECK-NEXT:     "memref.copy"(%past, %present)
// CHECK-NEXT:   }
// CHECK-NEXT:   memref.subview %present
func.func @main(%past: memref<8x4xi8>, %new: memref<1x1x4xi8>, %present: memref<8x4xi8>, %seen: memref<8x4xi8>) {
  %a = memref.expand_shape %past [[0, 1], [2]] output_shape [1, 8, 4] : memref<8x4xi8> into memref<1x8x4xi8>
  %b = memref.expand_shape %present [[0, 1], [2]] output_shape [1, 8, 4] : memref<8x4xi8> into memref<1x8x4xi8>
  func.call @update(%a, %new, %b) : (memref<1x8x4xi8>, memref<1x1x4xi8>, memref<1x8x4xi8>) -> ()
  func.call @read(%present, %seen) : (memref<8x4xi8>, memref<8x4xi8>) -> ()
  func.return
}
func.func private @update(%past: memref<1x8x4xi8>, %new: memref<1x1x4xi8>, %present: memref<1x8x4xi8>) {
  "memref.copy"(%past, %present) : (memref<1x8x4xi8>, memref<1x8x4xi8>) -> ()
  %part = memref.subview %present[0, 2, 0] [1, 1, 4] [1, 1, 1] : memref<1x8x4xi8> to memref<1x1x4xi8, strided<[32, 4, 1], offset: 8>>
  "memref.copy"(%new, %part) : (memref<1x1x4xi8>, memref<1x1x4xi8, strided<[32, 4, 1], offset: 8>>) -> ()
  func.return
}

// Something else reads the input: it is copied as before.

// CHECK:     func.func @read_again
// CHECK-NOT: in_place
// CHECK:     func.return
func.func @read_again(%past: memref<8x4xi8>, %new: memref<1x1x4xi8>, %present: memref<8x4xi8>, %seen: memref<8x4xi8>) {
  %a = memref.expand_shape %past [[0, 1], [2]] output_shape [1, 8, 4] : memref<8x4xi8> into memref<1x8x4xi8>
  %b = memref.expand_shape %present [[0, 1], [2]] output_shape [1, 8, 4] : memref<8x4xi8> into memref<1x8x4xi8>
  func.call @update(%a, %new, %b) : (memref<1x8x4xi8>, memref<1x1x4xi8>, memref<1x8x4xi8>) -> ()
  func.call @read(%past, %seen) : (memref<8x4xi8>, memref<8x4xi8>) -> ()
  func.return
}

// What is in the result's place already is not overwritten: %other may be there, %past may not.

// CHECK:      func.func @used_before
// CHECK-SAME: relay.in_place = [array<i64: 2, 3>]
func.func @used_before(%past: memref<1x8x4xi8>, %new: memref<1x1x4xi8>, %other: memref<8x4xi8>, %present: memref<8x4xi8>) {
  func.call @read(%other, %present) : (memref<8x4xi8>, memref<8x4xi8>) -> ()
  %b = memref.expand_shape %present [[0, 1], [2]] output_shape [1, 8, 4] : memref<8x4xi8> into memref<1x8x4xi8>
  func.call @update(%past, %new, %b) : (memref<1x8x4xi8>, memref<1x1x4xi8>, memref<1x8x4xi8>) -> ()
  func.return
}
func.func private @read(%past: memref<8x4xi8>, %seen: memref<8x4xi8>) {
  "memref.copy"(%past, %seen) : (memref<8x4xi8>, memref<8x4xi8>) -> ()
  func.return
}
