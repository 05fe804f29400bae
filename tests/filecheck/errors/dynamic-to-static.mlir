// RUN: not relay-opt %s -p dynamic-to-static 2>&1 | filecheck %s

// CHECK: @blocks: has several blocks; use scf.if and scf.while instead
func.func @blocks(%x: tensor<?xf32>) -> tensor<?xf32> {
  cf.br ^end(%x : tensor<?xf32>)
^end(%r: tensor<?xf32>):
  func.return %r : tensor<?xf32>
}
