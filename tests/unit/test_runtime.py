"""The executable: its ways to run, its specs, its errors, threads, and the file it is saved in."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay import signature
from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, RelayError
from relay.module import IRModule
from relay.runtime import Executable, Library, TensorSpec, container, create, load
from relay.signature import TensorInfo

ROOT = Path(__file__).parents[2]
TEXT = """func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xi8>, %s: tensor<3xi32>)
    -> (tensor<2x3xf32>, tensor<3xi8>, tensor<3xi32>) {
  %w = relay.constant {label = "w"} dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = relay.add %x, %w : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = relay.maximum %y, %y : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  %2 = relay.cast %y {dtype = i32} : (tensor<3xi8>) -> tensor<3xi32>
  %3 = relay.add %s, %2 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  func.return %0, %1, %3 : tensor<2x3xf32>, tensor<3xi8>, tensor<3xi32>
}
"""
INITIAL = np.array([5, 6, 7], np.int32)


def stateful() -> IRModule:
    """Two inputs and a state that the second is added to."""
    mod = IRModule.parse(TEXT)
    f32, i8, i32 = np.dtype(np.float32), np.dtype(np.int8), np.dtype(np.int32)
    inputs = [
        TensorInfo("x", (2, 3), f32),
        TensorInfo("y", (3,), i8, scale=0.5, zero_point=-3),
        TensorInfo("s", (3,), i32, "state", initial=INITIAL),
    ]
    outputs = [
        TensorInfo("sum", (2, 3), f32, "output"),
        TensorInfo("largest", (3,), i8, "output", 0.5, -3),
        TensorInfo("s_out", (3,), i32, "state"),
    ]
    signature.write(mod["main"], inputs, outputs)
    return mod


@pytest.fixture(scope="module")
def executable() -> Executable:
    return build(stateful())


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([-4, 0, 9], np.int8)
SUM = X + np.array([1, 2, 3], np.float32)


def every(outputs: Array | tuple[Array, ...] | None) -> tuple[Array, ...]:
    """The tuple of a model of several outputs."""
    assert isinstance(outputs, tuple)
    return outputs


def expect(outputs: Array | tuple[Array, ...] | None, state: Array) -> None:
    total, largest, new = every(outputs)
    assert (total.dtype, largest.dtype, new.dtype) == (np.float32, np.int8, np.int32)
    assert np.array_equal(total, SUM) and np.array_equal(largest, Y) and np.array_equal(new, state)


def test_specs(executable: Executable):
    x, y, s = executable.inputs
    assert x == TensorSpec("x", (2, 3), np.dtype(np.float32), None, 0, "input")
    assert y == TensorSpec("y", (3,), np.dtype(np.int8), 0.5, -3, "input")
    assert s == TensorSpec("s", (3,), np.dtype(np.int32), None, 0, "state")
    assert [spec.name for spec in executable.outputs] == ["sum", "largest", "s_out"]
    assert executable.outputs[1].scale == 0.5 and executable.outputs[1].zero_point == -3


def test_run_by_position_by_name_and_both(executable: Executable):
    expect(executable.run(X, Y), INITIAL + Y)
    expect(executable.run(x=X, y=Y), INITIAL + Y)
    expect(executable.run(X, y=Y), INITIAL + Y)
    expect(executable(y=Y, x=X), INITIAL + Y)


def test_states_start_anew_or_are_fed_back(executable: Executable):
    state = every(executable.run(X, Y))[2]
    for turn in (2, 3):
        state = every(executable.run(X, Y, state))[2]
        assert np.array_equal(state, INITIAL + turn * Y)
    expect(executable.run(X, Y, s=np.zeros(3, np.int32)), Y.astype(np.int32))
    expect(executable.run(X, Y), INITIAL + Y)


def test_bound_inputs(executable: Executable):
    executable.set_input("x", X)
    executable.set_input(1, Y)
    assert executable.run() is None
    expect(tuple(executable.get_output(i) for i in range(3)), INITIAL + Y)
    assert np.array_equal(executable.get_output("largest"), Y)
    kept = executable.get_output("sum")
    changed = X.copy()
    executable.set_input("x", changed)
    changed[:] = 99
    executable.run()
    assert np.array_equal(executable.get_output(), SUM), "set_input keeps a copy"
    executable.set_input("x", X + 1)
    executable.run()
    assert np.array_equal(executable.get_output(0), SUM + 1)
    assert np.array_equal(kept, SUM), "get_output gives a copy"
    executable.set_input("s", np.zeros(3, np.int32))
    executable.run()
    assert np.array_equal(executable.get_output("s_out"), Y.astype(np.int32))


def test_results_are_the_callers_own(executable: Executable):
    first = every(executable.run(X, Y))
    executable.run(X + 5, Y)
    expect(first, INITIAL + Y)


class Subclass(np.ndarray[tuple[int, ...], np.dtype[np.float32]]):
    """Is an array, and not of numpy's own type."""


