"""Large weights lie in mapped files while a model is built, loaded and run, and are the same numbers there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

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
from typing import Any
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


def floats(rng: np.random.Generator) -> tuple[int, list[NodeProto], list[TensorProto]]:
    """21 products with matrices of floats: the width of rows, nodes, weights."""
    width, layers = 2048, range(21)
    weights = [rng.normal(0, width**-0.5, (width, width)).astype(np.float32) for _ in layers]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in layers]
    return width, nodes, [numpy_helper.from_array(each, f"w{i}") for i, each in enumerate(weights)]


def four_bits(rng: np.random.Generator) -> tuple[int, list[NodeProto], list[TensorProto]]:
    """36 products with matrices of codes of four bits, in blocks of 32."""
    width, layers = 4096, range(36)
    form: dict[str, Any] = {"K": width, "N": width, "bits": 4, "block_size": 32}
    nodes, weights = list[NodeProto](), list[TensorProto]()
    for i in layers:
        codes = rng.integers(0, 256, (width, width // 32, 16), dtype=np.uint8)
        scales = rng.uniform(0.5, 1.5, width * width // 32).astype(np.float32) / width
        weights += [numpy_helper.from_array(codes, f"w{i}"), numpy_helper.from_array(scales, f"s{i}")]
        names = [f"x{i}", f"w{i}", f"s{i}"]
        nodes.append(helper.make_node("MatMulNBits", names, [f"x{i + 1}"], domain="com.microsoft", **form))
    return width, nodes, weights


@pytest.mark.slow
@pytest.mark.parametrize("model", [floats, four_bits])
def test_memory_for_350_megabytes_of_weights(
    model: Callable[[np.random.Generator], tuple[int, list[NodeProto], list[TensorProto]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "cache"))
    width, nodes, weights = model(np.random.default_rng(0))
    rows = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, (1, width)) for i in (0, len(nodes))]
    graph = helper.make_graph(nodes, "products", rows[:1], rows[1:], weights)
    path = tmp_path / "products.onnx"
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString())
    size = sum(len(each.raw_data) for each in weights)
    assert size > 350e6
    assert high_water(BUILD, path) < 1.3 * size
    relay.build(path).save(tmp_path / "products.relay")
    assert high_water(RUN, tmp_path / "products.relay") < 1.3 * size
