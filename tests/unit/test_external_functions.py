"""Functions of external compilers in an executable: native or in Python, failing, aligned, in threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import relay
from relay.byoc import Artifact, BuildInfo
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.runtime import Native, create
from tests.unit.external_probe import OFFSET, TEXT, C, Loads, Probe, Run, X, built, check, install


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return install(monkeypatch)


def test_the_loader_is_told_everything(loads: Loads):
    executable = built()
    check(executable)
    vector, image = ((4,), np.dtype(np.float32)), ((40, 5), np.dtype(np.uint8))
    artifact, params, inputs, outputs = loads.given["both"]
    assert (artifact, inputs, outputs) == (b"both", [vector, vector], [vector, vector])
    assert list(params) == ["offset"] and np.array_equal(params["offset"], OFFSET)
    assert loads.given["turn"][2:] == ([image], [image])
    assert [row["symbol"] for row in executable.graph["externals"]] == ["both", "turn"]
    assert executable.get_source("both.ops").split() == ["relay.add", "relay.subtract", "func.return"]
    external = executable.externals["turn"]
    assert (external.compiler, external.version) == ("probe", "3") and callable(external.loaded)


def test_constants_of_one_name_are_kept_once(loads: Loads):
    executable = built()
    assert [name for name in executable.params if name.startswith("offset")] == ["offset"]
    graph, lib, params = executable
    create(graph, lib, {**params, "offset": 2 * OFFSET})
    assert np.array_equal(loads.given["both"][1]["offset"], 2 * OFFSET)
    check(executable)
    with pytest.raises(InvalidArgument, match=r"params\['offset'\]: is float32\[3\]; float32\[4\] is needed"):
        create(graph, lib, {**params, "offset": OFFSET[:3]})
    with pytest.raises(InvalidArgument, match=r"params\['offset'\]: is missing"):
        create(graph, lib, {name: array for name, array in params.items() if name != "offset"})


def test_constants_of_one_name_that_differ_are_both_kept(loads: Loads, monkeypatch: pytest.MonkeyPatch):
    def compile(self: Probe, function: FuncOp, build: BuildInfo) -> Artifact:
        name = function.sym_name.data
        return Artifact(name.encode(), {"offset": OFFSET if name == "both" else np.array([1], np.int8)})

    monkeypatch.setattr(Probe, "compile", compile)
    executable = built()
    check(executable)
    assert {"offset", "offset#1"} <= executable.params.keys()
    assert loads.given["turn"][1]["offset"].tolist() == [1]


def test_inputs_are_views_of_the_user_s_arrays(loads: Loads):
    executable = built()
    big = np.ascontiguousarray(np.broadcast_to(C, (40, 5)))
    check(executable, c=big)
    assert loads.seen[-1][1] is False, "inputs are read-only"
    text = TEXT.replace("40x5", "4000x5")
    large = np.arange(20000, dtype=np.uint8).reshape(4000, 5)
    check(relay.build(relay.IRModule.parse(text)), c=large)
    assert loads.seen[-1][0] == large.ctypes.data, "no copy of an input that is too large to be staged"


def test_bound_inputs(loads: Loads):
    executable = built()
    executable.set_input(0, X)
    executable.set_input(1, C)
    executable.run()
    assert np.array_equal(executable.get_output(2), C[::-1])


def test_what_python_raises_is_raised_by_run(loads: Loads):
    def fails(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if inputs[1][0] == 7:
            raise KeyError("seven")
        np.add(inputs[0], inputs[1] + OFFSET, out=outputs[0])
        np.subtract(inputs[0], inputs[1], out=outputs[1])

    loads.other["both"] = fails
    executable = built()
    check(executable)
    for _ in range(2):
        with pytest.raises(
            RelayError, match="^external function both, compiled by 'probe': raised KeyError: 'seven'$"
        ) as e:
            executable.run(X + 6, C)
        assert isinstance(e.value.__cause__, KeyError)
        check(executable)
    executable.set_input(0, X + 6)
    executable.set_input(1, C)
    calls = len(loads.seen)
    with pytest.raises(RelayError, match="raised KeyError: 'seven'"):
        executable.run()
    assert not executable.get_output(1).any() and not executable.get_output(2).any() and len(loads.seen) == calls
    check(executable)


def test_wrong_shapes_in_python_are_raised(loads: Loads):
    def wrong(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = np.zeros(7)

    loads.other["both"] = wrong
    with pytest.raises(RelayError, match="function both, compiled by 'probe': raised ValueError: could not broadcast"):
        built().run(X, C)


@pytest.mark.parametrize("error", [KeyboardInterrupt("stop"), Malformed("it", "is torn", "build it again")])
def test_errors_that_keep_their_kind(loads: Loads, error: BaseException):
    """What stops the program, and errors that say what to do, are raised as they are, with a note."""

    def fails(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        raise error

    loads.other["turn"] = fails
    with pytest.raises(type(error)) as raised:
        built().run(X, C)
    assert raised.value is error and raised.value.__notes__ == ["in external function turn, compiled by 'probe'"]


def test_results_that_are_returned_are_refused(loads: Loads):
    """They would be lost, and the outputs whatever was there."""

    def returns(inputs: Sequence[Array], outputs: Sequence[Array]) -> Array:
        return inputs[0][::-1]

    loads.other["turn"] = cast(Run, returns)
    wrong = "external function turn, compiled by 'probe': returned ndarray; it fills the arrays of its outputs, and"
    with pytest.raises(RelayError, match=wrong):
        built().run(X, C)


def test_outputs_that_are_replaced_are_an_error(loads: Loads):
    """The new array would be lost; and the next call on the same memory would be given it."""

    def replaces(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        cast(list[Array], outputs)[0] = inputs[0][::-1]

    loads.other["turn"] = replaces
    with pytest.raises(RelayError, match="compiled by 'probe': raised TypeError: 'tuple' object does not support item"):
        built().run(X, C)


Tensors = ctypes.POINTER(ctypes.c_void_p)
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, Tensors)


def native(seen: list[tuple[int, int, int]], alignment: int) -> Native:
    """`turn` as a C function that notes its context and where its tensors lie."""

    def turn(context: int, tensors: Any) -> int:
        seen.append((context, tensors[0], tensors[1]))
        for row in range(40):
            ctypes.memmove(tensors[1] + 5 * row, tensors[0] + 5 * (39 - row), 5)
        return 0

    function = SIGNATURE(turn)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return Native(address, 4711, function, alignment)


@pytest.mark.parametrize("alignment", [1, 64, 4096])
def test_native_functions_get_context_and_aligned_tensors(loads: Loads, alignment: int):
    seen: list[tuple[int, int, int]] = []
    loads.other["turn"] = native(seen, alignment)
    executable = built()
    for shift in range(3):
        memory = np.zeros(200 + 8192, np.uint8)
        start = -memory.ctypes.data % 4096 + shift
        c = memory[start : start + 200].reshape(40, 5)
        c[...] = C
        check(executable, c=c)
        assert np.array_equal(c, C)
    assert {context for context, *_ in seen} == {4711}
    assert all(at % alignment == 0 for _, *places in seen for at in places)


def test_a_native_function_that_fails_ends_the_run(loads: Loads):
    """Its status is the error, with what its device says of it; no function is called after it."""
    statuses, later = [7], list[int]()

    def both(context: int, tensors: Any) -> int:
        ctypes.memmove(tensors[2], tensors[0], 16)
        ctypes.memmove(tensors[3], tensors[1], 16)
        return statuses[0]

    def turn(context: int, tensors: Any) -> int:
        later.append(context)
        return 0

    functions = [SIGNATURE(both), SIGNATURE(turn)]
    addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    texts = {7: "the watchdog bit", -1: ""}
    loads.other["both"] = Native(addresses[0], 0, functions, message=texts.__getitem__)
    loads.other["turn"] = Native(addresses[1], 0, functions)
    executable = built()
    where = "external function both, compiled by 'probe': failed with status"
    for status, message in ((7, f"{where} 7: the watchdog bit"), (-1, f"{where} -1")):
        statuses[0] = status
        with pytest.raises(RelayError) as found:
            executable.run(X, C)
        assert str(found.value) == message and not later
    statuses[0] = 0
    executable.run(X, C)
    assert later


def test_native_functions_see_the_arena_aligned(loads: Loads):
    text = TEXT.replace("func.call @turn(%c)", "func.call @turn(%e)").replace(
        "  %d = func",
        "  %e = relay.maximum %c, %c : (tensor<40x5xui8>, tensor<40x5xui8>) -> tensor<40x5xui8>\n  %d = func",
    )
    seen: list[tuple[int, int, int]] = []
    loads.other["turn"] = native(seen, 1)
    executable = relay.build(relay.IRModule.parse(text))
    check(executable)
    assert seen[0][1] % 64 == 0


def test_threads_run_at_the_same_time(loads: Loads):
    """Each thread's calls wait for all the others': together inside, or never done."""
    together = threading.Barrier(4, timeout=20)

    def waits(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        together.wait()
        np.add(inputs[0], inputs[1] + OFFSET, out=outputs[0])
        np.subtract(inputs[0], inputs[1], out=outputs[1])

    loads.other["both"] = waits
    executable = built()
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(20):
                check(executable, X * (number + 1), C + np.uint8(turn + number))
        except BaseException as error:
            failed.append(error)
            together.abort()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_an_error_is_its_thread_s(loads: Loads):
    def fails(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if inputs[1][0] < 0:
            raise ArithmeticError(str(inputs[1][0]))
        np.add(inputs[0], inputs[1] + OFFSET, out=outputs[0])
        np.subtract(inputs[0], inputs[1], out=outputs[1])

    loads.other["both"] = fails
    executable = built()
    failed: list[str] = []

    def work(number: int) -> None:
        for _ in range(50):
            if number % 2:
                check(executable)
            else:
                with pytest.raises(RelayError, match=f"ArithmeticError: -{number + 1}"):
                    executable.run(-X * (number + 1), C)
        failed.append("not")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == ["not"] * 4


def test_executables_of_one_library_do_not_mix(loads: Loads):
    first = built()
    second = create(first.graph, first.library, {**first.params, "offset": np.zeros(4, np.float32)})
    check(first)
    found = second.run(X, C)
    assert isinstance(found, tuple) and np.array_equal(found[0], (X * X + X) * X)
    check(first)


def test_a_function_that_is_only_declared():
    text = (
        TEXT[: TEXT.index("func.func private @both")]
        + """
func.func private @both(tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func private @turn(tensor<40x5xui8>) -> tensor<40x5xui8> attributes {compiler = "probe"}
"""
    )
    with pytest.raises(Unsupported, match="function both: is only declared; give it a body, or an external compiler"):
        relay.build(relay.IRModule.parse(text))


def test_private_functions_may_call_them(loads: Loads):
    text = TEXT.replace("@main", "@inner", 1).replace("func.func @inner", "func.func private @inner")
    types = "(tensor<4xf32>, tensor<40x5xui8>) -> (tensor<4xf32>, tensor<4xf32>, tensor<40x5xui8>)"
    text += f"""
func.func @main(%x: tensor<4xf32>, %c: tensor<40x5xui8>) -> (tensor<4xf32>, tensor<4xf32>, tensor<40x5xui8>) {{
  %0, %1, %2 = func.call @inner(%x, %c) : {types}
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<40x5xui8>
}}
"""
    check(relay.build(relay.IRModule.parse(text)))
