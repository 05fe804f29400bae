"""Models whose sizes are not known: an executable for each that is seen, equal to a build for it, bit for bit."""

from __future__ import annotations

import gc
import json
import pickle
import re
import resource
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context

from relay import symbols
from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.module import IRModule
from relay.runtime import DynamicExecutable, Executable, archive, container, load
from relay.sizes import Symbol
from relay.store import store
from relay.universe import PASSES
from tests.unit.test_build import DIGITS, FIRST

TEXT = """func.func @main(%x: tensor<?x?x8xf32>, %y: tensor<?x?x8xf32>) -> tensor<?x?x2x3xf32> attributes {
    relay.inputs = [{name = "x"}, {name = "y"}], relay.symbols = [
    {name = "batch", places = [array<i64: 0, 0>, array<i64: 1, 0>], maximum = 64 : i64},
    {name = "seq", places = [array<i64: 0, 1>, array<i64: 1, 1>], multiple = 2 : i64}]} {
  %s = relay.add %x, %y : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %k = relay.constant {label = "k"} dense<0.5> : tensor<6x8xf32>
  %flat = relay.constant dense<[-1, 8]> : tensor<2xi64>
  %rows = relay.dyn.reshape %s, %flat : (tensor<?x?x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %d = relay.nn.dense %rows, %k {out_dtype = f32} : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %shape = relay.shape_of %s {dtype = i64} : (tensor<?x?x8xf32>) -> tensor<3xi64>
  %zero = relay.constant dense<0> : tensor<1xi64>
  %two = relay.constant dense<2> : tensor<1xi64>
  %one = relay.constant dense<1> : tensor<1xi64>
  %outer = relay.dyn.strided_slice %shape, %zero, %two, %one
    : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %inner = relay.constant dense<[2, 3]> : tensor<2xi64>
  %wanted = relay.concatenate %outer, %inner {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %heads = relay.dyn.reshape %d, %wanted : (tensor<?x6xf32>, tensor<4xi64>) -> tensor<?x?x2x3xf32>
  func.return %heads : tensor<?x?x2x3xf32>
}"""
DECIDED = """func.func @main(%x: tensor<?x4xf32>, %to: tensor<2xi64>) -> tensor<?x?xf32> attributes {
    relay.symbols = [{name = "n", places = [array<i64: 0, 0>]}],
    relay.inputs = [{name = "x"}, {name = "to"}]} {
  %r = relay.dyn.reshape %x, %to : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %n = relay.negative %r : (tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %n : tensor<?x?xf32>
}"""


@cache
def module(text: str) -> IRModule:
    return IRModule.parse(text)


def parsed(text: str = TEXT) -> IRModule:
    return module(text).clone()


@cache
def executable() -> DynamicExecutable:
    found = build(parsed(), opt_level=1)
    assert isinstance(found, DynamicExecutable)
    return found


def inputs(batch: int, seq: int) -> tuple[Array, Array]:
    random = np.random.default_rng([batch, seq])
    x, y = (random.standard_normal((batch, seq, 8)).astype(np.float32) for _ in range(2))
    return x, y


def same(got: object, wanted: object) -> bool:
    return isinstance(got, np.ndarray) and isinstance(wanted, np.ndarray) and got.tobytes() == wanted.tobytes()


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4))
def test_each_size_gives_what_a_build_for_it_gives(batch: int, half: int):
    x, y = inputs(batch, 2 * half)
    static = build(parsed(), opt_level=1, shapes={"batch": batch, "y": (batch, 2 * half, 8)})
    assert static.inputs[0].shape == (batch, 2 * half, 8)
    assert same(executable().run(x, y), static.run(x, y))
    assert same(executable()(y=y, x=x), static.run(x, y))


