func.func @non_max_suppression(%boxes: tensor<2x9x4xf32>, %scores: tensor<2x3x9xf32>) {
  %indices, %count = relay.vision.non_max_suppression %boxes, %scores {max_output_size = 5 : i64, iou_threshold = 1.000000e-01 : f32, score_threshold = -5.000000e-01 : f32} : (tensor<2x9x4xf32>, tensor<2x3x9xf32>) -> (tensor<2x3x5xi32>, tensor<2x3xi32>)
  func.return
}

// -----
// error: relay.vision.non_max_suppression: scores must be [batch, classes, n]
func.func @non_max_suppression(%boxes: tensor<1x9x4xf32>, %scores: tensor<9xf32>) {
  %i, %c = relay.vision.non_max_suppression %boxes, %scores {max_output_size = 5 : i64, iou_threshold = 0.5 : f32, score_threshold = 0.5 : f32} : (tensor<1x9x4xf32>, tensor<9xf32>) -> (tensor<1x1x5xi32>, tensor<1x1xi32>)
  func.return
}

// -----
// error: relay.vision.non_max_suppression: takes boxes of f32, not i8
func.func @non_max_suppression(%boxes: tensor<1x9x4xi8>, %scores: tensor<1x1x9xf32>) {
  %i, %c = relay.vision.non_max_suppression %boxes, %scores {max_output_size = 5 : i64, iou_threshold = 0.5 : f32, score_threshold = 0.5 : f32} : (tensor<1x9x4xi8>, tensor<1x1x9xf32>) -> (tensor<1x1x5xi32>, tensor<1x1xi32>)
  func.return
}

// -----
// error: relay.vision.non_max_suppression: boxes have 5 numbers, not 4
func.func @non_max_suppression(%boxes: tensor<1x9x5xf32>, %scores: tensor<1x1x9xf32>) {
  %i, %c = relay.vision.non_max_suppression %boxes, %scores {max_output_size = 5 : i64, iou_threshold = 0.5 : f32, score_threshold = 0.5 : f32} : (tensor<1x9x5xf32>, tensor<1x1x9xf32>) -> (tensor<1x1x5xi32>, tensor<1x1xi32>)
  func.return
}

// -----
// error: relay.vision.non_max_suppression: boxes and scores: 9 and 8
func.func @non_max_suppression(%boxes: tensor<1x9x4xf32>, %scores: tensor<1x1x8xf32>) {
  %i, %c = relay.vision.non_max_suppression %boxes, %scores {max_output_size = 5 : i64, iou_threshold = 0.5 : f32, score_threshold = 0.5 : f32} : (tensor<1x9x4xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x5xi32>, tensor<1x1xi32>)
  func.return
}

// -----
// error: relay.vision.non_max_suppression: max_output_size is -1
func.func @non_max_suppression(%boxes: tensor<1x9x4xf32>, %scores: tensor<1x1x9xf32>) {
  %i, %c = relay.vision.non_max_suppression %boxes, %scores {max_output_size = -1 : i64, iou_threshold = 0.5 : f32, score_threshold = 0.5 : f32} : (tensor<1x9x4xf32>, tensor<1x1x9xf32>) -> (tensor<1x1x5xi32>, tensor<1x1xi32>)
  func.return
}
