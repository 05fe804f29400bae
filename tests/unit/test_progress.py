"""How far work is: a bar of rich, or text without it and in notebooks; only for what takes long."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import relay
from relay.compile import model, workers
from relay.compile.progress import bar
from relay.lowering import codegen

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stderr one: in the test itself, since pytest puts its own back before."""
    pytest.importorskip("rich")
    shown = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_a_long_build_shows_its_steps(monkeypatch: pytest.MonkeyPatch):
    err = terminal(monkeypatch)
    monkeypatch.setattr(model, "SILENT_SECONDS", 0.0)
    for module in (codegen, workers):
        monkeypatch.setattr(module, "store", lambda: None)  # objects that are kept leave out the step
    relay.build(DIGITS)
    shown = err.getvalue()
    assert "building" in shown and "code" in shown


def test_a_short_build_and_one_that_shall_not_show_none(monkeypatch: pytest.MonkeyPatch):
    err = terminal(monkeypatch)
    monkeypatch.setattr(model, "SILENT_SECONDS", 1e9)
    relay.build(DIGITS)
    monkeypatch.setattr(model, "SILENT_SECONDS", 0.0)
    relay.build(DIGITS, progress=False)
    assert err.getvalue() == ""


def test_elsewhere_than_on_a_terminal_one_is_asked_for(capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("rich")
    with bar(None, "work", 2) as update:
        update(1, "more")
    assert capfd.readouterr().err == ""
    with bar(True, "work", 2) as update:
        update(1, "more")
    assert "work" in capfd.readouterr().err


def without_rich(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)


def worked(wanted: bool | None, after: float = 0):
    with bar(wanted, "work", 2, after=after) as update:
        update(1, "more")


def test_without_rich_a_line_is_rewritten(monkeypatch: pytest.MonkeyPatch):
    without_rich(monkeypatch)
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    worked(None)
    lines = [line.rstrip() for line in err.getvalue().split("\r")]
    assert lines == ["", "work: 0 of 2", "work: 1 of 2 more", "work: 0.0 s"]
    monkeypatch.setattr(sys, "stderr", short := Terminal())
    worked(None, after=1e9)
    assert short.getvalue() == ""


def test_without_rich_a_file_gets_lines(monkeypatch: pytest.MonkeyPatch):
    without_rich(monkeypatch)
    monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    worked(None)
    assert err.getvalue() == ""
    worked(True)
    assert err.getvalue() == "work: 0 of 2\nwork: 0.0 s\n"


def test_in_a_notebook_one_output_is_rewritten(monkeypatch: pytest.MonkeyPatch):
    """Also with rich, whose bars need widgets there. tests/users/notebook.sh has IPython show it."""
    cell = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", cell)
    said: list[str] = []

    def update(data: dict[str, str], raw: bool) -> None:
        said.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> SimpleNamespace:
        said.append(data["text/plain"])
        return SimpleNamespace(update=update)

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    worked(None)
    assert said == ["work: 0 of 2", "work: 1 of 2 more", "work: 0.0 s"] and cell.getvalue() == ""


def test_what_fails_leaves_no_bar(monkeypatch: pytest.MonkeyPatch):
    err = terminal(monkeypatch)
    with pytest.raises(ValueError, match="work"), bar(None, "work", None) as update:
        update(1, "more")
        raise ValueError("work")
    before = err.getvalue()
    with bar(None, "again", 1) as update:
        update(1, "")
    assert before and "again" in err.getvalue()


def test_nothing_shows_where_stderr_is_closed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "stderr", None)
    for wanted in (None, True):
        with bar(wanted, "building", 1) as update:
            update(1, "done")
    assert capsys.readouterr().out == ""
