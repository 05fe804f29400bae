// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-external-compiler{targets=alpha,beta}" | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-external-compiler{targets=beta,alpha}" | filecheck %s --check-prefix OTHER
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-external-compiler{targets=alpha,beta choose=cost}" | filecheck %s --check-prefix COST

// What alpha's patterns match is one op; beta gets what is left.
// CHECK-LABEL: func.func @patterns(
// CHECK:         [[C:%.+]] = byoc.composite "alpha.add_clip" from "add_clip_"
// CHECK:         byoc.compiler_end [[C]] {compiler = "alpha"}
// CHECK:         %t = relay.tanh
// CHECK-NEXT:    %t_1 = byoc.compiler_end %t {compiler = "beta"}
// OTHER-LABEL: func.func @patterns(
// OTHER:         %a = relay.add
// OTHER-NEXT:    %a_1 = byoc.compiler_end %a {compiler = "beta"}
// OTHER-NOT:     byoc.composite
func.func @patterns(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %a = relay.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = relay.clip %a {a_min = 0.0 : f32, a_max = 6.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %t = relay.tanh %b : (tensor<4xf32>) -> tensor<4xf32>
  func.return %t : tensor<4xf32>
}

// beta says that it needs half a microsecond, alpha two; the host would need longer for so many.
// COST: byoc.plan = {chosen = {{[0-9.e+]+}} : f64, host = {{[0-9.e+]+}} : f64, alpha =
// COST-LABEL: func.func @cheapest(
// COST:         byoc.region "beta"
func.func @cheapest(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %r = relay.abs %x : (tensor<1048576xf32>) -> tensor<1048576xf32>
  func.return %r : tensor<1048576xf32>
}
