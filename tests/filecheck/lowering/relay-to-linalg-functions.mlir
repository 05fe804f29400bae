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
