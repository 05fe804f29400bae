func.func @compare(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %not_equal = relay.not_equal %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %greater_equal = relay.greater_equal %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %less_equal = relay.less_equal %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %mod = relay.mod %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %floor_mod = relay.floor_mod %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %power = relay.power %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @logical(%x: tensor<?x3xi1>, %y: tensor<i1>) {
  %logical_and = relay.logical_and %x, %y : (tensor<?x3xi1>, tensor<i1>) -> tensor<?x3xi1>
  %logical_or = relay.logical_or %x, %y : (tensor<?x3xi1>, tensor<i1>) -> tensor<?x3xi1>
  %logical_xor = relay.logical_xor %x, %y : (tensor<?x3xi1>, tensor<i1>) -> tensor<?x3xi1>
  func.return
}

func.func @bits(%x: tensor<2x1xi16>, %y: tensor<1x3xi16>) {
  %bitwise_and = relay.bitwise_and %x, %y : (tensor<2x1xi16>, tensor<1x3xi16>) -> tensor<2x3xi16>
  %bitwise_or = relay.bitwise_or %x, %y : (tensor<2x1xi16>, tensor<1x3xi16>) -> tensor<2x3xi16>
  %bitwise_xor = relay.bitwise_xor %x, %y : (tensor<2x1xi16>, tensor<1x3xi16>) -> tensor<2x3xi16>
  func.return
}
