// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-target{targets=alpha,beta},merge-compiler-regions" | filecheck %s
// RUN: relay-opt %s --load %S/../compilers.py -p "annotate-target{targets=alpha,beta},merge-compiler-regions,merge-compiler-regions" | filecheck %s

// %a and %d are alpha's, and %d needs both %a and what the host makes of it: two regions, or one would wait for itself.
// CHECK-LABEL: func.func @diamond(
// CHECK-NEXT:    %a = byoc.region "alpha"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
// CHECK:         %h = relay.sigmoid %a
// CHECK-NEXT:    %d = byoc.region "alpha"(%a, %h) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
// CHECK:         func.return %d
func.func @diamond(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %h = relay.sigmoid %a : (tensor<4xf32>) -> tensor<4xf32>
  %d = relay.add %a, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// The same through a region of another compiler; and one region, with two results, where nothing is between.
// CHECK-LABEL: func.func @two_compilers(
// CHECK-NEXT:    %a, %b = byoc.region "alpha"(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:    ^bb0([[X:%.+]]: tensor<4xf32>):
// CHECK-NEXT:      %c = relay.constant
// CHECK-NEXT:      [[A:%.+]] = relay.abs [[X]]
// CHECK-NEXT:      [[B:%.+]] = relay.add [[A]], %c
// CHECK-NEXT:      byoc.yield [[A]], [[B]]
// CHECK:         %m = byoc.region "beta"(%a, %b)
// CHECK:         %d = byoc.region "alpha"(%b, %m)
func.func @two_compilers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<2.0> : tensor<4xf32>
  %a = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = relay.add %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = relay.multiply %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = relay.subtract %b, %m : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// A host op between the ops of a region goes before it or after it.
// CHECK-LABEL: func.func @reordered(
// CHECK-NEXT:    %h = relay.sigmoid %y
// CHECK-NEXT:    %b = byoc.region "alpha"(%x, %h)
// CHECK:         func.return %b
func.func @reordered(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %h = relay.sigmoid %y : (tensor<4xf32>) -> tensor<4xf32>
  %b = relay.add %a, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
