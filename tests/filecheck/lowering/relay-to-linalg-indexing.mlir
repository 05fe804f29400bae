// RUN: relay-opt %s -p relay-to-linalg | filecheck %s

// Every element looks through the updates for its own, in order.
// CHECK-LABEL: func.func @scatter_add
// CHECK-SAME:    ([[X:%.+]]: tensor<4xf32>, [[I:%.+]]: tensor<3xi64>, [[U:%.+]]: tensor<3xf32>)
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]} ins([[X]]
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK:           [[HERE:%.+]] = arith.cmpi eq, {{%.+}}, {{%.+}} : i64
// CHECK-NEXT:      [[SUM:%.+]] = arith.addf
// CHECK-NEXT:      [[NEW:%.+]] = arith.select [[HERE]], [[SUM]], {{%.+}} : f32
// CHECK-NEXT:      linalg.yield [[NEW]] : f32
func.func @scatter_add(%x: tensor<4xf32>, %i: tensor<3xi64>, %u: tensor<3xf32>) -> tensor<4xf32> {
  %r = relay.scatter_add %x, %i, %u : (tensor<4xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// Ranks, then what has the rank of the place.
// CHECK-LABEL: func.func @sort
// CHECK:         [[RANKS:%.+]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK:           arith.cmpi slt
// CHECK:         } -> tensor<5xi32>
// CHECK:         linalg.generic
// CHECK-SAME:      ins([[RANKS]], %x : tensor<5xi32>, tensor<5xi8>)
func.func @sort(%x: tensor<5xi8>) -> tensor<5xi8> {
  %r = relay.sort %x : (tensor<5xi8>) -> tensor<5xi8>
  func.return %r : tensor<5xi8>
}
