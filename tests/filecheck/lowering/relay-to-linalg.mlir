// RUN: relay-opt %s -p relay-to-linalg | filecheck %s

// Unsigned codes become signless in the signature; the body extends them without sign and subtracts the zero points.

// CHECK-LABEL: func.func @conv2d
// CHECK-SAME:    ([[X:%.+]]: tensor<1x4x4x2xi8>, [[W:%.+]]: tensor<3x3x3x2xi8>) -> tensor<1x2x2x3xi32>
// CHECK:         [[PAD:%.+]] = arith.constant -128 : i8
// CHECK-NEXT:    [[PADDED:%.+]] = tensor.pad [[X]] low[0, 0, 0, 0] high[0, 1, 1, 0]
// CHECK:           tensor.yield [[PAD]] : i8
// CHECK:         [[ZERO:%.+]] = arith.constant 0 : i32
// CHECK-NEXT:    [[EMPTY:%.+]] = tensor.empty() : tensor<1x2x2x3xi32>
// CHECK-NEXT:    [[FILLED:%.+]] = linalg.fill ins([[ZERO]] : i32) outs([[EMPTY]] : tensor<1x2x2x3xi32>)
// CHECK-NEXT:    [[XZ:%.+]] = arith.constant 128 : i32
// CHECK-NEXT:    [[WZ:%.+]] = arith.constant 3 : i32
// CHECK-NEXT:    linalg.generic
// CHECK-SAME:      (d0, d1, d2, d3, d4, d5, d6) -> (d0, ((d1 * 2) + d4), ((d2 * 2) + d5), d6)>
// CHECK-SAME:      (d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>
// CHECK-SAME:      (d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK-SAME:      ins([[PADDED]], [[W]] : tensor<1x5x5x2xi8>, tensor<3x3x3x2xi8>) outs([[FILLED]] : tensor<1x2x2x3xi32>)
// CHECK-NEXT:    ^{{.*}}([[A:%.+]]: i8, [[B:%.+]]: i8, [[ACC:%.+]]: i32):
// CHECK-NEXT:      [[A1:%.+]] = arith.extui [[A]] : i8 to i32
// CHECK-NEXT:      [[A2:%.+]] = arith.subi [[A1]], [[XZ]] : i32
// CHECK-NEXT:      [[B1:%.+]] = arith.extui [[B]] : i8 to i32
// CHECK-NEXT:      [[B2:%.+]] = arith.subi [[B1]], [[WZ]] : i32
// CHECK-NEXT:      [[P:%.+]] = arith.muli [[A2]], [[B2]] : i32
// CHECK-NEXT:      [[S:%.+]] = arith.addi [[ACC]], [[P]] : i32
// CHECK-NEXT:      linalg.yield [[S]] : i32
func.func @conv2d(%x: tensor<1x4x4x2xui8>, %w: tensor<3x3x3x2xui8>) -> tensor<1x2x2x3xi32> {
  %r = relay.nn.conv2d %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 1>, input_zero_point = 128 : i32, kernel_zero_point = 3 : i32} : (tensor<1x4x4x2xui8>, tensor<3x3x3x2xui8>) -> tensor<1x2x2x3xi32>
  func.return %r : tensor<1x2x2x3xi32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK:         [[K:%.+]] = tensor.collapse_shape %w {{.*}} : tensor<3x3x4x1xi8> into tensor<3x3x4xi8>
// CHECK:         linalg.generic
// CHECK-SAME:      (d0, d1, d2, d3, d4, d5) -> (d0, (d1 + d4), (d2 + d5), d3)>
// CHECK-SAME:      (d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME:      ins(%x, [[K]] :
func.func @depthwise(%x: tensor<1x4x4x4xi8>, %w: tensor<3x3x4x1xi8>) -> tensor<1x2x2x4xi32> {
  %r = relay.nn.conv2d %x, %w {groups = 4, kernel_layout = "HWOI"} : (tensor<1x4x4x4xi8>, tensor<3x3x4x1xi8>) -> tensor<1x2x2x4xi32>
  func.return %r : tensor<1x2x2x4xi32>
}

