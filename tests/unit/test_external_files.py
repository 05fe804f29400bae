"""Saved executables with functions of external compilers: what is in the file, damage, and loaders that refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.runtime import container, create, load, loaders
from tests.unit.external_probe import OFFSET, Loads, Run, built, check, install


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return install(monkeypatch)


def test_a_saved_file_has_the_artifacts(loads: Loads, tmp_path: Path):
    path = tmp_path / "model.relay"
    built().save(path)
    loads.given.clear()
    check(load(path))
    assert loads.given["both"][0] == b"both" and np.array_equal(loads.given["turn"][1]["offset"], OFFSET)


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The file with some parts changed."""
    parts = {name: bytes(part) for name, part in container.unpack(memoryview(path.read_bytes()), "file").items()}
    change(parts)
    path.write_bytes(container.pack(parts))
    return path


def graph_with(**facts: object) -> Callable[[dict[str, bytes]], None]:
    """Changes the row of the first external function; None takes a fact out."""

    def change(parts: dict[str, bytes]) -> None:
        graph = json.loads(parts["graph.json"])
        row = graph["externals"][0] | facts
        graph["externals"][0] = {key: value for key, value in row.items() if value is not None}
        parts["graph.json"] = json.dumps(graph).encode()

    return change


def without_artifacts(parts: dict[str, bytes]) -> None:
    del parts["artifacts/1"]


def without_names(parts: dict[str, bytes]) -> None:
    parts["artifacts.json"] = b"[]"


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (graph_with(version="9"), Unsupported, "both: was compiled by version 9 of 'probe'; .* takes 2, 3; build"),
        (
            graph_with(compiler="prob"),
            Unsupported,
            "compiled by 'prob', whose loader is not installed; .*there is probe",
        ),
        (
            graph_with(compiler="none_such", requirement="relay-none"),
            Unsupported,
            "both: was compiled by 'none_such', whose loader is not installed; pip install 'relay-none'",
        ),
        (graph_with(inputs=None), Malformed, "graph: externals are not what relay.build writes"),
        (graph_with(inputs=[["x", "float32"]]), Malformed, "graph: externals are not what relay.build writes"),
        (graph_with(params={"offset": ["gone", [4], "float32"]}), InvalidArgument, r"params\['gone'\]: is missing"),
        (graph_with(params=3), Malformed, "graph: externals are not"),
        (without_artifacts, Malformed, "is no saved executable"),
        (without_names, Malformed, "external function both: has no artifact; build the model again"),
    ],
)
def test_damaged_files(
    loads: Loads,
    tmp_path: Path,
    change: Callable[[dict[str, bytes]], None],
    kind: type[RelayError],
    message: str,
):
    path = tmp_path / "model.relay"
    built().save(path)
    with pytest.raises(kind, match=message) as caught:
        load(rewritten(path, change))
    assert "\n" not in str(caught.value)


def test_what_loaders_do_wrong(loads: Loads, monkeypatch: pytest.MonkeyPatch):
    executable = built()

    def fails(*given: object) -> Run:
        raise ValueError("bad magic")

    def nothing(*given: object) -> Any:
        return None

    def refuses(*given: object) -> Run:
        raise Malformed("probe program", "ends early")

    for loader, message in [
        (fails, "external function both: cannot be loaded by 'probe': bad magic; build the model again"),
        (nothing, "external function both: the loader of 'probe' gave None; it gives a Native or a callable"),
        (refuses, "probe program: ends early"),
    ]:
        monkeypatch.setitem(loaders.LOADERS.registered, "probe", loader)
        with pytest.raises(Malformed, match=message):
            create(*executable)
