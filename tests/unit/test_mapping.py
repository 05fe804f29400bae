"""Large weights lie in mapped files while a model is built, loaded and run, and are the same numbers there."""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay
from relay import mapping
from relay.dialects.attributes import Array
from relay.runtime import load
from tests.numeric.test_models_compiled import DIGITS


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Any file is mapped, any array spilled, pages are given back again and again; returns the cache's folder."""
    monkeypatch.setattr(mapping, "LARGE", 1)
    monkeypatch.setattr(mapping, "SPILLED", 1)
    monkeypatch.setattr(mapping, "UNRELEASED", 5000)
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def is_mapped(array: Array) -> bool:
    """Whether the kernel says that a file is at the array's address."""
    at = array.ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= at < last:
            return line.split()[4] != "0"
    return False


def test_a_build_whose_weights_lie_in_files(everything_is_large: Path, tmp_path: Path):
    with np.load(DIGITS / "digits_test.npz") as data:
        images = data["int8_images"][:20]
    path = DIGITS / "digits_int8.tflite"
    built, found = relay.build(path), relay.build(path)
    assert is_mapped(built.constants) and is_mapped(found.constants)
    os.environ["RELAY_CACHE_DIR"] = "off"
    in_memory = relay.build(path)
    assert not is_mapped(in_memory.constants)
    assert built.to_bytes() == found.to_bytes() == in_memory.to_bytes()
    built.save(tmp_path / "digits.relay")
    loaded = load(tmp_path / "digits.relay")
    assert is_mapped(loaded.constants)
    for each in (built, found, loaded):
        for image in images:
            assert np.array_equal(np.asarray(each.run(image[None])), np.asarray(in_memory.run(image[None])))


def test_bytes_and_streams_are_copied(everything_is_large: Path):
    saved = relay.build(DIGITS / "digits_int8.tflite").to_bytes()
    given = bytearray(saved)
    executable = load(given)
    given[:] = bytes(len(given))
    assert executable.to_bytes() == saved == load(BytesIO(saved)).to_bytes()


def test_spilled_arrays(everything_is_large: Path, monkeypatch: pytest.MonkeyPatch):
    array = np.arange(6000, dtype=np.int32).reshape(60, 100)
    assert mapping.spilled(array) is array  # outside of a build
    with mapping.build_files(None):
        assert mapping.spilled(array) is array
    with mapping.build_files(everything_is_large):
        found = mapping.spilled(array)
        assert is_mapped(found) and mapping.spilled(found) is found and mapping.spilled(found[3:, 1:]).base is not None
        mapping.release()
        assert (found == array).all() and found.dtype == array.dtype
        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", no_space)
            assert mapping.spilled(array) is array
    assert (found == array).all() and os.listdir(everything_is_large) == []


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


HIGH_WATER = """
import sys
from pathlib import Path
{body}
print([line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")][0])
"""
BUILD = "import relay; relay.build(sys.argv[1])"
RUN = "import numpy as np, relay.runtime; e = relay.runtime.load(sys.argv[1]); e.run(np.ones(e.inputs[0].shape, 'f'))"


def high_water(body: str, path: Path) -> int:
    """Bytes of memory, mapped pages counted, that a process of its own needed at most."""
    code = HIGH_WATER.format(body=body)
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return int(ended.stdout) << 10


@pytest.mark.slow
def test_memory_for_350_megabytes_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "cache"))
    rng, width, layers = np.random.default_rng(0), 2048, 21
    weights = [rng.normal(0, width**-0.5, (width, width)).astype(np.float32) for _ in range(layers)]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(layers)]
    rows = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, width)) for name in ("x0", f"x{layers}")]
    constants = [numpy_helper.from_array(each, f"w{i}") for i, each in enumerate(weights)]
    graph = helper.make_graph(nodes, "products", rows[:1], rows[1:], constants)
    path = tmp_path / "products.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    size = sum(each.nbytes for each in weights)
    assert size > 350e6
    assert high_water(BUILD, path) < 1.3 * size
    relay.build(path).save(tmp_path / "products.relay")
    assert high_water(RUN, tmp_path / "products.relay") < 1.3 * size
