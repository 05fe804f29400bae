"""The benchmarks: what is counted in assembly, what is compared, what a run prints."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree

import numpy as np
import pytest

import relay
from benchmarks import compare, kernels, macs, report, same_code, tables
from benchmarks.cases import CASES, module_of
from benchmarks.instructions import EXPECTED, Counts, count, counted, innermost, worse
from relay.compile import peak
from relay.compile.pipeline import optimize
from relay.errors import InvalidArgument
from relay.exploration.references import exact_session
from relay.frontend import import_model
from relay.interpreters import run
from relay.lowering.codegen import compile_text
from relay.target import CpuTarget, resolve
from relay.tools.peers import PEERS, adapter, importer_options, rounds

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"

LOOPS = """
.LBB0_1:
	vmovups	%zmm3, 64(%rsp)
	movq	%rax, %rbx
.LBB0_2:
	vbroadcastss	(%rdi), %zmm1
	vfmadd231ps	%zmm1, %zmm2, %zmm3
	addq	$4, %rdi
	jne	.LBB0_2
	addq	$1, %rcx
	jne	.LBB0_1
	jmp	.LBB0_9
""".strip()


def test_innermost_loops_are_told_from_outer_ones():
    assert [loop[0] for loop in innermost(LOOPS.splitlines())] == [".LBB0_2:"]
    counts = {"multiplications": 1, "instructions": 4, "all_multiplications": 1, "all_instructions": 9, "spills": 1}
    assert count(LOOPS) == counts


def counts_of(multiplications: int, instructions: int, every: int, spills: int) -> Counts:
    names = ("multiplications", "instructions", "all_multiplications", "all_instructions", "spills")
    return dict(zip(names, (multiplications, instructions, multiplications, every, spills), strict=True))


def test_a_kernel_that_got_worse_is_named():
    old = {"a": counts_of(10, 20, 100, 0)}
    assert not worse({"a": counts_of(20, 40, 200, 0)}, old)
    assert "2.10 instructions" in worse({"a": counts_of(10, 21, 100, 0)}, old)[0]
    assert "10.30 instructions of all" in worse({"a": counts_of(10, 20, 103, 0)}, old)[0]
    assert "1 spills" in worse({"a": counts_of(10, 20, 100, 1)}, old)[0]
    assert "--update" in worse({"b": old["a"]}, old)[0]


@pytest.mark.slow
def test_no_kernel_got_worse():
    assert worse(counted(), json.loads(EXPECTED.read_text())) == []


def test_every_counted_kernel_is_expected():
    assert set(json.loads(EXPECTED.read_text())) == set(CASES)


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("int8 1x1 96->24", macs.Work(56 * 56 * 96 * 24, "int8", "1x1 96->24 at 56x56")),
        ("int8 3x3/2 3->32", macs.Work(112 * 112 * 27 * 32, "int8", "3x3/2 3->32 at 112x112")),
        ("float32 depthwise 3x3 96", macs.Work(56 * 56 * 9 * 96, "float32", "depthwise 3x3 96 at 56x56")),
        ("int8 dense 640->128", macs.Work(640 * 128, "int8", "dense 640->128")),
    ],
)
def test_multiply_adds(case: str, wanted: macs.Work):
    module = optimize(module_of(CASES[case]))
    found = [work for name, work in macs.kernels_of(module).items() if name != "main"]
    assert found == [wanted]
    assert macs.total(module).macs == wanted.macs


def test_differences_of_outputs():
    a, b = np.array([1, 2, 250], np.uint8), np.array([1, 5, 240], np.uint8)
    assert rounds.difference([a], [a]) == "max 0, 0 of 3"
    assert rounds.difference([a], [b]) == "max 10, 2 of 3"
    assert rounds.difference([a.astype(np.float32)], [b.astype(np.float32)]) == "max 1.0e+01"
    assert rounds.difference([a], [b[:2]]) == "other shapes"


def test_ours_against_the_best_peer_and_the_geometric_mean():
    def row(peer: str, seconds: float, note: str = "") -> dict[str, object]:
        times = {key: seconds for key in ("median_s", "minimum_s", "processor_s")}
        return {"peer": peer, "threads": 1, "note": note, **times}

    fast, slow, alone = [row("ours", 1), row("b", 4), row("c", 9)], [row("ours", 1), row("b", 1)], [row("ours", 1)]
    assert tables.best_ratios(fast, 1) == {"median_s": 0.25, "minimum_s": 0.25, "processor_s": 0.25}
    assert tables.best_ratios([*alone, row("b", 0, "not installed")], 1) == {}
    lines = tables.summary({"fast": fast, "slow": slow, "alone": alone}, 1).splitlines()
    assert [line.split()[1:-1:2] for line in lines[2:4]] == [
        ["fast", "0.25", "0.25", "0.25"],
        ["slow", "1.00", "1.00", "1.00"],
    ]
    assert lines[4].startswith("| geometric mean") and lines[4].count("0.50") == 3 and len(lines) == 5


@pytest.mark.ci
def test_a_page_of_figures_says_the_machine_the_versions_and_what_failed(tmp_path: Path):
    assert report.main([str(tmp_path / "page.md"), "--only", "What a call costs"]) == 0
    page = (tmp_path / "page.md").read_text()
    assert "native call" in page and f"numpy {np.__version__}" in page and "processors" in page
    assert all(f"{peer} " in page for peer in PEERS) and "## Integers" not in page
    assert "ended with 2" in report.section("Wrong", ["compare", "missing.tflite"])


def test_the_spread_is_the_middle_half_of_the_rounds():
    seconds = (1.0, 2.0, 2.0, 2.5, 9.0)
    runner = rounds.Runner("a", 1, MagicMock(), Path(), rounds=[{"processor": second} for second in seconds])
    assert runner.spread == 0.25


def test_an_onnx_model_is_imported_for_the_sizes_of_its_inputs(tmp_path: Path):
    onnx = pytest.importorskip("onnx", reason="the importer needs it")
    kinds = [
        onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", ["n", 3]), ("s", []), ("y", None))
    ]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Mul", ["x", "s"], ["y"])], "g", kinds[:2], kinds[2:])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    inputs = [np.ones((5, 3), np.float32), np.array(2.0, np.float32)]
    options = importer_options(tmp_path / "m.onnx", inputs)
    assert options == {"shapes": {"x": (5, 3)}, "constants": {"s": inputs[1]}}
    (timed,) = kernels.time_kernels(tmp_path / "m.onnx", inputs, 0.01)
    assert timed.seconds > 0 and importer_options(DIGITS, []) == {}


@pytest.mark.slow
def test_an_onnx_model_is_compared(tmp_path: Path):
    onnx = pytest.importorskip("onnx", reason="the importer needs it")
    kinds = [onnx.helper.make_tensor_value_info(name, 1, [3]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["x"], ["y"])], "g", kinds[:1], kinds[1:])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    (row,), _ = compare.compare(tmp_path / "m.onnx", ["ours"], [1], 1, 0.001, {})
    assert row["median_s"] > 0 and "from_reference" not in row


@pytest.mark.parametrize(
    ("name", "bound"), [("encoder_small", 2e-3), ("encoder_small_f32", 2e-6), ("four_bits_small", 1e-6)]
)
def test_transformers_compute_what_onnx_runtime_says(tmp_path: Path, name: str, bound: float):
    onnxruntime = pytest.importorskip("onnxruntime", reason="the oracle")
    transformers = pytest.importorskip("benchmarks.transformers", reason="needs the package onnx")
    (path,) = transformers.write([name], tmp_path)
    session = exact_session(onnxruntime, path.read_bytes(), onnxruntime.SessionOptions())
    inputs = compare.inputs_of(path)
    (expected,) = session.run(None, dict(zip([port.name for port in session.get_inputs()], inputs, strict=True)))
    (found,) = run(import_model(str(path), {}), inputs)
    assert np.abs(found - expected).mean() <= bound * np.abs(expected).max()  # a code may be its neighbour


@pytest.mark.ci
@pytest.mark.parametrize(("name", "bound"), [("small_int8", 1e-5), ("small_4bit", 1e-5)])
def test_a_decoder_whose_caches_grow_says_what_onnx_runtime_says(tmp_path: Path, name: str, bound: float):
    onnxruntime = pytest.importorskip("onnxruntime", reason="the oracle")
    decoding = pytest.importorskip("benchmarks.decoding", reason="needs the package onnx")
    decoder, path = decoding.DECODERS[name], tmp_path / "open.onnx"
    session = exact_session(onnxruntime, decoder.model(open=False).SerializeToString(), onnxruntime.SessionOptions())
    inputs = zip([port.name for port in session.get_inputs()], decoder.inputs(), strict=True)
    expected = session.run(None, dict(inputs))[0]
    path.write_bytes(decoder.model(open=True).SerializeToString())
    found = decoding.ours(decoder, path)()
    assert np.abs(found - expected).max() <= bound * np.abs(expected).max()
    assert decoding.reading(1 << 16)() is not None


@pytest.mark.ci
def test_layers_of_an_encoder_share_their_kernels():
    transformers = pytest.importorskip("benchmarks.transformers", reason="needs the package onnx")
    kernels: list[set[str]] = []
    for layers in (2, 4):
        model = transformers.Encoder(layers, 32, 2, 64, 12, codes=False).model()
        assembly = relay.build(model.SerializeToString()).get_source("asm")
        kernels.append(set(re.findall(r"^([a-z]\w*):$", assembly, re.MULTILINE)))
    assert kernels[0] == kernels[1] and "attention_0" in kernels[0]


@pytest.mark.ci
def test_a_small_vision_transformer_has_litert_s_codes():
    pytest.importorskip("ai_edge_litert", reason="has the classes that write the model, and is the oracle")
    vision = pytest.importorskip("benchmarks.vision", reason="needs the package onnx")
    model = vision.vision_transformer(blocks=2, tokens=13, width=32, heads=2, inner=48)
    assert vision.differing(model, runs=2) == (0, 2 * 13 * 32)


def test_the_better_peer_is_compared_with_ours():
    transformers = pytest.importorskip("benchmarks.transformers", reason="needs the package onnx")
    rows: list[dict[str, Any]] = [
        {"peer": peer, "threads": 1, "note": note, "processor_s": seconds}
        for peer, note, seconds in (("ours", "", 0.002), ("openvino", "", 0.005), ("onnxruntime", "fails", 0.0))
    ]
    assert transformers.ratio_rows({"m": rows}) == [["m", "2", "5", "", "2.50"]]


def test_the_plot_and_the_table_of_exactness():
    ours = {"peer": "ours", "threads": 1, "processor_ratio": 1.0, "from_reference": "max 0, 0 of 10"}
    other = {"peer": "litert", "threads": 1, "processor_ratio": 0.25, "from_reference": "max 1, 3 of 10"}
    absent = {"peer": "tvm", "threads": 1, "note": "skipped"}
    results = {"<model>": [ours, other, absent], "two": [ours]}
    drawn = ElementTree.fromstring(tables.plot(results))
    words = [each.text for each in drawn.iter() if each.tag.endswith("text")]
    assert {"<model>", "two", "litert", "4.0"} <= set(words) and "tvm" not in words
    assert tables.exactness(results).splitlines()[2].split("|")[1:4] == [
        " <model>             ",
        " max 0, 0 of 10 ",
        " max 1, 3 of 10 ",
    ]


def test_every_peer_has_an_adapter():
    assert all(adapter(name).PACKAGE for name in PEERS)


@pytest.mark.parametrize("target, why", [("cortex-m4", "is code for thumbv7em"), ("cuda", "is not a CPU's")])
def test_the_peak_of_another_machine_is_an_error(target: str, why: str):
    with pytest.raises(InvalidArgument, match=why):
        peak.measure(target)


def test_the_peak_is_positive():
    assert all(rate > 1e8 for rate in peak.measure().values())


PEAKS = {
    "x86_64-unknown-linux-gnu": ("float32 int8", "pmaddwd"),
    "x86_64-unknown-linux-gnu -mcpu=haswell": ("float32 int8", "vpmaddwd"),
    "x86_64-unknown-linux-gnu -mcpu=alderlake": ("float32 int8", "vpdpbusd"),
    "x86_64-unknown-linux-gnu -mcpu=skylake-avx512": ("float32 int8", "vpmaddwd"),
    "aarch64-unknown-linux-gnu -mattr=+dotprod": ("float32 int8", "sdot"),
    "aarch64-unknown-linux-gnu -mattr=+i8mm,+bf16": ("float32 int8 bfloat16", "usdot"),
}


@pytest.mark.parametrize("name", PEAKS)
def test_the_peak_is_of_the_instructions_that_kernels_take(name: str):
    """One for each accumulator, in a loop that may be unrolled."""
    target, (kinds, instruction) = resolve(name), PEAKS[name]
    assert isinstance(target, CpuTarget)
    found = peak.instructions(target)
    assert set(found) == set(kinds.split())
    loops = {kind: compile_text(peak.loop(each), target).assembly() for kind, each in found.items()}
    count = len(re.findall(rf"\b{instruction}\b", loops["int8"]))
    assert count and count % found["int8"].accumulators == 0
    assert re.search(r"\b(callq?|bl)\b", loops["float32"]) is None


def test_the_peak_of_tile_registers_is_of_nothing_but_products():
    target = resolve("x86_64-unknown-linux-gnu -mcpu=sapphirerapids")
    assert isinstance(target, CpuTarget)
    assembly = compile_text(peak.loop(peak.instructions(target)["int8"]), target).assembly()
    lines = [line.split("#")[0].strip() for line in assembly.splitlines()]
    code = [line for line in lines if line and not line.startswith(".")]
    start = next(at for at, line in enumerate(code) if line.startswith("tdpbusd"))
    end = next(at for at, line in enumerate(code) if line.startswith("j"))
    names = Counter(line.split()[0] for line in code[start:end])
    assert names.pop("tdpbusd") % peak.TILES == 0
    assert not [name for name in names if name.startswith("tile")]


def test_what_processors_do_together():
    available = sorted(os.sched_getaffinity(0))
    assert peak.scaling(available[:1]) > 0
    assert os.sched_getaffinity(0) == set(available)


def test_kernels_of_a_model_are_timed_in_order():
    timed = kernels.time_kernels(DIGITS, compare.inputs_of(DIGITS), 0.02)
    module = optimize(compare.relay.frontend.from_tflite(str(DIGITS)))
    assert sum(one.work.macs for one in timed) == macs.total(module).macs > 0
    assert all(one.seconds > 0 for one in timed)
    assert any("channels" in one.schedule for one in timed)


@pytest.mark.ci
def test_a_comparison_prints_a_row_for_ours(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    results = tmp_path / "results.json"
    with pytest.raises(SystemExit):
        compare.main([str(DIGITS), "--peers", "ours,nobody"])
    assert "unknown peers: nobody" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        compare.main([str(DIGITS), "missing.tflite"])
    assert "no such file: missing.tflite" in capsys.readouterr().err
    compare.main(
        [
            str(DIGITS),
            "--peers",
            "ours",
            "--threads",
            "1",
            "--rounds",
            "2",
            "--seconds",
            "0.02",
            "--json",
            str(results),
        ]
    )
    printed = capsys.readouterr().out
    assert "GMAC/s" in printed and "| ours" in printed
    (row,) = json.loads(results.read_text())["models"]["digits_int8"]
    assert row["peer"] == "ours" and row["median_s"] >= row["minimum_s"] > 0
    assert row["difference"].startswith("max 0, 0 of")


def test_artifacts_that_changed_are_named():
    old = {"a x": {"code": "1", "graph": "2"}, "b x": {"code": "3"}}
    new = {"a x": {"code": "1", "graph": "9"}, "b x": {"code": "3"}, "c x": {"refused": "no"}}
    assert same_code.differences(old, old) == []
    assert same_code.differences(new, old) == ["a x: not as recorded: graph", "c x: was not recorded"]


@pytest.mark.ci
def test_sums_follow_the_code():
    fast, plain = (
        same_code.sums(same_code.DIGITS / "digits_int8.tflite", same_code.TARGETS[t]) for t in ("avx2", "sse2")
    )
    assert fast["code"] != plain["code"] and fast.keys() == {"code", "graph", "constants"}
    assert "refused" in same_code.sums(same_code.DIGITS / "make_model.py", same_code.TARGETS["avx2"])