// CHECK-LABEL: func.func @grouped
// CHECK:         tensor.expand_shape %x {{.*}} : tensor<1x4x4x4xf32> into tensor<1x4x4x2x2xf32>
// CHECK:         tensor.expand_shape %w {{.*}} : tensor<6x3x3x2xf32> into tensor<2x3x3x3x2xf32>
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         tensor.collapse_shape {{.*}} : tensor<1x2x2x2x3xf32> into tensor<1x2x2x6xf32>
func.func @grouped(%x: tensor<1x4x4x4xf32>, %w: tensor<6x3x3x2xf32>) -> tensor<1x2x2x6xf32> {
  %r = relay.nn.conv2d %x, %w {groups = 2, out_dtype = f32} : (tensor<1x4x4x4xf32>, tensor<6x3x3x2xf32>) -> tensor<1x2x2x6xf32>
  func.return %r : tensor<1x2x2x6xf32>
}

// CHECK-LABEL: func.func @dense
// CHECK:         [[ROW:%.+]] = tensor.expand_shape %x {{.*}} : tensor<5xi8> into tensor<1x5xi8>
// CHECK:         linalg.generic
// CHECK-SAME:      (d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-SAME:      ins([[ROW]], %w :
// CHECK:         tensor.collapse_shape {{.*}} : tensor<1x3xi32> into tensor<3xi32>
func.func @dense(%x: tensor<5xi8>, %w: tensor<3x5xi8>) -> tensor<3xi32> {
  %r = relay.nn.dense %x, %w : (tensor<5xi8>, tensor<3x5xi8>) -> tensor<3xi32>
  func.return %r : tensor<3xi32>
}

// A chain of elementwise ops is one loop nest; vectors are read along their axis, scalars are captured. An exponent that is not
// known shifts to the left before the product where it is positive, to the right after it where it is not.

// CHECK-LABEL: func.func @requantize
// CHECK:         [[Z:%.+]] = arith.constant -5 : i32
// CHECK:         linalg.generic
// CHECK-SAME:      (d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>
// CHECK-SAME:      ins(%x, %b, %m, %s : tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
// CHECK-NEXT:    ^{{.*}}([[X:%.+]]: i32, [[B:%.+]]: i32, [[M:%.+]]: i32, [[E:%.+]]: i32, {{%.+}}: i8):
// CHECK-NEXT:      [[ADD:%.+]] = arith.addi [[X]], [[B]] : i32
// CHECK-NEXT:      [[LEFT:%.+]] = arith.maxsi [[E]], {{%.+}} : i32
// CHECK-NEXT:      [[LONG:%.+]] = arith.shli [[ADD]], [[LEFT]] : i32
// CHECK-NEXT:      [[RIGHT:%.+]] = arith.minsi [[E]], {{%.+}} : i32
// CHECK-NEXT:      [[S32:%.+]] = arith.subi {{%.+}}, [[RIGHT]] : i32
// CHECK-NEXT:      [[S:%.+]] = arith.trunci [[S32]] : i32 to i8
// CHECK-NEXT:      [[Q:%.+]] = "tosa.apply_scale"([[LONG]], [[M]], [[S]]) <{rounding_mode = #tosa.rounding_mode<DOUBLE_ROUND>}> : (i32, i32, i8) -> i32
// CHECK-NEXT:      [[ZQ:%.+]] = arith.addi [[Q]], [[Z]] : i32
// CHECK-NEXT:      [[LOW:%.+]] = arith.maxsi [[ZQ]], {{%.+}} : i32
// CHECK-NEXT:      [[HIGH:%.+]] = arith.minsi [[LOW]], {{%.+}} : i32
// CHECK-NEXT:      [[R:%.+]] = arith.trunci [[HIGH]] : i32 to i8
// CHECK-NEXT:      linalg.yield [[R]] : i8
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @requantize(%x: tensor<2x3xi32>, %b: tensor<3xi32>, %m: tensor<3xi32>, %s: tensor<3xi32>) -> tensor<2x3xi8> {
  %z = relay.constant dense<-5> : tensor<i32>
  %0 = relay.nn.bias_add %x, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %1 = relay.fixed_point_multiply %0, %m, %s : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %2 = relay.add %1, %z : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %3 = relay.clip %2 {a_min = -128 : i32, a_max = 127 : i32} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  %4 = relay.cast %3 {dtype = i8} : (tensor<2x3xi32>) -> tensor<2x3xi8>
  func.return %4 : tensor<2x3xi8>
}

