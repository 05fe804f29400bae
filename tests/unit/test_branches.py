"""`scf.if` all the way down: what is compiled is what the interpreter computes, whichever branch is taken."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.interpreters import run
from relay.lowering.bufferize import Bufferize
from relay.module import IRModule
from relay.runtime import Executable, loaders
from tests.marks import ci
from tests.unit.interpreting import as_text, load_text
from tests.unit.partitioning_modules import Known

T = "tensor<1x6x6x4xf32>"
U = f"({T}) -> {T}"
B = f"({T}, {T}) -> {T}"
KERNEL = ", ".join("[" + ", ".join(f"[{k + c}.0, -1.0, 0.5, {c}.0]" for c in range(4)) + "]" for k in range(9))
CONV = f"{{padding = array<i64: 1, 1, 1, 1>, out_dtype = f32}} : ({T}, tensor<4x3x3x4xf32>) -> {T}"


def module(body: str, results: str = T, returned: str = "%r") -> IRModule:
    """`main` of two conditions and two tensors."""
    text = f"""func.func @main(%p: tensor<i1>, %q: tensor<2xi1>, %x: {T}, %y: {T}) -> ({results}) {{
  %one = arith.constant 1 : index
  %c = tensor.extract %p[] : tensor<i1>
  %d = tensor.extract %q[%one] : tensor<2xi1>
  {body}
  func.return {returned} : {results}
}}"""
    return IRModule.parse(text)


def arguments(first: bool, second: bool) -> list[Array]:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-8, 8, (1, 6, 6, 4)).astype(np.float32) / 4 for _ in range(2))
    return [np.array(first), np.array([not second, second]), x, y]


def check(mod: IRModule, executable: Executable) -> None:
    """Both conditions, true and false: the same numbers, compiled and interpreted, but for the last places of exp."""
    for first in (True, False):
        for second in (True, False):
            given = arguments(first, second)
            found = executable.run(*given)
            found = found if isinstance(found, tuple) else (found,)
            for a, b in zip(found, run(mod, given), strict=True):
                assert a is not None
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


POOL = f"{{pool_size = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>}} : {U}"
SIMPLE = f"""%a = relay.abs %x : {U}
  %r = scf.if %c -> ({T}) {{
    %k = relay.constant dense<1.0> : {T}
    %z = relay.negative %k : {U}
    %b = relay.add %a, %z : {B}
    scf.yield %b : {T}
  }} else {{
    scf.yield %a : {T}
  }}"""
NESTED = f"""%a = relay.add %x, %y : {B}
  %r = scf.if %c -> ({T}) {{
    %s = scf.if %d -> ({T}) {{
      %u = relay.multiply %a, %x : {B}
      scf.yield %u : {T}
    }} else {{
      scf.yield %y : {T}
    }}
    %t = relay.exp %s : {U}
    %v = relay.add %t, %a : {B}
    scf.yield %v : {T}
  }} else {{
    %w = relay.negative %a : {U}
    scf.yield %w : {T}
  }}"""
CONVOLUTIONS = f"""%w = relay.constant dense<[{KERNEL}]> : tensor<9x4x4xf32>
  %k = relay.reshape %w {{newshape = array<i64: 4, 3, 3, 4>}} : (tensor<9x4x4xf32>) -> tensor<4x3x3x4xf32>
  %a = relay.nn.conv2d %x, %k {CONV}
  %b = relay.clip %a {{a_min = 0.0 : f32, a_max = 6.0 : f32}} : {U}
  %r = scf.if %c -> ({T}) {{
    %e = relay.nn.conv2d %b, %k {CONV}
    %f = relay.clip %e {{a_min = 0.0 : f32, a_max = 6.0 : f32}} : {U}
    scf.yield %f : {T}
  }} else {{
    %g = relay.nn.conv2d %y, %k {CONV}
    %h = relay.add %g, %b : {B}
    scf.yield %h : {T}
  }}
  %t = relay.nn.conv2d %r, %k {CONV}"""
SEVERAL = f"""%r:3 = scf.if %c -> ({T}, {T}, {T}) {{
    %a = relay.abs %x : {U}
    scf.yield %a, %a, %x : {T}, {T}, {T}
  }} else {{
    %k = relay.constant dense<2.0> : {T}
    %b = relay.add %x, %k : {B}
    scf.yield %y, %b, %k : {T}, {T}, {T}
  }}
  %s = scf.if %d -> ({T}) {{
    scf.yield %r#1 : {T}
  }} else {{
    scf.yield %r#0 : {T}
  }}
  %t = relay.add %s, %r#2 : {B}"""
