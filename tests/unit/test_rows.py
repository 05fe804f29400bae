"""Any number of rows by builds for few: equal to a build for that number, bit for bit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.module import IRModule
from relay.runtime import DynamicExecutable, Executable, archive, container, load, team
from relay.runtime.memory import address
from relay.runtime.rows import Repeated
from tests.unit.test_build import DIGITS

MOST = 40
CODES = """func.func @main(%x: tensor<?x5x3xi8>, %y: tensor<?x5x3xi8>) -> (tensor<?x3xi32>, tensor<?x5x3xi8>)
    attributes {relay.inputs = [{name = "x"}, {name = "y"}], relay.symbols = [
    {name = "n", places = [array<i64: 0, 0>, array<i64: 1, 0>], maximum = 64 : i64}]} {
  %m = relay.maximum %x, %y : (tensor<?x5x3xi8>, tensor<?x5x3xi8>) -> tensor<?x5x3xi8>
  %w = relay.cast %m {dtype = i32} : (tensor<?x5x3xi8>) -> tensor<?x5x3xi32>
  %s = relay.sum %w {axis = array<i64: 1>} : (tensor<?x5x3xi32>) -> tensor<?x3xi32>
  func.return %s, %m : tensor<?x3xi32>, tensor<?x5x3xi8>
}"""


DENSE = """func.func @main(%x: tensor<?x8xi8>) -> tensor<?x6xi32> attributes {
    relay.inputs = [{name = "x"}], relay.symbols = [{name = "n", places = [array<i64: 0, 0>]}]} {
  %k = relay.constant {label = "k"} dense<3> : tensor<6x8xi8>
  %s = relay.nn.dense %x, %k {out_dtype = i32} : (tensor<?x8xi8>, tensor<6x8xi8>) -> tensor<?x6xi32>
  func.return %s : tensor<?x6xi32>
}"""


def dynamic(exe: object) -> DynamicExecutable:
    assert isinstance(exe, DynamicExecutable)
    return exe


def results(exe: Executable, *given: Array, **named: Array) -> tuple[Array, ...]:
    found = exe.run(*given, **named)
    assert found is not None
    return found if isinstance(found, tuple) else (found,)


@cache
def digits() -> DynamicExecutable:
    return dynamic(build(DIGITS, opt_level=1, batch="n"))


@cache
def codes() -> DynamicExecutable:
    return dynamic(build(IRModule.parse(CODES), opt_level=1))


@cache
def images() -> tuple[Array, Array]:
    """Many images, and what a build for as many gives."""
    x = np.random.default_rng(0).integers(-128, 128, (MOST, *digits().inputs[0].shape[1:])).astype(np.int8)
    wanted = build(DIGITS, opt_level=0, batch=MOST).run(x)
    assert isinstance(wanted, np.ndarray)
    return x, wanted


@settings(max_examples=8, deadline=None)
@given(st.integers(1, MOST), st.sampled_from([1, 2, 3]))
@example(1, 1)
@example(7, 2)
@example(8, 1)
@example(9, 2)
@example(MOST, 2)
def test_any_number_of_rows_gives_what_a_build_for_it_gives(rows: int, threads: int):
    x, wanted = images()
    exe = digits()
    exe.num_threads = threads
    found = exe.run(x[:rows])
    assert isinstance(found, np.ndarray)
    assert found.shape == wanted[:rows].shape and found.tobytes() == wanted[:rows].tobytes()
    assert exe.interface.blocks == (1,) and [row["n"] for row in exe.variants] == [1]


@cache
def dense() -> DynamicExecutable:
    return dynamic(build(IRModule.parse(DENSE), opt_level=1))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 100), st.sampled_from([1, 2]))
@example(7, 1)
@example(8, 2)
@example(9, 1)
def test_dense_layers_run_in_blocks(rows: int, threads: int):
    exe = dense()
    exe.num_threads = threads
    x = np.random.default_rng(rows).integers(-128, 128, (rows, 8)).astype(np.int8)
    assert np.array_equal(results(exe, x)[0], x.astype(np.int32) @ np.full((8, 6), 3, np.int32))
    assert exe.to_json()["how"] == {"n": "at run time, in blocks of 8 and 1 rows"}
    assert [row["n"] for row in exe.variants] == [8, 1]


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 30])
def test_many_inputs_and_outputs(rows: int):
    exe = codes()
    random = np.random.default_rng(rows)
    x, y = random.integers(-128, 128, (2, rows, 5, 3)).astype(np.int8)
    sums, most = results(exe, x, y=y)
    assert np.array_equal(most, np.maximum(x, y)) and np.array_equal(sums, np.maximum(x, y).sum(1, np.int32))
    assert most.tobytes() == results(exe, np.asfortranarray(x), y)[1].tobytes()


def test_what_is_said_of_sizes():
    exe = codes()
    assert [str(spec.shape) for spec in exe.outputs] == ["(n, 3)", "(n, 5, 3)"]
    assert exe.to_json()["how"] == {"n": "at run time, row by row"}
    assert "Executable for any sizes n; 1 are built, any number of which runs row by row" in repr(exe)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"axis = array<i64: 1>": "axis = array<i64: 0>", "<?x3xi32>": "<5x3xi32>"}, "images of a batch would meet"),
        ({"maximum = 64": "minimum = 2"}, "n may not be 1"),
        ({", array<i64: 1, 0>], ": ']}, {name = "m", places = [array<i64: 1, 0>], '}, "2 sizes are open"),
        (
            {
                ", array<i64: 1, 0>": "",
                "%y: tensor<?": "%y: tensor<1",
                ", tensor<?x5x3xi8>) ->": ", tensor<1x5x3xi8>) ->",
            },
            "n is not the leading size of every input",
        ),
    ],
)
def test_why_each_size_has_a_build(changes: dict[str, str], why: str):
    text = CODES
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    exe = dynamic(build(IRModule.parse(text), opt_level=1))
    assert why in exe.to_json()["how"]["n"] and not exe.variants


def test_floats_that_are_added_have_a_build_for_each_size():
    exe = dynamic(build(IRModule.parse(CODES.replace("i32", "f32")), opt_level=1))
    assert "adds floats in an order that depends on how many there are" in exe.to_json()["how"]["n"]


def test_numbers_computed_with_the_number_of_rows():
    """The size itself is a number of the model, which folding makes a constant: each size has a build."""
    text = CODES.replace("relay.sum %w", "relay.sum %v").replace(
        "  %s = relay.sum",
        """  %c = relay.constant dense<0> : tensor<3xi32>
  %v = relay.add %w, %c : (tensor<?x5x3xi32>, tensor<3xi32>) -> tensor<?x5x3xi32>
  %s = relay.sum""",
    )
    assert dynamic(build(IRModule.parse(text), opt_level=1)).variants
    text = text.replace(
        "relay.constant dense<0> : tensor<3xi32>",
        "relay.shape_of %w {dtype = i32} : (tensor<?x5x3xi32>) -> tensor<3xi32>",
    )
    exe = dynamic(build(IRModule.parse(text), opt_level=1))
    assert exe.to_json()["how"]["n"].startswith("a build for each: ") and not exe.variants
    x = np.zeros((4, 5, 3), np.int8)
    sums, _ = results(exe, x, x)
    assert np.array_equal(sums, np.tile(np.array([[20, 25, 15]], np.int32), (4, 1)))


def test_an_output_that_has_no_rows():
    text = CODES.replace("func.return %s, %m : tensor<?x3xi32>", "func.return %c, %m : tensor<4xi32>")
    text = text.replace("-> (tensor<?x3xi32>", "-> (tensor<4xi32>")
    text = text.replace("  %m = relay.max", "  %c = relay.constant dense<7> : tensor<4xi32>\n  %m = relay.max")
    exe = dynamic(build(IRModule.parse(text), opt_level=1))
    assert "is the same for any n" in exe.to_json()["how"]["n"]
    x = np.zeros((3, 5, 3), np.int8)
    assert results(exe, x, x)[0].tolist() == [7] * 4


def test_wrong_rows_are_one_error():
    exe = codes()
    x = np.zeros((65, 5, 3), np.int8)
    for rows, other, said in (
        (65, 65, "size n: is 65; it is from 1 to 64"),
        (0, 0, "size n: is 0; it is from 1 to 64"),
        (3, 4, "size n: is 3 in 'x' .* and 4 in 'y'"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            exe.run(x[:rows], x[:other])
    with pytest.raises(InvalidArgument, match="input 'y': has dtype uint8; int8 is needed"):
        exe.run(x[:3], x[:3].view(np.uint8))
    with pytest.raises(InvalidArgument, match="input 'y' is not given|input 'y': is not given"):
        exe.run(x[:3])


def test_bound_inputs_and_what_has_a_build_of_its_own(tmp_path: Path):
    exe = dynamic(build(IRModule.parse(CODES), opt_level=1))
    x = np.random.default_rng(0).integers(-128, 128, (11, 5, 3)).astype(np.int8)
    for number in (0, 1):
        exe.set_input(number, x)
    exe.run()
    assert np.array_equal(exe.get_output(1), x)
    assert exe.prepare(n=[3]).variant(n=3).inputs[0].shape[0] == 3
    assert np.array_equal(results(exe, x[:3], x[:3])[1], x[:3])
    assert [row["n"] for row in exe.variants] == [1, 3]
    with pytest.raises(Unsupported, match=r"each size has its own; variant\(n=...\).export"):
        exe.export(tmp_path)
    assert {path.suffix for path in exe.variant(n=1).export(tmp_path)} == {".o", ".h", ".md", ".cmake"}
    assert exe.profile(x, x, seconds=0.01) is not None


RUNS = """
import sys
import numpy as np
from relay.runtime import load
exe = load(sys.argv[1], num_threads=2)
x = np.load(sys.argv[2])
for rows in (1, 7, 8, 19):
    np.save(f"{sys.argv[3]}/{rows}.npy", exe.run(x[:rows]))
