// RUN: relay-opt %s -p 'print-choices{header="after all"}' 2>&1 >/dev/null | filecheck %s --strict-whitespace --match-full-lines

//      CHECK:// after all
// CHECK-NEXT:kernel     rescaled channels  schedule
// CHECK-NEXT:@conv2d_0  30 f32, 2 f64      tile of 8 pixels x 48 channels
// CHECK-NEXT:@add_0                        windows: 64 channels at a time
// CHECK-NEXT:all        30 f32, 2 f64
builtin.module attributes {relay.rescale = {f32 = 30 : i64, f32x2 = 0 : i64, f64 = 2 : i64, literal = 0 : i64}} {
  func.func private @conv2d_0() attributes {relay.rescale = {f32 = 30 : i64, f32x2 = 0 : i64, f64 = 2 : i64, literal = 0 : i64}, relay.schedule = "tile of 8 pixels x 48 channels"}
  func.func private @add_0() attributes {relay.schedule = "windows: 64 channels at a time"}
  func.func private @silent()
}
