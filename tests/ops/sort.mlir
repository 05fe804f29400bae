func.func @sort(%x: tensor<2x5xf32>) {
  %sort = relay.sort %x {axis = 0 : i64, is_ascend = false} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %argsort = relay.argsort %x {dtype = i64} : (tensor<2x5xf32>) -> tensor<2x5xi64>
  %values, %indices = relay.topk %x {k = 3 : i64} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  %alone = relay.topk %x {k = 3 : i64, ret_type = "indices"} : (tensor<2x5xf32>) -> tensor<2x3xi32>
  func.return
}

// -----
// error: relay.sort: the axis must be known
func.func @sort(%x: tensor<2x?xf32>) {
  %r = relay.sort %x : (tensor<2x?xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.argsort: dtype must be i32 or i64
func.func @argsort(%x: tensor<2x3xf32>) {
  %r = relay.argsort %x {dtype = i8} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.topk: k must be 0 to 3
func.func @topk(%x: tensor<2x3xf32>) {
  %r = relay.topk %x {k = 4 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.topk: dtype must be i32 or i64
func.func @topk(%x: tensor<2x3xf32>) {
  %r = relay.topk %x {k = 1 : i64, dtype = i8} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.topk: ret_type must be both, values or indices
func.func @topk(%x: tensor<2x3xf32>) {
  %r = relay.topk %x {k = 1 : i64, ret_type = "none"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----
// error: relay.sort: the axis is too long
func.func @sort(%x: tensor<2147483648xi8>) {
  %r = relay.sort %x : (tensor<2147483648xi8>) -> tensor<2x3xf32>
  func.return
}
