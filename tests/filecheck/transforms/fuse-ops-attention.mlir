// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx2,+fma"},fuse-ops' | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="thumbv7em"},fuse-ops' | filecheck %s --check-prefix APART

// Two products of computed matrices and the softmax between them are one kernel, where registers are vectors.
func.func @codes(%q: tensor<2x8x16xui8>, %k: tensor<2x16x32xui8>, %m: tensor<1x8x32xf32>, %v: tensor<2x32x16xi8>) -> tensor<2x8x16xi32> {
  %0 = relay.nn.batch_matmul %q, %k {transpose_b = false, input_zero_point = 9 : i32} : (tensor<2x8x16xui8>, tensor<2x16x32xui8>) -> tensor<2x8x32xi32>
  %1 = relay.cast %0 {dtype = f32} : (tensor<2x8x32xi32>) -> tensor<2x8x32xf32>
  %2 = relay.add %1, %m : (tensor<2x8x32xf32>, tensor<1x8x32xf32>) -> tensor<2x8x32xf32>
  %3 = relay.nn.softmax %2 {beta = 1.0 : f32} : (tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  %4 = relay.cast %3 {dtype = ui8} : (tensor<2x8x32xf32>) -> tensor<2x8x32xui8>
  %5 = relay.nn.batch_matmul %4, %v {transpose_b = false} : (tensor<2x8x32xui8>, tensor<2x32x16xi8>) -> tensor<2x8x16xi32>
  func.return %5 : tensor<2x8x16xi32>
}
// CHECK-LABEL: func.func @codes
// CHECK-NEXT:    [[R:%.+]] = func.call @attention_0(%q, %k, %m, %v)
// CHECK-NEXT:    func.return [[R]]
// APART-LABEL: func.func @codes
// APART-NEXT:    [[S:%.+]] = func.call @batch_matmul_0(%q, %k, %m)
// APART-NEXT:    [[W:%.+]] = func.call @softmax_0([[S]])
// APART-NEXT:    [[R:%.+]] = func.call @batch_matmul_1([[W]], %v)
// APART-NEXT:    func.return [[R]]

// What others read is written, so it is no part of such a kernel.
func.func @weights_are_read(%q: tensor<2x8x16xf32>, %k: tensor<2x32x16xf32>, %v: tensor<2x32x16xf32>) -> (tensor<2x8x32xf32>, tensor<2x8x16xf32>) {
  %0 = relay.nn.batch_matmul %q, %k {out_dtype = f32} : (tensor<2x8x16xf32>, tensor<2x32x16xf32>) -> tensor<2x8x32xf32>
  %1 = relay.nn.softmax %0 {beta = 1.0 : f32} : (tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  %2 = relay.nn.batch_matmul %1, %v {transpose_b = false, out_dtype = f32} : (tensor<2x8x32xf32>, tensor<2x32x16xf32>) -> tensor<2x8x16xf32>
  func.return %1, %2 : tensor<2x8x32xf32>, tensor<2x8x16xf32>
}
// CHECK-LABEL: func.func @weights_are_read
// CHECK-NEXT:    [[S:%.+]] = func.call @batch_matmul_0(%q, %k)
// CHECK-NEXT:    [[W:%.+]] = func.call @softmax_0([[S]])
// CHECK-NEXT:    [[R:%.+]] = func.call @batch_matmul_1([[W]], %v)

// Of the few rows of a decoder, too, which read keys as they lie.
func.func @one_row(%q: tensor<2x1x16xf32>, %k: tensor<2x32x16xf32>, %v: tensor<2x32x16xf32>) -> tensor<2x1x16xf32> {
  %0 = relay.nn.batch_matmul %q, %k {out_dtype = f32} : (tensor<2x1x16xf32>, tensor<2x32x16xf32>) -> tensor<2x1x32xf32>
  %1 = relay.nn.softmax %0 {beta = 1.0 : f32} : (tensor<2x1x32xf32>) -> tensor<2x1x32xf32>
  %2 = relay.nn.batch_matmul %1, %v {transpose_b = false, out_dtype = f32} : (tensor<2x1x32xf32>, tensor<2x32x16xf32>) -> tensor<2x1x16xf32>
  func.return %2 : tensor<2x1x16xf32>
}
// CHECK-LABEL: func.func @one_row
// CHECK-NEXT:    [[R:%.+]] = func.call @attention_1(%q, %k, %v)
// CHECK-NEXT:    func.return [[R]]
// APART-LABEL: func.func @one_row
// APART-NOT:     attention
// APART:         func.return

// Which keys are there is found out in each kernel: it is compared with one number, and a kernel that compares by itself
// reads no others.
func.func @seen_keys(%q: tensor<2x1x16xf32>, %k: tensor<2x32x16xf32>, %v: tensor<2x32x16xf32>, %position: tensor<1xi64>) -> (tensor<2x1x16xf32>, tensor<2x1x16xf32>) {
  %numbers = relay.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]> : tensor<32xi64>
  %seen = relay.less_equal %numbers, %position : (tensor<32xi64>, tensor<1xi64>) -> tensor<32xi1>
  %never = relay.constant dense<-1.0e9> : tensor<f32>
  %0 = relay.nn.batch_matmul %q, %k {out_dtype = f32} : (tensor<2x1x16xf32>, tensor<2x32x16xf32>) -> tensor<2x1x32xf32>
  %1 = relay.where %seen, %0, %never : (tensor<32xi1>, tensor<2x1x32xf32>, tensor<f32>) -> tensor<2x1x32xf32>
  %2 = relay.nn.softmax %1 {beta = 1.0 : f32} : (tensor<2x1x32xf32>) -> tensor<2x1x32xf32>
  %3 = relay.nn.batch_matmul %2, %v {transpose_b = false, out_dtype = f32} : (tensor<2x1x32xf32>, tensor<2x32x16xf32>) -> tensor<2x1x16xf32>
  %4 = relay.nn.batch_matmul %3, %k {out_dtype = f32} : (tensor<2x1x16xf32>, tensor<2x32x16xf32>) -> tensor<2x1x32xf32>
  %5 = relay.where %seen, %4, %never : (tensor<32xi1>, tensor<2x1x32xf32>, tensor<f32>) -> tensor<2x1x32xf32>
  %6 = relay.nn.softmax %5 {beta = 1.0 : f32} : (tensor<2x1x32xf32>) -> tensor<2x1x32xf32>
  %7 = relay.nn.batch_matmul %6, %v {transpose_b = false, out_dtype = f32} : (tensor<2x1x32xf32>, tensor<2x32x16xf32>) -> tensor<2x1x16xf32>
  func.return %3, %7 : tensor<2x1x16xf32>, tensor<2x1x16xf32>
}
// CHECK-LABEL: func.func @seen_keys
// CHECK-NEXT:    [[N:%.+]] = relay.constant
// CHECK-NEXT:    [[A:%.+]] = func.call @attention_2(%q, %k, [[N]], %position, %v)
// CHECK-NEXT:    {{%.+}} = func.call @attention_2([[A]], %k, [[N]], %position, %v)
