// RUN: relay-opt %s -p inline-partitions | filecheck %s

// A function, a region, annotations: all plain ops again, and one constant.
// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %c = relay.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT:     %a = relay.add %x, %c
// CHECK-NEXT:     %n = relay.negative %a
// CHECK-NEXT:     %s = relay.sigmoid %n
// CHECK-NEXT:     %t = relay.add %s, %c
// CHECK-NEXT:     %u = relay.tanh %t
// CHECK-NEXT:     func.return %u : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = func.call @relay_alpha_main_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %s = relay.sigmoid %n : (tensor<4xf32>) -> tensor<4xf32>
  %t = byoc.region "alpha"(%s) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<4xf32>):
    %c = relay.constant dense<1.0> : tensor<4xf32>
    %a = relay.add %y, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %a : tensor<4xf32>
  }
  %i = byoc.compiler_begin %t {compiler = "beta"} : (tensor<4xf32>) -> tensor<4xf32>
  %u = relay.tanh %i : (tensor<4xf32>) -> tensor<4xf32>
  %o = byoc.compiler_end %u {compiler = "beta"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %o : tensor<4xf32>
}
func.func private @relay_alpha_main_0(%y: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "alpha", global_symbol = "relay_alpha_main_0"} {
  %r = byoc.composite "alpha.add_negative" from "add_negative_"(%y) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%z: tensor<4xf32>):
    %c = relay.constant dense<1.0> : tensor<4xf32>
    %a = relay.add %z, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n = relay.negative %a : (tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %n : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
