"""`relay.build` finds what it built before without importing the compiler, and nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

import relay
from relay.compile import cache as build_cache
from relay.compile import entry, model
from relay.compile.entry import gc_paused
from relay.compile.model import compile_model
from relay.compile.request import Request
from relay.passes import PassContext, PassInstrument
from relay.runtime import Executable, processor

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
PROGRAM = """
import sys
import numpy as np
import relay
executable = relay.build({path!r}, opt_level=1, num_threads=2)
assert executable.num_threads == 2
image = np.load({data!r})["int8_images"][:1]
print(executable.run(image).tolist(), "xdsl" in sys.modules, "llvmlite" in sys.modules)
if {source}:
    print("func.func" in executable.get_source("mlir"), "xdsl" in sys.modules)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("RELAY_CACHE_DIR", str(folder))
    return folder


def another_process(source: bool) -> list[str]:
    program = PROGRAM.format(path=str(DIGITS), data=str(DIGITS.with_name("digits_test.npz")), source=source)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_the_compiler_is_not_imported(cache: Path, apart: bool):
    """Where it was built in another process, or in this one."""
    if apart:
        first = another_process(source=False)[0]
        assert first.endswith("True True")
    else:
        image = np.load(DIGITS.with_name("digits_test.npz"))["int8_images"][:1]
        first = str(np.asarray(relay.build(str(DIGITS), opt_level=1, num_threads=2).run(image)).tolist())
    second = another_process(source=True)
    assert second[0].endswith("False False")
    assert first.split("]]")[0] == second[0].split("]]")[0]
    assert second[1] == "True True"


def key(**changes: Any) -> str | None:
    given: dict[str, Any] = {"model": DIGITS, "target": "llvm", "opt_level": None, "frontend": None}
    keyed = build_cache.keyed(Request(**(given | changes)))
    return None if keyed is None else keyed.key


def test_all_that_matters_is_in_the_key(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    data = DIGITS.read_bytes()
    (other := tmp_path / "other").write_bytes(data)
    assert key() == key(model=str(DIGITS)) == key(frontend={})
    keys = {
        key(),
        key(model=data),
        key(model=data + b"x"),
        key(model=other),
        key(target="llvm -mattr=-avx512f"),
        key(opt_level=1),
        key(frontend={"numerics": "litert"}),
        key(frontend={"batch": 1}),
    }
    monkeypatch.setattr(processor, "model", lambda: "another")
    keys.add(key())
    monkeypatch.setattr(build_cache, "compiler", lambda: "another")
    keys.add(key())
    assert len(keys) == 10 and None not in keys


def test_nothing_is_quick_where_more_matters(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert key(model=tmp_path / "absent.tflite") is None
    assert key(model=3) is None and key(target=None) is None and key(opt_level=True) is None
    assert key(frontend=[1]) is None and key(frontend={"custom_ops": {"Mine": print}}) is None
    with PassContext(opt_level=1):
        assert key() is None
    default = PassContext.current()
    default.override_instruments([PassInstrument()])
    assert key() is None
    default.override_instruments([])
    assert key() is not None
    monkeypatch.setenv("RELAY_CACHE_DIR", "off")
    assert key() is None


def test_patterns_of_other_packages_matter(cache: Path, monkeypatch: pytest.MonkeyPatch):
    from importlib.metadata import EntryPoint

    def others(group: str) -> tuple[EntryPoint, ...]:
        return (EntryPoint("other", "other.patterns:ALL", group),)

    before = key()
    monkeypatch.setattr(build_cache, "installed", others)
    assert before is not None and key() not in (None, before)


def test_what_is_damaged_is_built_anew(cache: Path):
    image = np.load(DIGITS.with_name("digits_test.npz"))["int8_images"][:1]
    wanted = np.asarray(relay.build(DIGITS).run(image))
    for prefix in ("quick", "build"):
        for path in cache.glob(f"{prefix}-*"):
            path.write_bytes(b"damaged")
        assert np.array_equal(np.asarray(relay.build(DIGITS).run(image)), wanted)
    assert {path.name.split("-")[0] for path in cache.iterdir()} >= {"quick", "build"}


def test_what_is_kept_is_told():
    _, kept = compile_model(Request(DIGITS, opt_level=0, progress=False))
    assert kept is None  # tests run without a cache


def test_sources_are_of_what_was_built(cache: Path, tmp_path: Path):
    path, options = tmp_path / "model.tflite", {"numerics": "litert"}
    path.write_bytes(DIGITS.read_bytes())
    wanted = relay.build(path, frontend=options).get_source("mlir")
    again = relay.build(path, frontend=options)
    path.write_bytes(b"another")
    options["batch"] = "4"
    with PassContext(opt_level=0):
        assert again.get_source("mlir") == wanted


@pytest.mark.ci
def test_a_file_that_changes_meanwhile_is_not_kept(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "model.tflite"
    path.write_bytes(DIGITS.read_bytes())
    compiled = model.compile_model

    def changing(*given: Any) -> tuple[Executable, str | None]:
        result = compiled(*given)
        path.write_bytes(b"another")
        return result

    monkeypatch.setattr(model, "compile_model", changing)
    relay.build(path)
    assert not list(cache.glob("quick-*"))


def test_what_a_build_leaves_is_collected_before_a_later_one(monkeypatch: pytest.MonkeyPatch):
    class Node:
        itself: object

    monkeypatch.setattr(entry, "MOST_LEFT", -1)
    with gc_paused():
        node = Node()
        node.itself, left = node, ref(node)
        del node
    with gc_paused():
        assert left() is None


@pytest.mark.parametrize("frozen", [0, 1])
def test_objects_that_someone_froze_stay_frozen(frozen: int, monkeypatch: pytest.MonkeyPatch):
    """What a build leaves is frozen and thawed, into the oldest generation, only where nothing is frozen."""
    called: list[str] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, partial(called.append, name))
    with gc_paused():
        pass
    assert called == ([] if frozen else ["freeze", "unfreeze"])


def test_a_build_leaves_the_collector_of_garbage_as_it_was():
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()
