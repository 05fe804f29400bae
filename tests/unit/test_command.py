"""`relay`: each subcommand in this process; exit codes, lines of errors, JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.compile.records import Record
from relay.errors import InvalidArgument
from relay.runtime import processor
from relay.target import names, resolve
from tests.unit.pass_modules import small

pytest.importorskip("rich_click", reason="needs the extra cli")

from relay.__main__ import main, opt  # noqa: E402
from relay.tools.command import options  # noqa: E402
from relay.tools.command.inputs import check_sizes, gather  # noqa: E402
from relay.tools.command.main import COMMANDS  # noqa: E402
from tests.marks import ci

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
OUTPUT = "StatefulPartitionedCall_1:0"


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Each model is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digits, compiled to a file."""
    path = str(tmp_path_factory.mktemp("command") / "digits.relay")
    assert main(["compile", DIGITS, "-o", path]) == 0
    return path


def told(capsys: Capture, *args: str) -> Any:
    """The JSON of a command that succeeds."""
    assert main([*args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_command_has_help_that_starts_without_the_compiler(capsys: Capture):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    program = "import sys; from relay.__main__ import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"xdsl", "numpy", "llvmlite"} & set(done.stderr.split())


def test_help_names_what_the_registries_know(capsys: Capture):
    assert main(["compile", "--help"]) == 0
    shown = capsys.readouterr().out
    for known in (options.targets, options.profiles, options.compilers, options.formats):
        assert all(name in shown for name in known())


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: Capture):
    monkeypatch.setitem(sys.modules, "rich_click", None)
    assert main(["inspect", DIGITS]) == 1
    line = "relay: the package rich_click is not installed; pip install 'relay-mlir[cli]'\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("name", ["opt", "explore", "byoc", "dialect"])
def test_without_xdsl_one_line_says_what_to_install(name: str):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts[f"relay-{name}"].partition(":")
    program = f"import sys; sys.modules['xdsl'] = None; from {module} import {function}; sys.exit({function}())"
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, cwd=ROOT)
    line = f"relay-{name}: the package xdsl is not installed; pip install xdsl\n"
    assert (done.returncode, done.stderr) == (1, line)


def test_inspect(capsys: Capture, saved: str):
    row = told(capsys, "inspect", DIGITS)
    assert row["macs"] == 46592 and row["operators"][0] == {"kind": "CONV_2D", "count": 3, "macs": 33792}
    assert row["inputs"][0]["shape"] == [1, 8, 8, 1] and row["weights"] == 12
    assert main(["inspect", DIGITS, "--batch", "4"]) == 0
    assert "int8 4x8x8x1" in capsys.readouterr().out
    row = told(capsys, "inspect", saved)
    assert row["outputs"][0]["name"] == OUTPUT


def test_run_gives_what_python_gives(capsys: Capture, saved: str, tmp_path: Path):
    images = np.load(ROOT / "examples" / "digits" / "digits_test.npz")["int8_images"]
    np.savez(tmp_path / "in.npz", images[:1])
    np.save(tmp_path / "in.npy", images[:1])
    (tmp_path / "labels.txt").write_text("\n".join("abcdefghij"))
    outputs = tmp_path / "out.npz"
    expected = relay.build(DIGITS).run(images[:1])
    assert isinstance(expected, np.ndarray)
    for given in (["--inputs", f"{tmp_path}/in.npz"], ["--input", f"serving_default_image:0={tmp_path}/in.npy"]):
        for file in (DIGITS, saved):
            assert main(["run", file, *given, "--outputs", str(outputs)]) == 0
            np.testing.assert_array_equal(np.load(outputs)[OUTPUT], expected)
            outputs.unlink()
    capsys.readouterr()
    arguments = [saved, "--inputs", f"{tmp_path}/in.npz", "--top", "1", "--labels", f"{tmp_path}/labels.txt"]
    row = told(capsys, "run", *arguments, "--dequantize")
    place = int(expected.argmax())
    best = {"row": 0, "place": place, "label": "abcdefghij"[place], "value": (int(expected.max()) + 128) / 256}
    assert row == {OUTPUT: {"dtype": "float32", "shape": [1, 10], "top": [best]}}
    np.savez(tmp_path / "in.npz", images[:3])
    assert main(["run", DIGITS, "--batch", "3", "--inputs", f"{tmp_path}/in.npz", "--top", "1"]) == 0
    three = np.asarray(relay.build(DIGITS, batch=3).run(images[:3]))
    shown = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert shown == [[str(row), str(codes.argmax()), str(codes.max())] for row, codes in enumerate(three)]