def test_inputs_have_names_for_sizes():
    exe = executable()
    assert [str(spec.shape) for spec in exe.inputs] == ["(batch, seq, 8)"] * 2
    assert str(exe.outputs[0].shape) == "(?, ?, 2, 3)"
    assert "Executable for any sizes batch, seq; " in repr(exe) and "'x' float32 batch x seq x 8" in repr(exe)
    assert exe.sizes[0] == Symbol("batch", ((0, 0), (1, 0)), maximum=64)
    assert exe.graph["symbols"][1][0] == "seq"


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((2, 4, 8), (3, 4, 8)), r"size batch: is 2 in 'x' \(axis 0\) and 3 in 'y' \(axis 0\); inputs that share"),
        (((65, 4, 8), (65, 4, 8)), "size batch: is 65; it is from 1 to 64"),
        (((2, 3, 8), (2, 3, 8)), "size seq: is 3; it is from 1, a multiple of 2"),
        (((2, 4, 9), (2, 4, 9)), r"input 'x': has shape \[2, 4, 9\]; \[batch, seq, 8\] is needed"),
        (((2,), (2, 4, 8)), r"input 'x': has shape \[2\]; \[batch, seq, 8\] is needed"),
        (((2, 4, 8),), "input 'y': is not given; the inputs are x, y"),
        (((2, 4, 8),) * 3, "run: got 3 inputs; the model has 2"),
    ],
)
def test_wrong_sizes_are_one_error(shapes: tuple[tuple[int, ...], ...], said: str):
    before = len(executable().variants)
    with pytest.raises(InvalidArgument, match=said):
        executable().run(*(np.zeros(shape, np.float32) for shape in shapes))
    with pytest.raises(InvalidArgument, match="input 'x': has dtype int8; float32 is needed"):
        executable().run(*(np.zeros((9, 4, 8), np.int8) for _ in range(2)))
    assert len(executable().variants) == before


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"batch": [1]}, "size seq: is not given; the sizes are batch, seq"),
        ({"batch": [1], "seq": [2], "time": [3]}, "size time: is unknown; the sizes are batch, seq"),
        ({"batch": [0], "seq": [2]}, "size batch: is 0; it must be a number of at least 1"),
        ({"batch": [1], "seq": [3]}, "size seq: is 3; it is from 1, a multiple of 2"),
    ],
)
def test_wrong_sizes_to_prepare(sizes: dict[str, list[int]], said: str):
    with pytest.raises(InvalidArgument, match=said):
        executable().prepare(**sizes)


def test_what_each_size_has_of_its_own(tmp_path: Path):
    exe = build(parsed(), opt_level=1)
    assert isinstance(exe, DynamicExecutable)
    for name in ("params", "externals"):
        with pytest.raises(Unsupported, match=rf"{name}: each size has its own; variant\(batch=..., seq=...\).{name}"):
            getattr(exe, name)
    for call in (
        exe.get_source,
        exe.parts,
        lambda: exe.export(tmp_path),
        lambda: list(exe),
        lambda: exe.on(1),
    ):
        with pytest.raises(Unsupported, match="each size has its own"):
            call()
    x, y = inputs(2, 4)
    assert same(exe.on().run(x, y), exe.variant(batch=2, seq=4).run(x, y))
    assert {part.name for part in exe.certify().parts if part.whole} >= {"batch=2, seq=4: all"}


def test_bound_inputs_and_threads():
    exe = executable()
    with pytest.raises(InvalidArgument, match="inputs x, y are not bound"):
        exe.run()
    for size in (2, 4):
        x, y = inputs(size, 2)
        exe.set_input("x", x)
        exe.set_input(1, y)
        assert exe.run() is None
        assert same(exe.get_output(), exe.run(x, y))
    exe.num_threads = 2
    assert exe.variant(batch=2, seq=2).num_threads == exe.num_threads == 2
    exe.num_threads = 1


class Counted:
    """A stand-in for the compiler: it gives one executable, and counts."""

    def __init__(self, made: Executable, wait: float = 0) -> None:
        self.made, self.wait, self.asked = made, wait, list[tuple[int, ...]]()
        self.alive: weakref.WeakSet[Executable] = weakref.WeakSet()

    def __call__(self, sizes: Mapping[str, int], values: Mapping[str, Array]) -> Executable:
        self.asked.append(tuple(sizes.values()))
        threading.Event().wait(self.wait)
        found = Executable(self.made.graph, self.made.library, self.made.params)
        self.alive.add(found)
        return found


def counted(wait: float = 0, most: int = 8) -> tuple[DynamicExecutable, Counted]:
    x, y = inputs(2, 2)
    executable().run(x, y)
    compiler = Counted(executable().variant(batch=2, seq=2), wait)
    return DynamicExecutable(executable().interface, compiler, most), compiler


def test_concurrent_first_calls_build_once():
    exe, compiler = counted(0.2)
    x, y = inputs(2, 2)
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(exe.run(x, y))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiler.asked == [(2, 2)]
    assert len(results) == 8 and all(same(result, executable().run(x, y)) for result in results)


