// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512fp16"},to-mixed-precision' | filecheck %s

// The convolution, and what follows it, in half precision; the exponential in float32.
func.func @main(%x: tensor<1x4x4x2xf32>, %k: tensor<2x1x1x2xf32>) -> tensor<1x4x4x2xf32> {
  %b = relay.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<1x4x4x2xf32>, tensor<2x1x1x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x4x2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %2 = relay.exp %1 : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  func.return %2 : tensor<1x4x4x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %b = relay.constant
// CHECK-NEXT:    [[X:%.+]] = relay.cast %x {dtype = f16}
// CHECK-NEXT:    [[K:%.+]] = relay.cast %k {dtype = f16}
// CHECK-NEXT:    [[C:%.+]] = relay.nn.conv2d [[X]], [[K]] {out_dtype = f16}
// CHECK-NEXT:    [[B:%.+]] = relay.cast %b {dtype = f16}
// CHECK-NEXT:    [[A:%.+]] = relay.nn.bias_add [[C]], [[B]]
// CHECK-NEXT:    [[W:%.+]] = relay.cast [[A]] {dtype = f32}
// CHECK-NEXT:    relay.exp [[W]]