def test_inputs_that_are_filled(capsys: Capture, saved: str):
    rows = [told(capsys, "run", saved, "--fill", fill) for fill in ("zeros", "ones", "random")]
    expected = relay.runtime.load(saved).run(np.zeros((1, 8, 8, 1), np.int8))
    assert isinstance(expected, np.ndarray)
    assert rows[0][OUTPUT]["values"] == expected.tolist()
    assert rows[2] == told(capsys, "run", saved, "--seed", "0") != told(capsys, "run", saved, "--seed", "1")


def test_images(capsys: Capture, saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    image = str(tmp_path / "x.png")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "PIL.Image", None)
        assert main(["run", saved, "--input", image]) == 1
    assert capsys.readouterr().err == f"{image}: needs the package Pillow to be read as an image; pip install pillow\n"
    pillow = pytest.importorskip("PIL.Image", reason="needs Pillow")
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    pillow.fromarray(grey).save(image)
    expected = relay.runtime.load(saved).run((grey.astype(np.int16) - 128).astype(np.int8)[None, :, :, None])
    assert isinstance(expected, np.ndarray)
    assert told(capsys, "run", saved, "--input", image) == {
        OUTPUT: {"dtype": "int8", "shape": [1, 10], "values": expected.tolist()}
    }


@pytest.mark.parametrize("suffix", ["o", "c", "mlir", *ci(("ll", "s"))])
def test_what_compile_writes(suffix: str, capsys: Capture, tmp_path: Path):
    row = told(capsys, "compile", DIGITS, "-o", f"{tmp_path}/digits.{suffix}")
    for file in row["files"]:
        assert Path(file["file"]).stat().st_size == file["bytes"] > 0
    assert (tmp_path / f"digits.{suffix}").is_file()


@pytest.mark.ci
def test_compile_for_other_machines(capsys: Capture, tmp_path: Path):
    assert main(["compile", DIGITS, "-o", f"{tmp_path}/d.ptx", "--target", "cuda"]) == 0
    assert ".visible .entry" in (tmp_path / "d.ptx").read_text()
    assert main(["compile", DIGITS, "-o", f"{tmp_path}/d.relay", "--target", "rpi4"]) == 0
    assert main(["run", f"{tmp_path}/d.relay"]) == 1
    assert "is code for aarch64-unknown-linux-gnu" in capsys.readouterr().err


def test_bench(capsys: Capture, saved: str):
    row = told(capsys, "bench", saved, "--repeat", "5", "--threads", "1,2")
    assert row["peak_rss_bytes"] > 0
    assert [(each["threads"], each["runs"]) for each in row["rows"]] == [(1, 5), (2, 5)]
    row = told(capsys, "bench", DIGITS, "--repeat", "3")
    assert row["rows"][0]["macs_per_s"] == pytest.approx(46592 / row["rows"][0]["median"])


def test_bench_against_other_runtimes(capsys: Capture, tmp_path: Path):
    pytest.importorskip("ai_edge_litert", reason="needs the extra litert")
    arguments = ["bench", DIGITS, "--against", "litert,tvm", "--seconds", "0.02", "--numerics", "xnnpack"]
    ours, litert, tvm = told(capsys, *arguments)["rows"]
    assert litert["over_ours"] == pytest.approx(litert["median"] / ours["median"]) and litert["min"] > 0
    assert litert["difference"] == "max 0, 0 of 10"
    assert tvm["peer"] == "tvm" and tvm["note"]


