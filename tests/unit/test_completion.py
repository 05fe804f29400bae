"""relay-opt --completion: the scripts, typed into real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from relay.errors import InvalidArgument
from relay.tools.relay_opt import RelayOptMain, main

Capture = pytest.CaptureFixture[str]
MARK = "ready-to-type"
ECHO = {
    "bash": "relay-opt() { printf '<%s>' \"$@\"; echo; }",
    "zsh": "relay-opt() { printf '<%s>' \"$@\"; echo; }",
    "fish": "function relay-opt; printf '<%s>' $argv; echo; end",
}
"""The command as it is typed here: it shows its arguments."""
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SET_UP = {"bash": "bind 'set bell-style none'; PS1='> '", "zsh": "autoload -U compinit; compinit -D -u; PS1='> '"}

TYPED = [
    ("--show-pi\t", ["--show-pipeline"]),
    ("--no-implicit-m\t -o x", ["--no-implicit-module", "-o", "x"]),
    ("-p qnn-le\t", ["-p", "qnn-legalize"]),
    ("-p legalize,fold-c\t", ["-p", "legalize,fold-constant"]),
    ("-p 'legalize,fold-c\t'", ["-p", "legalize,fold-constant"]),
    ("-p 'cse,fold-constant{max\t1}'", ["-p", "cse,fold-constant{max_bytes=1}"]),
    ("-p 'fold-constant{max_bytes=1},qnn-le\t'", ["-p", "fold-constant{max_bytes=1},qnn-legalize"]),
    ("--passes=legalize,fold-c\t", ["--passes=legalize,fold-constant"]),
    ("-t llvm-\t", ["-t", "llvm-ir"]),
    ("--target=llvm-\t", ["--target=llvm-ir"]),
    ("--insert-before fuse-o\tcse,fold-c\t", ["--insert-before", "fuse-ops=cse,fold-constant"]),
    ("--remove simpl\t", ["--remove", "simplify"]),
    ("--completion ba\t", ["--completion", "bash"]),
    ("mod\t", ["model.tflite"]),
    ("--weights mod\t", ["--weights", "model.tflite"]),
    ("--dump-ir fol\t", ["--dump-ir", "folder"]),
    ("--find-c\t --inputs mod\t", ["--find-culprit", "--inputs", "model.tflite"]),
]
OFFERED = [
    ("--show-pi", "--show-pipeline"),
    ("-p qnn-le", "qnn-legalize"),
    ("-p legalize,fold-c", "legalize,fold-constant"),
    ('-p "legalize,fold-c', "legalize,fold-constant"),
    ('-p "cse,fold-constant{max', "cse,fold-constant{max_bytes="),
    ('-p "fold-constant{max_bytes=1},qnn-le', "fold-constant{max_bytes=1},qnn-legalize"),
    ("--passes=legalize,fold-c", "--passes=legalize,fold-constant"),
    ("--target=llvm-", "--target=llvm-ir"),
    ("--insert-before fuse-o", "fuse-ops="),
    ("--insert-before fuse-ops=cse,fold-c", "fuse-ops=cse,fold-constant"),
    ("--remove unsig", "unsigned-codes"),
    ("--weights mod", "model.tflite"),
    ("--dump-ir fol", "folder/"),
    ("--find-c", "--find-culprit"),
    ("--find-culprit --inputs mod", "model.tflite"),
]
"""What fish, which cannot be typed into, offers for a line."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell, a file and a folder to complete."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "model.tflite").touch()
    (folder / "folder").mkdir()
    return folder


def script(shell: str, folder: Path, capsys: Capture) -> Path:
    """The script of a shell, written."""
    assert main(["--completion", shell]) == 0
    path = folder / f"complete.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


class Terminal:
    """An interactive shell at a terminal of its own."""

    def __init__(self, command: list[str], folder: Path):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8"}
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def until(self, pattern: str, seconds: float = 30) -> str:
        """What is written up to a match of the pattern."""
        read, end = "", time.monotonic() + seconds
        while not re.search(pattern, read):
            assert time.monotonic() < end, f"no {pattern!r} in {read!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                read += os.read(self.terminal, 65536).decode(errors="replace")
        return read

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("shell", list(SHELLS))
def test_what_is_typed_is_completed(shell: str, scripts: Path, capsys: Capture):
    needs(shell)
    path = script(shell, scripts, capsys)
    terminal = Terminal(SHELLS[shell], scripts)
    try:
        terminal.type(f"{SET_UP[shell]}; source {path}; {ECHO[shell]}; echo {MARK[:5]}''{MARK[5:]}\n")
        terminal.until(MARK)
        wrong: list[tuple[str, str]] = []
        for typed, wanted in TYPED:
            typed = typed.removesuffix("'") if shell == "bash" else typed  # bash closes what it has completed
            terminal.type(f"relay-opt {typed}\n")
            shown = re.findall(r"^(?:<[^\r\n]*>)+", terminal.until(r"(?m)^<[^\r\n]*>\r?\n"), re.MULTILINE)[-1]
            if shown.replace("/>", ">") != "".join(f"<{argument}>" for argument in wanted):
                wrong.append((typed, shown))
        assert wrong == []
    finally:
        terminal.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fish_completes_what_is_typed(scripts: Path, capsys: Capture):
    needs("fish")
    path = script("fish", scripts, capsys)
    lines = "; ".join(f"complete -C 'relay-opt {line}'; echo =" for line, _ in OFFERED)
    command = ["fish", "--no-config", "-c", f"source {path}; {lines}"]
    environment = {**os.environ, "HOME": str(scripts)}
    done = subprocess.run(command, cwd=scripts, capture_output=True, text=True, env=environment)
    offered = [[line.partition("\t")[0] for line in part.splitlines()] for part in done.stdout.split("=\n")[:-1]]
    assert offered == [[wanted] for _, wanted in OFFERED], done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_completed(shell: str, scripts: Path, capsys: Capture):
    text = script(shell, scripts, capsys).read_text()
    for name in set(re.findall(r"--[a-z][a-z-]+", RelayOptMain([]).parser.format_usage())):
        assert re.search(rf"{name}\b" if shell != "fish" else rf"-l {name[2:]}\b", text), name


def test_another_shell_is_refused():
    with pytest.raises(InvalidArgument, match="--completion: invalid choice: 'tcsh'"):
        RelayOptMain(["--completion", "tcsh"])
