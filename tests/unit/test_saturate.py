"""Floats that are clamped, rounded and converted to codes: the packs' clamp is found in them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.linalg import ops as linalg

import relay
from relay import IRModule
from relay.interpreters import run
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.scheduling.saturate import Clamp, match_clamp
from relay.passes import Pipeline

CLIPPED = """func.func @main(%x: tensor<300x{given}>) -> tensor<300x{code}> {{
  %scale = relay.constant dense<0.37> : tensor<f32>
  %large = relay.constant dense<0x4B400000> : tensor<f32>
  %zero = relay.constant dense<{zero}> : tensor<i32>
  %0 = relay.cast %x {{dtype = f32}} : (tensor<300x{given}>) -> tensor<300xf32>
  %1 = relay.multiply %0, %scale : (tensor<300xf32>, tensor<f32>) -> tensor<300xf32>
  %2 = relay.clip %1 {{a_min = {low} : f32, a_max = {high} : f32}} : (tensor<300xf32>) -> tensor<300xf32>
  %3 = relay.add %2, %large : (tensor<300xf32>, tensor<f32>) -> tensor<300xf32>
  %4 = relay.subtract %3, %large : (tensor<300xf32>, tensor<f32>) -> tensor<300xf32>
  %5 = relay.cast %4 {{dtype = i32}} : (tensor<300xf32>) -> tensor<300xi32>
  %6 = relay.add %5, %zero : (tensor<300xi32>, tensor<i32>) -> tensor<300xi32>
  %7 = relay.cast %6 {{dtype = {code}}} : (tensor<300xi32>) -> tensor<300x{code}>
  func.return %7 : tensor<300x{code}>
}}"""


def clamp_of(mod: IRModule) -> Clamp | None:
    module = relay.optimize(mod)
    Pipeline([RelayToLinalg(), ExpandApplyScale()]).apply(module)
    (body,) = [op.body.block for op in module.op.walk() if isinstance(op, linalg.GenericOp)]
    return match_clamp(body)


@pytest.mark.parametrize(
    ("code", "zero", "low", "high"),
    [("ui8", 3, "-3.0", "252.0"), ("i8", -7, "-121.0", "134.0"), ("i8", 1, "-9.0", "9.0")],
)
def test_the_clamp_of_a_float_is_that_of_its_code(code: str, zero: int, low: str, high: str):
    mod = IRModule.parse(CLIPPED.format(given="i32", code=code, zero=zero, low=low, high=high))
    clamp = clamp_of(mod)
    assert clamp is not None
    assert (clamp.zero, clamp.low, clamp.high) == (zero, int(float(low)) + zero, int(float(high)) + zero)
    x = np.random.default_rng(0).integers(-900, 900, 300).astype(np.int32)
    np.testing.assert_array_equal(relay.build(mod).run(x), run(mod, [x])[0])


@pytest.mark.parametrize(("given", "low"), [("f32", "0.0"), ("i32", "0.5"), ("i32", "-1.0")])
def test_what_may_be_nan_or_has_other_bounds_is_none(given: str, low: str):
    assert clamp_of(IRModule.parse(CLIPPED.format(given=given, code="ui8", zero=0, low=low, high="255.0"))) is None
