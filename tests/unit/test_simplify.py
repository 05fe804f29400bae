"""`simplify`, `fold-constant` and xDSL's own clean-up change no number."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.interpreters import run
from relay.module import IRModule
from relay.passes import Sequential
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.simplify import Simplify

SQUARE = "tensor<4x4xi8>"


def operations(mod: IRModule) -> list[str]:
    return [op.name.removeprefix("relay.") for op in mod["main"].body.block.ops][:-1]


@cache
def random_chain(seed: int) -> IRModule:
    """`@main`: thirty ops that often undo each other or change nothing, on an argument or on constants."""
    rng = np.random.default_rng(seed)
    lines, last = list[str](), "%x" if seed % 2 else "%c"
    for i in range(30):
        small, low = int(rng.integers(0, 2)), int(rng.integers(-128, -125))
        whole = "begin = array<i64: 0, 0>, end = array<i64: 4, 4>, strides = array<i64: 1, 1>"
        step = [
            f"relay.add {last}, %zero : ({SQUARE}, tensor<i8>)",
            f"relay.multiply {last}, %{'one' if small else 'zero'} : ({SQUARE}, tensor<i8>)" if rng.random() < 0.2 else
            f"relay.subtract {last}, %{'one' if small else 'zero'} : ({SQUARE}, tensor<i8>)",
            f"relay.transpose {last} {{axes = array<i64: {small}, {1 - small}>}} : ({SQUARE})",
            f"relay.clip {last} {{a_min = {low} : i8, a_max = 127 : i8}} : ({SQUARE})",
            f"relay.cast {last} {{dtype = i8}} : ({SQUARE})",
            f"relay.reshape {last} {{newshape = array<i64: 4, 4>}} : ({SQUARE})",
            f"relay.strided_slice {last} {{{whole}}} : ({SQUARE})",
            f"relay.lookup {last}, %table : ({SQUARE}, tensor<256xi8>)",
        ][int(rng.integers(8))]  # fmt: skip
        lines.append(f"%{i} = {step} -> {SQUARE}")
        last = f"%{i}"
    table = ", ".join(map(str, rng.integers(-128, 128, 256)))
    codes = ", ".join(str(row.tolist()) for row in rng.integers(-128, 128, (4, 4)))
    return IRModule.parse(
        f"""func.func @main(%x: {SQUARE}) -> {SQUARE} {{
          %zero = relay.constant dense<0> : tensor<i8>
          %one = relay.constant dense<1> : tensor<i8>
          %table = relay.constant dense<[{table}]> : tensor<256xi8>
          %c = relay.constant dense<[{codes}]> : {SQUARE}
          {chr(10).join(lines)}
          func.return {last} : {SQUARE}
        }}"""
    )


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.ci if seed >= 8 else ()) for seed in range(30)])
@pytest.mark.parametrize("which", [Simplify, FoldConstant, CommonSubexpressionElimination, CanonicalizePass])
def test_numbers_stay(seed: int, which: type[ModulePass]) -> None:
    mod = random_chain(seed)
    x = np.random.default_rng(seed).integers(-128, 128, (4, 4)).astype(np.int8)
    after = Sequential([which()])(mod)
    after.verify()
    np.testing.assert_array_equal(run(after, [x])[0], run(mod, [x])[0])


def test_constants_fold_to_the_end_and_steps_that_change_nothing_go() -> None:
    assert operations(Sequential([FoldConstant(), Simplify()])(random_chain(4))) == ["constant"]
    assert len(operations(Simplify()(random_chain(5)))) < 20


def merged(rng: np.random.Generator, sizes: list[int]) -> list[int]:
    """Neighbours merged at random."""
    ends = sorted({0, len(sizes), *map(int, rng.integers(0, len(sizes), 2))})
    return [prod(sizes[start:end]) for start, end in pairwise(ends)]


@pytest.mark.parametrize("seed", range(20))
def test_transposes_around_a_reshape_become_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 5, rng.integers(2, 6))]
    given, between = merged(rng, sizes), merged(rng, sizes) + [1] * (seed % 2)
    first, last = ([int(axis) for axis in rng.permutation(len(dims))] for dims in (given, between))
    x = np.arange(prod(sizes), dtype=np.int32).reshape([given[first.index(axis)] for axis in range(len(given))])
    wanted = x.transpose(first).reshape(between).transpose(last)
    types = [f"tensor<{'x'.join(map(str, dims))}xi32>" for dims in (x.shape, given, between, wanted.shape)]
    mod = IRModule.parse(
        f"""func.func @main(%x: {types[0]}) -> {types[3]} {{
          %0 = relay.transpose %x {{axes = array<i64: {str(first)[1:-1]}>}} : ({types[0]}) -> {types[1]}
          %1 = relay.reshape %0 {{newshape = array<i64: {str(between)[1:-1]}>}} : ({types[1]}) -> {types[2]}
          %2 = relay.transpose %1 {{axes = array<i64: {str(last)[1:-1]}>}} : ({types[2]}) -> {types[3]}
          func.return %2 : {types[3]}
        }}"""
    )
    after = Simplify()(mod)
    np.testing.assert_array_equal(run(after, [x])[0], wanted)
    mixed = any(b % a for a, b in pairwise(sorted({*map(int, np.cumprod(given)), *map(int, np.cumprod(between))})))
    assert operations(after).count("transpose") <= 1 or mixed


def test_two_tables_become_one() -> None:
    mod = IRModule.parse(
        f"""func.func @main(%x: {SQUARE}, %a: tensor<256xi8>) -> {SQUARE} {{
          %b = relay.constant dense<5> : tensor<256xi8>
          %c = relay.constant dense<7> : tensor<256xui8>
          %0 = relay.lookup %x, %c : ({SQUARE}, tensor<256xui8>) -> tensor<4x4xui8>
          %1 = relay.lookup %0, %b : (tensor<4x4xui8>, tensor<256xi8>) -> {SQUARE}
          %2 = relay.lookup %1, %a : ({SQUARE}, tensor<256xi8>) -> {SQUARE}
          func.return %2 : {SQUARE}
        }}"""
    )
    assert operations(Simplify()(mod)) == ["constant", "lookup", "lookup"]


GATED = """func.func @main(%x: tensor<256x{code}>, %y: tensor<256x{code}>) -> tensor<256x{code}> {{
  %table = relay.constant dense<{entries}> : tensor<256x{code}>
  %three = relay.constant dense<3> : tensor<1xi32>
  %gate = relay.lookup {given}, {read} : (tensor<256x{code}>, tensor<256x{code}>) -> tensor<256x{code}>
  %0 = relay.cast {other} {{dtype = i32}} : (tensor<256x{code}>) -> tensor<256xi32>
  %1 = relay.cast %gate {{dtype = i32}} : (tensor<256x{code}>) -> tensor<256xi32>
  %2 = relay.subtract %0, %three : (tensor<256xi32>, tensor<1xi32>) -> tensor<256xi32>
  %3 = relay.multiply %1, %2 : (tensor<256xi32>, tensor<256xi32>) -> tensor<256xi32>
  %4 = relay.clip %3 {{a_min = -100 : i32, a_max = 117 : i32}} : (tensor<256xi32>) -> tensor<256xi32>
  %5 = relay.cast %4 {{dtype = {code}}} : (tensor<256xi32>) -> tensor<256x{code}>
  func.return %5 : tensor<256x{code}>
}}"""


def gated(code: str = "i8", given: str = "%x", read: str = "%table", other: str = "%x") -> IRModule:
    entries = [k * k % 23 for k in range(256)]
    return IRModule.parse(GATED.format(code=code, entries=entries, given=given, read=read, other=other))


@pytest.mark.parametrize("code", ["i8", "ui8"])
def test_a_table_of_one_code_and_the_code_become_one_table(code: str) -> None:
    mod = gated(code)
    x = np.random.default_rng(1).permutation(256).astype(np.uint8).view("int8" if code == "i8" else "uint8")
    after = Simplify()(mod)
    assert operations(after) == ["constant", "lookup"]
    np.testing.assert_array_equal(run(after, [x, x])[0], run(mod, [x, x])[0])


def requantized(scale: str) -> str:
    properties = "output_scale = 0.5 : f32, output_zero_point = 3 : i32, out_dtype = i32"
    rest = "multiplier = 1073741824 : i32, shift = 1 : i32"
    return f"qnn.requantize %0 {{input_scale = {scale}, {properties}, {rest}}} : (tensor<256xi32>)"


@pytest.mark.parametrize(
    "op, becomes_one",
    [
        ("relay.abs %0 : (tensor<256xi32>)", True),
        ("relay.rounding_right_shift %0, %three : (tensor<256xi32>, tensor<1xi32>)", True),
        (requantized("0.5 : f32"), True),
        (requantized("dense<0.5> : tensor<256xf32>"), False),  # a number for each index of an axis
    ],
)
def test_elementwise_ops_are_in_a_table(op: str, becomes_one: bool) -> None:
    text = str(gated()).replace("relay.subtract %0, %three : (tensor<256xi32>, tensor<1xi32>)", op)
    mod, x = IRModule.parse(text), np.arange(-128, 128).astype(np.int8)
    after = Simplify()(mod)
    assert (operations(after) == ["constant", "lookup"]) == becomes_one
    np.testing.assert_array_equal(run(after, [x, x])[0], run(mod, [x, x])[0])


@pytest.mark.parametrize("which", [{"other": "%y"}, {"read": "%x"}, {"read": "%y"}, {"given": "%y"}])
def test_tables_of_more_than_one_code_stay(which: dict[str, str]) -> None:
    assert "multiply" in operations(Simplify()(gated(**which)))


def test_long_chains_are_no_table() -> None:
    """Longer than Python calls can be nested."""
    mod = IRModule.parse(
        """func.func @main(%x: tensor<4xi32>) -> tensor<4xi8> {
          %r = relay.cast %x {dtype = i8} : (tensor<4xi32>) -> tensor<4xi8>
          func.return %r : tensor<4xi8>
        }"""
    )
    block = mod["main"].body.block
    (cast,) = (op for op in block.ops if isinstance(op, relay.CastOp))
    for _ in range(1500):
        double = relay.AddOp.make([cast.input, cast.input])
        block.insert_op_before(double, cast)
        cast.operands[0] = double.result
    assert operations(Simplify()(mod)) == ["add"] * 1500 + ["cast"]


def test_a_reshaped_weight_keeps_its_name_and_memory() -> None:
    mod = IRModule.parse(
        """func.func @main() -> tensor<2x3xf32> {
          %w = relay.constant {label = "w"} dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
          %0 = relay.reshape %w {newshape = array<i64: 2, 3>} : (tensor<6xf32>) -> tensor<2x3xf32>
          func.return %0 : tensor<2x3xf32>
        }"""
    )
    before, after = mod.weights["w"], FoldConstant()(mod).weights["w"]
    assert after.shape == (2, 3) and np.shares_memory(before, after)


def test_a_folded_op_of_several_results() -> None:
    mod = IRModule.parse(
        """func.func @main() -> (tensor<i32>, tensor<i32>) {
          %x = relay.constant dense<12345> : tensor<i32>
          %m, %h = relay.fixed_point_reciprocal %x : (tensor<i32>) -> (tensor<i32>, tensor<i32>)
          func.return %m, %h : tensor<i32>, tensor<i32>
        }"""
    )
    after = FoldConstant()(mod)
    constants = [int(to_numpy(op.value)) for op in after.op.walk() if isinstance(op, relay.ConstantOp)]
    assert constants == [int(array) for array in run(mod, [])] and operations(after) == ["constant", "constant"]


@pytest.mark.parametrize("layout", ["OHWI", "OIHW", "HWIO"])
def test_the_zero_point_of_data_goes_into_the_bias(layout: str):
    rng = np.random.default_rng(0)
    sizes = {"O": 6, "H": 3, "W": 2, "I": 2}
    kernel = rng.integers(-128, 128, [sizes[letter] for letter in layout])
    dims = "x".join(map(str, kernel.shape))
    bias = rng.integers(-(2**31), 2**31, 6)
    mod = IRModule.parse(f"""
