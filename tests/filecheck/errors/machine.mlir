// RUN: relay-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%acc: vector<4xi8>, %x: vector<16xi8>) {
  // CHECK: machine.dot_product: accumulator and result are one vector of i32 with one dimension
  %a = machine.dot_product %acc, %x, %x : vector<4xi8>, vector<16xi8>, vector<16xi8> -> vector<4xi8>
  func.return
}

// -----

func.func @f(%acc: vector<4xi32>, %x: vector<16xi8>, %y: vector<8xi16>) {
  // CHECK: machine.dot_product: data and weights are vectors of one type, of i8 or i16
  %a = machine.dot_product %acc, %x, %y : vector<4xi32>, vector<16xi8>, vector<8xi16> -> vector<4xi32>
  func.return
}

// -----

func.func @f(%acc: vector<4xi32>, %x: vector<12xi8>) {
  // CHECK: machine.dot_product: data and weights have 2 or 4 codes for each sum
  %a = machine.dot_product %acc, %x, %x : vector<4xi32>, vector<12xi8>, vector<12xi8> -> vector<4xi32>
  func.return
}
