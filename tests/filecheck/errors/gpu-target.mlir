// RUN: not relay-opt %s 2>&1 | filecheck %s

// CHECK: nvvm.target has no parameter shape
builtin.module attributes {target = #nvvm.target<shape = 3>} {
}
