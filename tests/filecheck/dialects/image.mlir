// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @resize(
func.func @resize(%x: tensor<1x4x4x3xi8>) {
  // CHECK: %linear = relay.image.resize2d %x {size = array<i64: 8, 8>, half_pixel_centers = true} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  %linear = relay.image.resize2d %x {size = array<i64: 8, 8>, half_pixel_centers = true} : (tensor<1x4x4x3xi8>) -> tensor<1x8x8x3xi8>
  // CHECK: %nearest = relay.image.resize2d %x {size = array<i64: 2, 6>, method = "nearest_neighbor", align_corners = true} : (tensor<1x4x4x3xi8>) -> tensor<1x2x6x3xi8>
  %nearest = relay.image.resize2d %x {size = array<i64: 2, 6>, method = "nearest_neighbor", align_corners = true} : (tensor<1x4x4x3xi8>) -> tensor<1x2x6x3xi8>
  func.return
}
