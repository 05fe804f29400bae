// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-target{targets=alpha,beta}" | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-target{targets=alpha},annotate-target{targets=beta}" | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-target{targets=beta exact=true}" | filecheck %s --check-prefix STRICT
// RUN: relay-opt %s --load %S/../compilers.py -p annotate-target | filecheck %s --check-prefix OWN

// A begin for each operand that is no constant, one end for a result however often it is used.
// CHECK-LABEL: func.func @edges(
// CHECK-NEXT:    %c = relay.constant
// CHECK-NEXT:    [[X:%.+]] = byoc.compiler_begin %x {compiler = "alpha"}
// CHECK-NEXT:    %a = relay.add [[X]], %c
// CHECK-NEXT:    [[A:%.+]] = byoc.compiler_end %a {compiler = "alpha"}
// CHECK-NEXT:    [[L:%.+]] = byoc.compiler_begin [[A]] {compiler = "beta"}
// CHECK-NEXT:    [[R:%.+]] = byoc.compiler_begin [[A]] {compiler = "beta"}
// CHECK-NEXT:    %m = relay.multiply [[L]], [[R]]
// CHECK-NEXT:    [[M:%.+]] = byoc.compiler_end %m {compiler = "beta"}
// CHECK-NEXT:    %s = relay.sigmoid [[M]]
// CHECK-NEXT:    func.return %s
func.func @edges(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %a = relay.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = relay.multiply %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = relay.sigmoid %m : (tensor<4xf32>) -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// Both would take it; the first does.
// CHECK-LABEL: func.func @several(
// CHECK:         byoc.compiler_end {{.*}} {compiler = "alpha"}
// STRICT-LABEL: func.func @several(
// STRICT-NEXT:    relay.abs %x {byoc.refused = {beta = "integers must be exact, and beta's are not: products are rounded once more"}}
func.func @several(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// Composites go to the compiler whose name they begin with.
// CHECK-LABEL: func.func @composite(
// CHECK-NEXT:    [[X:%.+]] = byoc.compiler_begin %x {compiler = "beta"}
// CHECK-NEXT:    %r = byoc.composite "beta.negative_abs" from "negative_abs_"([[X]])
// CHECK:         byoc.compiler_end %r {compiler = "beta"}
// STRICT-LABEL: func.func @composite(
// STRICT:         byoc.compiler_end %r {compiler = "beta"}
func.func @composite(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = byoc.composite "beta.negative_abs" from "negative_abs_"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<4xf32>):
    %n = relay.negative %y : (tensor<4xf32>) -> tensor<4xf32>
    %a = relay.abs %n : (tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %a : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// Without targets, the function says who is asked, once.
// OWN-LABEL: func.func @its_own
// OWN-SAME:    (%x: tensor<4xf32>) -> tensor<4xf32> attributes {byoc.targets = ["beta"]} {
// OWN-NEXT:    [[X:%.+]] = byoc.compiler_begin %x {compiler = "beta"}
// OWN-NEXT:    %r = relay.tanh [[X]]
func.func @its_own(%x: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "beta"} {
  %r = relay.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
