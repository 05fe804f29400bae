// RUN: relay-opt %s -p 'share-kernels' | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="thumbv7em-none-eabi"},share-kernels' | filecheck %s --check-prefix SCALARS

// The two kernels differ in one number, which stands there as it is and as a vector: callers give it. Sizes, and numbers that are
// the same in both, stay.
func.func @main(%x: memref<32xf32>, %y: memref<32xf32>) {
  func.call @first(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @second(%y, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @shorter(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @inside(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @inside_too(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @once(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @twice(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.call @sixteen_lanes(%x) : (memref<32xf32>) -> ()
  func.call @eight_lanes(%y) : (memref<32xf32>) -> ()
  func.return
}
// CHECK-LABEL: func.func @main
// CHECK:         [[THREE:%.+]] = bufferization.to_buffer %numbers read_only
// CHECK-NEXT:    func.call @first([[THREE]], %x, %y) : (memref<1xf32>, memref<32xf32>, memref<32xf32>) -> ()
// CHECK:         [[FIVE:%.+]] = bufferization.to_buffer %numbers_1 read_only
// CHECK-NEXT:    func.call @first([[FIVE]], %y, %y) : (memref<1xf32>, memref<32xf32>, memref<32xf32>) -> ()
// CHECK-NEXT:    func.call @shorter(%x, %y)
// SCALARS-COUNT-9: func.func private

func.func private @first(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 31 : index
  %two = arith.constant dense<2.0> : vector<16xf32>
  %v = arith.constant dense<3.0> : vector<16xf32>
  %s = arith.constant 3.0 : f32
  scf.for %i = %zero to %end step %step {
    %a = vector.load %x[%i] : memref<32xf32>, vector<16xf32>
    %b = arith.mulf %a, %two : vector<16xf32>
    %c = arith.addf %b, %v : vector<16xf32>
    vector.store %c, %y[%i] : memref<32xf32>, vector<16xf32>
  }
  memref.store %s, %y[%end] : memref<32xf32>
  func.return
}
// CHECK-LABEL: func.func private @first(%0: memref<1xf32>,
// CHECK-NEXT:    [[AT:%.+]] = arith.constant 0 : index
// CHECK-NEXT:    [[N:%.+]] = memref.load %0{{\[}}[[AT]]] : memref<1xf32>
// CHECK:         arith.constant 31 : index
// CHECK-NEXT:    arith.constant dense<2.000000e+00>
// CHECK-NEXT:    vector.broadcast [[N]] : f32 to vector<16xf32>
// CHECK:         memref.store [[N]]
// CHECK-NOT:     @second

func.func private @second(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 31 : index
  %two = arith.constant dense<2.0> : vector<16xf32>
  %v = arith.constant dense<5.0> : vector<16xf32>
  %s = arith.constant 5.0 : f32
  scf.for %i = %zero to %end step %step {
    %a = vector.load %x[%i] : memref<32xf32>, vector<16xf32>
    %b = arith.mulf %a, %two : vector<16xf32>
    %c = arith.addf %b, %v : vector<16xf32>
    vector.store %c, %y[%i] : memref<32xf32>, vector<16xf32>
  }
  memref.store %s, %y[%end] : memref<32xf32>
  func.return
}

// Another end of the loop, and another order of operands, are other kernels.
// CHECK:       func.func private @shorter
func.func private @shorter(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 16 : index
  %two = arith.constant dense<2.0> : vector<16xf32>
  %v = arith.constant dense<3.0> : vector<16xf32>
  %s = arith.constant 3.0 : f32
  scf.for %i = %zero to %end step %step {
    %a = vector.load %x[%i] : memref<32xf32>, vector<16xf32>
    %b = arith.mulf %two, %a : vector<16xf32>
    %c = arith.addf %b, %v : vector<16xf32>
    vector.store %c, %y[%i] : memref<32xf32>, vector<16xf32>
  }
  memref.store %s, %y[%end] : memref<32xf32>
  func.return
}

// What a constant in a loop becomes is in the loop, and not where another one was.
// CHECK-LABEL: func.func private @inside(%0: memref<1xf32>,
// CHECK:         [[N:%.+]] = memref.load %0
// CHECK:         scf.for
// CHECK-NEXT:      [[V:%.+]] = vector.broadcast [[N]] : f32 to vector<16xf32>
// CHECK-NEXT:      vector.store [[V]]
// CHECK:         }
// CHECK-NEXT:    [[W:%.+]] = vector.broadcast [[N]] : f32 to vector<16xf32>
// CHECK-NEXT:    vector.store [[W]]
func.func private @inside(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 32 : index
  scf.for %i = %zero to %end step %step {
    %v = arith.constant dense<3.0> : vector<16xf32>
    vector.store %v, %y[%i] : memref<32xf32>, vector<16xf32>
  }
  %w = arith.constant dense<3.0> : vector<16xf32>
  vector.store %w, %x[%zero] : memref<32xf32>, vector<16xf32>
  func.return
}
func.func private @inside_too(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 32 : index
  scf.for %i = %zero to %end step %step {
    %v = arith.constant dense<5.0> : vector<16xf32>
    vector.store %v, %y[%i] : memref<32xf32>, vector<16xf32>
  }
  %w = arith.constant dense<5.0> : vector<16xf32>
  vector.store %w, %x[%zero] : memref<32xf32>, vector<16xf32>
  func.return
}

// One constant, used twice, is two numbers where another kernel has two constants.
// CHECK-LABEL: func.func private @once(%0: memref<2xf32>,
// CHECK:         [[A:%.+]] = memref.load %0
// CHECK:         [[B:%.+]] = memref.load %0
// CHECK-DAG:     [[VA:%.+]] = vector.broadcast [[A]]
// CHECK-DAG:     [[VB:%.+]] = vector.broadcast [[B]]
// CHECK:         [[SUM:%.+]] = arith.addf %{{.+}}, [[VA]]
// CHECK-NEXT:    arith.mulf [[SUM]], [[VB]]
func.func private @once(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %v = arith.constant dense<3.0> : vector<16xf32>
  %a = vector.load %x[%zero] : memref<32xf32>, vector<16xf32>
  %b = arith.addf %a, %v : vector<16xf32>
  %c = arith.mulf %b, %v : vector<16xf32>
  vector.store %c, %y[%zero] : memref<32xf32>, vector<16xf32>
  func.return
}
func.func private @twice(%x: memref<32xf32>, %y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %v = arith.constant dense<5.0> : vector<16xf32>
  %w = arith.constant dense<7.0> : vector<16xf32>
  %a = vector.load %x[%zero] : memref<32xf32>, vector<16xf32>
  %b = arith.addf %a, %v : vector<16xf32>
  %c = arith.mulf %b, %w : vector<16xf32>
  vector.store %c, %y[%zero] : memref<32xf32>, vector<16xf32>
  func.return
}

// Stored constants of another number of lanes are another kernel: nothing but the constant has that type.
// CHECK-LABEL: func.func private @sixteen_lanes(%y: memref<32xf32>)
// CHECK:         vector.store %{{.+}} : memref<32xf32>, vector<16xf32>
// CHECK-LABEL: func.func private @eight_lanes(%y: memref<32xf32>)
// CHECK:         vector.store %{{.+}} : memref<32xf32>, vector<8xf32>
func.func private @sixteen_lanes(%y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %v = arith.constant dense<3.0> : vector<16xf32>
  vector.store %v, %y[%zero] : memref<32xf32>, vector<16xf32>
  func.return
}
func.func private @eight_lanes(%y: memref<32xf32>) {
  %zero = arith.constant 0 : index
  %v = arith.constant dense<5.0> : vector<8xf32>
  vector.store %v, %y[%zero] : memref<32xf32>, vector<8xf32>
  func.return
}
