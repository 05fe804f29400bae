// RUN: relay-opt %s -p bufferize | filecheck %s

// The result is a buffer that the caller passes; a fill that starts a reduction is done in it.

// CHECK-LABEL: func.func @dense
// CHECK-SAME:    (%x: memref<4x8xi8>, %w: memref<3x8xi8>, [[R:%.+]]: memref<4x3xi32>) {
// CHECK-NOT:     alloc
// CHECK:         linalg.fill ins({{%.+}} : i32) outs([[R]] : memref<4x3xi32>)
// CHECK-NEXT:    linalg.generic {{.*}} ins(%x, %w : memref<4x8xi8>, memref<3x8xi8>) outs([[R]] : memref<4x3xi32>) {
// CHECK:         func.return
func.func @dense(%x: tensor<4x8xi8>, %w: tensor<3x8xi8>) -> tensor<4x3xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x3xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4x3xi32>) -> tensor<4x3xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x8xi8>, tensor<3x8xi8>) outs(%f : tensor<4x3xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %0 = arith.extsi %a : i8 to i32
    %1 = arith.extsi %b : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %c, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<4x3xi32>
  func.return %r : tensor<4x3xi32>
}

// Padding fills the buffer and copies into its middle; a reshape is a view of the result.

// CHECK-LABEL: func.func @pad
// CHECK-SAME:    (%x: memref<2xi8>, [[R:%.+]]: memref<2x2xi8>) {
// CHECK:         [[V:%.+]] = memref.collapse_shape [[R]] {{.*}} : memref<2x2xi8> into memref<4xi8>
// CHECK:         linalg.fill ins({{%.+}} : i8) outs([[V]] : memref<4xi8>)
// CHECK-NEXT:    [[S:%.+]] = memref.subview [[V]][1] [2] [1]
// CHECK-NEXT:    "memref.copy"(%x, [[S]])
// CHECK-NEXT:    func.return
func.func @pad(%x: tensor<2xi8>) -> tensor<2x2xi8> {
  %v = arith.constant -5 : i8
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : i8
  } : tensor<2xi8> to tensor<4xi8>
  %r = tensor.expand_shape %p [[0 : i64, 1 : i64]] output_shape [2, 2] : tensor<4xi8> into tensor<2x2xi8>
  func.return %r : tensor<2x2xi8>
}

// Parts are copied into the whole; an argument that is returned is copied.

// CHECK-LABEL: func.func @concatenate
// CHECK-SAME:    (%x: memref<2xi8>, %y: memref<3xi8>, [[R:%.+]]: memref<5xi8>, [[X:%.+]]: memref<2xi8>) {
// CHECK-NEXT:    [[A:%.+]] = memref.subview [[R]][0] [2] [1]
// CHECK-NEXT:    "memref.copy"(%x, [[A]])
// CHECK-NEXT:    [[B:%.+]] = memref.subview [[R]][2] [3] [1]
// CHECK-NEXT:    "memref.copy"(%y, [[B]])
// CHECK-NEXT:    "memref.copy"(%x, [[X]])
// CHECK-NEXT:    func.return
func.func @concatenate(%x: tensor<2xi8>, %y: tensor<3xi8>) -> (tensor<5xi8>, tensor<2xi8>) {
  %e = tensor.empty() : tensor<5xi8>
  %0 = tensor.insert_slice %x into %e[0] [2] [1] : tensor<2xi8> into tensor<5xi8>
  %1 = tensor.insert_slice %y into %0[2] [3] [1] : tensor<3xi8> into tensor<5xi8>
  func.return %1, %x : tensor<5xi8>, tensor<2xi8>
}

// A constant of a kernel becomes an argument that every caller gives; only callers allocate.

