"""Modules that only name what stands elsewhere are what `docs/front_doors.py` writes; all that they name is there."""

from __future__ import annotations

import runpy
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from relay.doors import door

ROOT = Path(__file__).parents[2]
FRONT_DOORS = runpy.run_path(str(ROOT / "docs" / "front_doors.py"))


@cache
def modules() -> dict[Path, str]:
    return FRONT_DOORS["modules"]()


def test_modules_are_up_to_date():
    stale = [str(path.relative_to(ROOT)) for path, text in modules().items() if path.read_text() != text]
    assert not stale, "these are stale: run python docs/generate.py"


def test_packages_that_pages_name():
    """`relay.validation.certify` is what docs/certificates.md calls."""
    code = "import relay; relay.validation.certify, relay.runtime.load, relay.frontend.from_tflite"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.filterwarnings("ignore:.* is deprecated")
def test_every_name_is_there():
    for path in modules():
        module = import_module(FRONT_DOORS["dotted"](path))
        names = module.__all__
        assert names and all(getattr(module, name) is not None for name in names), path
        assert set(names) - {"__version__"} <= {*dir(module), *vars(module)}, path
        assert len(dir(module)) == len({*dir(module)}), path


def test_passes_are_found_by_the_names_of_relay():
    from relay.transform import ConstFolding, FoldConstant

    assert ConstFolding is FoldConstant


def test_a_name_that_is_not_there():
    get, names = door("package", {"os": "b=sep", "os.path": "a= join"})
    assert names() == ["a", "b", "join"]
    assert get("a") is import_module("os.path") and get("join") is import_module("os.path").join
    with pytest.raises(AttributeError, match="module 'package' has no attribute 'c'"):
        get("c")


def test_a_former_name_of_a_pass_says_what_to_write():
    import relay.transform

    with pytest.warns(DeprecationWarning, match=r"transform\.FoldQdq is deprecated: write .*\.QdqToInteger") as found:
        assert relay.transform.FoldQdq is relay.transform.QdqToInteger
    assert [warning.filename for warning in found] == [__file__]


@pytest.mark.parametrize("package", ["relay", "relay.byoc", "relay.transform", "relay.viewer"])
def test_a_front_door_imports_nothing_of_the_compiler(package: str):
    code = f"import sys, {package}; print([name for name in sys.modules if name.startswith(('xdsl', 'numpy'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
