"""Sequences of any length by one build: equal to formulas in numpy, and to builds for the length, bit for bit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.runtime import DynamicExecutable, Executable, load
from tests.unit.test_sizes import resident

MAXIMUM, WIDTH = 100, 32
TEXT = f"""func.func @main(%x: tensor<?x{WIDTH}xi8>, %m: tensor<1x?xi8>)
    -> (tensor<?x{WIDTH}xi32>, tensor<?x{WIDTH}xf32>)
    attributes {{relay.inputs = [{{name = "x"}}, {{name = "m"}}],
    relay.symbols = [{{name = "n", places = [array<i64: 0, 0>, array<i64: 1, 1>]}}]}} {{
  %w = relay.constant {{label = "w"}} dense<WEIGHTS> : tensor<{WIDTH}x{WIDTH}xi8>
  %low = relay.constant dense<-127> : tensor<i32>
  %bits = relay.constant dense<6> : tensor<i32>
  %scale = relay.constant dense<0.01> : tensor<f32>
  %d = relay.nn.dense %x, %w {{out_dtype = i32}}
    : (tensor<?x{WIDTH}xi8>, tensor<{WIDTH}x{WIDTH}xi8>) -> tensor<?x{WIDTH}xi32>
  %s = relay.right_shift %d, %bits : (tensor<?x{WIDTH}xi32>, tensor<i32>) -> tensor<?x{WIDTH}xi32>
  %c = relay.clip %s {{a_min = -127 : i32, a_max = 127 : i32}} : (tensor<?x{WIDTH}xi32>) -> tensor<?x{WIDTH}xi32>
  %q = relay.cast %c {{dtype = i8}} : (tensor<?x{WIDTH}xi32>) -> tensor<?x{WIDTH}xi8>
  %a = relay.expand_dims %q {{axis = 0 : i64}} : (tensor<?x{WIDTH}xi8>) -> tensor<1x?x{WIDTH}xi8>
  %b = relay.expand_dims %x {{axis = 0 : i64}} : (tensor<?x{WIDTH}xi8>) -> tensor<1x?x{WIDTH}xi8>
  %t = relay.nn.batch_matmul %a, %b {{out_dtype = i32}}
    : (tensor<1x?x{WIDTH}xi8>, tensor<1x?x{WIDTH}xi8>) -> tensor<1x?x?xi32>
  %wide = relay.cast %m {{dtype = i32}} : (tensor<1x?xi8>) -> tensor<1x?xi32>
  %u = relay.add %t, %wide : (tensor<1x?x?xi32>, tensor<1x?xi32>) -> tensor<1x?x?xi32>
  %v = relay.right_shift %u, %bits : (tensor<1x?x?xi32>, tensor<i32>) -> tensor<1x?x?xi32>
  %z = relay.clip %v {{a_min = -127 : i32, a_max = 127 : i32}} : (tensor<1x?x?xi32>) -> tensor<1x?x?xi32>
  %k = relay.cast %z {{dtype = i8}} : (tensor<1x?x?xi32>) -> tensor<1x?x?xi8>
  %p = relay.transpose %b {{axes = array<i64: 0, 2, 1>}} : (tensor<1x?x{WIDTH}xi8>) -> tensor<1x{WIDTH}x?xi8>
  %y = relay.nn.batch_matmul %k, %p {{out_dtype = i32}}
    : (tensor<1x?x?xi8>, tensor<1x{WIDTH}x?xi8>) -> tensor<1x?x{WIDTH}xi32>
  %largest = relay.max %z {{axis = array<i64: 2>, keepdims = true}} : (tensor<1x?x?xi32>) -> tensor<1x?x1xi32>
  %sum = relay.sum %z {{axis = array<i64: 2>, keepdims = true}} : (tensor<1x?x?xi32>) -> tensor<1x?x1xi32>
  %both = relay.add %largest, %sum : (tensor<1x?x1xi32>, tensor<1x?x1xi32>) -> tensor<1x?x1xi32>
  %r = relay.add %y, %both : (tensor<1x?x{WIDTH}xi32>, tensor<1x?x1xi32>) -> tensor<1x?x{WIDTH}xi32>
  %first = relay.squeeze %r {{axis = array<i64: 0>}} : (tensor<1x?x{WIDTH}xi32>) -> tensor<?x{WIDTH}xi32>
  %f = relay.cast %z {{dtype = f32}} : (tensor<1x?x?xi32>) -> tensor<1x?x?xf32>
  %g = relay.multiply %f, %scale : (tensor<1x?x?xf32>, tensor<f32>) -> tensor<1x?x?xf32>
  %o = relay.nn.softmax %g {{axis = -1 : i64, beta = 1.0 : f64}} : (tensor<1x?x?xf32>) -> tensor<1x?x?xf32>
  %h = relay.cast %p {{dtype = f32}} : (tensor<1x{WIDTH}x?xi8>) -> tensor<1x{WIDTH}x?xf32>
  %i = relay.nn.batch_matmul %o, %h {{out_dtype = f32}}
    : (tensor<1x?x?xf32>, tensor<1x{WIDTH}x?xf32>) -> tensor<1x?x{WIDTH}xf32>
  %second = relay.squeeze %i {{axis = array<i64: 0>}} : (tensor<1x?x{WIDTH}xf32>) -> tensor<?x{WIDTH}xf32>
  func.return %first, %second : tensor<?x{WIDTH}xi32>, tensor<?x{WIDTH}xf32>
}}"""
WEIGHTS = np.random.default_rng(7).integers(-40, 40, (WIDTH, WIDTH), np.int8)


@cache
def module() -> IRModule:
    return IRModule.parse(TEXT.replace("WEIGHTS", str(WEIGHTS.tolist())))


@cache
def executable() -> DynamicExecutable:
    exe = build(module(), opt_level=1, maximum={"n": MAXIMUM})
    assert isinstance(exe, DynamicExecutable)
    return exe


def inputs(length: int) -> tuple[Array, Array]:
    random = np.random.default_rng(length)
    return random.integers(-50, 50, (length, WIDTH), np.int8), random.integers(-90, 9, (1, length), np.int8)


def formula(x: Array, m: Array) -> tuple[Array, Array]:
    wide = x.astype(np.int32)
    q = np.clip((wide @ WEIGHTS.astype(np.int32).T) >> 6, -127, 127)
    z = np.clip((q @ wide.T + m) >> 6, -127, 127)
    first = z @ wide + z.max(1, keepdims=True) + z.sum(1, keepdims=True, dtype=np.int32)
    powers = np.exp(0.01 * z - (0.01 * z).max(1, keepdims=True))
    return first, powers / powers.sum(1, keepdims=True) @ x


def run(exe: Executable, *given: Array) -> tuple[Array, ...]:
    found = exe.run(*given)
    assert isinstance(found, tuple)
    return found


@settings(deadline=None, max_examples=25)
@given(st.integers(1, MAXIMUM))
@example(1)
@example(5)
@example(6)
@example(7)
@example(15)
@example(16)
@example(17)
@example(MAXIMUM)
def test_any_length(length: int):
    given = inputs(length)
    for found, wanted in zip(run(executable(), *given), formula(*given), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=0 if found.dtype == np.int32 else 1e-3)
    assert executable().variants == [{"n": MAXIMUM}]


def test_two_lengths_in_turn():
    """What a longer run leaves in memory does not matter to a shorter one."""
    wanted = [run(executable(), *inputs(length)) for length in (3, 90)]
    for length, before in ((90, wanted[1]), (3, wanted[0]), (3, wanted[0]), (90, wanted[1])):
        for found, array in zip(run(executable(), *inputs(length)), before, strict=True):
            assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("length", [19, pytest.param(64, marks=pytest.mark.ci)])
def test_a_build_for_the_length_gives_the_same_bits(length: int):
    given = inputs(length)
    fixed = build(module(), opt_level=1, shapes={"n": length})
    for found, wanted in zip(run(executable(), *given), run(fixed, *given), strict=True):
        assert found.tobytes() == wanted.tobytes()


def test_what_is_said_of_sizes():
    exe = executable()
    assert exe.to_json()["how"] == {"n": f"at run time, up to {MAXIMUM}"}
    assert [str(spec.shape) for spec in exe.outputs] == ["(n, 32)", "(n, 32)"]
    with pytest.raises(InvalidArgument, match="size n: is 101; it is from 1 to 100"):
        exe.run(*inputs(101))
    with pytest.raises(InvalidArgument, match="size n: is 5 in 'x' .axis 0. and 4 in 'm'"):
        exe.run(inputs(5)[0], inputs(4)[1])


def test_loaded_without_a_compiler(tmp_path: Path):
    executable().save(tmp_path / "any.relay")
    loaded = load(tmp_path / "any.relay")
    loaded.num_threads = 2
    for length in (1, 40, MAXIMUM):
        given = inputs(length)
        for found, wanted in zip(run(loaded, *given), run(executable(), *given), strict=True):
            assert found.tobytes() == wanted.tobytes()
    assert [spec.name for spec in loaded.inputs] == ["x", "m"]


@pytest.mark.parametrize(
    ("maximum", "message"),
    [
        ({"k": 8}, "maximum.'k'.: names no open size; there are n"),
        ({"n": 0}, "maximum.'n'.: is 0; it is from 1 to any number"),
    ],
)
def test_wrong_maximum(maximum: dict[str, int], message: str):
    with pytest.raises(InvalidArgument, match=message):
        build(module(), maximum=maximum)


def test_a_mean_over_the_sequence_has_a_build_for_each_length():
    text = """func.func @main(%x: tensor<?x16xf32>) -> tensor<16xf32> attributes {
        relay.inputs = [{name = "x"}], relay.symbols = [{name = "n", places = [array<i64: 0, 0>]}]} {
      %m = relay.mean %x {axis = array<i64: 0>} : (tensor<?x16xf32>) -> tensor<16xf32>
      func.return %m : tensor<16xf32>
    }"""
    exe = build(IRModule.parse(text), opt_level=1, maximum={"n": 40})
    assert "a constant follows from the length" in exe.to_json()["how"]["n"]
    x = np.random.default_rng(0).standard_normal((7, 16)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(exe.run(x)), x.mean(0), rtol=1e-5)


@pytest.mark.parametrize("runs", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory in use from /proc")
def test_runs_of_random_lengths_take_no_memory(runs: int):
    """Resident memory is the same behind the first hundred runs and behind all, within 1 MB."""
    exe, lengths = executable(), np.random.default_rng(runs).integers(1, MAXIMUM + 1, runs).tolist()
    given = {length: inputs(length) for length in range(1, MAXIMUM + 1)}
    wanted = {length: run(exe, *each)[0].tobytes() for length, each in given.items()}
    before = resident()
    for length in lengths:
        assert run(exe, *given[length])[0].tobytes() == wanted[length]
    assert resident() - before < 1 << 20


BATCHED = f"""func.func @main(%x: tensor<?x?x{WIDTH}xi8>) -> (tensor<?x?x{WIDTH}xi32>, tensor<?x{WIDTH}xi32>)
    attributes {{relay.inputs = [{{name = "x"}}], relay.symbols = [{{name = "n", places = [array<i64: 0, 0>]}},
    {{name = "s", places = [array<i64: 0, 1>]}}]}} {{
  %low = relay.constant dense<-127> : tensor<i32>
  %bits = relay.constant dense<6> : tensor<i32>
  %t = relay.nn.batch_matmul %x, %x {{out_dtype = i32}}
    : (tensor<?x?x{WIDTH}xi8>, tensor<?x?x{WIDTH}xi8>) -> tensor<?x?x?xi32>
  %v = relay.right_shift %t, %bits : (tensor<?x?x?xi32>, tensor<i32>) -> tensor<?x?x?xi32>
  %z = relay.clip %v {{a_min = -127 : i32, a_max = 127 : i32}} : (tensor<?x?x?xi32>) -> tensor<?x?x?xi32>
  %k = relay.cast %z {{dtype = i8}} : (tensor<?x?x?xi32>) -> tensor<?x?x?xi8>
  %p = relay.transpose %x {{axes = array<i64: 0, 2, 1>}} : (tensor<?x?x{WIDTH}xi8>) -> tensor<?x{WIDTH}x?xi8>
  %y = relay.nn.batch_matmul %k, %p {{out_dtype = i32}}
    : (tensor<?x?x?xi8>, tensor<?x{WIDTH}x?xi8>) -> tensor<?x?x{WIDTH}xi32>
  %sum = relay.sum %y {{axis = array<i64: AXIS>, keepdims = false}} : (tensor<?x?x{WIDTH}xi32>) -> tensor<?x{WIDTH}xi32>
  func.return %y, %sum : tensor<?x?x{WIDTH}xi32>, tensor<?x{WIDTH}xi32>
}}"""


@cache
def batched() -> DynamicExecutable:
    exe = build(IRModule.parse(BATCHED.replace("AXIS", "1")), opt_level=1, maximum={"s": 40})
    assert isinstance(exe, DynamicExecutable)
    return exe


def batched_formula(x: Array) -> Array:
    wide = x.astype(np.int32)
    return np.clip((wide @ wide.transpose(0, 2, 1)) >> 6, -127, 127) @ wide


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 9), st.integers(1, 40))
@example(1, 1)
@example(2, 40)
@example(9, 17)
def test_any_number_of_rows_of_any_length(rows: int, length: int):
    x = np.random.default_rng(rows).integers(-50, 50, (rows, length, WIDTH), np.int8)
    first, second = run(batched(), x)
    wanted = batched_formula(x)
    assert np.array_equal(first, wanted) and np.array_equal(second, wanted.sum(1, dtype=np.int32))


def test_rows_of_any_length_by_one_build_and_without_a_compiler():
    exe = batched()
    assert exe.to_json()["how"] == {"n": "at run time, row by row", "s": "at run time, up to 40"}
    other, x = load(exe.to_bytes()), np.ones((3, 5, WIDTH), np.int8)
    assert all(np.array_equal(a, b) for a, b in zip(run(exe, x), run(other, x), strict=True))
    assert len(exe.variants) == 1 and run(exe, x[:0:-1].copy())[0].shape == (2, 5, WIDTH)
    with pytest.raises(InvalidArgument, match="size s"):
        run(other, np.ones((2, 41, WIDTH), np.int8))
    fixed = exe.prepare(n=[2], s=[6]).variant(n=2, s=6)  # a build for both is taken before
    x = np.full((2, 6, WIDTH), 3, np.int8)
    assert all(np.array_equal(a, b) for a, b in zip(run(exe, x), run(fixed, x), strict=True))


def test_rows_that_meet_have_a_build_for_each_number_of_them():
    exe = build(IRModule.parse(BATCHED.replace("AXIS", "0")), opt_level=1, maximum={"s": 40})
    assert exe.to_json()["how"]["n"] == "1 with any s; a build for each other"
    x = np.random.default_rng(3).integers(-50, 50, (3, 4, WIDTH), np.int8)
    assert np.array_equal(run(exe, x)[1], batched_formula(x).sum(0, dtype=np.int32))
