func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<[-3, -4, -5, -6]> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

func.func @svdf(%x: tensor<1x3xi8>, %f: tensor<4x3xi8>, %t: tensor<4x5xi16>, %b: tensor<2xi32>, %s: tensor<1x20xi16>) {
  %y, %s2 = qnn.svdf %x, %f, %t, %s bias %b {input_zero_point = 1 : i32, rank = 2 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32} : (tensor<1x3xi8>, tensor<4x3xi8>, tensor<4x5xi16>, tensor<2xi32>, tensor<1x20xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  %z, %s3 = qnn.svdf %x, %f, %t, %s2 {input_zero_point = 1 : i32, rank = 2 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32} : (tensor<1x3xi8>, tensor<4x3xi8>, tensor<4x5xi16>, tensor<1x20xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  func.return
}

// -----
// error: qnn.lstm: data must have rank 3
func.func @lstm(%x: tensor<5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

// -----
// error: qnn.lstm: input_kernel has the wrong shape
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x4xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x4xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

// -----
// error: qnn.lstm: recurrent_kernel has the wrong shape
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x3xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x3xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

// -----
// error: qnn.lstm: bias has the wrong shape
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<6xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<6xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

// -----
// error: qnn.lstm: operands must be i8, i8, i8, i32, i8, i16
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi8>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi8>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

// -----
// error: qnn.lstm: input_multiplier needs 4 numbers
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<3xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}

// -----
// error: qnn.svdf: feature_kernel has the wrong shape
func.func @svdf(%x: tensor<1x3xi8>, %f: tensor<4x4xi8>, %t: tensor<4x5xi16>, %s: tensor<1x20xi16>, %b: tensor<2xi32>) {
  %y, %s2 = "qnn.svdf"(%x, %f, %t, %b, %s) <{input_zero_point = 1 : i32, rank = 2 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32}> : (tensor<1x3xi8>, tensor<4x4xi8>, tensor<4x5xi16>, tensor<2xi32>, tensor<1x20xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  func.return
}

// -----
// error: qnn.svdf: state is not [1, 20]
func.func @svdf(%x: tensor<1x3xi8>, %f: tensor<4x3xi8>, %t: tensor<4x5xi16>, %s: tensor<1x16xi16>, %b: tensor<2xi32>) {
  %y, %s2 = "qnn.svdf"(%x, %f, %t, %b, %s) <{input_zero_point = 1 : i32, rank = 2 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32}> : (tensor<1x3xi8>, tensor<4x3xi8>, tensor<4x5xi16>, tensor<2xi32>, tensor<1x16xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  func.return
}

// -----
// error: qnn.svdf: bias has the wrong shape
func.func @svdf(%x: tensor<1x3xi8>, %f: tensor<4x3xi8>, %t: tensor<4x5xi16>, %s: tensor<1x20xi16>, %b: tensor<3xi32>) {
  %y, %s2 = "qnn.svdf"(%x, %f, %t, %b, %s) <{input_zero_point = 1 : i32, rank = 2 : i64, feature_multiplier = 1073741824 : i32, feature_shift = -3 : i32, multiplier = 1073741824 : i32, shift = -9 : i32, output_zero_point = 4 : i32}> : (tensor<1x3xi8>, tensor<4x3xi8>, tensor<4x5xi16>, tensor<3xi32>, tensor<1x20xi16>) -> (tensor<1x2xi8>, tensor<1x20xi16>)
  func.return
}

// -----
// error: qnn.lstm: unknown numerics "best"
func.func @lstm(%x: tensor<1x5x3xi8>, %w: tensor<8x3xi8>, %r: tensor<8x2xi8>, %b: tensor<8xi32>, %h: tensor<1x2xi8>, %c: tensor<1x2xi16>) {
  %y, %h2, %c2 = qnn.lstm %x, %w, %r, %b, %h, %c {input_zero_point = 1 : i32, hidden_zero_point = -2 : i32, input_multiplier = dense<1073741824> : tensor<4xi32>, input_shift = dense<-3> : tensor<4xi32>, recurrent_multiplier = dense<1073741824> : tensor<4xi32>, recurrent_shift = dense<-4> : tensor<4xi32>, hidden_multiplier = 1073741824 : i32, hidden_shift = -7 : i32, cell_shift = -11 : i32, numerics = "best"} : (tensor<1x5x3xi8>, tensor<8x3xi8>, tensor<8x2xi8>, tensor<8xi32>, tensor<1x2xi8>, tensor<1x2xi16>) -> (tensor<1x5x2xi8>, tensor<1x2xi8>, tensor<1x2xi16>)
  func.return
}
