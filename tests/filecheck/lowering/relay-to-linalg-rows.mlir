// RUN: relay-opt %s -p 'attach-target{target="x86_64"},relay-to-linalg' | filecheck %s

// A layer normalization: the sum, the mean, the sum of squares, one divided by the root, and what follows it.

// CHECK-LABEL: func.func @layer_norm
// CHECK:         [[S:%.+]] = linalg.generic {{.*}}"reduction"
// CHECK:           arith.addf
// CHECK:         [[M:%.+]] = linalg.generic {{.*}} ins([[S]]
// CHECK:           arith.divf
// CHECK:         [[Q:%.+]] = linalg.generic {{.*}}"reduction"{{.*}} ins(%x, [[M]]
// CHECK:           arith.subf
// CHECK:         [[F:%.+]] = linalg.generic {{.*}} ins([[Q]]
// CHECK:           math.sqrt
// CHECK:         linalg.generic {{.*}} ins(%x, [[M]], [[F]], %g, %b
// CHECK:           math.absf
func.func @layer_norm(%x: tensor<3x20xf32>, %g: tensor<20xf32>, %b: tensor<20xf32>) -> tensor<3x20xf32> {
  %0 = relay.nn.layer_norm %x, %g, %b {epsilon = 1.0e-05 : f32} : (tensor<3x20xf32>, tensor<20xf32>, tensor<20xf32>) -> tensor<3x20xf32>
  %1 = relay.abs %0 : (tensor<3x20xf32>) -> tensor<3x20xf32>
  func.return %1 : tensor<3x20xf32>
}