func.func @main(%x: tensor<2x5x5x4xui8>) -> tensor<2x3x4x6xi32> {{
  %k = relay.constant dense<{kernel.tolist()}> : tensor<{dims}xi8>
  %b = relay.constant dense<{bias.tolist()}> : tensor<6xi32>
  %0 = relay.nn.conv2d %x, %k {{input_zero_point = 131 : i32, kernel_zero_point = -4 : i32, groups = 2 : i64,
    kernel_layout = "{layout}"}} : (tensor<2x5x5x4xui8>, tensor<{dims}xi8>) -> tensor<2x3x4x6xi32>
  %1 = relay.nn.bias_add %0, %b : (tensor<2x3x4x6xi32>, tensor<6xi32>) -> tensor<2x3x4x6xi32>
  func.return %1 : tensor<2x3x4x6xi32>
}}""")
    simple = Simplify()(mod)
    (conv,) = (op for op in simple["main"].walk() if isinstance(op, relay.Conv2dOp))
    assert conv.input_zero_point is None and conv.kernel_zero_point is not None
    x = rng.integers(0, 256, (2, 5, 5, 4)).astype(np.uint8)
    assert np.array_equal(run(mod, [x])[0], run(simple, [x])[0])


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_the_zero_point_of_data_stays_where_the_bias_is_along_another_axis(axis: int):
    dims = "tensor<2x2x2x2xi32>"
    mod = IRModule.parse(f"""