def test_the_variants_last_used_are_kept_and_those_prepared():
    exe, compiler = counted(most=2)
    exe.prepare(batch=[1, 2], seq=[2, 4])
    for batch in (5, 6, 5, 7):
        exe.variant(batch=batch, seq=2)
    assert len(compiler.asked) == 7
    exe.variant(batch=5, seq=2)
    exe.prepare(batch=[2], seq=[4])
    assert len(compiler.asked) == 7
    exe.variant(batch=6, seq=2)
    assert len(compiler.asked) == 8
    assert [row["batch"] for row in exe.variants] == [1, 1, 2, 2, 5, 6]
    for wrong in (0, True, -1):
        with pytest.raises(InvalidArgument, match="max_variants: is .*; it must be a number of at least 1"):
            DynamicExecutable(exe.interface, None, wrong)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def changing(runs: int) -> None:
    """Runs that change among 12 sizes, of which 8 are kept: no more variants live, and memory does not grow, by 2 KiB a
    run and what the system does on its own at most."""
    exe, compiler = counted()
    random, first = np.random.default_rng(0), 0
    for run in range(runs):
        exe.variant(batch=int(random.integers(1, 13)), seq=2)
        if run == runs // 4:
            gc.collect()
            first = resident()
    gc.collect()
    assert len(compiler.alive) == 8
    assert resident() - first < (1 << 20) + 2048 * runs


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory in use from /proc")
@pytest.mark.parametrize("runs", [200, pytest.param(2_000, marks=pytest.mark.ci)])
def test_memory_does_not_grow(runs: int):
    changing(runs)


