"""The blocks of docs/explore.md run."""

from __future__ import annotations

import re

import pytest

from relay.tools.relay_explore import main
from tests.unit.pass_modules import ROOT

TEXT = (ROOT / "docs" / "explore.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.ci
def test_the_commands(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    lines = [line for language, code in BLOCKS if language == "sh" for line in code.splitlines()]
    install, serve, report = lines
    assert install == "pip install -e '.[explore]'" and report.startswith(serve)
    assert "`pip install 'relay-mlir[explore]'`" in TEXT
    folder = tmp_path_factory.mktemp("docs")
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    assert main(report.split()[1:]) == 0 and (folder / "digits.html").stat().st_size > 50_000


@pytest.mark.ci
def test_the_python(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    [code] = [code for language, code in BLOCKS if language == "python"]
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(compile(code, "docs/explore.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["legalize", "ran"], ["cse", "ran"], ["fuse-ops", "ran"]]
    assert str(names["page"]).startswith("<!DOCTYPE html>")


def test_every_option_is_described(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--version", "--target", "--passes"}
    assert options == {option for option in options if option in TEXT}
