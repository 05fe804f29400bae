"""`scf.while` all the way down: what is compiled is what the interpreter computes, however often a loop turns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import Executable
from tests.unit.test_branches import CONV, KERNEL, B, T, U

N = "tensor<i32>"
COUNT = f"({N}, {N}) -> {N}"


def module(body: str, results: str, returned: str) -> IRModule:
    """`main` of a number of turns and two images."""
    text = f"""func.func @main(%n: {N}, %x: {T}, %y: {T}) -> ({results}) {{
  %one = relay.constant dense<1> : {N}
  %zero = relay.constant dense<0> : {N}
  {body}
  func.return {returned} : {results}
}}"""
    return IRModule.parse(text)


def positive(number: str) -> str:
    """`%go`: whether a count is positive."""
    return f"""%p = relay.greater {number}, %zero : ({N}, {N}) -> tensor<i1>
    %go = tensor.extract %p[] : tensor<i1>"""


def down(number: str) -> str:
    """`%j`: the count less one."""
    return f"%j = relay.subtract {number}, %one : {COUNT}"


SWAPPED = f"""%s = relay.exp %x : {U}
  %r:3 = scf.while (%i = %n, %a = %s, %b = %y) : ({N}, {T}, {T}) -> ({N}, {T}, {T}) {{
    {positive("%i")}
    scf.condition(%go) %i, %a, %b : {N}, {T}, {T}
  }} do {{
  ^bb0(%i: {N}, %a: {T}, %b: {T}):
    {down("%i")}
    %d = relay.subtract %a, %s : {B}
    scf.yield %j, %b, %d : {N}, {T}, {T}
  }}
  %t = relay.add %r#1, %s : {B}"""
"""The images change places; one from before the loop is read in every turn and after it."""

TESTED = f"""%r:2 = scf.while (%i = %n, %a = %x) : ({N}, {T}) -> (tensor<6x24xf32>, {N}) {{
    {positive("%i")}
    %f = relay.reshape %a {{newshape = array<i64: 6, 24>}} : ({T}) -> tensor<6x24xf32>
    %g = relay.negative %f : (tensor<6x24xf32>) -> tensor<6x24xf32>
    scf.condition(%go) %g, %i : tensor<6x24xf32>, {N}
  }} do {{
  ^bb0(%g: tensor<6x24xf32>, %i: {N}):
    {down("%i")}
    %h = relay.reshape %g {{newshape = array<i64: 1, 6, 6, 4>}} : (tensor<6x24xf32>) -> {T}
    %k = relay.add %h, %y : {B}
    scf.yield %j, %k : {N}, {T}
  }}"""
"""What the test gives on is not what it got."""

NUMBERS = f"""{positive("%n")}
  %true = arith.constant true
  %r:2 = scf.while (%again = %go, %v = %x) : (i1, {T}) -> (i1, {T}) {{
    %w = relay.abs %v : {U}
    scf.condition(%again) %again, %w : i1, {T}
  }} do {{
  ^bb0(%again: i1, %v: {T}):
    %stop = arith.constant false
    %w = relay.add %v, %y : {B}
    scf.yield %stop, %w : i1, {T}
  }}
  %s = scf.if %r#0 -> ({T}) {{
    scf.yield %x : {T}
  }} else {{
    scf.yield %r#1 : {T}
  }}"""
"""A number that is no tensor is carried."""