@pytest.mark.slow
def test_memory_does_not_grow_over_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    exe = build(parsed(), opt_level=1)
    first = 0
    for run in range(100_000):
        x, y = inputs(1 + run // 200 % 12, 2)
        exe.run(x, y)
        if run == 10_000:
            first = resident()
    assert resident() - first < 16 << 20


def test_constants_are_shared():
    exe = executable()
    one, two = exe.variant(batch=2, seq=2), exe.variant(batch=2, seq=4)
    assert one.constants_digest() == two.constants_digest()
    assert one.parts().constants is two.parts().constants


RUNS = """
import sys
import numpy as np
from relay.runtime import load
exe = load(sys.argv[1])
x = np.ones((2, 4, 8), np.float32)
np.save(sys.argv[2], exe.run(x, x))
assert not {name for name in sys.modules if name.partition(".")[0] in ("xdsl", "llvmlite")}
"""


def test_what_is_saved_runs_without_the_compiler(tmp_path: Path):
    exe = build(parsed(), opt_level=1)
    assert isinstance(exe, DynamicExecutable)
    file = tmp_path / "a.relay"
    with pytest.raises(InvalidArgument, match=r"save: nothing is built yet; prepare\(batch=\[...\], seq=\[...\]\)"):
        exe.save(file)
    exe.prepare(batch=[1, 2], seq=[4]).save(file)
    subprocess.run([sys.executable, "-c", RUNS, file, tmp_path / "a.npy"], check=True)
    x = np.ones((2, 4, 8), np.float32)
    assert same(np.load(tmp_path / "a.npy"), exe.run(x, x))
    loaded = load(file, num_threads=2)
    assert isinstance(loaded, DynamicExecutable) and loaded.variants == exe.variants
    assert loaded.num_threads == loaded.variant(batch=1, seq=4).num_threads == 2
    said = "sizes batch=3, seq=4: are not prepared; prepared are batch=1, seq=4; batch=2, seq=4; others are built by"
    with pytest.raises(InvalidArgument, match=said):
        loaded.run(*inputs(3, 4))
    loaded.save(file)
    copy = pickle.loads(pickle.dumps(exe))
    assert copy.variants == exe.variants and same(copy.run(x, x), exe.run(x, x))
    rows = json.loads(bytes(archive.read(file)[0]["dynamic.json"]))["variants"]
    assert len(rows) == 2 and rows[0]["params"] == rows[1]["params"] != {}


def test_damaged_files_of_variants(tmp_path: Path):
    file = tmp_path / "a.relay"
    exe = executable()
    exe.run(*inputs(2, 2))
    exe.save(file)
    parts = {name: bytes(part) for name, part in archive.read(file)[0].items()}
    for name, data in (("dynamic.json", b"[]"), ("dynamic.json", b"{}"), ("constants.safetensors", b"")):
        file.write_bytes(container.pack(parts | {name: data}))
        with pytest.raises(Malformed, match="no saved executable|no constants"):
            load(file)
    file.write_bytes(container.pack({name: part for name, part in parts.items() if name != "code/0"}))
    with pytest.raises(Malformed, match="code is missing"):
        load(file)


def test_numbers_of_inputs_decide_shapes(tmp_path: Path):
    exe = build(parsed(DECIDED), opt_level=1)
    assert isinstance(exe, DynamicExecutable)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for to in ((4, 3), (2, 6), (4, 3)):
        assert same(exe.run(x, np.array(to)), -x.reshape(to))
    assert len(exe.variants) == 2
    with pytest.raises(Malformed, match=r"\[3, 4\] has not the elements of \[5, 5\]"):
        exe.run(x, np.array([5, 5]))
    exe.prepare(n=[3], to=[[12, 1], np.array([1, 12])]).save(tmp_path / "a.relay")
    loaded = load(tmp_path / "a.relay")
    assert same(loaded.run(x, np.array([1, 12])), -x.reshape(1, 12))
    with pytest.raises(InvalidArgument, match=r"sizes n=3, to=\[3, 4\]: are not prepared; prepared are n=3, to="):
        loaded.run(x, np.array([3, 4]))


def test_shapes_follow_from_few_numbers():
    text = DECIDED.replace("%r = relay.dyn.reshape %x, %to", "%r = relay.dyn.reshape %x, %c").replace(
        "    relay.symbols", "  relay.symbols", 1
    )
    computed = """%m = relay.max %x {axis = array<i64: 0, 1>} : (tensor<?x4xf32>) -> tensor<f32>
  %p = relay.expand_dims %m {axis = 0 : i64, num_newaxis = 1 : i64} : (tensor<f32>) -> tensor<1xf32>
  %q = relay.cast %p {dtype = i64} : (tensor<1xf32>) -> tensor<1xi64>
  %c = relay.concatenate %q, %q {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %r"""
    with pytest.raises(Unsupported, match=r"input 'x': decides shapes, and is of shape \[n, 4\]"):
        build(parsed(text.replace("%r", computed, 1)))


TAKEN = """func.func @main(%x: tensor<?x4xf32>, %limit: tensor<f32>) -> tensor<?x?xf32> attributes {
    relay.symbols = [{name = "n", places = [array<i64: 0, 0>], maximum = 8 : i64}],
    relay.inputs = [{name = "x"}, {name = "limit"}]} {
  %sum = relay.sum %x {axis = array<i64: 0, 1>} : (tensor<?x4xf32>) -> tensor<f32>
  %more = relay.greater %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %c = tensor.extract %more[] : tensor<i1>
  %r = scf.if %c -> (tensor<?x?xf32>) {
    %a = relay.concatenate %x, %x {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  } else {
    %b = relay.concatenate %x, %x {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %m = relay.negative %b : (tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %m : tensor<?x4xf32>
  }
  func.return %r : tensor<?x?xf32>
}"""


def test_branches_of_the_same_sizes_decide_none():
    """The condition follows from elements of an input of unknown size: each size is built once, with both branches."""
    exe = build(parsed(TAKEN), opt_level=1)
    assert isinstance(exe, DynamicExecutable) and not exe.interface.deciding
    for n, limit in ((3, 5), (3, 99), (8, -1), (8, 600)):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        both = np.concatenate([x, x])
        assert same(exe.run(x, np.float32(limit)), both if x.sum() > limit else -both)
    assert len(exe.variants) == 2


def test_branches_of_different_sizes_are_refused():
    text = TAKEN.replace("relay.negative %b", "relay.negative %x")
    said = (
        "scf.if in @main: its branches give tensor<16x4xf32> and tensor<8x4xf32> for inputs of tensor<8x4xf32>, "
        "tensor<f32>; which branch is taken follows from elements that are computed: both must give the same sizes"
    )
    with pytest.raises(Unsupported, match=re.escape(said)):
        build(parsed(text))


@pytest.mark.parametrize("outputs", [[FIRST], pytest.param(None, marks=pytest.mark.ci)], ids=["first", "all"])
def test_a_file_gets_names_for_sizes(outputs: list[int] | None):
    exe = build(DIGITS, opt_level=1, batch="images", outputs=outputs)
    assert isinstance(exe, DynamicExecutable)
    spec = exe.inputs[0]
    assert str(spec.shape[0]) == "images"
    x = np.random.default_rng(0).integers(-128, 128, (3, *spec.shape[1:])).astype(spec.dtype)
    assert same(exe.run(x), build(DIGITS, opt_level=1, batch=3, outputs=outputs).run(x))
    other = build(DIGITS, opt_level=1, shapes={spec.name: ("n", *spec.shape[1:])}, outputs=outputs)
    assert same(other.run(x[:1]), exe.run(x[:1]))
    with pytest.raises(InvalidArgument, match="names no input; there are"):
        build(DIGITS, shapes={"z": ("n", 1)})


def test_options_of_the_importer():
    assert (
        build(DIGITS, opt_level=0, outputs=[FIRST]).outputs
        == build(DIGITS, opt_level=0, frontend={"outputs": [FIRST]}).outputs
    )
    with pytest.raises(InvalidArgument, match="outputs: is given twice; leave it out of frontend"):
        build(DIGITS, outputs=[FIRST], frontend={"outputs": [FIRST]})
    with pytest.raises(InvalidArgument, match="outputs: is for model files"):
        build(from_tflite(DIGITS), outputs=[0])
    with pytest.raises(InvalidArgument, match="custom_ops: is for model files"):
        build(from_tflite(DIGITS), custom_ops={})


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"x": (2, 4)}, r"shapes\['x'\]: \(2, 4\) is no shape for \['\?', '\?', 8\]"),
        ({"x": (2, 4, 9)}, r"is no shape for \['\?', '\?', 8\]"),
        ({"z": (2, 4, 8)}, r"shapes\['z'\]: names no input and no size; there are x, y, batch, seq"),
        ({"x": (2, 4, 8), "y": (3, 4, 8)}, "size batch is 2 and 3; inputs that share a size must agree"),
        ({"batch": 65}, "size batch: is 65; it is from 1 to 64"),
        ({"batch": -1}, "-1 is no size"),
    ],
)
def test_shapes_of_a_module(shapes: dict[str, Any], said: str):
    with pytest.raises(InvalidArgument, match=said):
        build(parsed(), shapes=shapes)


