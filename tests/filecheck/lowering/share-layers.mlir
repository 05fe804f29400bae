// RUN: relay-opt %s -p 'share-layers' | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="thumbv7em-none-eabi"},share-layers' | filecheck %s --check-prefix SCALARS

// The two kernels differ in a factor, and in a zero point and the bounds of its clamp: callers give them. The zero point is a
// code of 8 bits, and what is narrowed says that it is one, which its bounds do not say any more. A number that is the same in
// both stays.
func.func @main(%x: memref<32xf32>, %y: memref<32xi8>, %z: memref<32xf32>, %a: memref<2x4x8xi8>, %b: memref<2x8x4xi8>, %c: memref<2x4x4xi32>) {
  func.call @first(%x, %y) : (memref<32xf32>, memref<32xi8>) -> ()
  func.call @second(%x, %y) : (memref<32xf32>, memref<32xi8>) -> ()
  func.call @narrower(%x, %y) : (memref<32xf32>, memref<32xi8>) -> ()
  func.call @power(%x, %z) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @other_power(%x, %z) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @product(%a, %b, %c) : (memref<2x4x8xi8>, memref<2x8x4xi8>, memref<2x4x4xi32>) -> ()
  func.call @other_product(%a, %b, %c) : (memref<2x4x8xi8>, memref<2x8x4xi8>, memref<2x4x4xi32>) -> ()
  func.call @symmetric_product(%a, %b, %c) : (memref<2x4x8xi8>, memref<2x8x4xi8>, memref<2x4x4xi32>) -> ()
  func.return
}
// CHECK-LABEL: func.func @main
// CHECK:         [[FLOATS:%.+]] = bufferization.to_buffer %numbers read_only : tensor<3xf32> to memref<3xf32>
// CHECK:         [[CODES:%.+]] = bufferization.to_buffer %numbers_1 read_only : tensor<1xi8> to memref<1xi8>
// CHECK-NEXT:    func.call @first([[CODES]], [[FLOATS]], %x, %y)
// CHECK:         func.call @first({{.+}}, {{.+}}, %x, %y)
// CHECK-NEXT:    func.call @narrower(%x, %y)
// CHECK-NEXT:    func.call @power(%x, %z)
// CHECK-NEXT:    func.call @other_power(%x, %z)
// CHECK:         [[ZEROS:%.+]] = bufferization.to_buffer %numbers_4 read_only : tensor<2xi32> to memref<2xi32>
// CHECK-NEXT:    func.call @product([[ZEROS]], %a, %b, %c)
// CHECK:         func.call @product({{.+}}, %a, %b, %c)
// CHECK-NEXT:    func.call @symmetric_product(%a, %b, %c)
// SCALARS-COUNT-8: func.func private

func.func private @first(%x: memref<32xf32>, %y: memref<32xi8>) {
  %half = arith.constant 0.25 : f32
  %factor = arith.constant 3.0 : f32
  %low = arith.constant -7.0 : f32
  %high = arith.constant 248.0 : f32
  %zero = arith.constant 7 : i32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<32xf32>) outs(%y : memref<32xi8>) {
  ^bb0(%v: f32, %old: i8):
    %1 = arith.mulf %v, %half : f32
    %2 = arith.mulf %1, %factor : f32
    %3 = arith.cmpf ogt, %2, %low : f32
    %4 = arith.select %3, %2, %low : f32
    %5 = arith.minimumf %4, %high : f32
    %6 = math.roundeven %5 : f32
    %7 = arith.fptosi %6 : f32 to i32
    %8 = arith.addi %7, %zero : i32
    %9 = arith.trunci %8 : i32 to i8
    linalg.yield %9 : i8
  }
  func.return
}
// CHECK-LABEL: func.func private @first(%0: memref<1xi8>, %1: memref<3xf32>,
// CHECK-NEXT:    [[FIRST:%.+]] = arith.constant 0 : index
// CHECK-NEXT:    [[FACTOR:%.+]] = memref.load %1{{\[}}[[FIRST]]] : memref<3xf32>
// CHECK:         [[LOW:%.+]] = memref.load %1
// CHECK:         [[HIGH:%.+]] = memref.load %1
// CHECK:         [[CODE:%.+]] = memref.load %0{{.*}} : memref<1xi8>
// CHECK-NEXT:    [[QUARTER:%.+]] = arith.constant 2.500000e-01 : f32
// CHECK-NEXT:    [[ZERO:%.+]] = arith.extui [[CODE]] : i8 to i32
// CHECK-NEXT:    linalg.generic
// CHECK:           arith.mulf {{%.+}}, [[QUARTER]] : f32
// CHECK-NEXT:      arith.mulf {{%.+}}, [[FACTOR]] : f32
// CHECK-NEXT:      arith.cmpf ogt, {{%.+}}, [[LOW]] : f32
// CHECK-NEXT:      arith.select {{%.+}}, {{%.+}}, [[LOW]] : f32
// CHECK-NEXT:      arith.minimumf {{%.+}}, [[HIGH]] : f32
// CHECK:           arith.addi {{%.+}}, [[ZERO]] : i32
// CHECK-NEXT:      arith.trunci {{%.+}} overflow<nuw> : i32 to i8
// CHECK-NOT:     @second

func.func private @second(%x: memref<32xf32>, %y: memref<32xi8>) {
  %half = arith.constant 0.25 : f32
  %factor = arith.constant 5.0 : f32
  %low = arith.constant -200.0 : f32
  %high = arith.constant 55.0 : f32
  %zero = arith.constant 200 : i32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<32xf32>) outs(%y : memref<32xi8>) {
  ^bb0(%v: f32, %old: i8):
    %1 = arith.mulf %v, %half : f32
    %2 = arith.mulf %1, %factor : f32
    %3 = arith.cmpf ogt, %2, %low : f32
    %4 = arith.select %3, %2, %low : f32
    %5 = arith.minimumf %4, %high : f32
    %6 = math.roundeven %5 : f32
    %7 = arith.fptosi %6 : f32 to i32
    %8 = arith.addi %7, %zero : i32
    %9 = arith.trunci %8 : i32 to i8
    linalg.yield %9 : i8
  }
  func.return
}

