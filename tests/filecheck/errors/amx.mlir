// RUN: relay-opt %s --verify-diagnostics | filecheck %s

// CHECK: amx.tile_muli: !amx.tile<16x64xi8> by !amx.tile<15x64xi8> is not !amx.tile<16x16xi32>
func.func @other_depth(%a: !amx.tile<16x64xi8>, %b: !amx.tile<15x64xi8>, %c: !amx.tile<16x16xi32>) {
  %r = amx.tile_muli %a, %b, %c : !amx.tile<16x64xi8>, !amx.tile<15x64xi8>, !amx.tile<16x16xi32>
  func.return
}
