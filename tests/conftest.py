"""Every test builds anew, unless it asks for a cache of its own; random cases are the same ones every time, but where
they are looked for with `-m fuzz`, for as long as `--seconds` says and from `--first` on."""

from __future__ import annotations

import gc
import inspect
import itertools
import marshal
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest
from _pytest.assertion import rewrite

os.environ["RELAY_CACHE_DIR"] = "off"
if sys.dont_write_bytecode:
    # All that is imported would be compiled again, and assertions rewritten, in every process that tests start: half of
    # the time of collection. Nothing is written beside the sources.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = f"{tempfile.gettempdir()}/relay-tests-bytecode-{os.getuid()}"
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

Cases = Callable[[int], Iterator[int]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, default=0.0, help="with -m fuzz: how long each fuzzer looks for failures")
    parser.addoption("--guarded", action="store_true", help="all compiled code runs as in tests.guarded")
    parser.addoption("--first", type=int, default=0, help="with -m fuzz: the number of the first random case")


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import settings  # here, so that what pytest rewrites of it is kept, too
    from hypothesis.internal.conjecture import providers

    gc.disable()  # until all is collected
    # `marshal.load` reads the bytecode of rewritten tests a few bytes at a time, five times as long as at once
    at_once = SimpleNamespace(load=whole, dumps=marshal.dumps)
    pytest.MonkeyPatch().setattr(rewrite, "marshal", at_once, raising=False)
    settings.register_profile("same", derandomize=True, deadline=None)
    examples = 20 if config.getoption("--seconds") else 1500  # the fewer, the sooner the time is looked at
    settings.register_profile("new", max_examples=examples, deadline=None, database=None)
    fuzz = "fuzz" in str(config.getoption("markexpr", "")).replace("not fuzz", "")
    settings.load_profile("new" if fuzz else "same")
    if not fuzz:  # else the numbers in whatever files are imported are parsed out of them, and cases depend on them
        pytest.MonkeyPatch().setattr(providers, "is_local_module_file", no_source_is_read, raising=False)


def whole(file: BinaryIO) -> object:
    """The object that the rest of a file is, as `marshal.load` returns it."""
    return marshal.loads(file.read())


def no_source_is_read(path: str) -> bool:
    """Whether Hypothesis takes numbers out of a file of ours."""
    return False


@cache
def left_out(config: pytest.Config) -> set[str]:
    """The marks that `-m "not a and not b ..."` excludes; none if files or tests are named: pytest then says how
    many of them it deselects."""
    expression, named = str(config.getoption("markexpr")), any(".py" in arg for arg in config.args)
    plain = not named and re.fullmatch(r"not \w+( and not \w+)*", expression)
    return set(re.findall(r"not (\w+)", expression)) if plain else set()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file all of whose tests are left out is not imported."""
    if collection_path.suffix != ".py" or not (marks := left_out(config)):
        return None
    mark = re.search(r"^pytestmark = \[?pytest\.mark\.(\w+)", collection_path.read_text(), re.MULTILINE)
    return True if mark and mark[1] in marks else None


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """No cases are made of a function that is left out."""
    marks = {mark.name for mark in getattr(obj, "pytestmark", ())}
    return [] if marks & left_out(collector.config) else None


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """No test is made of a case that is left out, unless all cases are."""
    marks = left_out(metafunc.config)
    calls: list[Any] = vars(metafunc)["_calls"]
    calls[:] = [call for call in calls if marks.isdisjoint(mark.name for mark in call.marks)] or calls


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was imported and collected, half a million objects, is never looked through, and counted only here: builds
    ask for the number, for which Python walks over all of them."""
    gc.freeze()
    if session.config.option.collectonly:
        return
    frozen = gc.get_freeze_count()
    pytest.MonkeyPatch().setattr(gc, "get_freeze_count", lambda: frozen)
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def seconds_of(item: pytest.Item) -> float:
    """How long a test runs; 0 where it is no fuzzer, or no time is given."""
    return float(item.config.getoption("--seconds") or 0) if item.get_closest_marker("fuzz") else 0.0


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Cases:
    """`for number in cases(count)`: so many numbers from `--first` on, or as many as `--seconds` allows."""
    seconds, first = seconds_of(request.node), int(request.config.getoption("--first") or 0)

    def numbers(count: int) -> Iterator[int]:
        end = time.monotonic() + seconds
        for number in itertools.count(first):
            if time.monotonic() >= end if seconds else number - first >= count:
                return
            yield number

    return numbers


@pytest.fixture(autouse=True)
def between_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test runs is run so where it is marked `guarded`; with `--guarded`, whatever any test runs."""
    if request.config.getoption("--guarded") or request.node.get_closest_marker("guarded"):
        from relay.runtime import Executable
        from tests import guarded

        monkeypatch.setattr(Executable, "run", guarded.run)


@pytest.fixture(scope="session", autouse=True)
def kept_objects(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """What LLVM made of a text is kept from test to test, where no test has a cache of its own; builds are not."""
    from relay.compile import workers
    from relay.lowering import codegen
    from relay.store import Store, store

    folder = tmp_path_factory.getbasetemp()
    kept = Store((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "objects")
    with pytest.MonkeyPatch.context() as patch:
        for module in (codegen, workers):
            patch.setattr(module, "store", lambda: store() or kept)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Hypothesis's examples are found anew until the time is up."""
    end = time.monotonic() + seconds_of(pyfuncitem)
    result = yield
    test: Callable[..., object] = pyfuncitem.obj
    if getattr(test, "is_hypothesis_test", False):
        wanted = inspect.signature(test).parameters
        given = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
        while time.monotonic() < end:
            test(**given)
    return result
