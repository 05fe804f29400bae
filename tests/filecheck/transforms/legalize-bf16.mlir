// RUN: relay-opt %s -p legalize | filecheck %s --check-prefix WIDE
// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512f,+avx512bf16"},legalize' | filecheck %s

// Products of bf16 are summed in float32 and rounded once; they take bf16 where an instruction adds up pairs of them.
func.func @product(%x: tensor<4x8xbf16>) -> tensor<4x6xbf16> {
  %w = relay.constant dense<1.0> : tensor<6x8xbf16>
  %0 = relay.nn.dense %x, %w {out_dtype = bf16} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xbf16>
  func.return %0 : tensor<4x6xbf16>
}
// CHECK-LABEL: func.func @product
// CHECK:         [[P:%.+]] = relay.nn.dense %x, %w {out_dtype = f32}
// CHECK-NEXT:    relay.cast [[P]] {dtype = bf16}
// WIDE-LABEL:  func.func @product
// WIDE:          [[X:%.+]] = relay.cast %x {dtype = f32}
// WIDE-NEXT:     [[W:%.+]] = relay.cast %w {dtype = f32}
// WIDE-NEXT:     [[P:%.+]] = relay.nn.dense [[X]], [[W]] {out_dtype = f32}
// WIDE-NEXT:     relay.cast [[P]] {dtype = bf16}

// A computed second matrix has to be packed, which pays for eight rows and more; pairs lie side by side.
func.func @few(%x: tensor<4x8xbf16>, %w: tensor<32x8xbf16>) -> tensor<4x32xbf16> {
  %0 = relay.nn.dense %x, %w {out_dtype = bf16} : (tensor<4x8xbf16>, tensor<32x8xbf16>) -> tensor<4x32xbf16>
  func.return %0 : tensor<4x32xbf16>
}
// CHECK-LABEL: func.func @few
// CHECK-NEXT:    relay.cast %x {dtype = f32}
