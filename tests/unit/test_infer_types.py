"""`infer-types`: what follows from a changed argument changes, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, TensorType, f32
from xdsl.rewriter import Rewriter

from relay.errors import Malformed
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.infer_types import InferTypes

TEXT = """
func.func @main(%x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1xf32>) {
  %0 = func.call @kernel(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = relay.sum %0 {axis = array<i64: 1>} : (tensor<1x4xf32>) -> tensor<1xf32>
  func.return %0, %1 : tensor<1x4xf32>, tensor<1xf32>
}
func.func private @kernel(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = relay.add %x, %x : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return %0 : tensor<1x4xf32>
}
"""


def with_arguments(text: str, *dims: int) -> IRModule:
    """The module with the first argument of every function of this shape, and nothing else adapted."""
    mod = IRModule.parse(text)
    for function in mod.functions.values():
        (argument,) = function.body.block.args
        type = TensorType(f32, dims)
        Rewriter.replace_value_with_new_type(argument, type)
        function.properties["function_type"] = FunctionType.from_lists([type], function.function_type.outputs.data)
    return mod


def test_right_types_stay() -> None:
    mod = IRModule.parse(TEXT)
    assert str(InferTypes()(mod)) == str(mod)


def test_another_batch_goes_through_ops_calls_and_results() -> None:
    mod = InferTypes()(with_arguments(TEXT, 3, 4))
    mod.verify()
    assert [str(type) for type in mod["main"].function_type.outputs] == ["tensor<3x4xf32>", "tensor<3xf32>"]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(run(mod, [x])[1], 2 * x.sum(1))


def test_an_op_that_does_not_take_its_operands_is_named() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<6xf32> {
      %0 = relay.reshape %x {newshape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
      func.return %0 : tensor<6xf32>
    }"""
    with pytest.raises(Malformed, match=r"relay.reshape in @main: relay.reshape: \[2, 5\] has not the elements"):
        InferTypes()(with_arguments(text, 2, 5))


def test_a_loop_whose_values_grow_is_named() -> None:
    text = """func.func @main(%c: i1, %x: tensor<2x3xf32>) -> tensor<?x3xf32> {
      %0 = relay.abs %x : (tensor<2x3xf32>) -> tensor<?x3xf32>
      %1 = scf.while (%2 = %0) : (tensor<?x3xf32>) -> tensor<?x3xf32> {
        scf.condition(%c) %2 : tensor<?x3xf32>
      } do {
      ^bb0(%3: tensor<?x3xf32>):
        %4 = relay.concatenate %3, %x {axis = 0 : i64} : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
        scf.yield %4 : tensor<?x3xf32>
      }
      func.return %1 : tensor<?x3xf32>
    }"""
    with pytest.raises(Malformed, match=r"scf.while in @main: a turn gives tensor<4x3xf32>, from tensor<2x3xf32>;"):
        InferTypes()(IRModule.parse(text))
