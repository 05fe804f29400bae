"""Bars: on terminals, where rich is, and only for what takes long."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import relay
from relay.compile import model
from relay.compile.progress import bar
from relay.errors import InvalidArgument

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


def test_without_rich(monkeypatch: pytest.MonkeyPatch):
    err = terminal(monkeypatch)
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    with bar(None, "work", 2) as update:
        update(1, "more")
    assert err.getvalue() == ""
    with (
        pytest.raises(
            InvalidArgument, match="progress: the package rich is not installed; pip install 'relay-mlir\\[progress\\]'"
        ),
        bar(True, "work", 2),
    ):
        pass


def test_what_fails_leaves_no_bar(monkeypatch: pytest.MonkeyPatch):
    err = terminal(monkeypatch)
    with pytest.raises(ValueError, match="work"), bar(None, "work", None) as update:
        update(1, "more")
        raise ValueError("work")
    before = err.getvalue()
    with bar(None, "again", 1) as update:
        update(1, "")
    assert before and "again" in err.getvalue()
