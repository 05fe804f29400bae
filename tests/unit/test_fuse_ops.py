"""`fuse-ops` changes no number, and makes kernels of the promised form."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import CallOp

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, elements, to_numpy
from relay.dialects.op import shape, tensor
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.fuse_ops import FuseOps

I8, I32, F32 = "tensor<4x6xi8>", "tensor<4x6xi32>", "tensor<4x6xf32>"


def main_ops(mod: IRModule) -> list[str]:
    return [op.name for op in mod["main"].body.block.ops]


def kernels(mod: IRModule) -> dict[str, list[str]]:
    """The ops of every kernel."""
    return {
        name: [op.name.removeprefix("relay.") for op in function.body.block.ops][:-1]
        for name, function in mod.functions.items()
        if function.sym_visibility is not None
    }


def random_inputs(mod: IRModule, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for argument in mod["main"].body.block.args:
        numbers = rng.integers(-100, 100, shape(argument))
        found.append(numbers.astype(dtype_of(tensor(argument).element_type)))
    return found


def fused(text: str) -> IRModule:
    """Parse, fuse, and check that the numbers and the form are right."""
    mod = IRModule.parse(text)
    result = FuseOps()(mod)
    result.verify()
    inputs = random_inputs(mod)
    for before, after in zip(run(mod, inputs), run(result, inputs), strict=True):
        np.testing.assert_array_equal(after, before)
    assert set(main_ops(result)) <= {"relay.constant", "relay.reshape", "func.call", "func.return"}
    assert str(FuseOps()(mod)) == str(result)
    return result


def test_anchor_takes_what_follows_and_equal_kernels_are_one() -> None:
    dense = "{out_dtype = i32} : (tensor<4x6xi8>, tensor<6x6xi8>) -> tensor<4x6xi32>"
    mod = fused(f"""
      func.func @main(%x: {I8}, %w: tensor<6x6xi8>, %v: tensor<6x6xi8>) -> {I8} {{
        %three = relay.constant dense<3> : tensor<i32>
        %bias = relay.constant {{label = "b"}} dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
        %0 = relay.nn.dense %x, %w {dense}
        %1 = relay.nn.bias_add %0, %bias : ({I32}, tensor<6xi32>) -> {I32}
        %2 = relay.right_shift %1, %three : ({I32}, tensor<i32>) -> {I32}
        %3 = relay.cast %2 {{dtype = i8}} : ({I32}) -> {I8}
        %4 = relay.nn.dense %3, %v {dense}
        %5 = relay.nn.bias_add %4, %bias : ({I32}, tensor<6xi32>) -> {I32}
        %6 = relay.right_shift %5, %three : ({I32}, tensor<i32>) -> {I32}
        %7 = relay.cast %6 {{dtype = i8}} : ({I32}) -> {I8}
        func.return %7 : {I8}
      }}""")
    assert kernels(mod) == {"dense_0": ["constant", "nn.dense", "nn.bias_add", "right_shift", "cast"]}
    assert main_ops(mod) == ["relay.constant", "func.call", "func.call", "func.return"]


def test_constants_of_another_number_make_another_kernel() -> None:
    mod = fused(f"""
      func.func @main(%x: {I32}) -> ({I32}, {I32}) {{
        %a = relay.constant dense<3> : tensor<i32>
        %b = relay.constant dense<4> : tensor<i32>
        %0 = relay.add %x, %a : ({I32}, tensor<i32>) -> {I32}
        %1 = relay.add %x, %b : ({I32}, tensor<i32>) -> {I32}
        func.return %0, %1 : {I32}, {I32}
      }}""")
    assert list(kernels(mod)) == ["elementwise_0", "elementwise_1"]


def test_names_of_equal_numbers_make_no_other_kernel() -> None:
    """As of the layers of a transformer, whose file has such a constant for each."""
    text = f"""
      func.func @main(%x: {F32}) -> ({F32}, {F32}, {F32}) {{
        %a = relay.constant {{label = "a"}} dense_resource<a> : tensor<f32>
        %b = relay.constant {{label = "b"}} dense_resource<b> : tensor<f32>
        %c = relay.constant {{label = "c"}} dense_resource<c> : tensor<f32>
        %0 = relay.add %x, %a : ({F32}, tensor<f32>) -> {F32}
        %1 = relay.add %x, %b : ({F32}, tensor<f32>) -> {F32}
        %2 = relay.add %x, %c : ({F32}, tensor<f32>) -> {F32}
        func.return %0, %1, %2 : {F32}, {F32}, {F32}
      }}"""
    weights = {name: np.array(number, np.float32) for name, number in (("a", 0.5), ("b", 0.5), ("c", 0.25))}
    mod = IRModule.parse(text, weights)
    for op in list(mod["main"].walk()):
        if isinstance(op, relay.ConstantOp) and op.label is not None:
            op.properties["value"] = elements(to_numpy(op.value), label=op.label.data)
    mod = FuseOps()(mod)
    assert [op.callee.string_value() for op in mod["main"].walk() if isinstance(op, CallOp)] == [
        "elementwise_0", "elementwise_0", "elementwise_1"
    ]  # fmt: skip


def test_residual_of_an_input_and_a_convolution_is_in_the_convolution() -> None:
    mod = fused(f"""
      func.func @main(%x: {I8}, %w: tensor<6x6xi8>) -> {I8} {{
        %0 = relay.nn.dense %x, %w {{out_dtype = i32}} : ({I8}, tensor<6x6xi8>) -> {I32}
        %1 = relay.cast %0 {{dtype = i8}} : ({I32}) -> {I8}
        %2 = relay.cast %1 {{dtype = i32}} : ({I8}) -> {I32}
        %3 = relay.cast %x {{dtype = i32}} : ({I8}) -> {I32}
        %4 = relay.negative %3 : ({I32}) -> {I32}
        %5 = relay.add %2, %4 : ({I32}, {I32}) -> {I32}
        %6 = relay.cast %5 {{dtype = i8}} : ({I32}) -> {I8}
        func.return %6 : {I8}
      }}""")
    assert list(kernels(mod)) == ["dense_0"]


def test_of_two_convolutions_the_first_ends_where_its_result_is_narrowest() -> None:
    mod = fused(f"""
      func.func @main(%x: {I8}, %w: tensor<6x6xi8>, %v: tensor<6x6xi8>) -> {I32} {{
        %0 = relay.nn.dense %x, %w {{out_dtype = i32}} : ({I8}, tensor<6x6xi8>) -> {I32}
        %1 = relay.cast %0 {{dtype = i8}} : ({I32}) -> {I8}
        %2 = relay.cast %1 {{dtype = i32}} : ({I8}) -> {I32}
        %3 = relay.nn.dense %x, %v {{out_dtype = i32}} : ({I8}, tensor<6x6xi8>) -> {I32}
        %4 = relay.add %2, %3 : ({I32}, {I32}) -> {I32}
        func.return %4 : {I32}
      }}""")
    assert kernels(mod) == {"dense_0": ["nn.dense", "cast"], "dense_1": ["cast", "nn.dense", "add"]}
    assert str(mod["dense_0"].function_type.outputs.data[0]) == I8


def test_a_convolution_whose_codes_are_summed_ends_with_the_codes() -> None:
    mod = fused(f"""
      func.func @main(%x: {I8}, %w: tensor<6x6xi8>) -> tensor<4xi32> {{
        %0 = relay.nn.dense %x, %w {{out_dtype = i32}} : ({I8}, tensor<6x6xi8>) -> {I32}
        %1 = relay.cast %0 {{dtype = i8}} : ({I32}) -> {I8}
        %2 = relay.cast %1 {{dtype = i32}} : ({I8}) -> {I32}
        %3 = relay.sum %2 {{axis = array<i64: 1>}} : ({I32}) -> tensor<4xi32>
        func.return %3 : tensor<4xi32>
      }}""")
    assert kernels(mod) == {"dense_0": ["nn.dense", "cast"], "sum_0": ["cast", "sum"]}


def test_an_anchor_between_two_ends_keeps_them_apart() -> None:
    """The sum of x and of what a product makes of x cannot be computed before the product."""
    mod = fused("""
      func.func @main(%a: tensor<6x6xf32>) -> tensor<6x6xf32> {
        %x = relay.abs %a : (tensor<6x6xf32>) -> tensor<6x6xf32>
        %0 = relay.nn.dense %x, %x {out_dtype = f32} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
        %1 = relay.add %x, %0 : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
        func.return %1 : tensor<6x6xf32>
      }""")
    assert kernels(mod) == {"elementwise_0": ["abs"], "dense_0": ["nn.dense", "add"]}


def test_a_reduction_computes_its_operand_on_the_way_and_codes_are_read_twice() -> None:
    mod = fused(f"""
      func.func @main(%x: {I8}) -> ({I32}, tensor<4xi32>) {{
        %two = relay.constant dense<2> : tensor<i32>
        %0 = relay.cast %x {{dtype = i32}} : ({I8}) -> {I32}
        %1 = relay.subtract %0, %two : ({I32}, tensor<i32>) -> {I32}
        %2 = relay.sum %1 {{axis = array<i64: 1>}} : ({I32}) -> tensor<4xi32>
        %3 = relay.negative %1 : ({I32}) -> {I32}
        func.return %3, %2 : {I32}, tensor<4xi32>
      }}""")
    assert kernels(mod) == {
        "elementwise_0": ["constant", "cast", "subtract", "negative"],
        "sum_0": ["constant", "cast", "subtract", "sum"],
    }


def test_reshapes_constants_and_arguments_stay_with_the_caller() -> None:
    mod = fused(f"""
      func.func @main(%x: {F32}) -> ({F32}, tensor<24xf32>, tensor<2xf32>) {{
        %c = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
        %0 = relay.abs %x : ({F32}) -> {F32}
        %1 = relay.reshape %0 {{newshape = array<i64: 24>}} : ({F32}) -> tensor<24xf32>
        %2 = relay.negative %1 : (tensor<24xf32>) -> tensor<24xf32>
        func.return %x, %2, %c : {F32}, tensor<24xf32>, tensor<2xf32>
      }}""")
    assert main_ops(mod) == ["relay.constant", "func.call", "relay.reshape", "func.call", "func.return"]


def test_every_public_function_is_fused_and_shares_kernels() -> None:
    function = """
      func.func @NAME(%x: tensor<3xf32>) -> tensor<3xf32> {
        %0 = relay.abs %x : (tensor<3xf32>) -> tensor<3xf32>
        func.return %0 : tensor<3xf32>
      }"""
    mod = fused(function.replace("NAME", "main") + function.replace("NAME", "elementwise_0"))
    assert list(kernels(mod)) == ["elementwise_1"]
    calls = [op for op in mod.op.walk() if isinstance(op, CallOp)]
    assert [call.callee.string_value() for call in calls] == ["elementwise_1"] * 2


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.ci if seed >= 12 else ()) for seed in range(60)])
def test_random_graphs(seed: int) -> None:
    """Any graph of elementwise ops, products and reductions gives the same numbers, in kernels of one anchor each."""
    rng = np.random.default_rng(seed)
    square = "tensor<5x5xi32>"
    lines, values, codes = list[str](), ["%x", "%y"], ["%c"]
    for i in range(30):
        a, b = rng.choice(values[-6:], 2)
        c, d = rng.choice(codes[-4:], 2)
        match int(rng.integers(7)):
            case 0:
                lines.append(f"%{i} = relay.add {a}, {b} : ({square}, {square}) -> {square}")
            case 1:
                lines.append(f"%{i} = relay.negative {a} : ({square}) -> {square}")
            case 2:
                lines.append(f"%{i} = relay.cast {a} {{dtype = i8}} : ({square}) -> tensor<5x5xi8>")
            case 3:
                lines.append(f"%{i} = relay.cast {c} {{dtype = i32}} : (tensor<5x5xi8>) -> {square}")
            case 4:
                types = "(tensor<5x5xi8>, tensor<5x5xi8>)"
                lines.append(f"%{i} = relay.nn.dense {c}, {d} {{out_dtype = i32}} : {types} -> {square}")
            case 5:
                keep = "{axis = array<i64: 1>, keepdims = true}"
                lines.append(f"%r{i} = relay.sum {a} {keep} : ({square}) -> tensor<5x1xi32>")
                lines.append(f"%{i} = relay.subtract {b}, %r{i} : ({square}, tensor<5x1xi32>) -> {square}")
            case _:
                lines.append(f"%m{i}, %{i} = relay.fixed_point_reciprocal {a} : ({square}) -> ({square}, {square})")
                values.append(f"%m{i}")
        (codes if "dtype = i8" in lines[-1] else values).append(f"%{i}")
    results = [str(v) for v in rng.choice(values, 3)]
    types = ", ".join([square] * 3)
    mod = fused(
        f"func.func @main(%x: {square}, %y: {square}, %c: tensor<5x5xi8>) -> ({types}) {{\n"
        + "\n".join([*lines, f"func.return {', '.join(results)} : {types}"])
        + "\n}"
    )
    for function in mod.functions.values():
        if function.sym_visibility is not None:
            assert sum(isinstance(op, relay.DenseOp | relay.SumOp) for op in function.body.block.ops) <= 1


def test_single_numbers_that_follow_from_each_other_are_computed_once() -> None:
    """Copies for each user would double with each of them."""
    lines, value = list[str](), "%x"
    for n in range(40):
        lines += [
            f"%n{n} = relay.negative {value} : (tensor<1xf32>) -> tensor<1xf32>",
            f"%a{n} = relay.abs {value} : (tensor<1xf32>) -> tensor<1xf32>",
            f"%m{n} = relay.maximum %n{n}, %a{n} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>",
        ]
        value = f"%m{n}"
    text = "\n".join(lines)
    mod = fused(
        f"func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {{\n{text}\nfunc.return {value} : tensor<1xf32>\n}}"
    )
    assert sum(map(len, kernels(mod).values())) <= 5 * len(lines)
