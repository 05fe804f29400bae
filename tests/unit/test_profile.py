"""`Executable.profile`: kernels and operators, rates, a trace; the code that is profiled is the code that runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relay
from relay.compile import workers
from relay.compile.workers import LlvmPool, kernels_apart
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.codegen import Job
from relay.lowering.llvm.counters import counted
from relay.lowering.llvm_ir import program
from relay.runtime import Executable
from relay.runtime.profile import Profile
from relay.target import host
from relay.target.dots import half_dot
from relay.tools.relay_explore import main
from relay.viewer import data
from relay.viewer import record as recorded

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
IMAGE = np.load(ROOT / "examples" / "digits" / "digits_test.npz")["int8_images"][:1]


@pytest.fixture(scope="module")
def executable() -> Executable:
    return relay.build(DIGITS)


@pytest.fixture(scope="module")
def profile(executable: Executable) -> Profile:
    return executable.profile(IMAGE, seconds=0)


def test_every_kernel_names_its_operators(executable: Executable, profile: Profile):
    assert [call.kernel for call in profile.calls] == executable.graph["kernels"]
    fused = profile.calls[2].operators
    assert [name.split()[:3] for name in fused] == [["operator", "2", "CONV_2D"], ["operator", "3", "ADD"]]
    assert all(call.operators and call.bytes > 0 and call.seconds > 0 for call in profile.calls)
    assert sum(call.share for call in profile.calls) == pytest.approx(1)
    assert sum(profile.operators.values()) == pytest.approx(profile.seconds)
    assert next(iter(profile.operators.values())) == max(profile.operators.values())


def test_work_is_that_of_the_model(profile: Profile):
    assert sum(call.macs for call in profile.calls) == 46592
    first = profile.calls[0]
    assert (first.macs, first.macs_per_s) == (9216, 9216 / first.seconds)
    assert first.peak_share is None or 0 < first.peak_share < 1
    assert profile.peak["float32"] > 0
    assert profile.calls[-1].peak_share is None


def test_work_is_that_of_the_kernel_that_multiplies():
    """A convolution in NCHW is computed in NHWC: the transposes of its operator multiply nothing."""
    types = "(tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x7x7xf32>"
    layouts = 'data_layout = "NCHW", kernel_layout = "OIHW"'
    text = f"""func.func @main(%x: tensor<1x3x9x9xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x7x7xf32> {{
      %r = relay.nn.conv2d %x, %w {{{layouts}, out_dtype = f32}} : {types} loc("conv")
      func.return %r : tensor<1x8x7x7xf32>
    }}"""
    calls = relay.build(relay.IRModule.parse(text)).profile(seconds=0).calls
    named = [call for call in calls if any("conv" in name for name in call.operators)]
    assert len(named) > 1
    assert [call.macs for call in calls if call.macs] == [8 * 7 * 7 * 27]


def test_work_is_measured_against_what_is_multiplied():
    matrix = "tensor<64x64xbf16>"
    body = f"%y = relay.nn.dense %x, %x {{out_dtype = bf16}} : ({matrix}, {matrix}) -> {matrix}"
    mod = relay.IRModule.parse(f"func.func @main(%x: {matrix}) -> {matrix} {{\n{body}\nfunc.return %y : {matrix}\n}}")
    found = relay.build(mod).profile(np.ones((64, 64), ml_dtypes.bfloat16), seconds=0)
    kind = "bfloat16" if half_dot(host().features) is not None else "float32"
    dense = next(call for call in found.calls if call.macs)
    assert dense.macs == 64**3 and dense.macs_per_s is not None
    assert dense.peak_share == dense.macs_per_s / found.peak[kind]


def test_the_trace_has_one_run(profile: Profile, tmp_path: Path):
    profile.save_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == [call.kernel for call in profile.calls]
    ends = [event["ts"] + event["dur"] for event in events]
    assert [event["ts"] for event in events[1:]] == pytest.approx(ends[:-1])
    assert {event["ph"] for event in events} == {"X"}
    json.dumps(profile.to_json())
    assert "counters take" in str(profile) and "conv2d_2" in str(profile)


@pytest.mark.ci
def test_the_page_and_the_heat_of_the_graph(profile: Profile, tmp_path: Path):
    assert profile.to_html().count("<meter") == len(profile.calls) and "CONV_2D" in profile.to_html()
    shares = {call.kernel: call.share for call in profile.calls}
    record = recorded(relay.frontend.from_tflite(DIGITS), heat=profile.heat)
    first, last = (
        [node for part in record.snapshots[n].parts for node in part.graph.nodes if part.name == "main"]
        for n in (0, -1)
    )
    of_operators = [data.heat(record, 0, node) for node in first if node.kind == "op"]
    assert len([share for share in of_operators if share is not None]) > 20
    of_kernels = {node.name: data.heat(record, len(record.snapshots) - 1, node) for node in last if node.kind == "call"}
    assert of_kernels == {f"@{name}": share for name, share in shares.items()}
    assert main([str(DIGITS), "--html", f"{tmp_path}/e.html", "--profile"]) == 0


def test_what_runs_has_no_counters_and_the_kernels_are_the_same(executable: Executable):
    module = relay.default_pipeline()(relay.frontend.from_tflite(DIGITS))
    plain, counting = (program(module.op, counters=triple) for triple in ("", "x86_64-unknown-linux-gnu"))
    assert "readcyclecounter" not in plain.text and "readcyclecounter" not in executable.get_source("ll")
    for name, function in plain.functions.items():
        assert (function == counting.functions[name]) == (name != "main")
    before = executable.library.code
    executable.profile(IMAGE, seconds=0)
    assert executable.library.code == before == relay.build(DIGITS).library.code


def test_the_counting_run_gives_the_same_numbers(executable: Executable):
    expected = np.asarray(executable.run(IMAGE))
    seen: list[np.ndarray[tuple[int, ...], np.dtype[np.int8]]] = []
    profiled = executable.library.profiled
    assert profiled is not None
    rows = profiled()["calls"]
    twin = Executable(executable.graph, relay.runtime.Library(profiled()["code"]), executable.params)
    vars(twin)["_notes"] = [np.zeros(len(rows) + 1, np.int64)]
    seen.append(np.asarray(twin.run(IMAGE)))
    np.testing.assert_array_equal(seen[0], expected)
    assert (vars(twin)["_notes"][0] > 0).all()


def test_calls_of_external_functions_are_timed():
    """Also among those of kernels, each by its own counter."""
    calls = relay.build(DIGITS, external="systolic").profile(IMAGE, seconds=0).calls
    slow = {call.kernel for call in calls if call.kernel.startswith("relay_systolic")}
    assert 0 < len(slow) < len(calls) and all(0 < call.seconds < 10 for call in calls)
    assert {call.kernel for call in sorted(calls, key=lambda call: call.seconds)[-len(slow) :]} == slow, "they simulate"


def test_external_functions_name_all_their_operators():
    parted = relay.build_external_compiler(relay.frontend.from_tflite(DIGITS), "systolic")
    calls = relay.build(parted).profile(IMAGE, seconds=0).calls
    assert sum(call.macs for call in calls) == 46592
    found = {(call.kernel, name) for call in calls if call.kernel in parted.functions for name in call.operators}
    assert found == {(row.place, row.source) for row in parted.partition_report().of("systolic")}


def test_counters_compile_no_kernel_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "store", lambda: None)  # other tests may have kept kernels
    compiled: list[str] = []
    add = LlvmPool.add

    def noted(pool: LlvmPool, job: Job) -> None:
        compiled.append(job[0])
        add(pool, job)

    monkeypatch.setattr(LlvmPool, "add", noted)
    with kernels_apart():
        executables = [relay.build(DIGITS), relay.build(DIGITS)]
    of_kernels = len(compiled)
    assert of_kernels == len(set(executables[0].graph["kernels"])) + 1  # and @main, once for both builds
    for executable in executables:
        for _ in range(2):
            assert executable.profile(IMAGE, seconds=0).calls
    assert len(compiled) == of_kernels + 1
    assert "readcyclecounter" in compiled[-1]


@pytest.mark.ci
def test_a_build_from_the_cache_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    relay.build(DIGITS)
    found = relay.build(DIGITS).profile(seconds=0)
    assert found.calls[2].operators[1].startswith("operator 3 ADD")


def test_refusals(executable: Executable, tmp_path: Path):
    pixels = "tensor<1x8x8x1xi8>"
    body = f"%y = relay.abs %x : ({pixels}) -> {pixels}"
    small = relay.IRModule.parse(f"func.func @main(%x: {pixels}) -> {pixels} {{\n{body}\nfunc.return %y : {pixels}\n}}")
    executable.save(tmp_path / "x.relay")
    said = "profile: neither a GPU's kernels nor what was loaded from a file can be profiled; build the model for a CPU"
    for other in (relay.runtime.load(tmp_path / "x.relay"), relay.build(small, "cuda")):
        with pytest.raises(Unsupported, match=said):
            other.profile(IMAGE)
    with pytest.raises(InvalidArgument, match="profile: seconds are -1"):
        executable.profile(IMAGE, seconds=-1)
    other = "x86_64" if os.uname().machine == "aarch64" else "aarch64"
    with pytest.raises(InvalidArgument, match=f"profile: is code for {other}-unknown-linux-gnu; this machine is"):
        relay.build(small, other).profile(IMAGE)
    module = relay.default_pipeline()(small)
    with pytest.raises(Unsupported, match="profile: no counter of riscv64 is known"):
        counted(program(module.op).functions["main"], (), "riscv64-unknown-linux-gnu")
