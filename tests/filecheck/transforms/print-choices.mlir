// RUN: relay-opt %s -p 'print-choices{header="after all"}' 2>&1 >/dev/null | filecheck %s --strict-whitespace --match-full-lines

// A line for each operation of a kernel; decisions that are false, 0, none or empty are left out.

//      CHECK:// after all
// CHECK-NEXT:kernel     rescaled channels  schedule
// CHECK-NEXT:@conv2d_0  30 f32, 2 f64      contraction: 132 cycles, the least of all; tile 8x48, codes_per_step 4, flat
// CHECK-NEXT:                              threads share loops of 64 turns
// CHECK-NEXT:@pool_0                       pad: read as it is; by_rows
// CHECK-NEXT:                              parts: 2 blocks; parts [tile; tile 4x32, tile; tile 2x16]
// CHECK-NEXT:@add_0                        matrix units
// CHECK-NEXT:all        30 f32, 2 f64
builtin.module attributes {relay.rescale = {f32 = 30 : i64, f32x2 = 0 : i64, f64 = 2 : i64, literal = 0 : i64}} {
  func.func private @conv2d_0() attributes {relay.rescale = {f32 = 30 : i64, f32x2 = 0 : i64, f64 = 2 : i64, literal = 0 : i64}, relay.schedule = {strategy = "contraction", tile = array<i64: 8, 48>, codes_per_step = 4 : i64, sign_flip = "none", widen = false, flat = true, outlier_steps = 0 : i64, cycles = 132 : i64, why = "132 cycles, the least of all", threads = [{loop = 0 : i64, around = 0 : i64, turns = 64 : i64}]}}
  func.func private @pool_0() attributes {relay.schedule = {ops = [{strategy = "pad", op = 0 : i64, by_rows = true, why = "read as it is"}, {strategy = "parts", op = 1 : i64, parts = [{strategy = "tile", tile = array<i64: 4, 32>}, {strategy = "tile", tile = array<i64: 2, 16>}], why = "2 blocks"}]}}
  func.func private @add_0() attributes {relay.schedule = "matrix units"}
  func.func private @silent()
}
