// RUN: relay-opt %s -p 'caches-in-place{size=past maximum=8}' | filecheck %s

// Rows of keys are joined to those of the past. Scores of keys are lowered by their distance to the query's position,
// a number computed of the past's size, and by a table, of which a row is taken where the past ends.
func.func @main(%q: tensor<1x?x4xf32>, %new: tensor<1x?x4xf32>, %past: tensor<1x?x4xf32>, %mask: tensor<1x?xf32>)
    -> (tensor<1x?x4xf32>, tensor<1x?x4xf32>) attributes {
    relay.inputs = [{name = "q"}, {name = "new"}, {name = "past"}, {name = "mask"}],
    relay.outputs = [{name = "y"}, {name = "present"}],
    relay.symbols = [
      {name = "n", places = [array<i64: 0, 1>, array<i64: 1, 1>]}, {name = "past", places = [array<i64: 2, 1>]},
      {name = "past + n", places = [array<i64: 3, 1>]}]} {
  %keys = relay.concatenate %past, %new {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %scores = relay.nn.batch_matmul %q, %keys {transpose_b = true, out_dtype = f32}
    : (tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x?xf32>
  %dims = relay.shape_of %past {dtype = i64} : (tensor<1x?x4xf32>) -> tensor<3xi64>
  %one = relay.constant dense<1> : tensor<i64>
  %two = relay.constant dense<[2]> : tensor<1xi64>
  %zeros = relay.constant dense<[0]> : tensor<1xi64>
  %ones = relay.constant dense<[1]> : tensor<1xi64>
  %position = relay.take %dims, %one {axis = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %begin = relay.expand_dims %position {axis = 0 : i64} : (tensor<i64>) -> tensor<1xi64>
  %end = relay.add %begin, %ones : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %table = relay.constant dense<[[0.5], [2.0], [1.0], [0.5], [8.0], [2.0], [1.0], [4.0]]> : tensor<8x1xf32>
  %row = relay.dyn.strided_slice %table, %begin, %end, %ones, %zeros
    : (tensor<8x1xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x1xf32>
  %real = relay.cast %position {dtype = f32} : (tensor<i64>) -> tensor<f32>
  %far = relay.subtract %scores, %real : (tensor<1x?x?xf32>, tensor<f32>) -> tensor<1x?x?xf32>
  %farther = relay.subtract %far, %row : (tensor<1x?x?xf32>, tensor<?x1xf32>) -> tensor<1x?x?xf32>
  %masked = relay.add %farther, %mask : (tensor<1x?x?xf32>, tensor<1x?xf32>) -> tensor<1x?x?xf32>
  %weights = relay.nn.softmax %masked {beta = 1.0 : f32, axis = -1 : i64} : (tensor<1x?x?xf32>) -> tensor<1x?x?xf32>
  %y = relay.nn.batch_matmul %weights, %keys {transpose_b = false, out_dtype = f32}
    : (tensor<1x?x?xf32>, tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  func.return %y, %keys : tensor<1x?x4xf32>, tensor<1x?x4xf32>
}
// CHECK-LABEL: func.func @main(%q: tensor<1x1x4xf32>, %new: tensor<1x1x4xf32>, %past: tensor<1x8x4xf32>, %mask: tensor<1x8xf32>, %position: tensor<1xi64>)
// CHECK-SAME:    {name = "past", kind = "state", dtype = f32}, {name = "mask", kind = "input", dtype = f32}, {name = "past.position", kind = "state", dtype = i64}
// CHECK:         [[SEEN:%.+]] = relay.less_equal {{%.+}}, %position : (tensor<8xi64>, tensor<1xi64>) -> tensor<8xi1>
// CHECK:         [[START:%.+]] = relay.concatenate {{%.+}}, %position, {{%.+}} {axis = 0 : i64}
// CHECK-NEXT:    %keys = relay.dynamic_update_slice %past, %new, [[START]]
// CHECK:         [[ROWS:%.+]] = relay.strided_slice %table {begin = array<i64: 0, 0>, end = array<i64: 8, 1>
// CHECK:         [[AT:%.+]] = relay.add %position,
// CHECK-NEXT:    %row = relay.take [[ROWS]], [[AT]] {axis = 0 : i64}
// CHECK-NEXT:    %real = relay.cast [[POSITION:%.+]] {dtype = f32} : (tensor<i64>) -> tensor<f32>
// CHECK:         [[LOW:%.+]] = relay.constant dense<0xff800000> : tensor<f32>
// CHECK-NEXT:    [[SCORES:%.+]] = relay.where [[SEEN]], %masked, [[LOW]]
// CHECK-NEXT:    %weights = relay.nn.softmax [[SCORES]]
// CHECK:         [[NEXT:%.+]] = relay.add %position,
// CHECK-NEXT:    func.return %y, %keys, [[NEXT]]
