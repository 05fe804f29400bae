// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-external-compiler{targets=alpha,beta}" | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-external-compiler{targets=beta,alpha}" | filecheck %s --check-prefix OTHER

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
