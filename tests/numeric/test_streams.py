"""Streams: states that stay from run to run are LiteRT's, those of runs by hand, and those of exported C."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import relay
from relay.byoc.c import export_c
from relay.byoc.c.toolchain import find
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.interpreters import run
from relay.runtime import Executable, Library
from relay.runtime.profile import Twin
from relay.runtime.stream import Stream
from tests.numeric.litert_models import Array, Reference, T
from tests.numeric.test_control_flow_against_litert import Graph, Op, model
from tests.numeric.test_variables_against_litert import HANDLE, NAMES, ONCE, assign, handle

FC, ADD = "FullyConnectedOptions", "AddOptions"


def codes(*shape: int, scale: float, zero_point: int = 0) -> T:
    return T(list(shape), "int8", scale, zero_point)


def weights(seed: int, *shape: int, data: float = 0.05, scale: float = 0.02) -> tuple[T, T]:
    """A kernel and a bias for data of a scale."""
    rng = np.random.default_rng(seed)
    kernel = T(rng.integers(-127, 128, shape, np.int8), "int8", scale)
    return kernel, T(rng.integers(-500, 500, shape[:1], np.int32), "int32", data * scale)


def starting(*states: T) -> Graph:
    """What CALL_ONCE calls: an array of 5 for each variable, of the state's quantisation."""
    values = [T(np.full(state.value, 5, np.int8), "int8", state.scale, state.zero_point) for state in states]
    ops = [op for i in range(len(states)) for op in (handle(NAMES[i], i), assign(i, len(states) + i))]
    return Graph([*(HANDLE for _ in states), *values], [], [], ops)


def window() -> bytes:
    """A convolution over the last four frames, of which three are a state."""
    frame, held = codes(1, 1, 1, 8, scale=0.05, zero_point=3), codes(1, 3, 1, 8, scale=0.05, zero_point=3)
    kernel, bias = weights(1, 4, 4, 1, 8)
    numbers = [T(np.array(row, np.int32), "int32") for row in ([0, 1, 0, 0], [1, 3, 1, 8])]
    tensors = [frame, HANDLE, held, codes(1, 4, 1, 8, scale=0.05, zero_point=3), kernel, bias]
    tensors += [codes(1, 1, 1, 4, scale=0.1, zero_point=-4), *numbers, held]
    conv = {"padding": 1, "strideW": 1, "strideH": 1}
    ops = [ONCE, handle("a", 1), Op("READ_VARIABLE", [1], [2]),
           Op("CONCATENATION", [2, 0], [3], "ConcatenationOptions", {"axis": 1}),
           Op("CONV_2D", [3, 4, 5], [6], "Conv2DOptions", conv),
           Op("SLICE", [3, 7, 8], [9], "SliceOptions"), assign(1, 9)]  # fmt: skip
    return model([Graph(tensors, [0], [6], ops), starting(held)])


def integrator() -> bytes:
    """A saturating sum of all inputs, and its maximum: two states."""
    state, sum, most = (codes(1, 40, scale=0.2, zero_point=-7) for _ in range(3))
    tensors = [codes(1, 40, scale=0.05), HANDLE, HANDLE, state, state, sum, most, codes(1, 40, scale=1.5)]
    ops = [ONCE, handle("a", 1), handle("b", 2), Op("READ_VARIABLE", [1], [3]), Op("READ_VARIABLE", [2], [4]),
           Op("ADD", [0, 3], [5], ADD), Op("MAXIMUM", [4, 5], [6], "MaximumMinimumOptions"),
           Op("MUL", [5, 6], [7], "MulOptions"), assign(1, 5), assign(2, 6)]  # fmt: skip
    return model([Graph(tensors, [0], [7], ops), starting(state, state)])


def recurrent() -> bytes:
    """A simple recurrent layer: tanh of products of the input and of the state."""
    state = codes(1, 16, scale=1 / 128)
    part = codes(1, 16, scale=0.03)
    tensors = [
        codes(1, 12, scale=0.05),
        HANDLE,
        state,
        *weights(2, 16, 12),
        *weights(3, 16, 16, data=1 / 128),
        part,
        part,
        part,
    ]
    tensors += [state, *weights(4, 3, 16, data=1 / 128), codes(1, 3, scale=0.05)]
    ops = [ONCE, handle("a", 1), Op("READ_VARIABLE", [1], [2]), Op("FULLY_CONNECTED", [0, 3, 4], [7], FC),
           Op("FULLY_CONNECTED", [2, 5, 6], [8], FC), Op("ADD", [7, 8], [9], ADD), Op("TANH", [9], [10]),
           assign(1, 10), Op("FULLY_CONNECTED", [10, 11, 12], [13], FC)]  # fmt: skip
    return model([Graph(tensors, [0], [13], ops), starting(state)])