// CHECK-LABEL: func.func private @kernel
// CHECK-SAME:    (%x: memref<2xf32>, [[C:%.+]]: memref<2xf32>, [[R:%.+]]: memref<2xf32>) {
// CHECK-NEXT:    linalg.generic {{.*}} ins(%x, [[C]] : memref<2xf32>, memref<2xf32>) outs([[R]] : memref<2xf32>)
func.func private @kernel(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %c : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%x: memref<2xf32>, [[R:%.+]]: memref<2xf32>) {
// CHECK:         [[C:%.+]] = bufferization.to_buffer {{.*}} read_only : tensor<2xf32> to memref<2xf32>
// CHECK-NEXT:    [[A:%.+]] = memref.alloc() {alignment = 64 : i64} : memref<2xf32>
// CHECK-NEXT:    func.call @kernel(%x, [[C]], [[A]]) : (memref<2xf32>, memref<2xf32>, memref<2xf32>) -> ()
// CHECK:         [[D:%.+]] = bufferization.to_buffer
// CHECK-NEXT:    func.call @kernel([[A]], [[D]], [[R]])
// CHECK-NEXT:    func.return
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @kernel(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = func.call @kernel(%0) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}

// A tensor and its reshape, both returned: one is computed in its place, the other copied.

// CHECK-LABEL: func.func @both
// CHECK-SAME:    (%x: memref<2x3xf32>, [[A:%.+]]: memref<2x3xf32>, [[B:%.+]]: memref<6xf32>)
// CHECK:         linalg.generic {{.*}} outs([[A]] : memref<2x3xf32>)
// CHECK:         [[FLAT:%.+]] = memref.collapse_shape [[A]]
// CHECK:         "memref.copy"([[FLAT]], [[B]])
func.func @both(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<6xf32>) {
  %empty = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x3xf32>) outs(%empty : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<2x3xf32>
  %f = tensor.collapse_shape %r [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  func.return %r, %f : tensor<2x3xf32>, tensor<6xf32>
}

// A fill that is a value is one; what is put into an argument is put into a copy; what is reshaped lies densely.

// CHECK-LABEL: func.func @values
// CHECK-SAME:    (%x: memref<4xi8>, %y: memref<2xi8>, %p: memref<i1>, [[R:%.+]]: memref<4xi8>, [[F:%.+]]: memref<4xi8>, [[S:%.+]]: memref<2x1xi8>, [[C:%.+]]: memref<2xi8>) {
// CHECK:         linalg.fill ins({{%.+}} : i8) outs([[F]] : memref<4xi8>)
// CHECK-NEXT:    "memref.copy"(%x, [[R]])
// CHECK-NEXT:    [[V:%.+]] = memref.subview [[R]][1] [2] [1]
// CHECK-NEXT:    "memref.copy"(%y, [[V]])
// CHECK-NEXT:    [[W:%.+]] = memref.subview %x[0] [2] [2]
// CHECK-NEXT:    [[D:%.+]] = memref.alloc()
// CHECK-NEXT:    "memref.copy"([[W]], [[D]])
// CHECK:         [[K:%.+]] = bufferization.to_buffer {{%.+}} read_only
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "memref.copy"([[K]], [[C]])
func.func @values(%x: tensor<4xi8>, %y: tensor<2xi8>, %p: tensor<i1>) -> (tensor<4xi8>, tensor<4xi8>, tensor<2x1xi8>, tensor<2xi8>) {
  %v = arith.constant -5 : i8
  %e = tensor.empty() : tensor<4xi8>
  %f = linalg.fill ins(%v : i8) outs(%e : tensor<4xi8>) -> tensor<4xi8>
  %r = tensor.insert_slice %y into %x[1] [2] [1] : tensor<2xi8> into tensor<4xi8>
  %s = tensor.extract_slice %x[0] [2] [2] : tensor<4xi8> to tensor<2xi8>
  %t = tensor.expand_shape %s [[0 : i64, 1 : i64]] output_shape [2, 1] : tensor<2xi8> into tensor<2x1xi8>
  %q = tensor.extract %p[] : tensor<i1>
  %c = scf.if %q -> (tensor<2xi8>) {
    %k = arith.constant dense<[1, 2]> : tensor<2xi8>
    scf.yield %k : tensor<2xi8>
  } else {
    scf.yield %y : tensor<2xi8>
  }
  func.return %r, %f, %t, %c : tensor<4xi8>, tensor<4xi8>, tensor<2x1xi8>, tensor<2xi8>
}

// A call without results.

// CHECK-LABEL: func.func @called
// CHECK-SAME:    ([[X:%.+]]: memref<4xf32>, [[Y:%.+]]: memref<4xf32>) {
// CHECK-NEXT:    func.call @log([[X]]) : (memref<4xf32>) -> ()
// CHECK-NEXT:    "memref.copy"([[X]], [[Y]])
func.func private @log(tensor<4xf32>)
func.func @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.call @log(%x) : (tensor<4xf32>) -> ()
  func.return %x : tensor<4xf32>
}

// A function of buffers stays as it is.

// CHECK-LABEL: func.func @buffers
// CHECK-SAME:    ([[X:%.+]]: memref<4xi8>, [[Y:%.+]]: memref<4xi8>) {
// CHECK-NEXT:    [[C:%.+]] = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi8>
// CHECK-NEXT:    [[K:%.+]] = bufferization.to_buffer [[C]] read_only
// CHECK-NEXT:    linalg.generic {{.*}} ins([[X]], [[K]] : memref<4xi8>, memref<4xi8>) outs([[Y]] : memref<4xi8>)
func.func @buffers(%x: memref<4xi8>, %y: memref<4xi8>) {
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi8>
  %k = bufferization.to_buffer %c read_only : tensor<4xi8> to memref<4xi8>
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %k : memref<4xi8>, memref<4xi8>) outs(%y : memref<4xi8>) {
  ^bb0(%a: i8, %b: i8, %o: i8):
    %n = arith.addi %a, %b : i8
    linalg.yield %n : i8
  }
  func.return
}

