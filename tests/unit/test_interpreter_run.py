"""Running modules: functions, inputs, regions, memory, xDSL's interpreter."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from xdsl.interpreter import Interpreter

from relay import signature
from relay.dialects.attributes import Array
from relay.dialects.context import make_context
from relay.dialects.relay import AddOp
from relay.errors import InvalidArgument, Unsupported
from relay.interpreters import evaluate, func, register, run
from relay.module import IRModule
from relay.signature import TensorInfo

TWO_FUNCTIONS = """
func.func @twice(%x: tensor<2xi32>) -> tensor<2xi32> {
  %r = relay.add %x, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  func.return %r : tensor<2xi32>
}
func.func @main(%x: tensor<2xi32>, %y: tensor<?xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %three = relay.constant dense<3> : tensor<i32>
  %a = func.call @twice(%x) : (tensor<2xi32>) -> tensor<2xi32>
  %b = byoc.compiler_begin %a {compiler = "one"} : (tensor<2xi32>) -> tensor<2xi32>
  %c = byoc.region "one"(%b) : (tensor<2xi32>) -> tensor<2xi32> {
  ^bb0(%inner: tensor<2xi32>):
    %d = relay.multiply %inner, %inner : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    byoc.yield %d : tensor<2xi32>
  }
  %e = byoc.compiler_end %c {compiler = "one"} : (tensor<2xi32>) -> tensor<2xi32>
  %f = relay.add %e, %three : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  func.return %f, %x : tensor<2xi32>, tensor<2xi32>
}
"""
X = np.array([1, -2], np.int32)
Y = np.array([5, 6, 7], np.int32)


def test_run_calls_functions_and_regions() -> None:
    module = IRModule.parse(TWO_FUNCTIONS)
    for inputs in ([X, Y], {"y": Y, "x": X}):
        first, second = run(module, inputs)
        assert first.tolist() == [7, 19] and second.tolist() == [1, -2]
    assert run(module.op, [X], "twice")[0].tolist() == [2, -4]


def test_inputs_by_the_names_of_the_signature() -> None:
    module = IRModule.parse(TWO_FUNCTIONS)
    i32 = np.dtype(np.int32)
    state = TensorInfo("memory", (2,), i32, "state", initial=np.array([3, 4], np.int32))
    outputs = [TensorInfo("sum", (2,), i32, "output"), TensorInfo("memory", (2,), i32, "state")]
    signature.write(module["main"], [state, TensorInfo("image", (3,), i32)], outputs)
    assert run(module, {"image": Y})[1].tolist() == [3, 4]
    assert run(module, {"image": Y, "memory": X})[1].tolist() == [1, -2]
    with pytest.raises(InvalidArgument, match="input image is missing; it takes memory, image"):
        run(module, {"memory": X})


def test_states_behind_the_inputs_start_with_their_initial_values() -> None:
    i32 = np.dtype(np.int32)
    text = "func.func @main(%x: tensor<2xi32>, %s: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) "
    module = IRModule.parse(text + "{ func.return %x, %s : tensor<2xi32>, tensor<2xi32> }")
    state = TensorInfo("memory", (2,), i32, "state", initial=np.array([3, 4], np.int32))
    outputs = [TensorInfo("same", (2,), i32, "output"), TensorInfo("memory", (2,), i32, "state")]
    signature.write(module["main"], [TensorInfo("image", (2,), i32), state], outputs)
    assert run(module, [X])[1].tolist() == run(module, {"image": X})[1].tolist() == [3, 4]
    with pytest.raises(InvalidArgument, match="takes 2 inputs, got 0"):
        run(module, [])


def test_results_are_fresh_arrays() -> None:
    _, same = run(IRModule.parse(TWO_FUNCTIONS), [X, Y])
    assert not np.shares_memory(same, X) and same.flags.writeable


def test_xdsl_interpreter_runs_the_same_functions() -> None:
    module = IRModule.parse(TWO_FUNCTIONS)
    interpreter = Interpreter(module.op)
    register(interpreter)
    first, second = interpreter.call_op("main", (X, Y))
    assert first.tolist() == [7, 19] and second.tolist() == [1, -2]


def test_beside_all_functions_of_xdsl() -> None:
    from xdsl.interpreters import register_implementations  # the package takes long to import

    module = IRModule.parse(TWO_FUNCTIONS).op
    interpreter = Interpreter(module)
    register_implementations(interpreter, make_context())
    register(interpreter)
    assert interpreter.call_op("twice", (X,))[0].tolist() == (2 * X).tolist()


WRONG: list[tuple[Sequence[Array] | Mapping[str, Array], str]] = [
    ([X], "function main: takes 2 inputs, got 1"),
    ([X.astype(np.int64), Y], r"input x: is int64 of shape \[2\]; it takes int32 of shape \[2\]"),
    ([Y, Y], r"input x: is int32 of shape \[3\]; it takes int32 of shape \[2\]"),
    ([X, X[:, None]], r"input y: is int32 of shape \[2, 1\]; it takes int32 of shape \['\?'\]"),
    ({"x": X}, "function main: input y is missing; it takes x, y"),
    ({"x": X, "y": Y, "z": Y}, "function main: there is no input z; it takes x, y"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG)
def test_wrong_inputs(inputs: Sequence[Array] | Mapping[str, Array], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        run(IRModule.parse(TWO_FUNCTIONS), inputs)


def test_unknown_function() -> None:
    with pytest.raises(InvalidArgument, match="function other: is not in the module; it has twice, main"):
        run(IRModule.parse(TWO_FUNCTIONS), [X, Y], "other")


def test_a_declaration_cannot_run() -> None:
    with pytest.raises(Unsupported, match="function far: has no body of one block"):
        run(IRModule.parse("func.func private @far(tensor<2xi32>) -> tensor<2xi32>"), [X], "far")


def test_an_op_of_another_dialect_is_refused() -> None:
    text = "func.func @main() -> i32 { %c = arith.constant 1 : i32 %d = arith.addi %c, %c : i32 func.return %d : i32 }"
    with pytest.raises(Unsupported, match="op arith.addi: has no meaning for the interpreter"):
        run(IRModule.parse(text), [])


def test_values_are_dropped_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    length = 6
    lines = [
        f"%{i + 1} = relay.add %{i}, %{i} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>" for i in range(length)
    ]
    body = "\n".join(lines).replace("%0,", "%x,").replace("%0 :", "%x :")
    text = f"func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {{\n{body}\nfunc.return %{length} : tensor<2xi32>\n}}"
    made: list[weakref.ref[Array]] = []
    alive: list[int] = []

    def watched(op: AddOp, lhs: Array, rhs: Array) -> Array:
        alive.append(sum(ref() is not None for ref in made))
        result = lhs + rhs
        made.append(weakref.ref(result))
        return result

    module = IRModule.parse(text)
    machine = func.Machine(module.functions, {AddOp: watched})
    assert machine.call("main", [X])[0].tolist() == [1 << length, -2 << length]
    assert alive == [0] + [1] * (length - 1)


def test_evaluate_gives_arrays_of_rank_0() -> None:
    doubled = "%r = relay.add %x, %x : (tensor<i8>, tensor<i8>) -> tensor<i8>"
    text = f"func.func @main(%x: tensor<i8>) -> tensor<i8> {{ {doubled} func.return %r : tensor<i8> }}"
    op = IRModule.parse(text)["main"].body.block.first_op
    assert op is not None
    (result,) = evaluate(op, [np.array(100, np.int8)] * 2)
    assert isinstance(result, np.ndarray) and result.dtype == np.int8 and result.tolist() == -56


def test_padding_of_rank_0_and_of_any_order_in_memory() -> None:
    nothing = 'relay.nn.mirror_pad %x {pad_width = array<i64>, mode = "EDGE"} : (tensor<f32>) -> tensor<f32>'
    text = f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{ %r = {nothing} func.return %r : tensor<f32> }}"
    assert run(IRModule.parse(text), [np.array(3, np.float32)])[0] == 3
    mod = IRModule.parse("""func.func @main(%x: tensor<40x50x60xf32>) -> tensor<42x50x60xf32> {
      %r = relay.nn.mirror_pad %x {pad_width = array<i64: 1, 1, 0, 0, 0, 0>, mode = "EDGE"}
        : (tensor<40x50x60xf32>) -> tensor<42x50x60xf32>
      func.return %r : tensor<42x50x60xf32>
    }""")
    x = np.random.default_rng(0).standard_normal((40, 50, 60), np.float32)
    sums = {float(run(mod, [array])[0].sum()) for array in (x, np.asfortranarray(x))}
    assert len(sums) == 1, "numpy adds in the order of the memory"