def cache_of_rows() -> bytes:
    """Rows written into a cache at a place that is an input, which may be too far; the maximum of all rows."""
    row, held = codes(1, 1, 6, scale=0.1), codes(1, 9, 6, scale=0.1)
    tensors = [row, T([3], "int32"), HANDLE, held, held, codes(1, 6, scale=0.1), T(np.array([1], np.int32), "int32")]
    ops = [ONCE, handle("a", 2), Op("READ_VARIABLE", [2], [3]),
           Op("DYNAMIC_UPDATE_SLICE", [3, 0, 1], [4], "DynamicUpdateSliceOptions"), assign(2, 4),
           Op("REDUCE_MAX", [4, 6], [5], "ReducerOptions", {"keepDims": False})]  # fmt: skip
    return model([Graph(tensors, [0, 1], [5], ops), starting(held)])


MODELS: dict[str, Callable[[], bytes]] = {"window": window, "integrator": integrator, "recurrent": recurrent}


@pytest.fixture(autouse=True)
def schema() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")


@cache
def built(name: str) -> Executable:
    return relay.build(MODELS[name]())


def frames(name: str, count: int) -> Array:
    shape = built(name).inputs[0].shape
    return np.random.default_rng(0).integers(-128, 128, (count, *shape), np.int8)


def results(stream: Stream, given: Array) -> list[Array]:
    return [np.asarray(stream.run(frame)) for frame in given]


@pytest.mark.parametrize("name", MODELS)
def test_a_thousand_steps_equal_litert(name: str):
    stream, reference = built(name).stream(), Reference(MODELS[name]())
    given = frames(name, 1000)
    wanted = [reference.run([frame])[0] for frame in given]
    assert len({array.tobytes() for array in wanted}) > 300, "the states change"
    np.testing.assert_array_equal(results(stream, given), wanted)


def test_a_cache_is_updated_where_it_is():
    """The stream gives native code no address of the old cache, so that none of it can be read or copied."""
    executable, reference = relay.build(cache_of_rows()), Reference(cache_of_rows())
    assert executable.graph["in_place"] == [[2, 1]]
    stream, state = executable.stream(), np.full((1, 9, 6), 5, np.int8)
    rng = np.random.default_rng(0)
    for step in range(60):
        row = rng.integers(-128, 128, (1, 1, 6)).astype(np.int8)
        start = np.array([0, int(rng.integers(-2, 12)), 3], np.int32)
        found = stream.run(row, start)
        np.testing.assert_array_equal(found, reference.run([row, start])[0])
        both = executable.run(row, start, state)
        assert isinstance(both, tuple)
        np.testing.assert_array_equal(found, both[0])
        state = both[1]
        np.testing.assert_array_equal(stream.states["a"], state)
        if step == 30:
            other = stream.clone()
            other.reset()
            assert (other.states["a"] == 5).all() and not np.array_equal(state, other.states["a"])


def test_a_profile_runs_with_caches_where_they_are(monkeypatch: pytest.MonkeyPatch):
    def one_run(library: Library, twin: Twin, seconds: float) -> Executable:
        run = twin(library, None)
        run()
        return cast("Executable", cast("Any", run).__self__)

    executable, row = relay.build(cache_of_rows()), np.arange(6, dtype=np.int8).reshape(1, 1, 6)
    monkeypatch.setattr("relay.runtime.profile.profile", one_run)
    other, stream = cast("Executable", executable.profile(row, np.array([0, 1, 0], np.int32))), executable.stream()
    other.set_input(1, np.array([0, 4, 0], np.int32))
    other.run()
    for start in (1, 4):
        stream.run(row, np.array([0, start, 0], np.int32))
    np.testing.assert_array_equal(other.get_output(1), stream.states["a"])


