func.func @rescale(%x: tensor<1x2xi32>) {
  %multiplier = relay.constant dense<[1073741824, 2147483647]> : tensor<2xi32>
  %shift = relay.constant dense<-3> : tensor<i32>
  %default = relay.fixed_point_multiply %x, %multiplier, %shift : (tensor<1x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32>
  %single = relay.fixed_point_multiply %x, %multiplier, %shift {axis = 1 : i64, rounding = "upward"} : (tensor<1x2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32>
  func.return
}

func.func @primitives(%x: tensor<4xi32>, %y: tensor<i32>) {
  %amount = relay.constant dense<5> : tensor<i32>
  %high = relay.rounding_doubling_high_multiply %x, %y : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %shifted = relay.rounding_right_shift %x, %amount : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  func.return
}

func.func @reciprocal(%x: tensor<4xi8>) {
  %least = relay.constant dense<[129, 1000, 65664, 2147483520]> : tensor<4xi32>
  %wide = relay.cast %x {dtype = i32} : (tensor<4xi8>) -> tensor<4xi32>
  %positive = relay.add %wide, %least : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %mantissa, %headroom = relay.fixed_point_reciprocal %positive : (tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  func.return
}

func.func @lookup(%x: tensor<2x3xi8>, %table: tensor<256xui8>) {
  %r = relay.lookup %x, %table : (tensor<2x3xi8>, tensor<256xui8>) -> tensor<2x3xui8>
  func.return
}

// -----
// error: relay.fixed_point_multiply: operands must be i32
func.func @fixed_point_multiply(%x: tensor<4xi64>, %m: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %m : (tensor<4xi64>, tensor<i32>, tensor<i32>) -> tensor<4xi64>
  func.return
}

// -----
// error: relay.fixed_point_multiply: 3 numbers in multiplier for axis of 4
func.func @fixed_point_multiply(%x: tensor<4xi32>, %m: tensor<3xi32>, %s: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %s : (tensor<4xi32>, tensor<3xi32>, tensor<i32>) -> tensor<4xi32>
  func.return
}

// -----
// error: relay.fixed_point_multiply: rounding "odd" is none of
func.func @fixed_point_multiply(%x: tensor<4xi32>, %m: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %m {rounding = "odd"} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi32>
  func.return
}

// -----
// error: relay.lookup: the table must be a vector of 256
func.func @lookup(%x: tensor<4xi8>, %t: tensor<255xi8>) {
  %r = relay.lookup %x, %t : (tensor<4xi8>, tensor<255xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.lookup: takes 8- or 16-bit codes
func.func @lookup(%x: tensor<4xi32>, %t: tensor<256xi8>) {
  %r = relay.lookup %x, %t : (tensor<4xi32>, tensor<256xi8>) -> tensor<4xi8>
  func.return
}

// -----
// error: relay.fixed_point_multiply: multiplier must be a scalar or a vector, or of the data's rank
func.func @fixed_point_multiply(%x: tensor<2x2x4xi32>, %m: tensor<1x4xi32>, %s: tensor<i32>) {
  %r = relay.fixed_point_multiply %x, %m, %s : (tensor<2x2x4xi32>, tensor<1x4xi32>, tensor<i32>) -> tensor<2x2x4xi32>
  func.return
}

// -----
// error: relay.rounding_doubling_high_multiply: operands must be i32
func.func @rounding_doubling_high_multiply(%x: tensor<4xi32>, %y: tensor<4xi16>) {
  %r = relay.rounding_doubling_high_multiply %x, %y : (tensor<4xi32>, tensor<4xi16>) -> tensor<4xi32>
  func.return
}

// -----
// error: relay.rounding_right_shift: operands must be i32
func.func @rounding_right_shift(%x: tensor<4xi32>, %y: tensor<i8>) {
  %r = relay.rounding_right_shift %x, %y : (tensor<4xi32>, tensor<i8>) -> tensor<4xi32>
  func.return
}

// -----
// error: relay.fixed_point_reciprocal: the operand must be i32
func.func @fixed_point_reciprocal(%x: tensor<4xi64>) {
  %m, %h = relay.fixed_point_reciprocal %x : (tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>)
  func.return
}
