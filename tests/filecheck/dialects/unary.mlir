// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @functions(
func.func @functions(%x: tensor<4xf32>) {
  // CHECK: %acos = relay.acos %x : (tensor<4xf32>) -> tensor<4xf32>
  %acos = relay.acos %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %acosh = relay.acosh %x : (tensor<4xf32>) -> tensor<4xf32>
  %acosh = relay.acosh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %asin = relay.asin %x : (tensor<4xf32>) -> tensor<4xf32>
  %asin = relay.asin %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %asinh = relay.asinh %x : (tensor<4xf32>) -> tensor<4xf32>
  %asinh = relay.asinh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %atan = relay.atan %x : (tensor<4xf32>) -> tensor<4xf32>
  %atan = relay.atan %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %atanh = relay.atanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %atanh = relay.atanh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %cos = relay.cos %x : (tensor<4xf32>) -> tensor<4xf32>
  %cos = relay.cos %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %cosh = relay.cosh %x : (tensor<4xf32>) -> tensor<4xf32>
  %cosh = relay.cosh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %erf = relay.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %erf = relay.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %expm1 = relay.expm1 %x : (tensor<4xf32>) -> tensor<4xf32>
  %expm1 = relay.expm1 %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %log2 = relay.log2 %x : (tensor<4xf32>) -> tensor<4xf32>
  %log2 = relay.log2 %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %log10 = relay.log10 %x : (tensor<4xf32>) -> tensor<4xf32>
  %log10 = relay.log10 %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %sin = relay.sin %x : (tensor<4xf32>) -> tensor<4xf32>
  %sin = relay.sin %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %sinh = relay.sinh %x : (tensor<4xf32>) -> tensor<4xf32>
  %sinh = relay.sinh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %tan = relay.tan %x : (tensor<4xf32>) -> tensor<4xf32>
  %tan = relay.tan %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %trunc = relay.trunc %x : (tensor<4xf32>) -> tensor<4xf32>
  %trunc = relay.trunc %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %fast_erf = relay.fast_erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %fast_erf = relay.fast_erf %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %fast_exp = relay.fast_exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %fast_exp = relay.fast_exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %fast_tanh = relay.fast_tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %fast_tanh = relay.fast_tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %zeros_like = relay.zeros_like %x : (tensor<4xf32>) -> tensor<4xf32>
  %zeros_like = relay.zeros_like %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %ones_like = relay.ones_like %x : (tensor<4xf32>) -> tensor<4xf32>
  %ones_like = relay.ones_like %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// CHECK-LABEL: func.func @predicates(
func.func @predicates(%x: tensor<?xf64>) {
  // CHECK: %isnan = relay.isnan %x : (tensor<?xf64>) -> tensor<?xi1>
  %isnan = relay.isnan %x : (tensor<?xf64>) -> tensor<?xi1>
  // CHECK: %isinf = relay.isinf %x : (tensor<?xf64>) -> tensor<?xi1>
  %isinf = relay.isinf %x : (tensor<?xf64>) -> tensor<?xi1>
  // CHECK: %isfinite = relay.isfinite %x : (tensor<?xf64>) -> tensor<?xi1>
  %isfinite = relay.isfinite %x : (tensor<?xf64>) -> tensor<?xi1>
  func.return
}

// CHECK-LABEL: func.func @any_numbers(
func.func @any_numbers(%x: tensor<2x3xui8>, %b: tensor<4xi1>) {
  // CHECK: %sign = relay.sign %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  %sign = relay.sign %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  // CHECK: %copy = relay.copy %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  %copy = relay.copy %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  // CHECK: %bitwise_not = relay.bitwise_not %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  %bitwise_not = relay.bitwise_not %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  // CHECK: %logical_not = relay.logical_not %b : (tensor<4xi1>) -> tensor<4xi1>
  %logical_not = relay.logical_not %b : (tensor<4xi1>) -> tensor<4xi1>
  // CHECK: %shape_of = relay.shape_of %x : (tensor<2x3xui8>) -> tensor<2xi32>
  %shape_of = relay.shape_of %x : (tensor<2x3xui8>) -> tensor<2xi32>
  // CHECK: %ndarray_size = relay.ndarray_size %x {dtype = i64} : (tensor<2x3xui8>) -> tensor<i64>
  %ndarray_size = relay.ndarray_size %x {dtype = i64} : (tensor<2x3xui8>) -> tensor<i64>
  func.return
}
