// RUN: relay-opt %s -p 'attach-target{target="x86_64"},fuse-ops' | filecheck %s

// What uses a product's result more than once joins its kernel; what comes before and after a normalization joins that.
func.func @rows(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>, %v: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %1 = relay.erf %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = relay.multiply %0, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = relay.nn.layer_norm %2, %v, %v {epsilon = 1.0e-05 : f32} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %4 = relay.floor %3 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %3, %4 : tensor<2x4xf32>, tensor<2x4xf32>
}
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    [[D:%.+]] = func.call @dense_0(%x, %w)
// CHECK-NEXT:    [[N:%.+]], [[F:%.+]] = func.call @layer_norm_0([[D]], %v)
// CHECK-NEXT:    func.return [[N]], [[F]]

func.func @sum(%x: tensor<2x4xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = relay.add %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = relay.nn.layer_norm %0, %v, %v {epsilon = 1.0e-05 : f32} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    [[R:%.+]] = func.call @layer_norm_1(%x, %v)
// CHECK-NEXT:    func.return [[R]]
