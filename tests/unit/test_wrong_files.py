"""Saved files whose sums are right and that are wrong all the same, and systems that have no more to give."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from relay.compile.entry import build
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.module import IRModule
from relay.runtime import Executable, Library, archive, container, create, load
from relay.runtime.memory import aligned_bytes
from tests.unit.test_runtime import X, Y, stateful


@pytest.fixture(scope="module")
def executable() -> Executable:
    return build(stateful())


VALUES: list[object] = [
    None,
    True,
    -1,
    2**70,
    1e300,
    float("inf"),
    "",
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    [-1],
    [2**70],
    "O",
    "S9",
]
Place = tuple[str | int, ...]


def entries(value: object) -> dict[str | int, object]:
    """What is in an object or a list of JSON, by key or number."""
    if isinstance(value, list):
        return dict(enumerate(cast(list[object], value)))
    return {**cast(dict[str, object], value)} if isinstance(value, dict) else {}


def places(value: object, path: Place = ()) -> Iterator[Place]:
    """Every place in JSON, as keys and numbers from its root."""
    yield path
    for key, inner in entries(value).items():
        yield from places(inner, (*path, key))


def replaced(value: object, path: Place, new: object) -> object:
    """A copy with something else at a place."""
    if not path:
        return new
    copy = entries(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return list(copy.values()) if isinstance(value, list) else copy


def test_json_that_nobody_here_wrote(executable: Executable):
    """Sums are right, and anything may be anywhere in the graph and in the header of the constants: an error of ours,
    or an executable."""
    saved = archive.pack(executable.parts())
    parts = {key: bytes(part) for key, part in container.unpack(memoryview(saved), "file").items()}
    constants = parts["constants.safetensors"]
    size = int.from_bytes(constants[:8], "little")
    graph, header = json.loads(parts["graph.json"]), json.loads(constants[8 : 8 + size])

    def tensors(text: bytes) -> bytes:
        text += b" " * (-(len(text) + 8) % 64)
        return len(text).to_bytes(8, "little") + text + constants[8 + size :]

    texts = [("graph.json", json.dumps(replaced(graph, at, new)).encode()) for at in places(graph) for new in VALUES]
    texts += [
        ("constants.safetensors", tensors(json.dumps(replaced(header, at, new)).encode()))
        for at in places(header)
        for new in VALUES
    ]
    deep = b"[" * 100_000
    texts += [("graph.json", deep), ("constants.safetensors", tensors(deep))]
    refused = 0
    for name, text in texts:
        data = container.pack(parts | {name: text})
        memory = aligned_bytes(len(data))
        memory[:] = np.frombuffer(data, np.uint8)
        try:
            found = archive.unpack(memory, "file")
            Executable(found.graph, executable.library, found.params, found.constants)
        except RelayError:
            refused += 1
    assert len(texts) / 2 < refused < len(texts)


def test_an_arena_of_any_size(executable: Executable):
    graph, lib, params = executable
    for size in (-64, 1 << 47, 10**30):
        with pytest.raises(Malformed, match=f"an arena of {size} bytes"):
            create({**json.loads(graph), "arena_bytes": size}, lib, params)
    large = create({**json.loads(graph), "arena_bytes": 1 << 46}, lib, params)
    with pytest.raises(Unsupported, match=f"run: there is no memory for an arena of {1 << 46} bytes"):
        large.run(X, Y)


def test_a_large_file_of_another_kind_is_not_read(tmp_path: Path):
    path = tmp_path / "disk.image"
    with open(path, "wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(Malformed, match="is no saved executable"):
        load(path)


def test_files_without_end_and_pipes_are_refused(tmp_path: Path):
    """A pipe that nobody writes to, and a file of 1 TB that takes no room on the disk."""
    pipe, sparse = tmp_path / "pipe", tmp_path / "sparse.bin"
    os.mkfifo(pipe)
    with pytest.raises(InvalidArgument, match="pipe: cannot be read: it is a pipe"):
        load(pipe)
    for path in (str(pipe), "/dev/zero"):
        with pytest.raises(RelayError, match="it is a (pipe|device)"):
            build(path)
    with sparse.open("wb") as file:
        file.write(container.MAGIC)
        file.truncate(1 << 40)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 38, limits[1]))  # also where memory is promised without end
    try:
        with pytest.raises(InvalidArgument, match=r"sparse.bin: cannot be read: its \d+ bytes do not fit into memory"):
            load(sparse)
        for name, head in (("model.tflite", b"\x1c\0\0\0TFL3"), ("model.mlir", b"// text\n" * 100)):
            sparse = tmp_path / name
            sparse.write_bytes(head)
            os.truncate(sparse, 1 << 40)
            with pytest.raises(RelayError, match=f"its {1 << 40} bytes do not fit into memory"):
                build(str(sparse))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_a_pipe_is_not_replaced(executable: Executable, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidArgument, match="cannot be written: it is there, and no file"):
        executable.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_no_more_files_can_be_open(executable: Executable):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    library, lowest = Library(executable.library.code), os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)  # the lowest number that is free
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        with pytest.raises(Unsupported, match="cannot be loaded: Too many open files; each executable"):
            library.function("relay_main")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert library.function("relay_main")


def test_a_disk_that_is_full(executable: Executable, tmp_path: Path):
    """Nothing is left of an export or a file that could not be written whole, and what was there stays."""
    exported, saved = tmp_path / "exported", tmp_path / "model.relay"
    saved.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(InvalidArgument, match="cannot be written: File too large"):
            executable.export(exported)
        with pytest.raises(InvalidArgument, match="cannot be written: File too large"):
            executable.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == b"before" and sorted(tmp_path.iterdir()) == [saved]


def test_outputs_and_inputs_larger_than_memory():
    """Of 1 TB, which the code never gets to write, or to copy."""
    exe = build(
        IRModule.parse("""
func.func @main(%x: tensor<1x1xf32>) -> tensor<1048576x262144xf32> {
  %0 = relay.broadcast_to %x {shape = array<i64: 1048576, 262144>} : (tensor<1x1xf32>) -> tensor<1048576x262144xf32>
  return %0 : tensor<1048576x262144xf32>
}""")
    )
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 38, limits[1]))
    try:
        with pytest.raises(Unsupported, match=f"run: there is no memory for outputs of {1 << 40} bytes"):
            exe.run(np.zeros((1, 1), np.float32))
        spec = exe.outputs[0]._replace(name="x")
        with pytest.raises(Unsupported, match=f"'x': is not contiguous, and .* no memory for a copy of {1 << 40} byt"):
            spec.take(np.broadcast_to(np.float32(0), spec.shape))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_names_in_files_do_not_control_the_terminal() -> None:
    error = Malformed("node '\x1b[2J'", "two lines\n\tof \ud800 and ä", "a\x7f")
    assert str(error) == r"node '\x1b[2J': two lines" + "\n\t" + r"of \ud800 and ä; a\x7f"