def test_inputs_of_any_layout(executable: Executable):
    strided = np.zeros((4, 6), np.float32)[::2, ::2]
    strided[:] = X
    backward = np.ascontiguousarray(X[::-1])[::-1]
    raw = np.zeros(X.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(2, 3)
    unaligned[:] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    for x in (np.asfortranarray(X), strided, backward, unaligned, read_only, X.view(Subclass)):
        expect(executable.run(x, Y), INITIAL + Y)
        executable.set_input(0, x)
        executable.set_input(1, Y)
        executable.run()
        assert np.array_equal(executable.get_output("sum"), SUM)
    swapped = X.astype(">f4")
    with pytest.raises(InvalidArgument, match="input 'x': has dtype >f4"):
        executable.run(swapped, Y)


@pytest.mark.parametrize(
    ("inputs", "named", "message"),
    [
        ((X, Y.astype(np.uint8)), {}, r"input 'y': has dtype uint8; int8 is needed"),
        ((X.astype(np.float64), Y), {}, r"input 'x': has dtype float64; .*astype\('float32'\)"),
        ((X, Y.astype(np.float32)), {}, r"input 'y': .* quantise it by quantize\(x\) of .*: round\(x / 0.5\) \+ -3"),
        ((X.reshape(3, 2), Y), {}, r"input 'x': has shape \[3, 2\]; \[2, 3\] is needed"),
        ((X[None], Y), {}, r"input 'x': has shape \[1, 2, 3\]"),
        ((X,), {}, r"input 'y': is not given; the inputs are x, y, s"),
        ((X, Y, INITIAL, X), {}, r"run: got 4 inputs; the model has 3"),
        ((X, Y), {"z": Y}, r"input 'z': is unknown; the inputs are x, y, s"),
        ((X, Y), {"x": X}, r"input 'x': is given twice"),
        (([["a"]], Y), {}, r"input 'x': has dtype <U1"),
        (([[1.0], [1.0, 2.0]], Y), {}, r"input 'x': "),
    ],
)
def test_wrong_inputs(executable: Executable, inputs: tuple[Any, ...], named: dict[str, Any], message: str):
    with pytest.raises(InvalidArgument, match=message) as caught:
        executable.run(*inputs, **named)
    assert "\n" not in str(caught.value)


def test_wrong_bindings():
    fresh = build(stateful())
    with pytest.raises(InvalidArgument, match="inputs x, y are not bound"):
        fresh.run()
    fresh.set_input("x", X)
    with pytest.raises(InvalidArgument, match="inputs y are not bound"):
        fresh.run()
    for key in ("z", 3, -1):
        with pytest.raises(InvalidArgument, match="is unknown; the inputs are x, y, s"):
            fresh.set_input(key, X)
        with pytest.raises(InvalidArgument, match="is unknown; the outputs are sum, largest, s_out"):
            fresh.get_output(key)
    with pytest.raises(InvalidArgument, match="has shape"):
        fresh.set_input("y", X.astype(np.int8))


def test_sources(executable: Executable):
    assert "func.func @main" in executable.get_source("mlir")
    assert "define void @relay_main(" in executable.get_source("ll")
    assert executable.get_source() == executable.get_source("ll")
    assert "relay_main:" in executable.get_source("asm")
    with pytest.raises(InvalidArgument, match=r"get_source\('ptx'\): is not there; the sources are: asm, ll, mlir"):
        executable.get_source("ptx")


def test_its_three_parts_make_it_again(executable: Executable):
    graph, lib, params = executable
    assert isinstance(graph, str) and isinstance(lib, Library)
    assert {"inputs", "outputs", "kernels", "buffers", "constants"} <= set(json.loads(graph))
    assert np.array_equal(params["w"], [1, 2, 3])
    expect(create(graph, lib, params).run(X, Y), INITIAL + Y)
    expect(create(json.loads(graph), lib, params).run(X, Y), INITIAL + Y)
    changed = every(create(graph, lib, {**params, "w": np.zeros(3, np.float32)}).run(X, Y))
    assert np.array_equal(changed[0], X)


def test_wrong_parts(executable: Executable):
    graph, lib, params = executable
    with pytest.raises(InvalidArgument, match=r"params\['w'\]: is missing"):
        create(graph, lib, {name: array for name, array in params.items() if name != "w"})
    with pytest.raises(InvalidArgument, match=r"params\['w'\]: is float32\[4\]; float32\[3\] is needed"):
        create(graph, lib, {**params, "w": np.zeros(4, np.float32)})
    with pytest.raises(InvalidArgument, match=r"params\['w'\]: is int32"):
        create(graph, lib, {**params, "w": np.zeros(3, np.int32)})
    for damage in ("inputs", "constants", "arena_bytes", "entry"):
        with pytest.raises(Malformed, match="graph: is not what relay.build writes"):
            create({k: v for k, v in json.loads(graph).items() if k != damage}, lib, params)
    with pytest.raises(Malformed):
        create("{", lib, params)


def test_a_saved_file_runs_in_another_process(executable: Executable, tmp_path: Path):
    path = tmp_path / "model.relay"
    executable.save(path)
    loaded = load(path)
    expect(loaded.run(X, Y), INITIAL + Y)
    assert (loaded.inputs, loaded.outputs) == (executable.inputs, executable.outputs)
    program = f"""
import sys
import numpy as np
from relay.runtime import load
compiler = ("xdsl", "llvmlite", "relay.module", "relay.dialects", "relay.lowering")
assert not any(name in sys.modules for name in compiler), "the runtime imports the compiler"
x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([-4, 0, 9], np.int8)
total, largest, state = load({str(path)!r}).run(x, y)
print(total.tolist(), largest.tolist(), state.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == f"{SUM.tolist()} {Y.tolist()} {(INITIAL + Y).tolist()}", done.stderr


def damaged(path: Path, name: str, content: bytes | None) -> Path:
    """The saved file with one part replaced or left out, and sums that are right."""
    target = path.with_name("damaged_file")
    parts = {key: bytes(part) for key, part in container.unpack(memoryview(path.read_bytes()), "file").items()}
    parts.pop(name)
    target.write_bytes(container.pack(parts if content is None else parts | {name: content}))
    return target


def test_damaged_files(executable: Executable, tmp_path: Path):
    path = tmp_path / "model.relay"
    executable.save(path)
    whole = path.read_bytes()
    broken = tmp_path / "broken"
    for content in (b"", b"\x93REL", whole[:30], whole[: len(whole) // 2], whole[:-10], b"x" * 1000):
        broken.write_bytes(content)
        with pytest.raises(Malformed, match="broken: "):
            load(broken)
    parts = list(container.unpack(memoryview(whole), "file"))
    assert parts == ["graph.json", "code.so", "constants.safetensors", "claims"]
    for part in parts[:-1]:
        with pytest.raises(Malformed):
            load(damaged(path, part, None))
        for content in (b"", b"\x00\xff" * 20, b"[]", b"{}", b"null"):
            with pytest.raises(RelayError):
                load(damaged(path, part, content))
    # A run needs no claims; `certify` says what is wrong with them.
    for content in (None, b"", b"\x00\xff" * 20, b"[]"):
        unclaimed = load(damaged(path, "claims", content))
        expect(unclaimed.run(X, Y), INITIAL + Y)
        assert unclaimed.certify().exit_status == (1 if content else 2)


def test_flipped_bytes_are_noticed(executable: Executable, tmp_path: Path):
    path = tmp_path / "model.relay"
    executable.save(path)
    whole, broken = bytearray(path.read_bytes()), tmp_path / "broken"
    random = np.random.default_rng(5)
    harmless = 0
    for at in random.integers(0, len(whole), 60).tolist():
        bad = whole.copy()
        bad[at] ^= 0xFF
        broken.write_bytes(bad)
        try:
            expect(load(broken).run(X, Y), INITIAL + Y)
        except Malformed:
            continue
        assert whole[at] == 0, "only padding between parts may change"
        harmless += 1
    assert harmless < 20


def test_a_file_of_another_version(executable: Executable, tmp_path: Path):
    path = tmp_path / "model.relay"
    executable.save(path)
    data = bytearray(path.read_bytes())
    data[8] += 1
    path.write_bytes(data)
    with pytest.raises(Malformed, match="is of format version 3; this is 2; build the model again"):
        load(path)


def test_a_file_appears_whole_or_not_at_all(executable: Executable, tmp_path: Path):
    path = tmp_path / "model.relay"
    executable.save(path)
    before = path.read_bytes()
    executable.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidArgument, match="cannot be written"):
        executable.save(tmp_path / "missing" / "model.relay")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidArgument, match="cannot be written"):
        executable.save(tmp_path / "folder")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "model.relay"]


def test_code_of_another_machine(executable: Executable, tmp_path: Path):
    path = tmp_path / "model.relay"
    executable.save(path)
    graph = json.loads(bytes(container.unpack(memoryview(path.read_bytes()), "file")["graph.json"]))
    for key, value, message in (
        ("features", ["no-such-feature"], "needs CPU features that are not here: no-such-feature"),
        ("triple", "riscv64-unknown-linux-gnu", "is code for riscv64-unknown-linux-gnu"),
    ):
        other = {**graph, "target": {**graph["target"], key: value}}
        with pytest.raises(InvalidArgument, match=message):
            load(damaged(path, "graph.json", json.dumps(other).encode()))


def test_threads_do_not_disturb_each_other(executable: Executable):
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full((2, 3), number, np.float32)
        y = np.full(3, number, np.int8)
        for _ in range(200):
            total, largest, state = every(executable.run(x, y))
            if not (
                np.array_equal(total, x + np.array([1, 2, 3], np.float32))
                and np.array_equal(largest, y)
                and np.array_equal(state, INITIAL + number)
            ):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_model_without_inputs():
    text = """func.func @main() -> tensor<2xi32> {
  %c = relay.constant dense<[4, 5]> : tensor<2xi32>
  func.return %c : tensor<2xi32>
}"""
    result = build(IRModule.parse(text)).run()
    assert isinstance(result, np.ndarray) and result.tolist() == [4, 5]


def test_a_model_that_returns_its_input_and_empty_results():
    text = """func.func @main(%x: tensor<3xi8>) -> (tensor<3xi8>, tensor<3xi8>, tensor<3x1xi8>) {
  %r = relay.reshape %x {newshape = array<i64: 3, 1>} : (tensor<3xi8>) -> tensor<3x1xi8>
  func.return %x, %x, %r : tensor<3xi8>, tensor<3xi8>, tensor<3x1xi8>
}"""
    first, second, third = every(build(IRModule.parse(text)).run(Y))
    assert np.array_equal(first, Y) and np.array_equal(second, Y) and np.array_equal(third[:, 0], Y)