def test_a_number_that_is_given_back():
    """The copy of a tensor without axes."""
    text = """
    func.func @main(%x: tensor<f32>, %s: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %y = relay.add %x, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %y, %s : tensor<f32>, tensor<f32>
    }"""
    executable = relay.build(relay.IRModule.parse(text))
    np.testing.assert_array_equal(executable.run(np.float32(2), np.float32(3)), [5, 3])
    stream = executable.stream({"out1": "arg1"})
    stream.set_states({"arg1": np.float32(7)})
    assert [float(np.asarray(stream.run(np.float32(x)))) for x in (1, 2)] == [8, 9]


def test_the_interpreter_starts_states_as_the_executable_does():
    module, given = relay.frontend.from_tflite(recurrent()), frames("recurrent", 1)[0]
    found = built("recurrent").run(given)
    assert isinstance(found, tuple)
    for ours, theirs in zip(found, run(module, [given]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_reset_clone_and_states(tmp_path: Path):
    stream, given = built("integrator").stream(), frames("integrator", 30)
    wanted = results(stream, given)
    stream.reset()
    np.testing.assert_array_equal(results(stream, given[:7]), wanted[:7])
    other, kept = stream.clone(), stream.states
    stream.save(tmp_path / "states.npz")
    for each in (stream, other):
        np.testing.assert_array_equal(results(each, given[7:]), wanted[7:])
    assert set(kept) == {"a", "b"} and any((kept[name] != array).any() for name, array in stream.states.items())
    stream.set_states(kept)
    np.testing.assert_array_equal(results(stream, given[7:]), wanted[7:])
    fresh = pickle.loads(pickle.dumps(built("integrator"))).stream()
    fresh.load(tmp_path / "states.npz")
    np.testing.assert_array_equal(results(fresh, given[7:]), wanted[7:])


def test_streams_in_threads_do_not_meet():
    executable, given = built("recurrent"), frames("recurrent", 8 * 300).reshape(8, 300, 1, 12)
    wanted = [results(executable.stream(), rows) for rows in given]

    def stream_of(number: int) -> list[Array]:
        return results(executable.stream(), given[number])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(stream_of, range(8)))
    np.testing.assert_array_equal(found, wanted)


RUNNING_SUM = """
func.func @main(%x: tensor<1x6000xf32>, %s: tensor<1x6000xf32>) -> (tensor<1x6000xf32>, tensor<1x6000xf32>) {
  %n = relay.add %x, %s : (tensor<1x6000xf32>, tensor<1x6000xf32>) -> tensor<1x6000xf32>
  %y = relay.multiply %n, %x : (tensor<1x6000xf32>, tensor<1x6000xf32>) -> tensor<1x6000xf32>
  func.return %y, %n : tensor<1x6000xf32>, tensor<1x6000xf32>
}"""


def test_outputs_that_become_inputs():
    executable = relay.build(relay.IRModule.parse(RUNNING_SUM))
    (x, s), n = executable.inputs, executable.outputs[1]
    with pytest.raises(InvalidArgument, match=r"has no states; name outputs .*: stream\(states="):
        executable.stream()
    stream, state = executable.stream({n.name: s.name}), np.zeros((1, 6000), np.float32)
    for given in np.random.default_rng(0).standard_normal((5, 1, 12000)).astype(np.float32)[..., ::2]:
        found = executable.run(given, state)
        assert isinstance(found, tuple)
        np.testing.assert_array_equal(stream.run(**{x.name: given}), found[0])
        state = found[1]
    np.testing.assert_array_equal(stream.states[s.name], state)


def test_outputs_of_onnx_that_become_inputs():
    """A recurrent layer on codes: what it gives is what it takes, for as long as it runs."""
    onnx, runtime = (pytest.importorskip(name, reason="needs onnx, onnxruntime") for name in ("onnx", "onnxruntime"))
    rng = np.random.default_rng(0)
    constants = {
        "kernel": rng.integers(-127, 128, (20, 12)).astype(np.int8),
        **{f"{name}_scale": np.float32(scale) for name, scale in (("x", 0.02), ("k", 0.004), ("h", 1 / 128))},
        **{f"{name}_zero": np.int8(0) for name in ("x", "k", "h")},
    }
    node, of = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    product = ["joined", "x_scale", "x_zero", "kernel", "k_scale", "k_zero", "h_scale", "h_zero"]
    nodes = [
        node("Concat", ["frame", "past"], ["joined"], axis=1),
        node("QLinearMatMul", product, ["present"]),
        node("Relu", ["present"], ["seen"]),
    ]
    graph = onnx.helper.make_graph(
        nodes, "g",
        [of("frame", 3, [1, 8]), of("past", 3, [1, 12])], [of("seen", 3, [1, 12]), of("present", 3, [1, 12])],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    data = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)]).SerializeToString()
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    stream, past = relay.build(data).stream({"present": "past"}), np.zeros((1, 12), np.int8)
    for frame in rng.integers(-128, 128, (200, 1, 8)).astype(np.int8):
        seen, past = session.run(None, {"frame": frame, "past": past})
        np.testing.assert_array_equal(stream.run(frame), seen)
    np.testing.assert_array_equal(stream.states["past"], past)
    assert np.unique(past).size > 3