@pytest.mark.ci
def test_exact_gives_inexact_compilers_nothing(capsys: Capture):
    pytest.importorskip("ai_edge_litert", reason="needs the extra litert")
    arguments = ["compare", DIGITS, "--layers", "--external", "xnnpack"]
    assert main(arguments) == 1
    assert main([*arguments, "--exact"]) == 0
    assert "DIFFERS" in capsys.readouterr().out


def test_cache(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    (tmp_path / "mine.txt").write_text("stays")
    relay.build(small())
    row = told(capsys, "cache", "info")
    assert row["folder"] == str(tmp_path) and row["entries"] > 0 < row["bytes"]
    assert told(capsys, "cache", "clear") == {name: row[name] for name in ("folder", "entries", "bytes")}
    assert os.listdir(tmp_path) == ["mine.txt"]
    monkeypatch.setenv("RELAY_CACHE_DIR", "off")
    assert main(["cache", "clear"]) == 1


def test_records_of_schedules_are_found_joined_and_used(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model, path = tmp_path / "dense.mlir", tmp_path / "records.json"
    model.write_text("""func.func @main(%x: tensor<4x16xi8>) -> tensor<4x32xi32> {
      %w = relay.constant dense<3> : tensor<32x16xi8>
      %0 = relay.nn.dense %x, %w {out_dtype = i32} : (tensor<4x16xi8>, tensor<32x16xi8>) -> tensor<4x32xi32>
      func.return %0 : tensor<4x32xi32>
    }""")

    def found(module: relay.IRModule, target: str, **how: Any) -> relay.Records:
        assert "relay.nn.dense" in str(module) and target == "llvm" and how["trials"] == 3
        return relay.Records({"a": {"k": Record('{strategy = "nest"}', 1e-6, 2e-6)}})

    monkeypatch.setattr(relay, "tune", found)
    relay.Records({"b": {"l": Record("{}", 1.0, 2.0)}}).save(path)
    tune = ["tune", str(model), "-o", str(path), "--trials", "3"]
    assert [row["processor"] for row in told(capsys, *tune)["kernels"]] == ["a"]
    assert set(relay.Records.load(path).kernels) == {"a", "b"}  # what the file had is kept
    assert main(tune) == 0 and "2.000 us  1.000 us   2.00  {strategy" in capsys.readouterr().out
    assert main([*tune, "--num-threads", "2"]) == 2 and "No such option" in capsys.readouterr().err
    told(capsys, "run", str(model), "--records", str(path), "--records", str(path))
    path.write_text("{}")
    assert main(["run", str(model), "--records", str(path)]) == 1
    assert "has no records" in capsys.readouterr().err


def quantized(folder: Path) -> list[str]:
    """What quantises the digits by a few samples to the file q.relay of a folder."""
    images = np.load(ROOT / "examples" / "digits" / "digits_test.npz")["images"][:8]
    np.savez(folder / "samples.npz", images)
    floats = str(ROOT / "examples" / "digits" / "digits_float.tflite")
    return ["quantize", floats, "--calibration", f"{folder}/samples.npz", "-o", f"{folder}/q.relay"]


def test_quantize(capsys: Capture, tmp_path: Path):
    arguments = quantized(tmp_path)
    row = told(capsys, *arguments, "--report", f"{tmp_path}/r.json")
    assert row["samples"] == 8 and row["integer_macs"] == 1 and row["output_snr_db"][0] > 15
    assert json.loads((tmp_path / "r.json").read_text()) and main(["inspect", f"{tmp_path}/q.relay"]) == 0
    assert main([*arguments[:-1], "x.tflite"]) == 2
    assert "--output: x.tflite is neither .mlir nor .relay; its suffix says what to write" in capsys.readouterr().err
    assert main([*arguments, "--report", "r.txt"]) == 2


@pytest.mark.ci
def test_quantize_writes_the_same_module_as_text(capsys: Capture, tmp_path: Path):
    arguments = quantized(tmp_path)
    assert main(arguments) == main([*arguments[:-1], f"{tmp_path}/q.mlir"]) == 0
    capsys.readouterr()
    assert main(["compare", f"{tmp_path}/q.mlir", "--with", f"{tmp_path}/q.relay"]) == 0


ERRORS = [
    (["nothing"], 2, "relay: No such command 'nothing'; see relay --help"),
    (["run", "nofile"], 2, "relay run: Invalid value for 'FILE|MODEL': File 'nofile' does not exist; see relay run"),
    (["compile", DIGITS], 2, "relay compile: Missing option '-o' / '--output'; see relay compile --help"),
    (["compile", DIGITS, "-o", "x.exe"], 2, "--output: x.exe has no suffix that says what to write; known are "),
    (["compile", DIGITS, "-o", "x.o", "--target", "armv7l-linux-gnueabihf"], 2,
     "--target 'armv7l-linux-gnueabihf': is not known; write \"armv7a-linux-gnueabihf\" or armv7l; known are"),
    (["compile", DIGITS, "-o", "x.c", "--target", "rpi4"], 2, "--emit c: is C for any machine; leave out target"),
    (["compile", DIGITS, "-o", "x.c", "--external", "systolic"], 1,
     "export: external function relay_systolic_main_0: was compiled by 'systolic', which names no C functions that"),
    (["compile", DIGITS, "-o", "x.spv"], 2, "--emit spv: is the code of kernels for OpenCL; add --target opencl"),
    (["inspect", str(ROOT / "pyproject.toml")], 1, f"{ROOT / 'pyproject.toml'}:"),
    (["inspect", sys.executable], 1, f"{sys.executable}: is an ELF object"),
    (["run", DIGITS, "--input", "y=x.npy"], 2, "--input: the model has no input 'y'; it has serving_default_image:0"),
    (["run", DIGITS, "--input", "x.npy"], 1, "x.npy: No such file or directory"),
    (["run", DIGITS, "--shape", "x=1y2"], 2, "--shape: 'x=1y2' names no input and sizes; write --shape NAME=1x1280"),
    (["run", DIGITS, "--numerics", "no"], 2, "--numerics: 'no' is not known; known are litert, litert-1.2, tflm, "),
    (["run", DIGITS, "--numerics", "qdq"], 1, "from_tflite: numerics 'qdq' is unknown; use one of litert, "),
    (["run", DIGITS, "--external", "no"], 2, "--external: 'no' is not known; known are c, "),
    (["run", DIGITS, "--exact"], 2, "--exact: is for external compilers, and none is named; add --external NAME"),
    (["run", DIGITS, "--labels", DIGITS], 2, "--labels: names the classes that --top shows; add --top 5"),
    (["run", DIGITS, "--pixels", "a"], 2, "--pixels: 'a' is no range; write --pixels -1..1"),
    (["compile", DIGITS, "-o", "x.ptx"], 2, "--emit ptx: is the code of kernels for NVIDIA's GPUs; add --target cuda"),
    (["compare", DIGITS, "--with", "no"], 2, "--with: 'no' is neither a runtime nor a file; known are litert, "),
    (["bench", DIGITS, "--against", "x"], 2, "--against: 'x' is not known; known are litert, openvino, onnxruntime"),
    (["bench", DIGITS, "--threads", "1,x"], 2, "--threads: '1,x' are no numbers of threads; write --threads 1,2"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "code", "start"), ERRORS)
def test_errors_are_one_line(args: list[str], code: int, start: str, capsys: Capture):
    assert main(args) == code
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(start) and shown.err.count("\n") == 1


def test_sizes_that_are_not_known_must_be_given():
    executable = relay.build(DIGITS, batch="n", opt_level=0)
    hint = "give --batch 1, --shape '.*=.x8x8x1' with numbers for .$"
    with pytest.raises(InvalidArgument, match=f"has sizes that are not known; {hint}"):
        check_sizes(executable.inputs)
    with pytest.raises(InvalidArgument, match="with numbers for ., or the input"):
        gather(executable.inputs, {"inputs": None, "given": [], "fill": "random", "seed": 0, "pixels": None})


def test_a_batch_may_have_a_name(tmp_path: Path):
    file = str(tmp_path / "a.relay")
    assert main(["compile", DIGITS, "-o", file, "--batch", "images", "-O", "0"]) == 0
    assert [str(size) for size in relay.runtime.load(file).inputs[0].shape] == ["images", "8", "8", "1"]
    assert main(["compile", DIGITS, "-o", file, "--batch", "0"]) == 2


def test_what_is_compared_with_by_default(capsys: Capture, tmp_path: Path):
    (tmp_path / "a.mlir").write_text(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { func.return %a : tensor<4xf32> }"
    )
    assert told(capsys, "compare", f"{tmp_path}/a.mlir")["reference"].startswith("the interpreter")


def test_a_compiled_file_takes_no_options_of_a_build(capsys: Capture, saved: str):
    assert main(["run", saved, "--batch", "2"]) == 1
    assert capsys.readouterr().err == f"{saved}: is compiled already; leave out batch\n"
    assert main(["run", saved, "--num-threads", "2"]) == 0
    assert main(["bench", saved, "--against", "litert"]) == 2
    assert capsys.readouterr().err.endswith("is compiled already; give the model, which the others read\n")


def test_commands_that_stand_alone_are_reached(capsys: Capture):
    assert main(["opt", "--list-passes"]) == 0
    assert "fuse-ops" in capsys.readouterr().out
    assert main(["opt", "nofile.mlir"]) == 1
    assert capsys.readouterr().err.startswith("nofile.mlir: No such file")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: Capture):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_RELAY_COMPLETE" in script and "relay-opt --completion" in script


TYPED = [
    ("relay ins", "inspect"),
    ("relay compile --target rp", "rpi4"),
    ("relay run --numerics tf", "tflm"),
    ("relay compile --external xn", "xnnpack"),
    ("relay opt --show-pi", "--show-pipeline"),
    ("relay cache cl", "clear"),
]


@pytest.mark.parametrize(("line", "offered"), TYPED)
def test_what_is_completed(line: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture):
    monkeypatch.setenv("_RELAY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert main([]) == 0
    assert offered in [row.partition(",")[2] for row in capsys.readouterr().out.splitlines()]


def test_the_page_runs_and_names_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = (ROOT / "docs" / "command.md").read_text()
    assert set(re.findall(r"`relay (\w+)", page.split("```")[0])) == {*COMMANDS}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in page.split("```")[1].splitlines()[1:]:
        assert main(shlex.split(line)[1:]) == 0, line
    assert {file.name for file in tmp_path.iterdir()} == {
        "examples",
        *(f"digits.{kind}" for kind in ("relay", "o", "h", "md", "cmake")),
    }


@pytest.mark.ci
def test_targets_with_a_name_resolve():
    for name in names():
        assert resolve(name)


def test_a_target_with_a_name_is_a_machine_that_exists():
    board = "fp asimd evtstrm crc32 cpuid".split()  # /proc/cpuinfo of a Raspberry Pi 4
    needed = {processor.SPELLINGS.get(feature, feature) for feature in resolve("rpi4").features - processor.UNUSED}
    assert needed <= {*board}


def test_the_command_shows_layers(capsys: Capture):
    assert main(["inspect", DIGITS, "--memory", "cortex-m4", "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert layers == relay.build(DIGITS, "cortex-m4").graph["layers"]


@pytest.mark.parametrize(
    ("command", "closed", "expected"),
    [
        ("main(['run', {digits!r}, '--fill', 'zeros'])", ">&-", (0, "")),
        pytest.param("main(['inspect', {digits!r}, '--memory', 'nowhere'])", "2>&-", (1, ""), marks=pytest.mark.ci),
        pytest.param("opt()", "<&-", (1, "stdin:1:1: the text holds no operation\n"), marks=pytest.mark.ci),
        pytest.param("opt()", "<&- >&- 2>&-", (1, ""), marks=pytest.mark.ci),
    ],
)
def test_closed_standard_streams(command: str, closed: str, expected: tuple[int, str]):
    code = (
        f"import sys; from relay.__main__ import *; sys.argv = ['relay-opt']; sys.exit({command.format(digits=DIGITS)})"
    )
    line = f"{shlex.join([sys.executable, '-c', code])} {closed}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == expected


def test_an_interrupt_of_any_command_is_an_exit_code(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("relay.tools.relay_opt.main", interrupted)
    assert opt() == 130
