// RUN: relay-opt %s -p 'attach-target{target="aarch64 -mattr=+dotprod"}' | filecheck %s
// RUN: relay-opt %s -p 'attach-target{target="riscv64"},attach-target' | filecheck %s --check-prefix KEPT
// RUN: relay-opt %s -p 'attach-target{target="cuda -arch=sm_75 -matmul="}' | filecheck %s --check-prefix GPU
// RUN: relay-opt %s -p 'attach-target{target="thumbv7em -mcpu=cortex-m7 -costs=issue_width=2,cache_line=32"}' | filecheck %s --check-prefix COSTS

// CHECK: builtin.module attributes {relay.target = {kind = "cpu", triple = "aarch64-unknown-linux-gnu", cpu = "generic", features = "+dotprod,+neon"}} {

// Without a target, the one that the module has stays.
// KEPT: relay.target = {kind = "cpu", triple = "riscv64-unknown-linux-gnu", cpu = "generic-rv64", features = "+a,+c,+d,+f,+m"}

// GPU: relay.target = {kind = "cuda", triple = "nvptx64-nvidia-cuda", cpu = "sm_75", features = "+dot,+fma-rz,+shuffle"}

// COSTS: features = "+dsp", costs = {cache_line = 32 : i64, issue_width = 2.000000e+00 : f64}}
func.func @main() {
  func.return
}
