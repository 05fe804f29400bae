// RUN: relay-opt %s -p 'attach-target{target="x86_64 -mattr=+avx512vnni"},unsigned-codes' | filecheck %s
// RUN: relay-opt %s -p unsigned-codes | filecheck %s --check-prefix SIGNED

// Between two convolutions: the clip and the zero point before take the 128, the zero point after too. The model's own
// input and output stay signed.

// SIGNED-NOT: ui8

// CHECK-LABEL: func.func @between
// CHECK:         [[A:%.+]] = relay.fixed_point_multiply
// CHECK:         [[Z:%.+]] = relay.constant dense<131> : tensor<i32>
// CHECK-NEXT:    [[B:%.+]] = relay.add [[A]], [[Z]]
// CHECK-NEXT:    [[C:%.+]] = relay.clip [[B]] {a_min = 8 : i32, a_max = 255 : i32}
// CHECK-NEXT:    [[D:%.+]] = relay.cast [[C]] {dtype = ui8} : (tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xui8>
// CHECK:         relay.nn.conv2d [[D]], %{{.*}} {padding = array<i64: 1, 1, 1, 1>, input_zero_point = 131 : i32}
// CHECK:         relay.cast {{%.+}} {dtype = i8}
func.func @between(%x: tensor<1x4x4x3xi8>, %w: tensor<8x1x1x3xi8>, %v: tensor<2x3x3x8xi8>) -> tensor<1x4x4x2xi8> {
  %m = relay.constant dense<1073741825> : tensor<i32>
  %s = relay.constant dense<-5> : tensor<i32>
  %z = relay.constant dense<3> : tensor<i32>
  %a = relay.nn.conv2d %x, %w {input_zero_point = 7 : i32} : (tensor<1x4x4x3xi8>, tensor<8x1x1x3xi8>) -> tensor<1x4x4x8xi32>
  %b = relay.fixed_point_multiply %a, %m, %s : (tensor<1x4x4x8xi32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4x8xi32>
  %c = relay.add %b, %z : (tensor<1x4x4x8xi32>, tensor<i32>) -> tensor<1x4x4x8xi32>
  %d = relay.clip %c {a_min = -120 : i32, a_max = 127 : i32} : (tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi32>
  %e = relay.cast %d {dtype = i8} : (tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi8>
  %f = relay.nn.conv2d %e, %v {padding = array<i64: 1, 1, 1, 1>, input_zero_point = 3 : i32} : (tensor<1x4x4x8xi8>, tensor<2x3x3x8xi8>) -> tensor<1x4x4x2xi32>
  %g = relay.cast %f {dtype = i8} : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi8>
  func.return %g : tensor<1x4x4x2xi8>
}

// A zero point of -128 is none any more. Other arithmetic subtracts 128 more; a padding pads with 128 more.

// CHECK-LABEL: func.func @other_readers
// CHECK:         [[P:%.+]] = relay.fixed_point_multiply
// CHECK-NEXT:    [[C:%.+]] = relay.clip [[P]] {a_min = 0 : i32, a_max = 255 : i32}
// CHECK-NEXT:    [[E:%.+]] = relay.cast [[C]] {dtype = ui8}
// CHECK-NEXT:    [[F:%.+]] = relay.nn.pad [[E]] {pad_width = array<i64: 0, 0, 2, 0>, pad_value = 0 : ui8}
// CHECK-NEXT:    relay.nn.dense [[F]], %{{.*}} {input_zero_point = 128 : i32}
// CHECK-NEXT:    [[W:%.+]] = relay.cast [[E]] {dtype = i32}
// CHECK-NEXT:    [[T:%.+]] = relay.constant dense<117> : tensor<i32>
// CHECK-NEXT:    [[S:%.+]] = relay.subtract [[W]], [[T]]
// CHECK:         func.return {{%.+}}, [[S]]
func.func @other_readers(%x: tensor<4x6xi32>, %w: tensor<2x8xi8>) -> (tensor<4x2xi32>, tensor<4x6xi32>) {
  %m = relay.constant dense<1073741825> : tensor<i32>
  %s = relay.constant dense<-5> : tensor<i32>
  %z = relay.constant dense<-128> : tensor<i32>
  %eleven = relay.constant dense<-11> : tensor<i32>
  %b = relay.fixed_point_multiply %x, %m, %s : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
  %c = relay.add %b, %z : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  %d = relay.clip %c {a_min = -128 : i32, a_max = 127 : i32} : (tensor<4x6xi32>) -> tensor<4x6xi32>
  %e = relay.cast %d {dtype = i8} : (tensor<4x6xi32>) -> tensor<4x6xi8>
  %f = relay.nn.pad %e {pad_width = array<i64: 0, 0, 2, 0>, pad_value = -128 : i8} : (tensor<4x6xi8>) -> tensor<4x8xi8>
  %g = relay.nn.dense %f, %w : (tensor<4x8xi8>, tensor<2x8xi8>) -> tensor<4x2xi32>
  %h = relay.cast %e {dtype = i32} : (tensor<4x6xi8>) -> tensor<4x6xi32>
  %i = relay.subtract %h, %eleven : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  func.return %g, %i : tensor<4x2xi32>, tensor<4x6xi32>
}

// A sum that might wrap is left as it is, and 128 added behind the clip. What is returned, or averaged, stays signed.

// CHECK-LABEL: func.func @careful
// CHECK:         [[C:%.+]] = relay.clip %x {a_min = -128 : i32, a_max = 127 : i32}
// CHECK:         [[O:%.+]] = relay.constant dense<128> : tensor<i32>
// CHECK-NEXT:    [[D:%.+]] = relay.add [[C]], [[O]]
// CHECK-NEXT:    [[E:%.+]] = relay.cast [[D]] {dtype = ui8}
// CHECK-NEXT:    relay.nn.dense [[E]]
// CHECK:         [[R:%.+]] = relay.cast {{%.+}} {dtype = i8}
// CHECK-NEXT:    [[S:%.+]] = relay.nn.dense [[R]], %w :
// CHECK-NEXT:    func.return {{%.+}}, [[R]], [[S]]
func.func @careful(%x: tensor<4x8xi32>, %w: tensor<2x8xi8>) -> (tensor<4x2xi32>, tensor<4x8xi8>, tensor<4x2xi32>) {
  %c = relay.clip %x {a_min = -128 : i32, a_max = 127 : i32} : (tensor<4x8xi32>) -> tensor<4x8xi32>
  %d = relay.cast %c {dtype = i8} : (tensor<4x8xi32>) -> tensor<4x8xi8>
  %e = relay.nn.dense %d, %w : (tensor<4x8xi8>, tensor<2x8xi8>) -> tensor<4x2xi32>
  %f = relay.add %x, %x : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>
  %g = relay.cast %f {dtype = i8} : (tensor<4x8xi32>) -> tensor<4x8xi8>
  %h = relay.nn.dense %g, %w : (tensor<4x8xi8>, tensor<2x8xi8>) -> tensor<4x2xi32>
  func.return %e, %g, %h : tensor<4x2xi32>, tensor<4x8xi8>, tensor<4x2xi32>
}
