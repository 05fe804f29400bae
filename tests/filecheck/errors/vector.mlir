// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%x: vector<8xi32>) {
  // CHECK: vector.shape_cast: vector<8xi32> and vector<4x3xi32> have different elements
  %0 = vector.shape_cast %x : vector<8xi32> to vector<4x3xi32>
  func.return
}

// -----

func.func @f(%x: vector<4x2xi32>, %y: vector<4x3xi32>, %z: vector<4xi32>) {
  // CHECK: vector.contract: dimension 1 has 2 and 3 elements
  %1 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %z : vector<4x2xi32>, vector<4x3xi32> into vector<4xi32>
  func.return
}

// -----

func.func @f(%x: vector<4x2xi32>, %y: vector<4x2xi32>, %z: vector<4xi32>) {
  // CHECK: vector.contract: affine_map<(d0, d1) -> (d0)> is no map of vector<4x2xi32>
  %1 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %z : vector<4x2xi32>, vector<4x2xi32> into vector<4xi32>
  func.return
}

// -----

func.func @f(%x: vector<4x2xi32>, %z: vector<4xi32>) {
  // CHECK: vector.contract: 2 maps for 3 operands
  %1 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %x, %x, %z : vector<4x2xi32>, vector<4x2xi32> into vector<4xi32>
  func.return
}

// -----

func.func @f(%x: vector<4x2xi32>, %z: vector<4xi32>) {
  // CHECK: vector.contract: the result has the type of what it is added to
  %1 = "vector.contract"(%x, %x, %z) {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = [#vector.iterator_type<parallel>, #vector.iterator_type<reduction>], kind = #vector.kind<add>} : (vector<4x2xi32>, vector<4x2xi32>, vector<4xi32>) -> vector<5xi32>
  func.return
}
