func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) {
  %r = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  func.return
}

func.func @batch_matmul(%a: tensor<2x1x4x8xi8>, %b: tensor<3x5x8xi8>) {
  %r = relay.nn.batch_matmul %a, %b {input_zero_point = 4 : i32, kernel_zero_point = -1 : i32} : (tensor<2x1x4x8xi8>, tensor<3x5x8xi8>) -> tensor<2x3x4x5xi32>
  func.return
}

func.func @transposed(%a: tensor<3x8x4xi16>, %b: tensor<3x8x5xi8>) {
  %r = relay.nn.batch_matmul %a, %b {transpose_a = true, out_dtype = i64, transpose_b = false} : (tensor<3x8x4xi16>, tensor<3x8x5xi8>) -> tensor<3x4x5xi64>
  func.return
}

// -----
// error: relay.nn.matmul: sums over 8 and 5 elements
func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<5x8xf32>) {
  %r = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  func.return
}

// -----
// error: relay.nn.matmul: takes rank 2
func.func @matmul(%a: tensor<1x4x8xf32>, %b: tensor<8x5xf32>) {
  %r = relay.nn.matmul %a, %b {out_dtype = f32} : (tensor<1x4x8xf32>, tensor<8x5xf32>) -> tensor<1x4x5xf32>
  func.return
}

// -----
// error: relay.nn.batch_matmul: shapes [2] and [3] do not broadcast
func.func @batch_matmul(%a: tensor<2x4x8xi8>, %b: tensor<3x5x8xi8>) {
  %r = relay.nn.batch_matmul %a, %b : (tensor<2x4x8xi8>, tensor<3x5x8xi8>) -> tensor<3x4x5xi32>
  func.return
}

// -----
// error: relay.nn.batch_matmul: takes rank 2 or more
func.func @batch_matmul(%x: tensor<4xi8>, %y: tensor<2x4xi8>) {
  %r = relay.nn.batch_matmul %x, %y : (tensor<4xi8>, tensor<2x4xi8>) -> tensor<2xi32>
  func.return
}
