"""Models through compiler `c`: exported as C and run sanitized, partitioned and built, against LiteRT's outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.npyio import NpzFile

import relay
from relay import IRModule, signature
from relay.byoc.c import export_c
from relay.byoc.c.toolchain import find
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from tests.numeric.c_sources import SANITIZED, Exported
from tests.numeric.test_models_compiled import close, outputs_of
from tests.numeric.test_models_interpreted import MODELS

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
SMALL = ("ad01_int8", "keras_lstm_mnist_ptq", "kws_int8")
MEDIUM = ("resnet8_int8", "mobilenet_v1_0.25_128_quant", "vww_96_int8")
LARGE = (
    "deeplabv3_mnv2_dm05_pascal_quant",
    "mobilenet_v2_1.0_224_quant",
    "resnet50_224_int8",
    "tf2_mobilenet_v2_1.0_224_ptq",
)
FLOATS = ("ad01_fp32", "kws_fp32", "mobilenetv2_224_f32", "resnet8_fp32", "vww_96_float")


def model(name: str) -> tuple[IRModule, NpzFile]:
    """A model and its stored inputs and outputs; the test is skipped where they are not."""
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    return from_tflite(path), np.load(MODELS / "golden" / f"{name}.npz")


def arguments(mod: IRModule, golden: NpzFile, tag: str) -> list[Array]:
    """The inputs under a tag; states as they start."""
    inputs, _ = signature.read(mod["main"])
    return [
        np.ascontiguousarray(golden[f"{tag}_in{i}"] if info.initial is None else info.initial)
        for i, info in enumerate(inputs)
    ]


def tags(golden: NpzFile) -> list[str]:
    return sorted({key.split("_in")[0] for key in golden.files if "_in" in key})


def check_exported(name: str, folder: Path, flags: tuple[str, ...], most: int | None = None) -> None:
    """The exported program on every stored input, or on so many."""
    mod, golden = model(name)
    before = str(mod)
    program = Exported(mod, folder)
    assert str(mod) == before
    program.compile("cc", flags)
    for tag in tags(golden)[:most]:
        result = program.run(arguments(mod, golden, tag))[0]
        assert close(result, golden[f"{tag}_out0"]), f"{name}, input {tag}"


def check_partitioned(name: str, flags: str = "-O3") -> None:
    """The model with everything in a region of `c`, built by relay, on every stored input."""
    if find() is None:
        pytest.skip("no C compiler is installed")
    mod, golden = model(name)
    part = relay.build_external_compiler(mod, {"c": {"flags": flags}}, exact=True)
    executable = relay.build(part)
    for tag in tags(golden):
        given = [golden[f"{tag}_in{i}"] for i in range(sum(key.startswith(f"{tag}_in") for key in golden.files))]
        assert close(outputs_of(executable, *given)[0], golden[f"{tag}_out0"]), f"{name}, input {tag}"


@pytest.mark.ci
def test_exported_model_equals_litert(tmp_path: Path):
    check_exported("kws_int8", tmp_path, SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name", (*SMALL, *MEDIUM))
def test_medium_exported_model_equals_litert(name: str, tmp_path: Path):
    check_exported(name, tmp_path, SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name", (*LARGE, *FLOATS))
def test_large_exported_model_equals_litert(name: str, tmp_path: Path):
    """Optimised, which is when compilers warn of most; sanitized, too, with which resnet50 takes minutes for an input:
    all inputs are those of the next test."""
    check_exported(name, tmp_path, ("-O2", *SANITIZED[1:]), 1)


def test_partitioned_model_equals_litert():
    check_partitioned("kws_int8", "-O1")


@pytest.mark.slow
@pytest.mark.parametrize("name", (*SMALL, *MEDIUM, *LARGE, *FLOATS))
def test_every_partitioned_model_equals_litert(name: str):
    check_partitioned(name)


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_exported_digits_read_digits(compiler: str, tmp_path: Path):
    """Both compilers, optimising, on held-out digits: LiteRT's codes."""
    mod = from_tflite(DIGITS)
    program = Exported(mod, tmp_path)
    program.compile(compiler, ("-O2",))
    data = np.load(DIGITS.parent / "digits_test.npz")
    read = [program.run([image])[0][0] for image in data["int8_images"][:20]]
    assert np.array_equal(read, data["int8_out"][:20])


def texts(folder: str) -> str:
    """Everything that is written of the digits model."""
    mod = from_tflite(DIGITS)
    files = [path.read_text() for path in export_c(mod, folder)]
    return "\n".join([*files, str(relay.build_external_compiler(mod, "c"))])


@pytest.mark.ci
def test_output_does_not_depend_on_hashes(tmp_path: Path):
    """This process has hashes of its own; another one has those of a fixed seed."""
    program = "import sys; from tests.numeric.test_c_models import texts; print(texts(sys.argv[1]))"
    other = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    here = texts(str(tmp_path))
    assert len(here) > 10000
    assert other.stdout == here + "\n"


def test_exported_files(tmp_path: Path):
    """The files, and what the header says of the tensors."""
    files = export_c(from_tflite(DIGITS), tmp_path / "out", name="digits")
    assert [path.name for path in files] == ["digits.h", "digits.c", "digits.md", "digits.cmake"]
    header = files[0].read_text()
    assert "#define DIGITS_ARENA_BYTES " in header
    assert "int digits_run(const int8_t *input_0, int8_t *output_0);" in header
    assert "int digits_run_in(void *arena, const int8_t *input_0, int8_t *output_0);" in header
    with pytest.raises(relay.InvalidArgument, match="is no identifier of C"):
        export_c(from_tflite(DIGITS), tmp_path, name="two words")
    with pytest.raises(relay.InvalidArgument, match=r"digits\.c: cannot be made: File exists"):
        export_c(from_tflite(DIGITS), tmp_path / "out" / "digits.c")
    assert "int k__run(" in export_c(from_tflite(DIGITS), tmp_path, name="k_")[0].read_text()
