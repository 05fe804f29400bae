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

// So does a cheap computation that uses a convolution's result more than once; an expensive one is a kernel of its own.
func.func @leaky(%x: tensor<1x3x3x2xf32>, %w: tensor<4x1x1x2xf32>, %k: tensor<f32>) -> tensor<1x3x3x4xf32> {
  %0 = relay.nn.conv2d %x, %w {out_dtype = f32} : (tensor<1x3x3x2xf32>, tensor<4x1x1x2xf32>) -> tensor<1x3x3x4xf32>
  %1 = relay.multiply %0, %k : (tensor<1x3x3x4xf32>, tensor<f32>) -> tensor<1x3x3x4xf32>
  %2 = relay.maximum %0, %1 : (tensor<1x3x3x4xf32>, tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  func.return %2 : tensor<1x3x3x4xf32>
}
// CHECK-LABEL: func.func @leaky
// CHECK-NEXT:    [[R:%.+]] = func.call @conv2d_0(%x, %w, %k)
// CHECK-NEXT:    func.return [[R]]

func.func @silu(%x: tensor<1x3x3x2xf32>, %w: tensor<4x1x1x2xf32>) -> tensor<1x3x3x4xf32> {
  %0 = relay.nn.conv2d %x, %w {out_dtype = f32} : (tensor<1x3x3x2xf32>, tensor<4x1x1x2xf32>) -> tensor<1x3x3x4xf32>
  %1 = relay.sigmoid %0 : (tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  %2 = relay.multiply %0, %1 : (tensor<1x3x3x4xf32>, tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  func.return %2 : tensor<1x3x3x4xf32>
}
// CHECK-LABEL: func.func @silu
// CHECK-NEXT:    [[R:%.+]] = func.call @conv2d_1(%x, %w)
// CHECK-NEXT:    [[S:%.+]] = func.call @elementwise_0([[R]])
// CHECK-NEXT:    func.return [[S]]