// A clamp to some codes only is an instruction more: it is another kernel.
// CHECK:       func.func private @narrower(%x: memref<32xf32>,
// CHECK:         arith.trunci {{%.+}} : i32 to i8
func.func private @narrower(%x: memref<32xf32>, %y: memref<32xi8>) {
  %half = arith.constant 0.25 : f32
  %factor = arith.constant 5.0 : f32
  %low = arith.constant -150.0 : f32
  %high = arith.constant 55.0 : f32
  %zero = arith.constant 200 : i32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<32xf32>) outs(%y : memref<32xi8>) {
  ^bb0(%v: f32, %old: i8):
    %1 = arith.mulf %v, %half : f32
    %2 = arith.mulf %1, %factor : f32
    %3 = arith.cmpf ogt, %2, %low : f32
    %4 = arith.select %3, %2, %low : f32
    %5 = arith.minimumf %4, %high : f32
    %6 = math.roundeven %5 : f32
    %7 = arith.fptosi %6 : f32 to i32
    %8 = arith.addi %7, %zero : i32
    %9 = arith.trunci %8 : i32 to i8
    linalg.yield %9 : i8
  }
  func.return
}

// A factor of an exponential's argument tells whether masked scores count.
// CHECK:       func.func private @power
// CHECK:       func.func private @other_power
func.func private @power(%x: memref<32xf32>, %y: memref<32xf32>) {
  %factor = arith.constant 3.0 : f32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<32xf32>) outs(%y : memref<32xf32>) {
  ^bb0(%v: f32, %old: f32):
    %1 = arith.mulf %v, %factor : f32
    %2 = math.exp %1 : f32
    linalg.yield %2 : f32
  }
  func.return
}
func.func private @other_power(%x: memref<32xf32>, %y: memref<32xf32>) {
  %factor = arith.constant 5.0 : f32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<32xf32>) outs(%y : memref<32xf32>) {
  ^bb0(%v: f32, %old: f32):
    %1 = arith.mulf %v, %factor : f32
    %2 = math.exp %1 : f32
    linalg.yield %2 : f32
  }
  func.return
}

// Zero points of matrices that are computed may differ. One of 128 leaves out sums of codes: it is another kernel.
// CHECK:       func.func private @product(%0: memref<2xi32>,
// CHECK:         [[A:%.+]] = memref.load %0
// CHECK:         [[B:%.+]] = memref.load %0
// CHECK:           arith.subi {{%.+}}, [[A]] : i32
// CHECK:           arith.subi {{%.+}}, [[B]] : i32
// CHECK-NOT:   @other_product
func.func private @product(%a: memref<2x4x8xi8>, %b: memref<2x8x4xi8>, %c: memref<2x4x4xi32>) {
  %none = arith.constant 0 : i32
  %first = arith.constant 3 : i32
  %second = arith.constant 5 : i32
  linalg.fill ins(%none : i32) outs(%c : memref<2x4x4xi32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<2x4x8xi8>, memref<2x8x4xi8>) outs(%c : memref<2x4x4xi32>) {
  ^bb0(%x: i8, %y: i8, %sum: i32):
    %1 = arith.extui %x : i8 to i32
    %2 = arith.subi %1, %first : i32
    %3 = arith.extui %y : i8 to i32
    %4 = arith.subi %3, %second : i32
    %5 = arith.muli %2, %4 : i32
    %6 = arith.addi %sum, %5 : i32
    linalg.yield %6 : i32
  }
  func.return
}
func.func private @other_product(%a: memref<2x4x8xi8>, %b: memref<2x8x4xi8>, %c: memref<2x4x4xi32>) {
  %none = arith.constant 0 : i32
  %first = arith.constant 7 : i32
  %second = arith.constant 11 : i32
  linalg.fill ins(%none : i32) outs(%c : memref<2x4x4xi32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<2x4x8xi8>, memref<2x8x4xi8>) outs(%c : memref<2x4x4xi32>) {
  ^bb0(%x: i8, %y: i8, %sum: i32):
    %1 = arith.extui %x : i8 to i32
    %2 = arith.subi %1, %first : i32
    %3 = arith.extui %y : i8 to i32
    %4 = arith.subi %3, %second : i32
    %5 = arith.muli %2, %4 : i32
    %6 = arith.addi %sum, %5 : i32
    linalg.yield %6 : i32
  }
  func.return
}
// CHECK:       func.func private @symmetric_product(%a: memref<2x4x8xi8>,
func.func private @symmetric_product(%a: memref<2x4x8xi8>, %b: memref<2x8x4xi8>, %c: memref<2x4x4xi32>) {
  %none = arith.constant 0 : i32
  %first = arith.constant 7 : i32
  %second = arith.constant 128 : i32
  linalg.fill ins(%none : i32) outs(%c : memref<2x4x4xi32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : memref<2x4x8xi8>, memref<2x8x4xi8>) outs(%c : memref<2x4x4xi32>) {
  ^bb0(%x: i8, %y: i8, %sum: i32):
    %1 = arith.extui %x : i8 to i32
    %2 = arith.subi %1, %first : i32
    %3 = arith.extui %y : i8 to i32
    %4 = arith.subi %3, %second : i32
    %5 = arith.muli %2, %4 : i32
    %6 = arith.addi %sum, %5 : i32
    linalg.yield %6 : i32
  }
  func.return
}