// A view of an argument, or a part of a tensor that is used again, is copied before it is changed.

// CHECK-LABEL: func.func @insert_into_a_view
// CHECK-SAME:    ([[X:%.+]]: memref<4xf32>, [[U:%.+]]: memref<2x1xf32>, [[Y:%.+]]: memref<2x2xf32>) {
// CHECK:         [[V:%.+]] = memref.expand_shape [[X]]
// CHECK-NEXT:    "memref.copy"([[V]], [[Y]])
// CHECK-NEXT:    [[P:%.+]] = memref.subview [[Y]][0, 1]
// CHECK-NEXT:    "memref.copy"([[U]], [[P]])
func.func @insert_into_a_view(%x: tensor<4xf32>, %u: tensor<2x1xf32>) -> tensor<2x2xf32> {
  %r = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %y = tensor.insert_slice %u into %r[0, 1] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @insert_into_a_part
// CHECK-SAME:    ([[X:%.+]]: memref<4xf32>, [[U:%.+]]: memref<1xf32>, [[Y:%.+]]: memref<2xf32>, [[Z:%.+]]: memref<4xf32>) {
// CHECK:         linalg.generic {{.*}} outs([[Z]] : memref<4xf32>)
// CHECK:         [[P:%.+]] = memref.subview [[Z]][1]
// CHECK-NEXT:    "memref.copy"([[P]], [[Y]])
// CHECK-NEXT:    [[Q:%.+]] = memref.subview [[Y]][0]
// CHECK-NEXT:    "memref.copy"([[U]], [[Q]])
func.func @insert_into_a_part(%x: tensor<4xf32>, %u: tensor<1xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
  %n = tensor.empty() : tensor<4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%n : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %p = tensor.extract_slice %z[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %y = tensor.insert_slice %u into %p[0] [1] [1] : tensor<1xf32> into tensor<2xf32>
  func.return %y, %z : tensor<2xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @add_to_a_view
// CHECK-SAME:    ([[X:%.+]]: memref<4xf32>, [[U:%.+]]: memref<2x2xf32>, [[Y:%.+]]: memref<1x4xf32>) {
// CHECK:         [[V:%.+]] = memref.expand_shape [[X]]
// CHECK-NOT:     outs([[V]]
// CHECK:         "memref.copy"([[V]], [[W:%[0-9]+]])
// CHECK-NEXT:    linalg.generic {{.*}} ins([[U]] : memref<2x2xf32>) outs([[W]] : memref<2x2xf32>)
func.func @add_to_a_view(%x: tensor<4xf32>, %u: tensor<2x2xf32>) -> tensor<1x4xf32> {
  %r = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%u : tensor<2x2xf32>) outs(%r : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  %f = tensor.collapse_shape %y [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %z = tensor.expand_shape %f [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  func.return %z : tensor<1x4xf32>
}
