// RUN: relay-opt %s -p relay-to-linalg | filecheck %s

// Functions are those of `math`; what others make up is legalized on the way.

// CHECK-LABEL: func.func @functions
// CHECK:         linalg.generic
// CHECK:           [[ERF:%.+]] = math.erf {{%.+}} : f32
// CHECK-NEXT:      [[MOD:%.+]] = arith.remf [[ERF]], {{%.+}} : f32
// CHECK-NEXT:      [[TAN:%.+]] = math.tan [[MOD]] : f32
// CHECK-NEXT:      [[BELOW:%.+]] = arith.cmpf olt, [[TAN]], {{%.+}} : f32
// CHECK-NEXT:      [[MINUS:%.+]] = arith.select [[BELOW]], {{%.+}}, [[TAN]] : f32
// CHECK-NEXT:      [[ABOVE:%.+]] = arith.cmpf ogt, [[TAN]], {{%.+}} : f32
// CHECK-NEXT:      [[SIGN:%.+]] = arith.select [[ABOVE]], {{%.+}}, [[MINUS]] : f32
// CHECK-NEXT:      [[NAN:%.+]] = arith.cmpf une, [[SIGN]], [[SIGN]] : f32
// CHECK-NEXT:      linalg.yield [[SIGN]], [[NAN]] : f32, i1
func.func @functions(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %erf = relay.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %mod = relay.mod %erf, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %tan = relay.tan %mod : (tensor<4xf32>) -> tensor<4xf32>
  %sign = relay.sign %tan : (tensor<4xf32>) -> tensor<4xf32>
  %nan = relay.isnan %sign : (tensor<4xf32>) -> tensor<4xi1>
  func.return %sign, %nan : tensor<4xf32>, tensor<4xi1>
}

// A function of stage 2 stays as it is, with a body that reads a tensor from outside.

// CHECK-LABEL: func.func @lowered
// CHECK:         [[P:%.+]] = tensor.pad %{{.+}} low[0] high[2]
// CHECK:         [[K:%.+]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK:         [[R:%.+]] = linalg.generic {{.*}} ins([[P]] : tensor<4xf32>)
// CHECK-NEXT:    ^{{.*}}([[A:%.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT:      [[V:%.+]] = tensor.extract [[K]]
// CHECK-NEXT:      [[S:%.+]] = arith.addf [[A]], [[V]] : f32
// CHECK-NEXT:      linalg.yield [[S]] : f32
// CHECK:         func.return [[R]] : tensor<4xf32>
func.func @lowered(%x: tensor<2xf32>) -> tensor<4xf32> {
  %k = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %z = arith.constant 0.0 : f32
  %i = arith.constant 1 : index
  %p = tensor.pad %x low[0] high[2] {
  ^bb0(%n: index):
    tensor.yield %z : f32
  } : tensor<2xf32> to tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%p : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %v = tensor.extract %k[%i] : tensor<2xf32>
    %s = arith.addf %a, %v : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
