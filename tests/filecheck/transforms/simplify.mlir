// RUN: relay-opt %s -p simplify | filecheck %s

// Steps that change nothing go.
func.func @nothing(%x: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %zero = relay.constant dense<0> : tensor<i32>
  %one = relay.constant dense<1> : tensor<3xi32>
  %0 = relay.add %x, %zero : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %1 = relay.multiply %0, %one : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %2 = relay.cast %1 {dtype = i32} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  %3 = relay.transpose %2 {axes = array<i64: 0, 1>} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  %4 = relay.clip %3 {a_min = -2147483648 : i32, a_max = 2147483647 : i32} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  %5 = relay.reshape %4 {newshape = array<i64: 2, 3>} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  %6 = relay.strided_slice %5 {begin = array<i64: 0, 0>, end = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  func.return %6 : tensor<2x3xi32>
}
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT:    func.return %x

// Of two, one.
func.func @pairs(%x: tensor<2x3x4xi32>) -> (tensor<24xi32>, tensor<3x4x2xi32>, tensor<2x3x4xi32>) {
  %0 = relay.reshape %x {newshape = array<i64: 6, 4>} : (tensor<2x3x4xi32>) -> tensor<6x4xi32>
  %1 = relay.reshape %0 {newshape = array<i64: 24>} : (tensor<6x4xi32>) -> tensor<24xi32>
  %2 = relay.transpose %x {axes = array<i64: 2, 0, 1>} : (tensor<2x3x4xi32>) -> tensor<4x2x3xi32>
  %3 = relay.transpose %2 {axes = array<i64: 2, 0, 1>} : (tensor<4x2x3xi32>) -> tensor<3x4x2xi32>
  %4 = relay.clip %x {a_min = 0 : i32, a_max = 9 : i32} : (tensor<2x3x4xi32>) -> tensor<2x3x4xi32>
  %5 = relay.clip %4 {a_min = -1 : i32, a_max = 9 : i32} : (tensor<2x3x4xi32>) -> tensor<2x3x4xi32>
  func.return %1, %3, %5 : tensor<24xi32>, tensor<3x4x2xi32>, tensor<2x3x4xi32>
}
// CHECK-LABEL: func.func @pairs
// CHECK-NEXT:    [[R:%.+]] = relay.reshape %x {newshape = array<i64: 24>}
// CHECK-NEXT:    [[T:%.+]] = relay.transpose %x {axes = array<i64: 1, 2, 0>}
// CHECK-NEXT:    [[C:%.+]] = relay.clip %x {a_min = 0 : i32, a_max = 9 : i32}
// CHECK-NEXT:    func.return [[R]], [[T]], [[C]]

// Transposes around reshapes that split and merge axes are one: channels of 2 groups, shuffled channels-first between
// channels-last neighbours, are one transpose of two axes.
func.func @shuffle(%x: tensor<1x5x7x6xi8>) -> tensor<1x5x7x6xi8> {
  %0 = relay.transpose %x {axes = array<i64: 0, 3, 1, 2>} : (tensor<1x5x7x6xi8>) -> tensor<1x6x5x7xi8>
  %1 = relay.reshape %0 {newshape = array<i64: 1, 2, 3, 5, 7>} : (tensor<1x6x5x7xi8>) -> tensor<1x2x3x5x7xi8>
  %2 = relay.transpose %1 {axes = array<i64: 0, 2, 1, 3, 4>} : (tensor<1x2x3x5x7xi8>) -> tensor<1x3x2x5x7xi8>
  %3 = relay.reshape %2 {newshape = array<i64: 1, 6, 5, 7>} : (tensor<1x3x2x5x7xi8>) -> tensor<1x6x5x7xi8>
  %4 = relay.transpose %3 {axes = array<i64: 0, 2, 3, 1>} : (tensor<1x6x5x7xi8>) -> tensor<1x5x7x6xi8>
  func.return %4 : tensor<1x5x7x6xi8>
}
// CHECK-LABEL: func.func @shuffle
// CHECK-NEXT:    [[S:%.+]] = relay.reshape %x {newshape = array<i64: 35, 2, 3>}
// CHECK-NEXT:    [[T:%.+]] = relay.transpose [[S]] {axes = array<i64: 0, 2, 1>}
// CHECK-NEXT:    [[R:%.+]] = relay.reshape [[T]] {newshape = array<i64: 1, 5, 7, 6>}
// CHECK-NEXT:    func.return [[R]]

// What does change something stays: a float's sign of zero, a narrower clip, a broadcast.
func.func @stays(%x: tensor<3xf32>, %y: tensor<3xi8>) -> (tensor<3xf32>, tensor<3xi8>, tensor<2x3xi8>) {
  %zero = relay.constant dense<0.0> : tensor<f32>
  %none = relay.constant dense<0> : tensor<2x1xi8>
  %0 = relay.add %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = relay.clip %y {a_min = -127 : i8, a_max = 127 : i8} : (tensor<3xi8>) -> tensor<3xi8>
  %2 = relay.add %y, %none : (tensor<3xi8>, tensor<2x1xi8>) -> tensor<2x3xi8>
  func.return %0, %1, %2 : tensor<3xf32>, tensor<3xi8>, tensor<2x3xi8>
}
// CHECK-LABEL: func.func @stays
// CHECK:         relay.add
// CHECK-NEXT:    relay.clip
// CHECK-NEXT:    relay.add

// Rules of algebra.
func.func @algebra(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = relay.negative %y : (tensor<3xf32>) -> tensor<3xf32>
  %1 = relay.add %x, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = relay.negative %0 : (tensor<3xf32>) -> tensor<3xf32>
  func.return %1, %2 : tensor<3xf32>, tensor<3xf32>
}
// CHECK-LABEL: func.func @algebra
// CHECK-NEXT:    [[D:%.+]] = relay.subtract %x, %y
// CHECK-NEXT:    func.return [[D]], %y

// The zero point of data is part of the bias, 1 - 3 * (1 + 2) and 2 - 3 * (3 + 4), where nothing is padded.
func.func @zero_point(%x: tensor<1x2xi8>, %y: tensor<1x4x4x1xi8>) -> (tensor<1x2xi32>, tensor<1x4x4x1xi32>) {
  %k = relay.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
  %b = relay.constant dense<[1, 2]> : tensor<2xi32>
  %0 = relay.nn.dense %x, %k {input_zero_point = 3 : i32} : (tensor<1x2xi8>, tensor<2x2xi8>) -> tensor<1x2xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
  %w = relay.constant dense<1> : tensor<1x3x3x1xi8>
  %c = relay.constant dense<7> : tensor<1xi32>
  %2 = relay.nn.conv2d %y, %w {input_zero_point = 3 : i32, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x4x4x1xi8>, tensor<1x3x3x1xi8>) -> tensor<1x4x4x1xi32>
  %3 = relay.nn.bias_add %2, %c : (tensor<1x4x4x1xi32>, tensor<1xi32>) -> tensor<1x4x4x1xi32>
  func.return %1, %3 : tensor<1x2xi32>, tensor<1x4x4x1xi32>
}
// CHECK-LABEL: func.func @zero_point
// CHECK:         [[P:%.+]] = relay.nn.dense %x, %k : (tensor<1x2xi8>
// CHECK:         [[B:%.+]] = relay.constant dense<[-8, -19]> : tensor<2xi32>
// CHECK-NEXT:    [[R:%.+]] = relay.nn.bias_add [[P]], [[B]]
// CHECK:         relay.nn.conv2d %y, %w {input_zero_point = 3 : i32, padding
// CHECK:         func.return [[R]],

// What is cast to a float gets a bias for it, -3 * (1 + 2) and -3 * (3 + 4).
func.func @zero_point_of_floats(%x: tensor<1x2xi8>) -> tensor<1x2xf32> {
  %k = relay.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
  %0 = relay.nn.dense %x, %k {input_zero_point = 3 : i32} : (tensor<1x2xi8>, tensor<2x2xi8>) -> tensor<1x2xi32>
  %1 = relay.cast %0 {dtype = f32} : (tensor<1x2xi32>) -> tensor<1x2xf32>
  func.return %1 : tensor<1x2xf32>
}
// CHECK-LABEL: func.func @zero_point_of_floats
// CHECK:         [[P:%.+]] = relay.nn.dense %x, %k : (tensor<1x2xi8>
// CHECK:         [[B:%.+]] = relay.constant dense<[-9, -21]> : tensor<2xi32>
// CHECK-NEXT:    [[S:%.+]] = relay.nn.bias_add [[P]], [[B]]
// CHECK-NEXT:    [[R:%.+]] = relay.cast [[S]] {dtype = f32}
// CHECK-NEXT:    func.return [[R]]

// Largest elements of large windows are those of smaller windows of smaller windows.

// CHECK-LABEL: func.func @large_window
// CHECK-NEXT:    [[P:%.+]] = relay.nn.max_pool2d %x {pool_size = array<i64: 5, 5>, padding = array<i64: 2, 2, 2, 2>}
// CHECK-NEXT:    relay.nn.max_pool2d [[P]] {pool_size = array<i64: 5, 5>, padding = array<i64: 2, 2, 2, 2>}
func.func @large_window(%x: tensor<1x13x13x4xf32>) -> tensor<1x13x13x4xf32> {
  %r = relay.nn.max_pool2d %x {pool_size = array<i64: 9, 9>, padding = array<i64: 4, 4, 4, 4>} : (tensor<1x13x13x4xf32>) -> tensor<1x13x13x4xf32>
  func.return %r : tensor<1x13x13x4xf32>
}

// A reshape that splits rows goes behind what is computed from a product, so that this joins the product's kernel.
func.func @later(%x: tensor<6x3xf32>, %w: tensor<4x3xf32>, %b: tensor<1x1x4xf32>, %y: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<6x3xf32>, tensor<4x3xf32>) -> tensor<6x4xf32>
  %1 = relay.reshape %0 {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = relay.add %1, %b : (tensor<2x3x4xf32>, tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
  %3 = relay.add %y, %2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %3 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @later
// CHECK-NEXT:    [[P:%.+]] = relay.nn.dense %x, %w
// CHECK-NEXT:    [[B:%.+]] = relay.reshape %b {newshape = array<i64: 4>}
// CHECK-NEXT:    [[S:%.+]] = relay.add [[P]], [[B]]
// CHECK-NEXT:    [[Y:%.+]] = relay.reshape %y {newshape = array<i64: 6, 4>}
// CHECK-NEXT:    [[T:%.+]] = relay.add [[Y]], [[S]]
// CHECK-NEXT:    [[R:%.+]] = relay.reshape [[T]] {newshape = array<i64: 2, 3, 4>}
// CHECK-NEXT:    func.return [[R]]

// What is smaller than the rows is repeated for them.
func.func @later_repeated(%x: tensor<6x3xf32>, %w: tensor<4x3xf32>, %b: tensor<2x1x1xf32>) -> tensor<2x3x4xf32> {
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<6x3xf32>, tensor<4x3xf32>) -> tensor<6x4xf32>
  %1 = relay.reshape %0 {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = relay.add %1, %b : (tensor<2x3x4xf32>, tensor<2x1x1xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @later_repeated
// CHECK-NEXT:    [[P:%.+]] = relay.nn.dense %x, %w
// CHECK-NEXT:    [[B:%.+]] = relay.broadcast_to %b {shape = array<i64: 2, 3, 1>}
// CHECK-NEXT:    [[C:%.+]] = relay.reshape [[B]] {newshape = array<i64: 6, 1>}
// CHECK-NEXT:    [[S:%.+]] = relay.add [[P]], [[C]]
// CHECK-NEXT:    relay.reshape [[S]] {newshape = array<i64: 2, 3, 4>}

// What is as large as all rows would be stays.
func.func @stays_split(%x: tensor<6x3xf32>, %w: tensor<4x3xf32>, %b: tensor<2x1x4xf32>) -> tensor<2x3x4xf32> {
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<6x3xf32>, tensor<4x3xf32>) -> tensor<6x4xf32>
  %1 = relay.reshape %0 {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = relay.add %1, %b : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
// CHECK-LABEL: func.func @stays_split
// CHECK:         [[R:%.+]] = relay.reshape
// CHECK-NEXT:    relay.add [[R]], %b

// Stacks of rows times one matrix are one product of all rows, so that what follows, computed row by row, can join it.
func.func @one_matrix(%x: tensor<2x3x4xf32>, %w: tensor<1x4x5xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %p = relay.nn.batch_matmul %x, %w {transpose_b = false, out_dtype = f32} : (tensor<2x3x4xf32>, tensor<1x4x5xf32>) -> tensor<2x3x5xf32>
  %r = relay.add %p, %b : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  func.return %r : tensor<2x3x5xf32>
}
// CHECK-LABEL: func.func @one_matrix
// CHECK-NEXT:    [[X:%.+]] = relay.reshape %x {newshape = array<i64: 6, 4>}
// CHECK-NEXT:    [[W:%.+]] = relay.reshape %w {newshape = array<i64: 4, 5>}
// CHECK-NEXT:    [[P:%.+]] = relay.nn.matmul [[X]], [[W]] {out_dtype = f32}
// CHECK-NEXT:    [[S:%.+]] = relay.add [[P]], %b
// CHECK-NEXT:    [[R:%.+]] = relay.reshape [[S]] {newshape = array<i64: 2, 3, 5>}
// CHECK-NEXT:    func.return [[R]]

func.func @dense(%x: tensor<2x3x4xi8>, %w: tensor<5x4xi8>) -> tensor<2x3x5xi32> {
  %r = relay.nn.dense %x, %w {out_dtype = i32} : (tensor<2x3x4xi8>, tensor<5x4xi8>) -> tensor<2x3x5xi32>
  func.return %r : tensor<2x3x5xi32>
}
// CHECK-LABEL: func.func @dense
// CHECK-NEXT:    [[X:%.+]] = relay.reshape %x {newshape = array<i64: 6, 4>}
// CHECK-NEXT:    [[P:%.+]] = relay.nn.dense [[X]], %w
// CHECK-NEXT:    [[R:%.+]] = relay.reshape [[P]] {newshape = array<i64: 2, 3, 5>}
// CHECK-NEXT:    func.return [[R]]

// Between codes in QDQ form the op says that the importer did not know the sizes: biases are added to reals there.
func.func @of_codes(%x: tensor<2x3x4xui8>, %w: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  %d = qnn.dequantize %x {scale = 0.5 : f32, zero_point = 3 : i32, product = "f32"} : (tensor<2x3x4xui8>) -> tensor<2x3x4xf32>
  %r = relay.nn.batch_matmul %d, %w {transpose_b = false, out_dtype = f32} : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  func.return %r : tensor<2x3x5xf32>
}
// CHECK-LABEL: func.func @of_codes
// CHECK:         relay.nn.batch_matmul

func.func @two_stacks(%x: tensor<2x3x4xf32>, %y: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %r = relay.nn.batch_matmul %x, %y {transpose_b = false, out_dtype = f32} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  func.return %r : tensor<2x3x5xf32>
}
// CHECK-LABEL: func.func @two_stacks
// CHECK-NEXT:    relay.nn.batch_matmul

// Heads that share keys and values: matrices of the first operand whose second one is the same are one.
func.func @grouped_heads(%q: tensor<1x4x1x8xf32>, %k: tensor<1x2x16x8xf32>, %v: tensor<1x2x16x8xf32>, %mask: tensor<16xi1>) -> tensor<1x4x1x8xf32> {
  %k1 = relay.reshape %k {newshape = array<i64: 1, 2, 1, 16, 8>} : (tensor<1x2x16x8xf32>) -> tensor<1x2x1x16x8xf32>
  %k2 = relay.broadcast_to %k1 {shape = array<i64: 1, 2, 2, 16, 8>} : (tensor<1x2x1x16x8xf32>) -> tensor<1x2x2x16x8xf32>
  %k3 = relay.reshape %k2 {newshape = array<i64: 1, 4, 16, 8>} : (tensor<1x2x2x16x8xf32>) -> tensor<1x4x16x8xf32>
  %k4 = relay.transpose %k3 {axes = array<i64: 0, 1, 3, 2>} : (tensor<1x4x16x8xf32>) -> tensor<1x4x8x16xf32>
  %v1 = relay.reshape %v {newshape = array<i64: 1, 2, 1, 16, 8>} : (tensor<1x2x16x8xf32>) -> tensor<1x2x1x16x8xf32>
  %v2 = relay.broadcast_to %v1 {shape = array<i64: 1, 2, 2, 16, 8>} : (tensor<1x2x1x16x8xf32>) -> tensor<1x2x2x16x8xf32>
  %v3 = relay.reshape %v2 {newshape = array<i64: 1, 4, 16, 8>} : (tensor<1x2x2x16x8xf32>) -> tensor<1x4x16x8xf32>
  %s = relay.nn.batch_matmul %q, %k4 {transpose_b = false, out_dtype = f32} : (tensor<1x4x1x8xf32>, tensor<1x4x8x16xf32>) -> tensor<1x4x1x16xf32>
  %low = relay.constant dense<-1.0e9> : tensor<f32>
  %m = relay.where %mask, %s, %low : (tensor<16xi1>, tensor<1x4x1x16xf32>, tensor<f32>) -> tensor<1x4x1x16xf32>
  %w = relay.nn.softmax %m {beta = 1.0 : f32} : (tensor<1x4x1x16xf32>) -> tensor<1x4x1x16xf32>
  %r = relay.nn.batch_matmul %w, %v3 {transpose_b = false, out_dtype = f32} : (tensor<1x4x1x16xf32>, tensor<1x4x16x8xf32>) -> tensor<1x4x1x8xf32>
  func.return %r : tensor<1x4x1x8xf32>
}
// CHECK-LABEL: func.func @grouped_heads
// CHECK:         [[Q:%.+]] = relay.reshape %q {newshape = array<i64: 2, 2, 8>}
// CHECK-NEXT:    [[K:%.+]] = relay.reshape %k {newshape = array<i64: 2, 16, 8>}
// CHECK-NEXT:    [[S:%.+]] = relay.nn.batch_matmul [[Q]], [[K]] {out_dtype = f32}
// CHECK:         [[M:%.+]] = relay.where %mask, [[S]],
// CHECK-NEXT:    [[W:%.+]] = relay.nn.softmax [[M]]
// CHECK-NEXT:    [[V:%.+]] = relay.reshape %v {newshape = array<i64: 2, 16, 8>}
// CHECK-NEXT:    [[P:%.+]] = relay.nn.batch_matmul [[W]], [[V]] {transpose_b = false
// CHECK-NEXT:    [[R:%.+]] = relay.reshape [[P]] {newshape = array<i64: 1, 4, 1, 8>}
// CHECK-NEXT:    func.return [[R]]

// Copies that stand side by side are no heads one behind the other, nor is a row that is repeated a matrix.
func.func @other_copies(%q: tensor<4x1x8xf32>, %k: tensor<2x16x8xf32>, %row: tensor<4x1x8xf32>) -> (tensor<4x1x16xf32>, tensor<4x1x16xf32>) {
  %k1 = relay.reshape %k {newshape = array<i64: 1, 2, 16, 8>} : (tensor<2x16x8xf32>) -> tensor<1x2x16x8xf32>
  %k2 = relay.broadcast_to %k1 {shape = array<i64: 2, 2, 16, 8>} : (tensor<1x2x16x8xf32>) -> tensor<2x2x16x8xf32>
  %k3 = relay.reshape %k2 {newshape = array<i64: 4, 16, 8>} : (tensor<2x2x16x8xf32>) -> tensor<4x16x8xf32>
  %a = relay.nn.batch_matmul %q, %k3 {out_dtype = f32} : (tensor<4x1x8xf32>, tensor<4x16x8xf32>) -> tensor<4x1x16xf32>
  %rows = relay.broadcast_to %row {shape = array<i64: 4, 16, 8>} : (tensor<4x1x8xf32>) -> tensor<4x16x8xf32>
  %b = relay.nn.batch_matmul %q, %rows {out_dtype = f32} : (tensor<4x1x8xf32>, tensor<4x16x8xf32>) -> tensor<4x1x16xf32>
  func.return %a, %b : tensor<4x1x16xf32>, tensor<4x1x16xf32>
}
// CHECK-LABEL: func.func @other_copies
// CHECK:         relay.nn.batch_matmul %q, {{.*}} : (tensor<4x1x8xf32>, tensor<4x16x8xf32>) -> tensor<4x1x16xf32>
// CHECK:         relay.nn.batch_matmul %q, {{.*}} : (tensor<4x1x8xf32>, tensor<4x16x8xf32>) -> tensor<4x1x16xf32>
