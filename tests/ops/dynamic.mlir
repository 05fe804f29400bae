func.func @known(%x: tensor<2x3xf32>) {
  %shape = relay.constant dense<[0, 1, -1]> : tensor<3xi64>
  %reshape = relay.dyn.reshape %x, %shape : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x1x3xf32>
  %wide = relay.constant dense<[4, 1, 1]> : tensor<3xi64>
  %broadcast = relay.dyn.broadcast_to %x, %wide : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>
  %begin = relay.constant dense<-1> : tensor<1xi32>
  %end = relay.constant dense<-9> : tensor<1xi32>
  %step = relay.constant dense<-2> : tensor<1xi32>
  %axis = relay.constant dense<1> : tensor<1xi32>
  %slice = relay.dyn.strided_slice %x, %begin, %end, %step, %axis : (tensor<2x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2x2xf32>
  %rows = relay.dyn.strided_slice %x, %axis, %axis, %axis : (tensor<2x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<0x3xf32>
  %width = relay.constant dense<[0, 1, 2, 0]> : tensor<4xi64>
  %zero = relay.constant dense<0.000000e+00> : tensor<f32>
  %pad = relay.dyn.nn.pad %x, %width, %zero : (tensor<2x3xf32>, tensor<4xi64>, tensor<f32>) -> tensor<3x5xf32>
  %reps = relay.constant dense<2> : tensor<2xi64>
  %tile = relay.dyn.tile %x, %reps : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<4x6xf32>
  %full = relay.dyn.full %zero, %reps : (tensor<f32>, tensor<2xi64>) -> tensor<2x2xf32>
  %k = relay.constant dense<2> : tensor<i64>
  %values, %indices = relay.dyn.topk %x, %k {axis = 1 : i64, dtype = i64} : (tensor<2x3xf32>, tensor<i64>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %expanded = relay.dyn.expand_dims %x, %axis : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<2x1x3xf32>
  %squeezed = relay.dyn.squeeze %expanded, %axis : (tensor<2x1x3xf32>, tensor<1xi32>) -> tensor<2x3xf32>
  func.return
}

func.func @numbers(%i: tensor<3xi32>) {
  %zero = relay.constant dense<0> : tensor<i32>
  %five = relay.constant dense<5> : tensor<i32>
  %two = relay.constant dense<2> : tensor<i32>
  %range = relay.dyn.arange %zero, %five, %two : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
  %hot = relay.dyn.one_hot %i, %two, %zero, %five : (tensor<3xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x5xi32>
  func.return
}

func.func @images(%x: tensor<1x4x5x2xf32>, %w: tensor<1x4x2xf32>, %d: tensor<1x2x2x2x1xf32>) {
  %two = relay.constant dense<[8, 7]> : tensor<2xi64>
  %image = relay.dyn.image.resize2d %x, %two {coordinate_transformation_mode = "half_pixel"} : (tensor<1x4x5x2xf32>, tensor<2xi64>) -> tensor<1x8x7x2xf32>
  %one = relay.constant dense<8> : tensor<1xi64>
  %line = relay.dyn.image.resize1d %w, %one : (tensor<1x4x2xf32>, tensor<1xi64>) -> tensor<1x8x2xf32>
  %three = relay.constant dense<[3, 4, 5]> : tensor<3xi64>
  %volume = relay.dyn.image.resize3d %d, %three : (tensor<1x2x2x2x1xf32>, tensor<3xi64>) -> tensor<1x3x4x5x1xf32>
  func.return
}

func.func @unknown(%x: tensor<?x?x3xf32>, %n: tensor<2xi64>, %s: tensor<i64>) {
  %shape = relay.shape_of %x {dtype = i64} : (tensor<?x?x3xf32>) -> tensor<3xi64>
  %same = relay.dyn.reshape %x, %shape : (tensor<?x?x3xf32>, tensor<3xi64>) -> tensor<?x?x3xf32>
  %flat = relay.dyn.reshape %x, %n {allowzero = true} : (tensor<?x?x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %wide = relay.dyn.broadcast_to %x, %shape : (tensor<?x?x3xf32>, tensor<3xi64>) -> tensor<?x?x3xf32>
  %part = relay.dyn.strided_slice %x, %n, %n, %n : (tensor<?x?x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?x3xf32>
  %full = relay.dyn.full %s, %n : (tensor<i64>, tensor<2xi64>) -> tensor<?x?xi64>
  %range = relay.dyn.arange %s, %s, %s : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %some, %at = relay.dyn.topk %x, %s : (tensor<?x?x3xf32>, tensor<i64>) -> (tensor<?x?x?xf32>, tensor<?x?x?xi32>)
  %first = relay.dyn.topk %x, %s {ret_type = "values"} : (tensor<?x?x3xf32>, tensor<i64>) -> tensor<?x?x?xf32>
  %hot = relay.dyn.one_hot %n, %s, %s, %s : (tensor<2xi64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x?xi64>
  %more = relay.dyn.expand_dims %x, %n : (tensor<?x?x3xf32>, tensor<2xi64>) -> tensor<?x?x?x?x?xf32>
  %less = relay.dyn.squeeze %x, %n : (tensor<?x?x3xf32>, tensor<2xi64>) -> tensor<?xf32>
  func.return
}

// -----
// error: relay.dyn.reshape: newshape must be integers
func.func @integers(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  %r = relay.dyn.reshape %x, %s : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  func.return
}

// -----
// error: relay.dyn.reshape: newshape must be a vector of known length
func.func @length(%x: tensor<2x3xf32>, %s: tensor<?xi64>) {
  %r = relay.dyn.reshape %x, %s : (tensor<2x3xf32>, tensor<?xi64>) -> tensor<?x?xf32>
  func.return
}

// -----
// error: relay.dyn.reshape: 0 copies no axis
func.func @copied(%x: tensor<2x3xf32>) {
  %s = relay.constant dense<[2, 3, 0]> : tensor<3xi64>
  %r = relay.dyn.reshape %x, %s : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3x?xf32>
  func.return
}

// -----
// error: relay.reshape: [2, 3] has not the elements of [5]
func.func @elements(%x: tensor<2x3xf32>) {
  %s = relay.constant dense<5> : tensor<1xi64>
  %r = relay.dyn.reshape %x, %s : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<5xf32>
  func.return
}

// -----
// error: relay.dyn.strided_slice: begin, end, strides and axes differ in length
func.func @lengths(%x: tensor<2x3xf32>) {
  %a = relay.constant dense<1> : tensor<1xi64>
  %b = relay.constant dense<[1, 2]> : tensor<2xi64>
  %r = relay.dyn.strided_slice %x, %a, %b, %a : (tensor<2x3xf32>, tensor<1xi64>, tensor<2xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  func.return
}

// -----
// error: relay.dyn.strided_slice: a stride is zero
func.func @stride(%x: tensor<2x3xf32>) {
  %a = relay.constant dense<0> : tensor<1xi64>
  %r = relay.dyn.strided_slice %x, %a, %a, %a : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  func.return
}

// -----
// error: relay.dyn.arange: start, stop and step must be scalars of one type
func.func @arange(%x: tensor<i32>, %y: tensor<i64>) {
  %r = relay.dyn.arange %x, %y, %y : (tensor<i32>, tensor<i64>, tensor<i64>) -> tensor<?xi32>
  func.return
}

// -----
// error: relay.dyn.nn.pad: pad_width must be two integers for each axis
func.func @pad(%x: tensor<2x3xf32>, %w: tensor<2xi64>, %z: tensor<f32>) {
  %r = relay.dyn.nn.pad %x, %w, %z : (tensor<2x3xf32>, tensor<2xi64>, tensor<f32>) -> tensor<?x?xf32>
  func.return
}

// -----
// error: relay.dyn.nn.pad: pad_value must be tensor<f32>
func.func @pad_value(%x: tensor<2xf32>, %w: tensor<2xi64>, %z: tensor<i32>) {
  %r = relay.dyn.nn.pad %x, %w, %z : (tensor<2xf32>, tensor<2xi64>, tensor<i32>) -> tensor<?xf32>
  func.return
}

// -----
// error: relay.dyn.topk: k must be one number
func.func @topk(%x: tensor<2x3xf32>, %k: tensor<2xi64>) {
  %r, %i = relay.dyn.topk %x, %k : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2x?xf32>, tensor<2x?xi32>)
  func.return
}

// -----
// error: relay.dyn.squeeze: an axis is not of size 1
func.func @squeeze(%x: tensor<2x3xf32>) {
  %a = relay.constant dense<1> : tensor<1xi64>
  %r = relay.dyn.squeeze %x, %a : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2xf32>
  func.return
}

// -----
// error: relay.dyn.expand_dims: an axis is named twice
func.func @expand_dims(%x: tensor<2x3xf32>) {
  %a = relay.constant dense<1> : tensor<2xi64>
  %r = relay.dyn.expand_dims %x, %a : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x1x1x3xf32>
  func.return
}

// -----
// error: relay.dyn.image.resize2d: size needs a number for each spatial axis
func.func @resize(%x: tensor<?x2x3x1xf32>, %s: tensor<1xi64>) {
  %r = relay.dyn.image.resize2d %x, %s : (tensor<?x2x3x1xf32>, tensor<1xi64>) -> tensor<?x2x3x1xf32>
  func.return
}

// -----
// error: relay.dyn.squeeze: there are more axes than the input has
func.func @many(%x: tensor<1xf32>, %a: tensor<2xi64>) {
  %r = relay.dyn.squeeze %x, %a : (tensor<1xf32>, tensor<2xi64>) -> tensor<1xf32>
  func.return
}
