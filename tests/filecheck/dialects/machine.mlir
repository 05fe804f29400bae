// RUN: relay-opt %s | relay-opt | filecheck %s

// CHECK-LABEL: func.func @dots
func.func @dots(%acc: vector<4xi32>, %x: vector<16xi8>, %y: vector<8xi16>) {
  // CHECK: machine.dot_product %acc, %x, %x {unsigned} : vector<4xi32>, vector<16xi8>, vector<16xi8> -> vector<4xi32>
  %a = machine.dot_product %acc, %x, %x {unsigned} : vector<4xi32>, vector<16xi8>, vector<16xi8> -> vector<4xi32>
  // CHECK: machine.dot_product %acc, %y, %y : vector<4xi32>, vector<8xi16>, vector<8xi16> -> vector<4xi32>
  %b = machine.dot_product %acc, %y, %y : vector<4xi32>, vector<8xi16>, vector<8xi16> -> vector<4xi32>
  func.return
}
