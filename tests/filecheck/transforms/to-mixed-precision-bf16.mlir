// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f,+avx512bf16"},to-mixed-precision{dtype=bf16}' | filecheck %s

// Data and constant weights are rounded, sums are float32; a product of two computed matrices stays.
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x16xf32> {
  %w = relay.constant dense<0.5> : tensor<32x32xf32>
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %1 = relay.nn.dense %x, %0 {out_dtype = f32} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x16xf32>
  func.return %1 : tensor<16x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %w = relay.constant
// CHECK-NEXT:    [[X:%.+]] = relay.cast %x {dtype = bf16}
// CHECK-NEXT:    [[W:%.+]] = relay.cast %w {dtype = bf16}
// CHECK-NEXT:    [[P:%.+]] = relay.nn.dense [[X]], [[W]] {out_dtype = f32} : {{.*}} -> tensor<16x32xf32>
// CHECK-NEXT:    relay.nn.dense %x, [[P]] {out_dtype = f32}

// An odd number of channels makes no pairs.
func.func @odd(%x: tensor<16x31xf32>) -> tensor<16x32xf32> {
  %w = relay.constant dense<0.5> : tensor<32x31xf32>
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<16x31xf32>, tensor<32x31xf32>) -> tensor<16x32xf32>
  func.return %0 : tensor<16x32xf32>
}
// CHECK-LABEL: func.func @odd
// CHECK-NOT:     bf16
