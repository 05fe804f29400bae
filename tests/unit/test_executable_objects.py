"""Executables as objects: what they show, and how they travel: pickled, in buffers, to processes without a compiler."""

from __future__ import annotations

import io
import json
import pickle
import platform
import subprocess
import sys
from operator import methodcaller
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import relay
from relay.errors import InvalidArgument, Malformed
from relay.runtime import Executable

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
IMAGE = np.load(ROOT / "examples" / "digits" / "digits_test.npz")["int8_images"][:1]


@pytest.fixture(scope="module")
def executable() -> Executable:
    return relay.build(DIGITS)


def assert_equal(found: object, expected: object) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def shown(executable: Executable) -> str:
    """What a notebook shows."""
    return methodcaller("_repr_html_")(executable)


def test_what_an_executable_shows(executable: Executable):
    lines = repr(executable).splitlines()
    assert lines[0].startswith("Executable for x86_64") or lines[0].startswith("Executable for aarch64")
    assert lines[1] == "  input  'serving_default_image:0' int8 1x8x8x1, real = 0.00392156886 * (code - -128)"
    page = shown(executable)
    assert "<td>serving_default_image:0</td><td>int8</td><td>1x8x8x1</td><td>0.00392156886</td><td>-128</td>" in page


def test_names_in_notebooks_are_text():
    module = relay.IRModule.parse(
        'func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {relay.inputs = [{name = "<b>"}]} {\n'
        "  %y = relay.negative %x : (tensor<2xf32>) -> tensor<2xf32>\n  func.return %y : tensor<2xf32>\n}"
    )
    assert "&lt;b&gt;" in shown(relay.build(module))


def test_executables_pickle_as_their_saved_bytes(executable: Executable):
    executable.num_threads = 2
    data = pickle.dumps(executable)
    executable.num_threads = 1
    again: object = pickle.loads(data)
    assert isinstance(again, Executable) and again.num_threads == 2
    assert_equal(again.run(IMAGE), executable.run(IMAGE))
    buffer = io.BytesIO()
    executable.save(buffer)
    assert buffer.getvalue() in data


def test_a_process_without_the_compiler_unpickles_and_runs(executable: Executable, tmp_path: Path):
    (tmp_path / "digits.pickle").write_bytes(pickle.dumps((executable, IMAGE)))
    program = """
import pickle, sys
sys.modules.update(dict.fromkeys(("xdsl", "llvmlite")))
executable, image = pickle.load(open(sys.argv[1], "rb"))
print(executable.run(image).tolist())
"""
    command = [sys.executable, "-c", program, str(tmp_path / "digits.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == str(np.asarray(executable.run(IMAGE)).tolist())


def test_those_for_other_machines_travel_too():
    again: object = pickle.loads(pickle.dumps(relay.build(DIGITS, "rpi4")))
    assert isinstance(again, Executable) and "aarch64" in repr(again)
    if platform.machine() != "aarch64":
        with pytest.raises(InvalidArgument, match="run: is code for aarch64"):
            again.run(IMAGE)


def test_buffers(executable: Executable, tmp_path: Path):
    buffer = io.BytesIO()
    executable.save(buffer)
    data = buffer.getvalue()
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert_equal(relay.runtime.load(source).run(IMAGE), executable.run(IMAGE))
    with pytest.raises(Malformed, match="<bytes>: is no saved executable"):
        relay.runtime.load(b"no")
    with pytest.raises(InvalidArgument, match="takes no bytes; open it with 'wb'"):
        executable.save(cast(io.BytesIO, io.StringIO()))
    with pytest.raises(InvalidArgument, match="gives no bytes; open it with 'rb'"):
        relay.runtime.load(cast(io.BytesIO, io.StringIO("x")))
    (tmp_path / "x.relay").write_bytes(data)
    with open(tmp_path / "x.relay") as text, pytest.raises(InvalidArgument, match="gives no bytes; open it with 'rb'"):
        relay.runtime.load(cast(io.BytesIO, text))
    with open(tmp_path / "x.relay", "rb") as read, pytest.raises(InvalidArgument, match="takes no bytes"):
        executable.save(cast(io.BytesIO, read))


def test_every_byte_counts(executable: Executable):
    """What lies between parts, too, is what was written."""
    data = executable.to_bytes()
    size = int.from_bytes(data[12:16], "little")
    (_, first, *_), *_ = json.loads(data[48 : 48 + size])
    assert first > 48 + size
    with pytest.raises(Malformed, match="is damaged: the bytes before its part graph.json are not zeros"):
        relay.runtime.load(data[: first - 1] + b"\1" + data[first:])


def test_inputs_in_a_dictionary(executable: Executable):
    with pytest.raises(InvalidArgument, match=r"is a mapping of names; give inputs by name: run\(\*\*inputs\)"):
        executable.run(cast(np.ndarray[Any, Any], {executable.inputs[0].name: IMAGE}))


def test_real_numbers_of_codes(executable: Executable):
    spec = executable.outputs[0]
    assert spec.scale is not None
    codes = np.array([-128, 0, 127], np.int8)
    np.testing.assert_array_equal(spec.dequantize(codes), np.array([0, 128, 255], np.float32) * np.float32(spec.scale))
    assert spec.dequantize(127) == spec.dequantize([127])[0] == np.float32(255 * spec.scale)


def test_codes_of_real_numbers(executable: Executable):
    """Also of plain numbers and lists; 16 bits do not round the quotient."""
    spec = executable.inputs[0]
    assert spec.scale is not None
    assert spec.quantize(0.0) == -128 and [*spec.quantize([0, 9])] == [-128, 127]
    half = np.linspace(0, 1, 1000).astype(np.float16)
    np.testing.assert_array_equal(spec.quantize(half), spec.quantize(half.astype(np.float32)))
    assert not np.array_equal(np.rint(half / spec.scale) - 128, spec.quantize(half))
    with pytest.raises(InvalidArgument, match="NaN has no quantized value"):
        spec.quantize([0.5, np.nan])
    for wrong in ("x", None, 1j, [[1], [2, 3]]):
        with pytest.raises(InvalidArgument, match="^quantize for .*(no real numbers|no array)"):
            spec.quantize(cast(float, wrong))


def test_benchmark(executable: Executable):
    found = executable.benchmark(IMAGE, warmup=1, repeat=5)
    assert len(found.results) == 5 and found.min <= found.median <= found.percentile(99) <= found.max
    assert "of 5 runs" in str(found)
    with pytest.raises(InvalidArgument, match="benchmark: warmup 3, repeat 0"):
        executable.benchmark(IMAGE, repeat=0)
