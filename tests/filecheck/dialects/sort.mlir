// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @sort(
func.func @sort(%x: tensor<2x5xf32>) {
  // CHECK: %sort = relay.sort %x {axis = 0 : i64, is_ascend = false} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %sort = relay.sort %x {axis = 0 : i64, is_ascend = false} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  // CHECK: %argsort = relay.argsort %x {dtype = i64} : (tensor<2x5xf32>) -> tensor<2x5xi64>
  %argsort = relay.argsort %x {dtype = i64} : (tensor<2x5xf32>) -> tensor<2x5xi64>
  // CHECK: %values, %indices = relay.topk %x {k = 3 : i64} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  %values, %indices = relay.topk %x {k = 3 : i64} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  // CHECK: %alone = relay.topk %x {k = 3 : i64, ret_type = "indices"} : (tensor<2x5xf32>) -> tensor<2x3xi32>
  %alone = relay.topk %x {k = 3 : i64, ret_type = "indices"} : (tensor<2x5xf32>) -> tensor<2x3xi32>
  func.return
}
