func.func @binary(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %add = relay.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %subtract = relay.subtract %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %multiply = relay.multiply %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %divide = relay.divide %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %floor_divide = relay.floor_divide %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %maximum = relay.maximum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %minimum = relay.minimum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @integers(%x: tensor<2x3xi32>, %amount: tensor<i32>) {
  %left = relay.left_shift %x, %amount : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %right = relay.right_shift %x, %amount : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  func.return
}

func.func @compare(%x: tensor<?x3xui8>, %y: tensor<1x3xui8>) {
  %equal = relay.equal %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  %greater = relay.greater %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  %less = relay.less %x, %y : (tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xi1>
  %where = relay.where %less, %x, %y : (tensor<?x3xi1>, tensor<?x3xui8>, tensor<1x3xui8>) -> tensor<?x3xui8>
  func.return
}

func.func @unary(%x: tensor<4xf32>) {
  %negative = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %abs = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %sqrt = relay.sqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %rsqrt = relay.rsqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  %exp = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %log = relay.log %x : (tensor<4xf32>) -> tensor<4xf32>
  %sigmoid = relay.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %tanh = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %round = relay.round %x : (tensor<4xf32>) -> tensor<4xf32>
  %floor = relay.floor %x : (tensor<4xf32>) -> tensor<4xf32>
  %ceil = relay.ceil %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

func.func @convert(%x: tensor<4xf32>) {
  %clip = relay.clip %x {a_min = 0.000000e+00 : f32, a_max = 6.000000e+00 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %cast = relay.cast %clip {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  func.return
}

func.func @narrow(%x: tensor<4xf32>, %y: tensor<4xbf16>) {
  %few = relay.cast %x {dtype = f8E4M3FN, saturate} : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  %sum = relay.add %y, %y : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %codes = relay.cast %sum {dtype = i4} : (tensor<4xbf16>) -> tensor<4xi4>
  func.return
}

// -----
// error: relay.add: element types differ: f32 and i32
func.func @add(%x: tensor<4xf32>, %y: tensor<4xi32>) {
  %r = relay.add %x, %y : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.add: shapes [4] and [3] do not broadcast
func.func @add(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  %r = relay.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.negative: result 0 is tensor<5xf32>; expected tensor<4xf32>
func.func @negative(%x: tensor<4xf32>) {
  %r = relay.negative %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----
// error: relay.exp: takes floats, not i32
func.func @exp(%x: tensor<4xi32>) {
  %r = relay.exp %x : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----
// error: relay.left_shift: takes integers, not f32
func.func @left_shift(%x: tensor<4xf32>) {
  %r = relay.left_shift %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.where: the condition must be i1
func.func @where(%c: tensor<4xi8>, %x: tensor<4xf32>) {
  %r = relay.where %c, %x, %x : (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.clip: bound 0 : i32 is not of f32
func.func @clip(%x: tensor<4xf32>) {
  %r = relay.clip %x {a_min = 0 : i32, a_max = 6 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.where: element types differ: f32 and i8
func.func @where(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xi8>) {
  %r = relay.where %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----
// error: relay.add: takes numbers, not i1; cast them first
func.func @add_of_booleans(%x: tensor<2xi1>) {
  %0 = relay.add %x, %x : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  func.return
}

// -----
// error: relay.negative: takes numbers, not i1; cast them first
func.func @negative_of_booleans(%x: tensor<2xi1>) {
  %0 = relay.negative %x : (tensor<2xi1>) -> tensor<2xi1>
  func.return
}

// -----
// error: relay.cast: only floats of few bits saturate, not bf16
func.func @cast(%x: tensor<4xf32>) {
  %r = relay.cast %x {dtype = bf16, saturate} : (tensor<4xf32>) -> tensor<4xbf16>
  func.return
}
