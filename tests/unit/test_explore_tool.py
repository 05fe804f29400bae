"""`relay-explore`, as its users call it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest
from xdsl.utils.hints import isa

from relay import __version__
from relay.passes import registry
from relay.tools import relay_explore
from relay.tools.relay_explore import main
from relay.viewer.page import SCRIPTS, asset
from tests.unit.explore_modules import ADDS, Json, rows, unpacked
from tests.unit.pass_modules import DIGITS, ROOT

NO_EXTRA = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("starlette", "uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from relay.tools import relay_explore
from relay.tools.relay_explore import main
print(main([sys.argv[1], "--html", sys.argv[2]]), main([sys.argv[1], "--no-browser"]))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "adds.mlir"
    path.write_text(ADDS)
    return path


def fails(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line that a call ends with."""
    assert main([str(arg) for arg in args]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err.strip()


def written(path: Path) -> Json:
    """The overview in a report."""
    overview = unpacked(path.read_text())["overview"]
    assert isa(overview, Json)
    return overview


def test_report(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out.html"
    assert main([str(file), "-p", "cse,dce", "--html", str(out), "--verify-each"]) == 0
    assert capsys.readouterr() == ("", "")
    overview = written(out)
    assert (overview["name"], overview["pipeline"], overview["verify"]) == ("adds.mlir", "cse,dce", True)
    assert [row["ops"] for row in rows(overview, "snapshots")] == [6, 5]


def test_report_of_a_model_up_to_a_level(tmp_path: Path):
    out = tmp_path / "out.html"
    assert main([str(DIGITS), "--html", str(out), "-p", "legalize,cse,fuse-ops", "-O", "1"]) == 0
    overview = written(out)
    assert (overview["name"], overview["level"]) == (DIGITS.name, 1)
    assert [step["status"] for step in rows(overview, "steps")] == ["ran", "skipped", "ran"]
    assert out.stat().st_size < 1_000_000


def test_report_of_a_pass_that_fails(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out.html"
    said = fails(capsys, file, "-p", 'cse,mlir-opt{executable="/nowhere"}', "--html", out)
    assert said.startswith(f"{file}: pass mlir-opt: ") and "/nowhere" in said
    overview = written(out)
    assert overview["error"] == said
    assert [step["status"] for step in rows(overview, "steps")] == ["ran", "failed"]


def test_none_at_all(file: Path, tmp_path: Path):
    assert main([str(file), "-p", "", "--html", str(tmp_path / "out.html")]) == 0
    assert written(tmp_path / "out.html")["steps"] == []


def test_errors_are_one_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = ("--html", tmp_path / "out.html")
    assert fails(capsys, "/nowhere.tflite", *out) == "/nowhere.tflite: No such file or directory"
    assert "there is no pass 'nosuch'" in fails(capsys, file, "-p", "nosuch", *out)
    assert "argument -O: invalid choice: 9" in fails(capsys, file, "-O", "9", *out)
    assert "target 'abacus'" in fails(capsys, file, "--target", "abacus", *out)
    assert fails(capsys) == "relay-explore: the following arguments are required: file; see relay-explore --help"
    assert "--port" in fails(capsys, file, "--port", "many")
    assert fails(capsys, file, "--html", tmp_path).startswith(f"{tmp_path}: ")
    for text, place in (("func.func @f(", ":1:14"), ("func.func @f() -> i1 {\n  func.return\n}", ":2:3")):
        file.write_text(text)
        assert fails(capsys, file, *out).startswith(f"{file}{place}: ")
    file.write_bytes(b"TFL3TFL3TFL3")
    assert fails(capsys, file, *out).startswith(file.name)


OWN = """
from relay.passes import module_pass

@module_pass(opt_level=1, name="of-a-file")
def of_a_file(mod, ctx):
    return mod
"""


def test_passes_of_a_file(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    own, out = tmp_path / "own.py", tmp_path / "out.html"
    own.write_text(OWN)
    try:
        assert main([str(file), "--load", str(own), "-p", "of-a-file", "--html", str(out)]) == 0
        assert [step["name"] for step in rows(written(out), "steps")] == ["of-a-file"]
    finally:
        del registry.MADE["of-a-file"]
    assert "/nowhere.py" in fails(capsys, file, "--load", "/nowhere.py")


def test_version(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"relay-explore {__version__}\n"


def process(*command: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.ci
def test_without_the_extra(file: Path, tmp_path: Path):
    running = process("-c", NO_EXTRA, file, tmp_path / "out.html")
    out, err = running.communicate(timeout=60)
    assert out == "0 1\n" and (tmp_path / "out.html").exists()
    assert err == "relay-explore: the package uvicorn is not installed; pip install 'relay-mlir[explore]'\n"


SLOW = """
import sys, time
from relay.passes import module_pass

@module_pass(opt_level=0, name="sleep")
def sleep(mod, ctx):
    time.sleep(600)
    return mod

from relay.tools import relay_explore
from relay.tools.relay_explore import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.ci
def test_serves_until_ctrl_c_also_while_a_pass_runs(file: Path):
    pytest.importorskip("starlette", reason="needs the extra explore: pip install 'relay-mlir[explore]'")
    pytest.importorskip("uvicorn", reason="needs the extra explore: pip install 'relay-mlir[explore]'")
    running = process("-c", SLOW, file, "-p", "cse,sleep", "--no-browser")
    try:
        assert running.stdout is not None
        first, second = running.stdout.readline(), running.stdout.readline()
        assert second == "Ctrl-C ends it\n", first + second + running.communicate()[1]
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", first)
        assert found is not None
        assert urllib.request.urlopen(found[0], timeout=30).read().decode().startswith("<!DOCTYPE html>")
        with pytest.raises(HTTPError, match="403"):
            urllib.request.urlopen(found[0].partition("?")[0], timeout=30)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
        assert (running.returncode, out, err) == (0, "", "")
    finally:
        running.kill()
        running.communicate()


def test_no_program_is_given_the_token(monkeypatch: pytest.MonkeyPatch):
    """Other users see what a browser is started with; the file that it is given is read by this one only."""
    opened: list[str] = []
    monkeypatch.setattr(relay_explore.webbrowser, "open", opened.append)
    relay_explore.open_browser("http://127.0.0.1:1/?token=secret")
    (address,) = opened
    page = Path(address.removeprefix("file://"))
    assert "secret" not in address and "url=http://127.0.0.1:1/?token=secret" in page.read_text()
    assert [path.stat().st_mode & 0o777 for path in (page.parent, page)] == [0o700, 0o600]


def test_a_port_that_is_taken(file: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("starlette", reason="needs the extra explore: pip install 'relay-mlir[explore]'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = fails(capsys, file, "-p", "cse", "--port", port, "--no-browser")
    assert said == f"--port {port}: cannot be had: Address already in use; leave it out to take any free one"


def test_all_of_the_page_is_shipped():
    assets = {path.name for path in (ROOT / "relay" / "viewer" / "assets").iterdir()}
    assert assets == {"page.html", "page.css", *(f"{name}.js" for name in SCRIPTS)}
    assert all(asset(name) for name in assets)
