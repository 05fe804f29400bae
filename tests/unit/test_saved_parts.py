"""The parts of a saved file: arrays as safetensors, the container, features of the processor."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.errors import Malformed, Unsupported
from relay.runtime import container, processor, tensors
from relay.runtime.memory import address, aligned_bytes
from relay.target import host

ARRAYS: dict[str, Array] = {
    "bias": np.arange(5, dtype=np.int32),
    "__metadata__": np.array([[1.5], [2.5]], np.float32),
    "weights \u00e9": np.arange(7, dtype=np.int8),
    "scalar": np.float64(3.25) * np.ones(()),
    "none": np.zeros((0, 3), np.uint8),
}
OFFSETS = {"weights \u00e9": 0, "bias": 64, "none": 84}


def packed() -> bytes:
    return tensors.pack(ARRAYS, OFFSETS, 128)


def in_memory(data: bytes) -> Array:
    memory = aligned_bytes(len(data))
    memory[:] = np.frombuffer(data, np.uint8)
    return memory


def test_arrays_come_back_at_their_offsets():
    found, data = tensors.unpack(in_memory(packed()), "file")
    assert sorted(found) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert np.array_equal(found[name], array) and not found[name].flags.writeable
    assert address(data) % 64 == 0
    assert [address(found[name]) - address(data) for name in ("weights \u00e9", "bias")] == [0, 64]
    assert address(found["__metadata__"]) - address(data) == 128


def test_others_can_read_them():
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    found = safetensors.load(packed())
    assert np.array_equal(found["bias"], ARRAYS["bias"]) and np.array_equal(found["____metadata__"], [[1.5], [2.5]])


def test_a_dtype_that_cannot_be_saved():
    with pytest.raises(Unsupported, match="constant 'c': of complex64 cannot be saved"):
        tensors.pack({"c": np.zeros(2, np.complex64)}, {}, 0)


def test_no_constants():
    for part in (b"", b"\xff" * 8, b"\xff" * 100):
        with pytest.raises(Malformed):
            tensors.unpack(in_memory(part), "file")


def test_parts_come_back():
    parts = {"a": b"", "b": b"12345", "c/0": bytes(1000)}
    file = container.pack(parts)
    assert {name: bytes(part) for name, part in container.unpack(memoryview(file), "file").items()} == parts
    assert container.pack(parts) == file
    many = {str(number): b"x" for number in range(2000)}
    assert len(container.unpack(memoryview(container.pack(many)), "file")) == 2000


def test_every_damage_is_seen():
    file = container.pack({"a": b"abc", "b": bytes(range(256))})
    parts = container.unpack(memoryview(file), "file")
    for size in range(len(file)):
        with pytest.raises(Malformed):
            container.unpack(memoryview(file[:size]), "file")
    for at in range(len(file)):
        bad = bytearray(file)
        bad[at] ^= 1
        try:
            assert container.unpack(memoryview(bad), "file") == parts and file[at] == 0
        except Malformed:
            pass


def test_nothing_follows_the_last_part():
    for parts in ({}, {"a": b"abc", "b": bytes(100)}):
        file = container.pack(parts)
        assert list(container.unpack(memoryview(file), "file")) == list(parts)
        with pytest.raises(Malformed, match="file: is damaged: 3 bytes follow its last part"):
            container.unpack(memoryview(file + b"abc"), "file")


@pytest.mark.parametrize(
    "table",
    [
        b"",
        b"null",
        b"[1]",
        b"[[]]",
        b'[["a", 0, 1, 2, 3]]',
        b'[[[], 0, 0, "x"]]',
        b'[["a", "0", 1, ""]]',
        b'[["a", 0.5, 1, ""]]',
        b'[["a", -9, 9, ""]]',
        b'[["a", 1e999, 1, ""]]',
        b"\xff",
        b"1" * 5000,
        b"[" * 100_000,
    ],
    ids=range(13),
)
def test_a_table_that_nobody_here_wrote(table: bytes):
    """Its sum is right; what it says is not."""
    header = container.HEADER.pack(container.MAGIC, container.VERSION, len(table), sha256(table).digest())
    with pytest.raises(Malformed, match=r"^file: is "):
        container.unpack(memoryview(header + table + bytes(100)), "file")


def test_this_processor_has_what_code_is_made_for():
    assert processor.lacks(host().features) == []
    assert processor.lacks(frozenset({"no-such-feature", "sgx"})) == ["no-such-feature"]


def test_features_of_another_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = tmp_path / "cpuinfo"
    text.write_text("processor\t: 0\nflags\t\t: fpu lm pni sse4_1 avx2 avx512_vnni amx_tile\n")
    monkeypatch.setattr(processor, "CPUINFO", text)
    processor.flags.cache_clear()
    try:
        asked = frozenset({"64bit", "x87", "sse3", "sse4.1", "avx2", "avx512vnni", "amx-tile", "amx-int8", "fma"})
        for granted, missing in ((True, ["amx-int8", "fma"]), (False, ["amx-int8", "amx-tile", "fma"])):
            monkeypatch.setattr(processor, "granted", lambda granted=granted: granted)
            assert processor.lacks(asked) == missing
        text.unlink()
        processor.flags.cache_clear()
        assert processor.lacks(frozenset({"avx2"})) == ["avx2"]
    finally:
        processor.flags.cache_clear()
