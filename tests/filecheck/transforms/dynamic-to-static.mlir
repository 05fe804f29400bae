// RUN: relay-opt %s -p 'dynamic-to-static{sizes=3}' | filecheck %s

func.func @main(%x: tensor<?x4x4x2xf32>, %k: tensor<2x1x1x2xf32>) -> tensor<?x32xf32> {
  %0 = relay.nn.conv2d %x, %k {out_dtype = f32} : (tensor<?x4x4x2xf32>, tensor<2x1x1x2xf32>) -> tensor<?x4x4x2xf32>
  %1 = relay.reshape %0 {newshape = array<i64: -1, 32>} : (tensor<?x4x4x2xf32>) -> tensor<?x32xf32>
  func.return %1 : tensor<?x32xf32>
}
// CHECK-LABEL: func.func @main(%x: tensor<3x4x4x2xf32>, %k: tensor<2x1x1x2xf32>) -> tensor<3x32xf32>
// CHECK-NEXT:    relay.nn.conv2d {{.*}}-> tensor<3x4x4x2xf32>
// CHECK-NEXT:    relay.reshape {{.*}}-> tensor<3x32xf32>

// What computes shapes and conditions is folded.
func.func @arithmetic(%x: tensor<?x?x8xf32>) -> tensor<?x?x2x4xf32> {
  %shape = relay.shape_of %x {dtype = i64} : (tensor<?x?x8xf32>) -> tensor<3xi64>
  %last = relay.constant dense<[0, 1]> : tensor<2xi64>
  %outer = relay.take %shape, %last {axis = 0 : i64} : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
  %inner = relay.constant dense<[2, 4]> : tensor<2xi64>
  %wanted = relay.concatenate %outer, %inner {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %heads = relay.dyn.reshape %x, %wanted : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %n = relay.ndarray_size %x {dtype = i64} : (tensor<?x?x8xf32>) -> tensor<i64>
  %limit = relay.constant dense<50> : tensor<i64>
  %many = relay.greater %n, %limit : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %go = tensor.extract %many[] : tensor<i1>
  %r = scf.if %go -> (tensor<?x?x2x4xf32>) {
    %a = relay.nn.relu %heads : (tensor<?x?x2x4xf32>) -> tensor<?x?x2x4xf32>
    scf.yield %a : tensor<?x?x2x4xf32>
  } else {
    %b = relay.negative %heads : (tensor<?x?x2x4xf32>) -> tensor<?x?x2x4xf32>
    scf.yield %b : tensor<?x?x2x4xf32>
  }
  func.return %r : tensor<?x?x2x4xf32>
}
// CHECK-LABEL: func.func @arithmetic(%x: tensor<3x3x8xf32>) -> tensor<3x3x2x4xf32>
// CHECK-NEXT:    %heads = relay.reshape %x {newshape = array<i64: 3, 3, 2, 4>}
// CHECK-NEXT:    %a = relay.nn.relu %heads : (tensor<3x3x2x4xf32>) -> tensor<3x3x2x4xf32>
// CHECK-NEXT:    func.return %a

// A function of several blocks stays as it is.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT:    cf.br ^{{.+}}(%x : tensor<4xf32>)
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end(%x : tensor<4xf32>)
^end(%r: tensor<4xf32>):
  func.return %r : tensor<4xf32>
}
