func.func @relu(%x: tensor<?x4xi8>) {
  %r = relay.nn.relu %x : (tensor<?x4xi8>) -> tensor<?x4xi8>
  func.return
}

func.func @slopes(%x: tensor<1x4x5xf32>, %a: tensor<4xf32>) {
  %r = relay.nn.leaky_relu %x {alpha = 2.000000e-01 : f32} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %s = relay.nn.prelu %r, %a {axis = 1 : i64} : (tensor<1x4x5xf32>, tensor<4xf32>) -> tensor<1x4x5xf32>
  func.return
}

func.func @gelu(%x: tensor<1x4x5xf32>) {
  %r = relay.nn.gelu %x : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %s = relay.nn.gelu %r {approximate = true} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  func.return
}

func.func @rows(%x: tensor<1x4x5xf32>) {
  %r = relay.nn.log_softmax %x : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %s = relay.nn.fast_softmax %r {axis = 1 : i64} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %t = relay.nn.lrn %s {size = 3 : i64, bias = 1.000000e+00 : f32, alpha = 5.000000e-01 : f32, beta = 7.500000e-01 : f32} : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  func.return
}

func.func @losses(%x: tensor<4x5xf32>, %y: tensor<4x5xf32>) {
  %r = relay.nn.cross_entropy %x, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<f32>
  %s = relay.nn.cross_entropy_with_logits %x, %y : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<f32>
  func.return
}

// -----
// error: relay.nn.leaky_relu: takes floats, not i8
func.func @leaky_relu(%x: tensor<4xi8>) {
  %r = relay.nn.leaky_relu %x {alpha = 0.5 : f32} : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.nn.prelu: alpha [3] for axis of 4
func.func @prelu(%x: tensor<2x4xf32>, %a: tensor<3xf32>) {
  %r = relay.nn.prelu %x, %a : (tensor<2x4xf32>, tensor<3xf32>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.nn.log_softmax: axis 2 is outside a tensor of rank 2
func.func @log_softmax(%x: tensor<2x4xf32>) {
  %r = relay.nn.log_softmax %x {axis = 2 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.nn.log_softmax: takes floats, not i8
func.func @log_softmax(%x: tensor<4xi8>) {
  %r = relay.nn.log_softmax %x : (tensor<4xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.nn.prelu: takes floats, not i8
func.func @prelu(%x: tensor<2x4xi8>, %y: tensor<4xi8>) {
  %r = relay.nn.prelu %x, %y : (tensor<2x4xi8>, tensor<4xi8>) -> tensor<2x4xi8>
  func.return
}

// -----
// error: relay.nn.prelu: element types differ
func.func @prelu(%x: tensor<2x4xf32>, %y: tensor<4xf64>) {
  %r = relay.nn.prelu %x, %y : (tensor<2x4xf32>, tensor<4xf64>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.nn.lrn: size must be positive
func.func @lrn(%x: tensor<2x4xf32>) {
  %r = relay.nn.lrn %x {size = 0 : i64, bias = 1.0 : f32, alpha = 1.0 : f32, beta = 1.0 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----
// error: relay.nn.cross_entropy: takes floats, not i8
func.func @cross_entropy(%x: tensor<2x4xi8>, %y: tensor<2x4xi8>) {
  %r = relay.nn.cross_entropy %x, %y : (tensor<2x4xi8>, tensor<2x4xi8>) -> tensor<i8>
  func.return
}

// -----
// error: relay.nn.cross_entropy: predictions are tensor<2x4xf32>, targets tensor<2x3xf32>
func.func @cross_entropy(%x: tensor<2x4xf32>, %y: tensor<2x3xf32>) {
  %r = relay.nn.cross_entropy %x, %y : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<f32>
  func.return
}