// A known exponent is a known shift; a positive one shifts the value before.

// CHECK-LABEL: func.func @known_exponent
// CHECK-DAG:     [[S:%.+]] = arith.constant 31 : i8
// CHECK-DAG:     [[TWO:%.+]] = arith.constant 2 : i32
// CHECK-DAG:     [[M:%.+]] = arith.constant 1073741824 : i32
// CHECK:           [[L:%.+]] = arith.shli {{%.+}}, [[TWO]] : i32
// CHECK-NEXT:      "tosa.apply_scale"([[L]], [[M]], [[S]])
func.func @known_exponent(%x: tensor<4xi32>) -> tensor<4xi32> {
  %m = relay.constant dense<1073741824> : tensor<i32>
  %e = relay.constant dense<2> : tensor<i32>
  %r = relay.fixed_point_multiply %x, %m, %e : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
  func.return %r : tensor<4xi32>
}

// What is also used elsewhere is another result of the same loop nest.

// CHECK-LABEL: func.func @two_results
// CHECK:         [[R:%.+]], [[S:%.+]] = linalg.generic
// CHECK:           linalg.yield {{%.+}}, {{%.+}} : f32, f32
// CHECK:         func.return [[R]], [[S]]
func.func @two_results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %s = relay.negative %r : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// A reduction between producer and consumer keeps them apart.

