func.func @functions(%x: tensor<4xf32>) {
  %acos = relay.acos %x : (tensor<4xf32>) -> tensor<4xf32>
  %acosh = relay.acosh %x : (tensor<4xf32>) -> tensor<4xf32>
  %asin = relay.asin %x : (tensor<4xf32>) -> tensor<4xf32>
  %asinh = relay.asinh %x : (tensor<4xf32>) -> tensor<4xf32>
  %atan = relay.atan %x : (tensor<4xf32>) -> tensor<4xf32>
  %atanh = relay.atanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %cos = relay.cos %x : (tensor<4xf32>) -> tensor<4xf32>
  %cosh = relay.cosh %x : (tensor<4xf32>) -> tensor<4xf32>
  %erf = relay.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %expm1 = relay.expm1 %x : (tensor<4xf32>) -> tensor<4xf32>
  %log2 = relay.log2 %x : (tensor<4xf32>) -> tensor<4xf32>
  %log10 = relay.log10 %x : (tensor<4xf32>) -> tensor<4xf32>
  %sin = relay.sin %x : (tensor<4xf32>) -> tensor<4xf32>
  %sinh = relay.sinh %x : (tensor<4xf32>) -> tensor<4xf32>
  %tan = relay.tan %x : (tensor<4xf32>) -> tensor<4xf32>
  %trunc = relay.trunc %x : (tensor<4xf32>) -> tensor<4xf32>
  %fast_erf = relay.fast_erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %fast_exp = relay.fast_exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %fast_tanh = relay.fast_tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %zeros_like = relay.zeros_like %x : (tensor<4xf32>) -> tensor<4xf32>
  %ones_like = relay.ones_like %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

func.func @predicates(%x: tensor<?xf64>) {
  %isnan = relay.isnan %x : (tensor<?xf64>) -> tensor<?xi1>
  %isinf = relay.isinf %x : (tensor<?xf64>) -> tensor<?xi1>
  %isfinite = relay.isfinite %x : (tensor<?xf64>) -> tensor<?xi1>
  func.return
}

func.func @any_numbers(%x: tensor<2x3xui8>, %b: tensor<4xi1>) {
  %sign = relay.sign %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  %copy = relay.copy %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  %bitwise_not = relay.bitwise_not %x : (tensor<2x3xui8>) -> tensor<2x3xui8>
  %logical_not = relay.logical_not %b : (tensor<4xi1>) -> tensor<4xi1>
  %shape_of = relay.shape_of %x : (tensor<2x3xui8>) -> tensor<2xi32>
  %ndarray_size = relay.ndarray_size %x {dtype = i64} : (tensor<2x3xui8>) -> tensor<i64>
  func.return
}

// -----
// error: relay.logical_not: takes i1, not i8
func.func @logical_not(%x: tensor<4xi8>) {
  %r = relay.logical_not %x : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.logical_and: takes i1, not i8
func.func @logical_and(%x: tensor<4xi8>) {
  %r = relay.logical_and %x, %x : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.bitwise_not: takes integers, not f32
func.func @bitwise_not(%x: tensor<4xf32>) {
  %r = relay.bitwise_not %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.bitwise_xor: takes integers, not f32
func.func @bitwise_xor(%x: tensor<4xf32>) {
  %r = relay.bitwise_xor %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.isnan: takes floats, not i32
func.func @isnan(%x: tensor<4xi32>) {
  %r = relay.isnan %x : (tensor<4xi32>) -> tensor<4xi1>
  func.return
}

// -----
// error: relay.ndarray_size: dtype must be i32 or i64
func.func @ndarray_size(%x: tensor<4xf32>) {
  %r = relay.ndarray_size %x {dtype = i8} : (tensor<4xf32>) -> tensor<i8>
  func.return
}
