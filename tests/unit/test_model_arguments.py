"""Ways to give a model to `build` and to `relay-opt`: texts, bytes, numbers of images of numpy's, and what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.compile.entry import build
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend import from_tflite
from relay.module import IRModule, load_weights
from relay.tools.relay_opt import main

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"
OPEN = """func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %r = relay.nn.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %r : tensor<?x4xf32>
}"""
X = np.array([[-1, 2, -3, 4]] * 3, np.float32)


def printed(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert main([str(arg) for arg in args]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert main([str(arg) for arg in args]) == 1
    return capsys.readouterr().err


def test_a_file_of_text_is_built(tmp_path: Path):
    file = tmp_path / "a.mlir"
    file.write_text(OPEN)
    for batch in (3, np.int64(3)):
        assert np.array_equal(np.asarray(build(file, batch=batch).run(X)), np.maximum(X, 0))
    file.write_text("func.func @")
    with pytest.raises(RelayError, match=r"a\.mlir:1:"):
        build(str(file))
    file.write_bytes(b"\xff")
    with pytest.raises(RelayError, match=r"a\.mlir: byte 0 is not UTF-8"):
        build(file)
    with pytest.raises(InvalidArgument, match=r"none\.mlir: cannot be read"):
        build(tmp_path / "none.mlir")


def test_weights_beside_a_file_of_text(tmp_path: Path):
    pytest.importorskip("safetensors", reason="reads weights beside a text")
    module = from_tflite(DIGITS)
    (tmp_path / "digits.mlir").write_text(module.to_text())
    module.save_weights(tmp_path / "digits.safetensors")
    found, wanted = build(tmp_path / "digits.mlir", opt_level=0), build(DIGITS, opt_level=0)
    image = np.random.default_rng(0).integers(-128, 128, wanted.inputs[0].shape).astype(np.int8)
    assert np.array_equal(np.asarray(found.run(image)), np.asarray(wanted.run(image)))


def test_weights_that_cannot_be_read(tmp_path: Path):
    pytest.importorskip("safetensors", reason="reads weights beside a text")
    table = b'{"w":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}'
    (tmp_path / "w.safetensors").write_bytes(len(table).to_bytes(8, "little") + table + bytes(8))
    with pytest.raises(Malformed, match="holds numbers of C64"):
        load_weights(str(tmp_path / "w.safetensors"))
    with pytest.raises(InvalidArgument, match="none: cannot be read: No such file"):
        load_weights(str(tmp_path / "none"))


def test_bytes_of_other_classes():
    for kind in (bytearray, memoryview):
        with pytest.raises(RelayError, match="<bytes>: "):
            build(kind(b"TFL3"))
    assert build(bytearray(DIGITS.read_bytes()), opt_level=0, batch=np.int32(2)).inputs[0].shape[0] == 2


def test_numbers_of_numpy():
    index = np.int64(20)
    assert from_tflite(DIGITS, outputs=[index]).to_text() == from_tflite(DIGITS, outputs=[20]).to_text()
    assert from_tflite(DIGITS, batch=np.int64(2)).to_text() == from_tflite(DIGITS, batch=2).to_text()


def test_numerics_are_the_importers():
    """The same code as of the module that the importer makes, and other code than by default."""
    codes = {which: build(DIGITS, opt_level=0, numerics=which).library.code for which in ("litert", "tflm")}
    assert codes["tflm"] == build(from_tflite(DIGITS, numerics="tflm"), opt_level=0).library.code != codes["litert"]
    with pytest.raises(InvalidArgument, match="numerics: is given twice; leave it out of frontend"):
        build(DIGITS, numerics="tflm", frontend={"numerics": "tflm"})
    with pytest.raises(InvalidArgument, match="numerics: is for model files; a module is imported already"):
        build(from_tflite(DIGITS), numerics="tflm")


def test_numerics_of_external_compilers_are_written_exact():
    for model, numerics, exact in ((DIGITS, "strict", True), (from_tflite(DIGITS), "relaxed", False)):
        with pytest.raises(InvalidArgument, match=f"numerics: '{numerics}' is no runtime.*; .* write exact={exact}"):
            build(model, external="c", numerics=numerics)


def test_a_dynamic_argument_is_named():
    with pytest.raises(
        Unsupported, match=r"argument 0 \(%x\) of @main: has the dynamic shape .*; .* relay.build a batch=N"
    ):
        build(IRModule.parse(OPEN))


def test_export_says_what_it_wants(tmp_path: Path):
    folder: Any = None
    with pytest.raises(InvalidArgument, match="export: None is no folder; give its path"):
        build(DIGITS, opt_level=0).export(folder)
    with pytest.raises(Unsupported, match="export: a GPU's code has no object files"):
        build(IRModule.parse(OPEN), target="opencl", batch=3).export(tmp_path)


def test_the_tool_takes_a_batch_of_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "a.mlir"
    file.write_text(OPEN)
    assert "%x: tensor<3x4xf32>" in printed(capsys, file, "--batch", 3)
    file.write_text(OPEN.replace("?", "2"))
    assert "batch: the module's arguments have the shapes 2x4" in refused(capsys, file, "--batch", 3)
    for option in ("--numerics=tflm", "--outputs=a"):
        error = refused(capsys, file, option)
        assert f"{option.partition('=')[0]}: is for files of models; MLIR text is imported already" in error


def test_the_tool_has_the_importers_options(capsys: pytest.CaptureFixture[str]):
    for numerics in ("tflm", "xnnpack"):
        assert (
            printed(capsys, DIGITS, "--numerics", numerics) == from_tflite(DIGITS, numerics=numerics).to_text() + "\n"
        )
    wanted = from_tflite(DIGITS, outputs=[20, "functional_2_1/functional_1/add_1/Add"]).to_text()
    assert printed(capsys, DIGITS, "--outputs", "20,functional_2_1/functional_1/add_1/Add") == wanted + "\n"
    assert "use one of litert" in refused(capsys, DIGITS, "--numerics", "abacus")
