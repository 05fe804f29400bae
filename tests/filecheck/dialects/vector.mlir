// RUN: relay-opt %s | filecheck %s
// RUN: relay-opt %s | relay-opt | filecheck %s
// RUN: relay-opt %s --print-op-generic | relay-opt | filecheck %s

// CHECK-LABEL: func.func @products
func.func @products(%x: vector<8xi32>, %y: vector<4xi32>) {
  // CHECK: [[S:%.+]] = vector.shape_cast %x : vector<8xi32> to vector<4x2xi32>
  %0 = vector.shape_cast %x : vector<8xi32> to vector<4x2xi32>
  // CHECK: vector.contract {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} [[S]], [[S]], %y {mark} : vector<4x2xi32>, vector<4x2xi32> into vector<4xi32>
  %1 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %0, %0, %y {mark} : vector<4x2xi32>, vector<4x2xi32> into vector<4xi32>
  func.return
}