SHAPES = f"""%r = scf.if %c -> ({T}) {{
    %f = relay.reshape %x {{newshape = array<i64: 144>}} : ({T}) -> tensor<144xf32>
    %g = relay.abs %f : (tensor<144xf32>) -> tensor<144xf32>
    %h = relay.reshape %g {{newshape = array<i64: 1, 6, 6, 4>}} : (tensor<144xf32>) -> {T}
    scf.yield %h : {T}
  }} else {{
    %f = relay.reshape %y {{newshape = array<i64: 1, 6, 6, 4>}} : {U}
    scf.yield %f : {T}
  }}"""
CONDITION = f"""%e = scf.if %c -> (i1) {{
    scf.yield %d : i1
  }} else {{
    scf.yield %c : i1
  }}
  %r = scf.if %e -> ({T}) {{
    scf.yield %x : {T}
  }} else {{
    scf.yield %y : {T}
  }}"""
BETWEEN = f"""%a = relay.exp %x : {U}
  %s = scf.if %c -> ({T}) {{
    %u = relay.multiply %a, %y : {B}
    scf.yield %u : {T}
  }} else {{
    scf.yield %y : {T}
  }}
  %t = relay.abs %s : {U}
  %r = relay.add %a, %t : {B}"""
CASES: dict[str, tuple[str, ...]] = {
    "simple": (SIMPLE,),
    "nested": (NESTED,),
    "convolutions": (CONVOLUTIONS, f"{T}, {T}", "%t, %b"),
    "several": (SEVERAL, f"{T}, {T}, {T}", "%t, %r#0, %r#1"),
    "shapes": (SHAPES,),
    "condition": (CONDITION,),
    "between": (BETWEEN,),
}


@cache
def case(name: str) -> IRModule:
    return module(*CASES[name])


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.ci), 2])
@pytest.mark.parametrize("name", CASES)
def test_compiled_as_interpreted(name: str, level: int):
    check(case(name), relay.build(case(name), opt_level=level))


@pytest.mark.parametrize("name", ["nested", *ci(("convolutions", "several"))])
def test_without_kernels(name: str):
    """No `fuse-ops`: loops, padding and copies stand in the branches themselves."""
    check(case(name), relay.build(case(name), pipeline="legalize,relay-to-linalg"))


@pytest.mark.parametrize(("name", "constants"), [*((name, "bind") for name in CASES), ("convolutions", "hoist")])
def test_partitioned(known: Known, monkeypatch: pytest.MonkeyPatch, name: str, constants: str):
    """Regions in branches, between them and around them are compiled outside, and called where they are."""
    known("x", "abs", "add", "exp", "nn.conv2d", compiled=as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "x", load_text)
    parted = relay.build_external_compiler(case(name), "x", constants=constants)
    parted.verify()
    for first in (True, False):
        given = arguments(first, True)
        for a, b in zip(run(parted, given), run(case(name), given), strict=True):
            assert np.array_equal(a, b)
    executable = relay.build(parted)
    check(case(name), executable)
    assert len(executable.externals) == PARTS[name]


PARTS = {"simple": 2, "nested": 2, "convolutions": 4, "several": 3, "shapes": 1, "condition": 0, "between": 2}
"""How many regions there are: none crosses a branch's border."""


def test_branches_share_memory():
    """What lives in one branch only lies where what lives in the other does."""
    body = f"%a = relay.abs %x : {U}\n  %r = scf.if %c -> ({T}) {{\n"
    for branch, source in (("then", "%a"), ("else", "%y")):
        for k in range(3):
            body += f"%{branch}{k} = relay.nn.max_pool2d {source} {POOL}\n"
            source = f"%{branch}{k}"
        body += f"scf.yield {source} : {T}\n" + ("} else {\n" if branch == "then" else "}")
    mod = module(body)
    executable = relay.build(mod)
    check(mod, executable)
    buffers = executable.graph["buffers"]
    size = 6 * 6 * 4 * 4 + 64
    assert len(buffers) > 4 and executable.graph["arena_bytes"] < 4 * (size + 64)


def test_what_users_give_and_get_are_tensors():
    text = f"func.func @main(%c: i1, %x: {T}) -> {T} {{ func.return %x : {T} }}"
    wrong = "function main: takes i1, which is no tensor; make it a tensor<i1>; tensor.extract reads it"
    with pytest.raises(Unsupported, match=wrong):
        relay.build(IRModule.parse(text))


def test_private_functions_give_tensors():
    text = "func.func private @f(%x: vector<4xf32>) -> vector<4xf32> { func.return %x : vector<4xf32> }"
    with pytest.raises(Unsupported, match="function f: gives vector<4xf32>, which is no tensor"):
        Bufferize()(IRModule.parse(text))