NESTED = f"""%w = relay.constant dense<[{KERNEL}]> : tensor<9x4x4xf32>
  %k = relay.reshape %w {{newshape = array<i64: 4, 3, 3, 4>}} : (tensor<9x4x4xf32>) -> tensor<4x3x3x4xf32>
  %tenth = relay.constant dense<0.01> : tensor<f32>
  %r:2 = scf.while (%i = %n, %a = %x) : ({N}, {T}) -> ({N}, {T}) {{
    {positive("%i")}
    scf.condition(%go) %i, %a : {N}, {T}
  }} do {{
  ^bb0(%i: {N}, %a: {T}):
    {down("%i")}
    %in:2 = scf.while (%m = %j, %b = %a) : ({N}, {T}) -> ({N}, {T}) {{
      %q = relay.greater %m, %one : ({N}, {N}) -> tensor<i1>
      %on = tensor.extract %q[] : tensor<i1>
      scf.condition(%on) %m, %b : {N}, {T}
    }} do {{
    ^bb0(%m: {N}, %b: {T}):
      %l = relay.subtract %m, %one : {COUNT}
      %e = relay.nn.conv2d %b, %k {CONV}
      %f = relay.multiply %e, %tenth : ({T}, tensor<f32>) -> {T}
      scf.yield %l, %f : {N}, {T}
    }}
    %p2 = relay.greater %j, %one : ({N}, {N}) -> tensor<i1>
    %c = tensor.extract %p2[] : tensor<i1>
    %s = scf.if %c -> ({T}) {{
      %z = relay.add %in#1, %a : {B}
      scf.yield %z : {T}
    }} else {{
      scf.yield %a : {T}
    }}
    scf.yield %j, %s : {N}, {T}
  }}"""


def results_of(executable: Executable, given: list[Array]) -> tuple[Array, ...]:
    """What it gives for these inputs, as a tuple."""
    found = executable.run(*given)
    assert found is not None
    return found if isinstance(found, tuple) else (found,)


LOOPS: dict[str, tuple[str, str, str]] = {
    "swapped": (SWAPPED, f"{T}, {T}, {N}", "%t, %r#2, %r#0"),
    "tested": (TESTED, f"tensor<6x24xf32>, {N}", "%r#0, %r#1"),
    "numbers": (NUMBERS, T, "%s"),
    "nested": (NESTED, f"{N}, {T}", "%r#0, %r#1"),
}


@cache
def loop(name: str) -> IRModule:
    return module(*LOOPS[name])


def check_turns(mod: IRModule, executable: Executable, *counts: int) -> None:
    """The numbers of the interpreter, for so many turns."""
    rng = np.random.default_rng(3)
    for turns in counts:
        x, y = (rng.integers(-8, 8, (1, 6, 6, 4)).astype(np.float32) / 4 for _ in range(2))
        given = [np.array(turns, np.int32), x, y]
        for a, b in zip(results_of(executable, given), run(mod, given), strict=True):
            assert np.allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_compute_what_the_interpreter_does(name: str):
    loop(name).verify()
    check_turns(loop(name), relay.build(loop(name)), 0, 1, 2, 5)


def test_what_a_loop_reads_again_is_kept():
    """A buffer that is read in the loop's first operation must outlive its last one."""
    chain = "\n".join(f"%c{i} = relay.exp %c{i - 1} : {U}\n  %d{i} = relay.tanh %c{i} : {U}" for i in range(1, 4))
    body = f"""%s = relay.exp %y : {U}
  %u = relay.transpose %s {{axes = array<i64: 0, 2, 1, 3>}} : {U}
  %r:2 = scf.while (%i = %n, %a = %x) : ({N}, {T}) -> ({N}, {T}) {{
    {positive("%i")}
    scf.condition(%go) %i, %a : {N}, {T}
  }} do {{
  ^bb0(%i: {N}, %a: {T}):
    {down("%i")}
    %b = relay.subtract %a, %u : {B}
    %c0 = relay.tanh %b : {U}
    {chain}
    %e = relay.transpose %d3 {{axes = array<i64: 0, 2, 1, 3>}} : {U}
    %f = relay.add %e, %c3 : {B}
    scf.yield %j, %f : {N}, {T}
  }}"""
    mod = module(body, T, "%r#1")
    executable = relay.build(mod)
    x = np.linspace(-1, 1, 144, dtype=np.float32).reshape(1, 6, 6, 4)
    for turns in (1, 3):
        given = [np.array(turns, np.int32), x, x * x]
        (found,) = results_of(executable, given)
        assert np.allclose(found, run(mod, given)[0], rtol=1e-4, atol=1e-5)