func.func @main(%x: tensor<2x2x2x2xi8>, %y: tensor<2x2xi8>) -> ({dims}, tensor<2x2xi32>) {{
  %k = relay.constant dense<[[[[1, 2]]], [[[3, 5]]]]> : tensor<2x1x1x2xi8>
  %w = relay.constant dense<[[1, 2], [3, 5]]> : tensor<2x2xi8>
  %b = relay.constant dense<[7, 9]> : tensor<2xi32>
  %0 = relay.nn.conv2d %x, %k {{input_zero_point = 3 : i32, data_layout = "NCHW"}}
    : (tensor<2x2x2x2xi8>, tensor<2x1x1x2xi8>) -> {dims}
  %1 = relay.nn.bias_add %0, %b {{axis = {axis} : i64}} : ({dims}, tensor<2xi32>) -> {dims}
  %2 = relay.nn.dense %y, %w {{input_zero_point = 3 : i32}} : (tensor<2x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi32>
  %3 = relay.nn.bias_add %2, %b {{axis = {axis and -1} : i64}} : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  func.return %1, %3 : {dims}, tensor<2x2xi32>
}}""")
    simple = Simplify()(mod)
    conv, dense = (op for op in simple["main"].walk() if isinstance(op, relay.Conv2dOp | relay.DenseOp))
    assert (conv.input_zero_point is None, dense.input_zero_point is None) == (axis == 1, axis != 0)
    inputs = [np.arange(16, dtype=np.int8).reshape(2, 2, 2, 2), np.arange(4, dtype=np.int8).reshape(2, 2)]
    for before, after in zip(run(mod, inputs), run(simple, inputs), strict=True):
        np.testing.assert_array_equal(before, after)
