"""Functions that call functions: what is no kernel is inlined, and `@main` runs whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.errors import Unsupported

MAIN = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = relay.constant {label = "c"} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.multiply %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1, %2 = func.call @twice(%0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3, %4 = func.call @twice(%2) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = relay.constant {label = "d"} dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %0 = func.call @more(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = relay.add %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %x : tensor<4xf32>, tensor<4xf32>
}
func.func private @more(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant {label = "e"} dense<[0.5, 0.5, 0.5, 1.0]> : tensor<4xf32>
  %0 = relay.multiply %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""
OTHER = """
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = relay.constant {label = "f"} dense<[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0]> : tensor<8xf32>
  %0 = relay.multiply %x, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
"""
X = np.array([1, -2, 3, -4], np.float32)
ONCE = X * np.array([1, 2, 3, 4], np.float32)
WANTED = ONCE * np.array([0.5, 0.5, 0.5, 1], np.float32) + np.array([5, 6, 7, 8], np.float32)


@pytest.mark.parametrize("pipeline", [None, "", "fuse-ops"])
@pytest.mark.parametrize("text", [MAIN, MAIN + OTHER, OTHER + MAIN])
def test_functions_that_call_functions(text: str, pipeline: str | None):
    found = relay.build(relay.IRModule.parse(text), pipeline=pipeline).run(X)
    assert isinstance(found, tuple) and all(np.array_equal(array, WANTED) for array in found)


def test_what_is_left_are_calls_of_kernels():
    fused = relay.transform.FuseOps()(relay.IRModule.parse(MAIN))
    assert "@twice(" not in str(fused["main"]) and "@more(" in str(fused["main"])
    assert str(relay.transform.FuseOps()(fused)) == str(fused)


def test_circles_are_refused():
    text = MAIN.replace("func.call @more", "func.call @main").replace(
        "%0 = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>",
        "%0, %9 = func.call @main(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)",
    )
    with pytest.raises(Unsupported, match="func.call in @twice: @main calls itself; there are no loops by calls"):
        relay.build(relay.IRModule.parse(text))