assert not {name for name in sys.modules if name.partition(".")[0] in ("xdsl", "llvmlite")}
"""


def test_what_is_saved_runs_any_number_without_the_compiler(tmp_path: Path):
    x, wanted = images()
    file, given = tmp_path / "d.relay", tmp_path / "x.npy"
    digits().save(file)
    np.save(given, x)
    subprocess.run([sys.executable, "-c", RUNS, file, given, tmp_path], check=True)
    for rows in (1, 7, 8, 19):
        assert np.array_equal(np.load(tmp_path / f"{rows}.npy"), wanted[:rows])
    copy = pickle.loads(pickle.dumps(digits()))
    assert np.array_equal(results(copy, x[:5])[0], wanted[:5])


def test_damaged_files(tmp_path: Path):
    file = tmp_path / "d.relay"
    digits().save(file)
    parts = {name: bytes(part) for name, part in archive.read(file)[0].items()}
    for blocks in (b'"blocks": [8]', b'"blocks": [0, 1]', b'"blocks": [true, "x"]'):
        table = parts["dynamic.json"].replace(b'"blocks": [1]', blocks)
        assert table != parts["dynamic.json"]
        file.write_bytes(container.pack(parts | {"dynamic.json": table}))
        with pytest.raises(Malformed, match="is no saved executable"):
            load(file)


def test_the_certificate_tests_blocks():
    report = dense().certify()
    parts = [part for part in report.parts if part.name.endswith(": blocks")]
    assert len(parts) == 2 and all(part.kinds == {"tested", "not checked"} for part in parts)
    assert not report.wrong


def test_threads_that_run_at_the_same_time():
    x, wanted = images()
    exe = digits()
    exe.num_threads = 2
    wrong: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(200):
            first = int(random.integers(0, MOST - 20))
            rows = int(random.integers(1, 21))
            [found] = results(exe, x[first : first + rows])
            if not np.array_equal(found, wanted[first : first + rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arenas_are_as_many_as_threads(monkeypatch: pytest.MonkeyPatch):
    """More threads than arenas, and the other way round: no thread has the arena of another one."""
    monkeypatch.setattr(team, "cores", lambda: 3)
    x, wanted = images()
    one = digits().variant(n=1)
    part = Repeated(one, 3)
    assert part.arenas == 3 and part.stride >= one.graph["arena_bytes"] and part.stride % 64 == 0
    for arenas in (3, 2, 1):
        part.arenas = arenas
        part.free.clear()
        found = np.zeros_like(wanted)
        for rows in (1, 2, 3, MOST):
            part.run(rows, [address(x), address(found)])
            assert np.array_equal(found[:rows], wanted[:rows])


def test_builds_for_fixed_sizes_have_no_such_function():
    fixed = build(DIGITS, opt_level=0, batch=1)
    assert "repeat" not in fixed.graph and b"relay_repeat" not in fixed.library.code
    assert b"relay_repeat" in digits().variant(n=1).library.code


def test_a_size_that_is_compared_has_a_build_for_each():
    """A branch that some numbers of rows take says nothing of the others: 1, 2 and 3 take the same one here."""
    exe = dynamic(
        build(
            IRModule.parse(
                """func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> attributes {
                relay.inputs = [{name = "x"}],
                relay.symbols = [{name = "n", places = [array<i64: 0, 0>], maximum = 8 : i64}]} {
              %s = relay.shape_of %x {dtype = i64} : (tensor<?x3xf32>) -> tensor<2xi64>
              %1 = relay.strided_slice %s {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 1>}
                : (tensor<2xi64>) -> tensor<1xi64>
              %n = relay.reshape %1 {newshape = array<i64>} : (tensor<1xi64>) -> tensor<i64>
              %five = relay.constant dense<5> : tensor<i64>
              %many = relay.greater %n, %five : (tensor<i64>, tensor<i64>) -> tensor<i1>
              %c = tensor.extract %many[] : tensor<i1>
              %r = scf.if %c -> (tensor<?x3xf32>) {
                %one = relay.constant dense<1.0> : tensor<f32>
                %a = relay.add %x, %one : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
                scf.yield %a : tensor<?x3xf32>
              } else {
                %two = relay.constant dense<2.0> : tensor<f32>
                %b = relay.multiply %x, %two : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
                scf.yield %b : tensor<?x3xf32>
              }
              func.return %r : tensor<?x3xf32>
            }"""
            )
        )
    )
    for rows in (1, 5, 6, 8):
        x = np.full((rows, 3), -1, np.float32)
        assert np.array_equal(np.asarray(exe.run(x)), x + 1 if rows > 5 else 2 * x)
    assert exe.to_json()["how"] == {"n": "a build for each: a size decides which values are computed"}