@pytest.mark.parametrize("name", ["4", ""])
def test_text_that_names_no_size(name: str):
    module = parsed(TEXT.partition(" attributes")[0] + " {" + TEXT.partition("]} {")[2])
    why = "is text, and names no size; give a number, or a name such as 'n'"
    for model, shapes in ((DIGITS, {"serving_default_image:0": (name, 8, 8, 1)}), (module, {"arg0": (name, 4, 8)})):
        with pytest.raises(InvalidArgument, match=f"^batch: '{name}' {why}"):
            build(model, batch=name)
        with pytest.raises(InvalidArgument, match=f"^shapes.*: '{name}' {why}"):
            build(model, shapes=shapes)


def test_names_given_to_a_module():
    text = TEXT.partition(" attributes")[0] + " {" + TEXT.partition("]} {")[2]
    with pytest.raises(Unsupported, match="has the dynamic shape"):
        build(parsed(text))
    exe = build(parsed(text), shapes={"arg0": ("n", 4, 8), "arg1": ("n", 4, 8)})
    assert isinstance(exe, DynamicExecutable)
    assert [symbol.name for symbol in exe.sizes] == ["n"] and str(exe.inputs[1].shape) == "(n, 4, 8)"
    other = build(parsed(text), batch="n")
    assert isinstance(other, DynamicExecutable) and [s.name for s in other.sizes] == ["n", "arg0.1", "arg1.1"]


@pytest.mark.parametrize("name", sorted(set(PASSES) - {"dynamic-to-static"}))
def test_passes_keep_symbols(name: str):
    mod = parsed()
    step = PASSES[name]()()
    try:
        step.apply(Context(), mod.op)
    except RelayError:  # it wants known sizes, or what other passes make
        return
    assert "?" in str(mod["main"].function_type) and symbols.read(mod["main"]) == symbols.read(parsed()["main"])


def test_kernels_are_reused_across_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    exe = build(parsed(), opt_level=1)
    assert isinstance(exe, DynamicExecutable)
    exe.variant(batch=2, seq=6)
    kept = store()
    assert kept is not None
    before = {path.name for path in kept.folder.iterdir() if path.name.startswith("object")}
    exe.variant(batch=3, seq=4)  # the rows of the product are as many
    after = {path.name for path in kept.folder.iterdir() if path.name.startswith("object")}
    assert before and len(after - before) < len(before)
    builds = {path.name for path in kept.folder.iterdir() if path.name.startswith("build")}
    again = build(parsed(), opt_level=1)
    assert isinstance(again, DynamicExecutable)
    again.variant(batch=3, seq=4)
    assert {path.name for path in kept.folder.iterdir() if path.name.startswith("build")} == builds