WRONG: dict[str, Callable[[Stream], object]] = {
    "input 't0': has shape [3]; [1, 12] is needed": lambda stream: stream.run(np.zeros(3, np.int8)),
    "input 't0': is not given": lambda stream: stream.run(),
    "stream: got 2 inputs; the model has 1 beside its states; set_states": lambda stream: stream.run(ROW, ROW),
    "input 'a': is unknown; the inputs are t0; set_states": lambda stream: stream.run(ROW, a=ROW),
    "input 't0': is given twice": lambda stream: stream.run(ROW, t0=ROW),
    "state 'b': is unknown; the states are a": lambda stream: stream.set_states({"b": ROW}),
    "input 'a': has dtype float32; int8 is needed": lambda stream: stream.set_states({"a": np.zeros(1, np.float32)}),
}
ROW = np.zeros((1, 12), np.int8)


@pytest.mark.parametrize("words", WRONG)
def test_what_is_refused(words: str):
    stream = built("recurrent").stream()
    stream.run(ROW)
    before = stream.states["a"]
    with pytest.raises(InvalidArgument) as found:
        WRONG[words](stream)
    assert str(found.value).startswith(words)
    np.testing.assert_array_equal(stream.states["a"], before)


def test_pairs_that_are_refused():
    executable = built("recurrent")
    for pairs, words in (
        ({"t13": "a"}, "states: output 't13': is int8[1, 3]; input 'a' is int8[1, 16]"),
        ({"t13": "no"}, "states: input 'no': is unknown; known are t0, a"),
        ({"no": "a"}, "states: output 'no': is unknown; known are t13, a"),
    ):
        with pytest.raises(InvalidArgument) as found:
            executable.stream(pairs)
        assert str(found.value).startswith(words)
    with pytest.raises(Unsupported, match="stream"):
        relay.build(recurrent(), batch="n").stream()


def test_files_that_are_refused(tmp_path: Path):
    stream = built("recurrent").stream()
    (tmp_path / "a.npz").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(Malformed, match="is no .npz file; stream.save"):
        stream.load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", c=np.zeros(1))
    with pytest.raises(InvalidArgument, match="has no state 'a'; it was saved from another model"):
        stream.load(tmp_path / "b.npz")
    with pytest.raises(InvalidArgument, match="c.npz: cannot be read: No such file"):
        stream.load(tmp_path / "c.npz")


GROWN = ["(1, 3, 4) 3", "(1, 1, 4) 4", "(1, 1, 4) 5"]


@pytest.mark.ci
def test_the_page_runs(tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "streams.md").read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2.5", "5.0", "6.0", "2.5 6.0 10.0", "6.0", *GROWN]


CACHE = """
#include "m.h"
#include <stdio.h>
static _Alignas(64) unsigned char arena[M_ARENA_BYTES];
int main(void) {
  static m_stream stream;
  int8_t row[M_INPUT_0_COUNT], out[M_OUTPUT_0_COUNT];
  int32_t start[3] = {0, 0, 0};
  if (sizeof stream.input_2 != COPIES * 54 || m_stream_init(&stream, arena)) return 3;
  for (int i = 0; fread(row, sizeof row, 1, stdin) == 1; ++i) {
    start[1] = i % 11;
    if (m_stream_step(&stream, row, start, out)) return 1;
    fwrite(out, sizeof out, 1, stdout);
  }
  return 0;
}
"""


