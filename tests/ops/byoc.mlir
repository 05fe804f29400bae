func.func @annotate(%x: tensor<4xf32>) {
  %in = byoc.compiler_begin %x {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
  %out = byoc.compiler_end %in {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

func.func @region(%x: tensor<4xf32>) {
  %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%inner: tensor<4xf32>):
    %n = relay.negative %inner : (tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %n : tensor<4xf32>
  }
  func.return
}

func.func @composite(%x: tensor<4xf32>) {
  %c = byoc.composite "dsp.twice" from "negative_negative_"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%inner: tensor<4xf32>):
    %n = relay.negative %inner : (tensor<4xf32>) -> tensor<4xf32>
    %m = relay.negative %n : (tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %m : tensor<4xf32>
  }
  func.return
}

// -----
// error: byoc.compiler_begin: result 0 is tensor<4xi8>; expected tensor<4xf32>
func.func @compiler_begin(%x: tensor<4xf32>) {
  %r = byoc.compiler_begin %x {compiler = "dsp"} : (tensor<4xf32>) -> tensor<4xi8>
  func.return
}

// -----
// error: byoc.region: the block's arguments must have the operands' types
func.func @region(%x: tensor<4xf32>) {
  %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<3xf32>):
    byoc.yield %y : tensor<3xf32>
  }
  func.return
}

// -----
// error: byoc.region: byoc.yield must give values of the result types
func.func @region(%x: tensor<4xf32>) {
  %r = byoc.region "dsp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<4xf32>):
    byoc.yield
  }
  func.return
}
