// RUN: relay-opt %s --load %S/../compilers.py -p "merge-composite{compiler=alpha}" | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "merge-composite{compiler=beta exact=true}" | filecheck %s --check-prefix STRICT

// The pattern's constant is copied inside; sums match in either order.
// CHECK-LABEL: func.func @simple(
// CHECK-NEXT:    %r = byoc.composite "alpha.add_clip" from "add_clip_"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    ^bb0([[X:%.+]]: tensor<4xf32>):
// CHECK-NEXT:      %c = relay.constant dense<1.000000e+00>
// CHECK-NEXT:      %a = relay.add %c, [[X]]
// CHECK-NEXT:      [[R:%.+]] = relay.clip %a
// CHECK-NEXT:      byoc.yield [[R]] : tensor<4xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %r : tensor<4xf32>
func.func @simple(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %a = relay.add %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = relay.clip %a {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// The same entry, with what it may have too.
// CHECK-LABEL: func.func @optional(
// CHECK-NEXT:    byoc.composite "alpha.add_clip" from "add_negative_clip_"(%x)
func.func @optional(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %a = relay.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = relay.negative %a : (tensor<4xf32>) -> tensor<4xf32>
  %r = relay.clip %n {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// The entry's check refuses; the reason stays with the op.
// CHECK-LABEL: func.func @check(
// CHECK:         relay.add
// CHECK-NEXT:    relay.clip %a {byoc.refused = {alpha = "add_clip: it has 16 lanes"}
func.func @check(%x: tensor<32xf32>) -> tensor<32xf32> {
  %c = relay.constant dense<1.0> : tensor<32xf32>
  %a = relay.add %x, %c : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %r = relay.clip %a {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<32xf32>) -> tensor<32xf32>
  func.return %r : tensor<32xf32>
}

// CHECK-LABEL: func.func @needed_outside(
// CHECK:         relay.clip %a {byoc.refused = {alpha = "add_clip: the result of add is also returned"}
func.func @needed_outside(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %a = relay.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = relay.clip %a {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a, %r : tensor<4xf32>, tensor<4xf32>
}

// One pattern object is one value: x * x, and not x * y.
// CHECK-LABEL: func.func @same_input(
// CHECK-NEXT:    byoc.composite "alpha.square" from "multiply_"(%x)
// CHECK:         relay.multiply %x, %y
func.func @same_input(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = relay.multiply %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = relay.multiply %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %s, %p : tensor<4xf32>, tensor<4xf32>
}

// A function's own compiler goes before the one that is named. This entry of an inexact compiler is exact.
// CHECK-LABEL: func.func @its_own(
// CHECK-SAME:    attributes {compiler = "beta"
// CHECK-NEXT:    byoc.composite "beta.negative_abs" from "negative_abs_"(%x)
// STRICT-LABEL: func.func @its_own(
// STRICT-NEXT:    byoc.composite "beta.negative_abs"
func.func @its_own(%x: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "beta"} {
  %n = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %r = relay.abs %n : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
