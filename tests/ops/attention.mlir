func.func @heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %m: tensor<3x5xf32>, %b: tensor<2x1x3x5xi1>) {
  %r = relay.nn.attention %q, %k, %v {scale = 3.500000e-01 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> tensor<2x4x3x6xf32>
  %s = relay.nn.attention %q, %k, %v, %m {scale = 3.500000e-01 : f32, softcap = 2.000000e+00 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<3x5xf32>) -> tensor<2x4x3x6xf32>
  %t = relay.nn.attention %q, %k, %v, %b {scale = 3.500000e-01 : f32, causal = 2 : i64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x1x3x5xi1>) -> tensor<2x4x3x6xf32>
  %u = relay.nn.attention %q, %k, %v {scale = 3.500000e-01 : f32, causal = -1 : i64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> tensor<2x4x3x6xf32>
  func.return
}

func.func @positions(%x: tensor<2x4x3x8xf32>, %c: tensor<3x4xf32>, %d: tensor<3x2xf32>) {
  %r = relay.nn.rotary_embedding %x, %c, %c : (tensor<2x4x3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<2x4x3x8xf32>
  %s = relay.nn.rotary_embedding %r, %d, %d {interleaved = true} : (tensor<2x4x3x8xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x4x3x8xf32>
  func.return
}

// -----
// error: relay.nn.attention: takes query, key and value of rank 4
func.func @attention(%q: tensor<3x8xf32>) {
  %r = relay.nn.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  func.return
}

// -----
// error: relay.nn.attention: takes floats, not i8
func.func @attention(%q: tensor<1x1x3x8xi8>) {
  %r = relay.nn.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<1x1x3x8xi8>, tensor<1x1x3x8xi8>, tensor<1x1x3x8xi8>) -> tensor<1x1x3x8xi8>
  func.return
}

// -----
// error: relay.nn.attention: element types differ
func.func @attention(%q: tensor<1x1x3x8xf32>, %k: tensor<1x1x3x8xf16>) {
  %r = relay.nn.attention %q, %k, %q {scale = 1.0 : f32} : (tensor<1x1x3x8xf32>, tensor<1x1x3x8xf16>, tensor<1x1x3x8xf32>) -> tensor<1x1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.attention: keys of key and value are 3 and 4
func.func @attention(%q: tensor<1x1x3x8xf32>, %v: tensor<1x1x4x8xf32>) {
  %r = relay.nn.attention %q, %q, %v {scale = 1.0 : f32} : (tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.attention: 3 heads share 2 groups of keys
func.func @attention(%q: tensor<1x3x3x8xf32>, %k: tensor<1x2x3x8xf32>) {
  %r = relay.nn.attention %q, %k, %k {scale = 1.0 : f32} : (tensor<1x3x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x3x3x8xf32>
  func.return
}

// -----
// error: relay.nn.attention: the mask is i32; it takes i1 or f32
func.func @attention(%q: tensor<1x1x3x8xf32>, %m: tensor<3x3xi32>) {
  %r = relay.nn.attention %q, %q, %q, %m {scale = 1.0 : f32} : (tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<3x3xi32>) -> tensor<1x1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.attention: [2, 1, 3, 3] does not broadcast to [1, 1, 3, 3]
func.func @attention(%q: tensor<1x1x3x8xf32>, %m: tensor<2x1x3x3xf32>) {
  %r = relay.nn.attention %q, %q, %q, %m {scale = 1.0 : f32} : (tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<2x1x3x3xf32>) -> tensor<1x1x3x8xf32>
  func.return
}

// -----
// error: relay.nn.rotary_embedding: takes floats, not i8
func.func @rotary_embedding(%x: tensor<3x8xi8>) {
  %r = relay.nn.rotary_embedding %x, %x, %x : (tensor<3x8xi8>, tensor<3x8xi8>, tensor<3x8xi8>) -> tensor<3x8xi8>
  func.return
}

// -----
// error: relay.nn.rotary_embedding: takes a known number of pairs
func.func @rotary_embedding(%x: tensor<3x8xf32>, %c: tensor<3x?xf32>) {
  %r = relay.nn.rotary_embedding %x, %c, %c : (tensor<3x8xf32>, tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x8xf32>
  func.return
}

// -----
// error: relay.nn.rotary_embedding: 5 pairs of a row of 8
func.func @rotary_embedding(%x: tensor<3x8xf32>, %c: tensor<3x5xf32>) {
  %r = relay.nn.rotary_embedding %x, %c, %c : (tensor<3x8xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x8xf32>
  func.return
}

// -----
// error: relay.nn.rotary_embedding: element types differ
func.func @rotary_embedding(%x: tensor<3x8xf32>, %c: tensor<3x4xf64>) {
  %r = relay.nn.rotary_embedding %x, %c, %c : (tensor<3x8xf32>, tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x8xf32>
  func.return
}
