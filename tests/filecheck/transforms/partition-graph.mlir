// RUN: relay-opt %s --load %S/../compilers.py -p partition-graph | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "partition-graph{mod_name=model constants=hoist}" | filecheck %s --check-prefix HOIST
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-target{targets=alpha},partition-graph" --partition-report -o %t 2>&1 | filecheck %s --check-prefix REPORT

// REPORT:      alpha: 6 of 9 ops, in 4 parts
// REPORT-NEXT: beta: 2 of 9 ops, in 1 part
// REPORT-NEXT: host: 1 of 9 ops
// REPORT:      sigmoid  host {{ *}}alpha: no pattern matches it, and it is not taken alone

// CHECK: builtin.module attributes {byoc.refusals = [{op = "relay.sigmoid", source = {{.*}}, function = "main"}, {op = "relay.add", {{.*}}}]} {

// What comes out twice comes out once; what goes straight through, or is not needed, does not come out.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    %r = func.call @relay_alpha_main_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %s = relay.sigmoid %r
// CHECK-NEXT:    %m, %n = func.call @relay_beta_main_1(%s) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:    %u = relay.add %m, %m
// CHECK-NEXT:    func.return %u, %n, %s
// HOIST-LABEL: func.func @main(
// HOIST-NEXT:    %c = relay.constant dense<1.000000e+00> : tensor<4xf32>
// HOIST-NEXT:    %r = func.call @model_alpha_main_0(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r = byoc.region "alpha"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: tensor<4xf32>):
    %q = byoc.composite "alpha.add_clip" from "add_clip_"(%y) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb1(%z: tensor<4xf32>):
      %c = relay.constant dense<1.0> : tensor<4xf32>
      %a = relay.add %z, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %p = relay.clip %a {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
      byoc.yield %p : tensor<4xf32>
    }
    byoc.yield %q : tensor<4xf32>
  }
  %s = relay.sigmoid %r : (tensor<4xf32>) -> tensor<4xf32>
  %m, %n, %o, %t = byoc.region "beta"(%s) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%y: tensor<4xf32>):
    %a = relay.tanh %y : (tensor<4xf32>) -> tensor<4xf32>
    %b = relay.abs %a : (tensor<4xf32>) -> tensor<4xf32>
    %d = relay.negative %a : (tensor<4xf32>) -> tensor<4xf32>
    byoc.yield %a, %b, %y, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %u = relay.add %m, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %u, %n, %o : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What is annotated and not merged: a function each, of all that is between a begin and an end.
// CHECK-LABEL: func.func @annotated(
// CHECK-NEXT:    %b = func.call @relay_alpha_annotated_0(%x)
// CHECK-NEXT:    %c = func.call @relay_alpha_annotated_1(%b)
// CHECK-NEXT:    func.return %c
func.func @annotated(%x: tensor<4xf32>) -> tensor<4xf32> {
  %i = byoc.compiler_begin %x {compiler = "alpha"} : (tensor<4xf32>) -> tensor<4xf32>
  %a = relay.abs %i : (tensor<4xf32>) -> tensor<4xf32>
  %b = relay.add %a, %i : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o = byoc.compiler_end %b {compiler = "alpha"} : (tensor<4xf32>) -> tensor<4xf32>
  %j = byoc.compiler_begin %o {compiler = "alpha"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = relay.abs %j : (tensor<4xf32>) -> tensor<4xf32>
  %p = byoc.compiler_end %c {compiler = "alpha"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %p : tensor<4xf32>
}

// A function that is one composite says which.
// CHECK: func.func private @relay_alpha_main_0(%y: tensor<4xf32>) -> tensor<4xf32> attributes {compiler = "alpha", global_symbol = "relay_alpha_main_0", composite = "alpha.add_clip", partitioned_from_pattern = "add_clip_"} {
// CHECK-NEXT: byoc.composite "alpha.add_clip"
// CHECK: func.func private @relay_beta_main_1(%y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {compiler = "beta", global_symbol = "relay_beta_main_1"} {
// CHECK-NEXT:   %a = relay.tanh %y
// CHECK-NEXT:   %b = relay.abs %a
// CHECK-NEXT:   func.return %a, %b
// HOIST: func.func private @model_alpha_main_0(%y: tensor<4xf32>, %c: tensor<4xf32>)
// HOIST-NEXT: byoc.composite "alpha.add_clip" from "add_clip_"(%y, %c)