@pytest.mark.parametrize("kind", ["object", "c"])
def test_exported_caches(kind: str, tmp_path: Path):
    compiler = find()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    executable = relay.build(cache_of_rows())
    if kind == "object":
        executable.export(tmp_path, "m")
    else:
        export_c(relay.frontend.from_tflite(cache_of_rows()), tmp_path, "m")
    (tmp_path / "main.c").write_text(CACHE)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-DCOPIES={1 if kind == 'object' else 2}"]
    files = ["main.c", "m.o" if kind == "object" else "m.c"]
    subprocess.run([*compiler, *flags, *files, "-o", "main", "-lm"], cwd=tmp_path, check=True)
    given = np.random.default_rng(1).integers(-128, 128, (25, 1, 1, 6), np.int8)
    done = subprocess.run([os.path.join(tmp_path, "main")], input=given.tobytes(), stdout=subprocess.PIPE, check=True)
    stream = executable.stream()
    wanted = [stream.run(row, np.array([0, step % 11, 0], np.int32)) for step, row in enumerate(given)]
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int8).reshape(np.shape(wanted)), wanted)


PROGRAM = """
#include "m.h"
#include <stdio.h>
static _Alignas(64) unsigned char arena[M_ARENA_BYTES];
static int8_t in[M_INPUT_0_COUNT], out[M_OUTPUT_0_COUNT];
int main(void) {
  m_stream first, second;
  if (m_stream_init(&first, arena + 1) != -1) return 2;
  if (m_stream_init(&first, arena) || m_stream_init(&second, arena)) return 3;
  for (int i = 0; fread(in, sizeof in, 1, stdin) == 1; ++i) {
    if (i == 20) m_stream_reset(&first);
    if (m_stream_step(&first, in, out)) return 1;
    fwrite(out, sizeof out, 1, stdout);
    if (i % 3 == 0 && m_stream_step(&second, in, out)) return 1;
  }
  return 0;
}
"""


@pytest.mark.parametrize("kind", ["object", "c"])
def test_exported_streams(kind: str, tmp_path: Path):
    compiler = find()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    executable, given = built("integrator"), frames("integrator", 40)
    if kind == "object":
        executable.export(tmp_path, "m")
    else:
        export_c(relay.frontend.from_tflite(integrator()), tmp_path, "m")
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    files = ["main.c", "m.o" if kind == "object" else "m.c"]
    subprocess.run([*compiler, *flags, *files, "-o", "main", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([os.path.join(tmp_path, "main")], input=given.tobytes(), stdout=subprocess.PIPE, check=True)
    stream = executable.stream()
    wanted = results(stream, given[:20])
    stream.reset()
    wanted += results(stream, given[20:])
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int8).reshape(np.shape(wanted)), wanted)


THREADS = """
#include "m.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
enum { STREAMS = 8, STEPS = 50 };
static _Alignas(64) unsigned char arenas[STREAMS][(M_ARENA_BYTES + 63) / 64 * 64];
static int8_t in[STREAMS][STEPS][M_INPUT_0_COUNT], out[STREAMS][STEPS][M_OUTPUT_0_COUNT];
static void *run(void *given) {
  int n = *(int *)given;
  m_stream stream;
  if (m_stream_init(&stream, arenas[n])) return given;
  for (int i = 0; i < STEPS; ++i)
    if (m_stream_step(&stream, in[n][i], out[n][i])) return given;
  return NULL;
}
int main(void) {
  pthread_t threads[STREAMS];
  int numbers[STREAMS], failed = 0;
  if (fread(in, sizeof in, 1, stdin) != 1) return 2;
  for (int n = 0; n < STREAMS; ++n) {
    numbers[n] = n;
    if (pthread_create(&threads[n], NULL, run, &numbers[n])) return 3;
  }
  for (int n = 0; n < STREAMS; ++n) {
    void *result;
    failed |= pthread_join(threads[n], &result) || result;
  }
  return failed || fwrite(out, sizeof out, 1, stdout) != 1;
}
"""


@pytest.mark.ci
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
@pytest.mark.parametrize("model", MODELS)
def test_eight_threads_with_a_stream_each_are_clean(model: str, sanitizer: str, tmp_path: Path):
    compiler = find()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    export_c(relay.frontend.from_tflite(MODELS[model]()), tmp_path, "m")
    (tmp_path / "main.c").write_text(THREADS)
    flags = ["-std=c11", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    subprocess.run([*compiler, *flags, "main.c", "m.c", "-o", "main", "-lm", "-pthread"], cwd=tmp_path, check=True)
    executable, given = built(model), frames(model, 8 * 50)
    done = subprocess.run([os.path.join(tmp_path, "main")], input=given.tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    wanted = [results(executable.stream(), rows) for rows in given.reshape(8, 50, *given.shape[1:])]
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int8).reshape(np.shape(wanted)), wanted)
