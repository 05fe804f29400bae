func.func @quantize(%x: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %0 = sfx.quantize %x {exponents = array<i64: 0, 7, -2>} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  func.return %0 : tensor<2x3xi8>
}
func.func @quantize_to_12_bits_along_the_first_axis(%x: tensor<2x?xf32>) -> tensor<2x?xi16> {
  %0 = sfx.quantize %x {exponents = array<i64: 9, 3>, axis = 0 : i64, bits = 12 : i32} : (tensor<2x?xf32>) -> tensor<2x?xi16>
  func.return %0 : tensor<2x?xi16>
}
func.func @dequantize(%x: tensor<2x3xi8>) -> tensor<2x3xf32> {
  %0 = sfx.dequantize %x {exponents = array<i64: 5>} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
func.func @rescale(%x: tensor<2x4xi32>) -> tensor<2x4xi8> {
  %0 = sfx.rescale %x {shifts = array<i64: 0, 12, 30, -30>} : (tensor<2x4xi32>) -> tensor<2x4xi8>
  func.return %0 : tensor<2x4xi8>
}
func.func @add(%x: tensor<2x3xi16>, %y: tensor<3xi16>) -> tensor<2x3xi16> {
  %0 = sfx.add %x, %y {bits = 12 : i32} : (tensor<2x3xi16>, tensor<3xi16>) -> tensor<2x3xi16>
  func.return %0 : tensor<2x3xi16>
}
func.func @dense(%x: tensor<2x5xi8>, %k: tensor<3x5xi8>, %b: tensor<3xi32>) -> tensor<2x3xi32> {
  %0 = sfx.dense %x, %k, %b : (tensor<2x5xi8>, tensor<3x5xi8>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %0 : tensor<2x3xi32>
}
// -----
// error: sfx.quantize: 2 exponents for 3 channels
func.func @quantize(%x: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %0 = sfx.quantize %x {exponents = array<i64: 0, 7>} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  func.return %0 : tensor<2x3xi8>
}
// -----
// error: sfx.quantize: exponents are outside -30..30
func.func @quantize(%x: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %0 = sfx.quantize %x {exponents = array<i64: 31>} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  func.return %0 : tensor<2x3xi8>
}
// -----
// error: sfx.quantize: bits 17 is outside 2..16
func.func @quantize(%x: tensor<3xf32>) -> tensor<3xi16> {
  %0 = sfx.quantize %x {exponents = array<i64: 3>, bits = 17 : i32} : (tensor<3xf32>) -> tensor<3xi16>
  func.return %0 : tensor<3xi16>
}
// -----
// error: sfx.dequantize: takes i8 or i16
func.func @dequantize(%x: tensor<3xi32>) -> tensor<3xf32> {
  %0 = sfx.dequantize %x {exponents = array<i64: 5>} : (tensor<3xi32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// -----
// error: sfx.rescale: takes i32
func.func @rescale(%x: tensor<3xi16>) -> tensor<3xi8> {
  %0 = sfx.rescale %x {shifts = array<i64: 5>} : (tensor<3xi16>) -> tensor<3xi8>
  func.return %0 : tensor<3xi8>
}
// -----
// error: sfx.add: codes of so many bits are i8
func.func @add(%x: tensor<3xi16>, %y: tensor<3xi16>) -> tensor<3xi8> {
  %0 = sfx.add %x, %y : (tensor<3xi16>, tensor<3xi16>) -> tensor<3xi8>
  func.return %0 : tensor<3xi8>
}
// -----
// error: sfx.dense: data has 5 columns, kernel 4
func.func @dense(%x: tensor<2x5xi8>, %k: tensor<3x4xi8>, %b: tensor<3xi32>) -> tensor<2x3xi32> {
  %0 = sfx.dense %x, %k, %b : (tensor<2x5xi8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return %0 : tensor<2x3xi32>
}
// -----
// error: sfx.dense: bias must be 3 numbers of i32
func.func @dense(%x: tensor<2x5xi8>, %k: tensor<3x5xi8>, %b: tensor<2xi32>) -> tensor<2x3xi32> {
  %0 = sfx.dense %x, %k, %b : (tensor<2x5xi8>, tensor<3x5xi8>, tensor<2xi32>) -> tensor<2x3xi32>
  func.return %0 : tensor<2x3xi32>
}
