// RUN: relay-opt %s -p equalize-layers | filecheck %s

// Both layers' ranges of a channel become 4: the first is divided, the second multiplied, through what moves rows. ReLU6 keeps the last pair.
func.func @main(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %w = relay.constant dense<[[16.0], [1.0]]> : tensor<2x1xf32>
  %b = relay.constant dense<[8.0, 1.0]> : tensor<2xf32>
  %v = relay.constant dense<[[1.0, 16.0]]> : tensor<1x2xf32>
  %u = relay.constant dense<[[64.0]]> : tensor<1x1xf32>
  %0 = relay.nn.dense %x, %w {out_dtype = f32} : (tensor<1x1xf32>, tensor<2x1xf32>) -> tensor<1x2xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %2 = relay.clip %1 {a_min = 0.0 : f32, a_max = 3.40282347e+38 : f32} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = relay.reverse %2 {axis = array<i64: 0>} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %3 = relay.nn.dense %r, %v {out_dtype = f32} : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x1xf32>
  %4 = relay.clip %3 {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %5 = relay.nn.dense %4, %u {out_dtype = f32} : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  func.return %5 : tensor<1x1xf32>
}
// CHECK-DAG:     dense<4.000000e+00> : tensor<2x1xf32>
// CHECK-DAG:     dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK-DAG:     dense<4.000000e+00> : tensor<1x2xf32>
// CHECK-DAG:     dense<6.400000e+01> : tensor<1x1xf32>