// CHECK-LABEL: func.func @apart
// CHECK:           math.exp
// CHECK-NEXT:      linalg.yield
// CHECK:           arith.addf
// CHECK-NEXT:      linalg.yield
// CHECK:         linalg.generic
// CHECK-SAME:      (d0, d1) -> (d0, 0)>
// CHECK:           arith.divf
func.func @apart(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %e = relay.exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = relay.sum %e {axis = array<i64: 1>, keepdims = true} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %r = relay.divide %e, %s : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  func.return %r : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @lookup
// CHECK:           [[W:%.+]] = arith.extsi {{%.+}} : i8 to i32
// CHECK-NEXT:      [[O:%.+]] = arith.addi [[W]], {{%.+}} : i32
// CHECK-NEXT:      [[I:%.+]] = arith.index_cast [[O]] : i32 to index
// CHECK-NEXT:      tensor.extract %t[[[I]]] : tensor<256xi8>
func.func @lookup(%x: tensor<4xi8>, %t: tensor<256xi8>) -> tensor<4xi8> {
  %r = relay.lookup %x, %t : (tensor<4xi8>, tensor<256xi8>) -> tensor<4xi8>
  func.return %r : tensor<4xi8>
}

// The division of an average joins what follows it.

// CHECK-LABEL: func.func @average
// CHECK:         [[WINDOW:%.+]] = tensor.empty() : tensor<2x2xi8>
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%x, [[WINDOW]] : tensor<1x4x4x2xi8>, tensor<2x2xi8>)
// CHECK:           arith.addi
// CHECK:           [[POSITIVE:%.+]] = arith.cmpi sgt
// CHECK:           arith.select [[POSITIVE]]
// CHECK-NEXT:      arith.divsi
// CHECK-NEXT:      arith.trunci
// CHECK-NEXT:      arith.maxsi
// CHECK-NEXT:      arith.minsi
func.func @average(%x: tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8> {
  %0 = relay.nn.avg_pool2d %x {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
  %1 = relay.clip %0 {a_min = 0 : i8, a_max = 90 : i8} : (tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xi8>
  func.return %1 : tensor<1x2x2x2xi8>
}

// CHECK-LABEL: func.func @argmax
// CHECK:         {{%.+}}, [[INDEX:%.+]] = linalg.generic
// CHECK:           [[BETTER:%.+]] = arith.cmpi ugt
// CHECK:           arith.select [[BETTER]]
// CHECK-NEXT:      arith.select [[BETTER]]
// CHECK:         func.return [[INDEX]]
func.func @argmax(%x: tensor<2x4xui16>) -> tensor<2xi32> {
  %r = relay.argmax %x {axis = array<i64: 1>} : (tensor<2x4xui16>) -> tensor<2xi32>
  func.return %r : tensor<2xi32>
}

// Of codes of 8 bits, one number is both the code and its index.
// CHECK-LABEL: func.func @argmax_of_codes
// CHECK:         [[KEYS:%.+]] = linalg.generic
// CHECK:           [[CODE:%.+]] = arith.subi {{.*}} : i16
// CHECK:           [[HIGH:%.+]] = arith.shli [[CODE]]
// CHECK:           [[KEY:%.+]] = arith.addi [[HIGH]]
// CHECK-NEXT:      arith.maxsi [[KEY]]
// CHECK:         [[INDEX:%.+]] = linalg.generic {{.*}} ins([[KEYS]]
// CHECK:           arith.andi
// CHECK:         func.return [[INDEX]]
func.func @argmax_of_codes(%x: tensor<2x4xui8>) -> tensor<2xi32> {
  %r = relay.argmax %x {axis = array<i64: 1>} : (tensor<2x4xui8>) -> tensor<2xi32>
  func.return %r : tensor<2xi32>
}

// CHECK-LABEL: func.func @concatenate
// CHECK:         [[E:%.+]] = tensor.empty() : tensor<2x3xf32>
// CHECK-NEXT:    [[A:%.+]] = tensor.insert_slice %x into [[E]][0, 0] [2, 1] [1, 1]
// CHECK-NEXT:    [[B:%.+]] = tensor.insert_slice %y into [[A]][0, 1] [2, 2] [1, 1]
// CHECK-NEXT:    func.return [[B]]
func.func @concatenate(%x: tensor<2x1xf32>, %y: tensor<2x2xf32>) -> tensor<2x3xf32> {
  %r = relay.concatenate %x, %y {axis = 1} : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  func.return %r : tensor<2x3xf32>
}

// A slice that is returned is copied; one that elementwise code reads is not.

// CHECK-LABEL: func.func @slice
// CHECK:         [[S:%.+]] = tensor.extract_slice %x[1] [2] [1]
// CHECK:         [[T:%.+]] = tensor.extract_slice %x[0] [2] [2]
// CHECK:         [[C:%.+]] = linalg.generic {{.*}} ins([[T]] :
// CHECK-NEXT:    ^{{.*}}([[V:%.+]]: f32, {{.*}}
// CHECK-NEXT:      linalg.yield [[V]] : f32
// CHECK:         func.return {{%.+}}, [[C]]
func.func @slice(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %s = relay.strided_slice %x {begin = array<i64: 1>, end = array<i64: 3>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %t = relay.strided_slice %x {begin = array<i64: 0>, end = array<i64: 4>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
  %n = relay.negative %s : (tensor<2xf32>) -> tensor<2xf32>
  func.return %n, %t : tensor<2xf32>, tensor<2xf32>
}

// Constants and calls: signless too.

// CHECK-LABEL: func.func private @kernel
// CHECK-SAME:    (%x: tensor<4xi8>, %c: tensor<4xi8>) -> tensor<4xi8>
// CHECK:           arith.maxui
func.func private @kernel(%x: tensor<4xui8>, %c: tensor<4xui8>) -> tensor<4xui8> {
  %r = relay.maximum %x, %c : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return %r : tensor<4xui8>
}

// CHECK-LABEL: func.func @main
// CHECK:         [[C:%.+]] = arith.constant dense<[1, -56, 3, 4]> : tensor<4xi8>
// CHECK-NEXT:    [[R:%.+]] = func.call @kernel(%x, [[C]]) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
// CHECK-NEXT:    [[V:%.+]] = tensor.expand_shape [[R]]
// CHECK-NEXT:    func.return [[V]] : tensor<2x2xi8>
func.func @main(%x: tensor<4xui8>) -> tensor<2x2xui8> {
  %c = relay.constant dense<[1, 200, 3, 4]> : tensor<4xui8>
  %0 = func.call @kernel(%x, %c) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %r = relay.reshape %0 {newshape = array<i64: 2, 2>} : (tensor<4xui8>) -> tensor<2x2xui8>
  func.return %r : tensor<2x2xui8>
}
