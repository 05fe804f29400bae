"""The tools that lit runs, without importing all they use anew for each call: a server that has it forks for every one.

`python -m tests.lit_server SOCKET` says "ready", then serves until its standard input ends. `python -I -S lit_client.py
SOCKET TOOL ARGUMENT...` hands it arguments, environment, folder and standard streams, and exits as the call did.
"""

from __future__ import annotations

import gc
import io
import marshal
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path

from tests.installing import install

ROOT = Path(__file__).parents[1]
TOOLS = {"relay-opt": "relay.tools.relay_opt", "filecheck": "filecheck.main"}
"""The modules whose `main` is called."""
WARMING = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""
PIPELINE = 'attach-target{target="x86_64 -mcpu=haswell"},legalize,relay-to-linalg,bufferize,schedule,select-target-ops'


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A server at `folder/socket` that has this checkout and the plug-in of the tests, installed into `folder/site`."""
    install(ROOT / "tests" / "abacus", folder / "site")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.lit_server", folder / "socket"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder / "site")])},
    )
    assert server.stdout and server.stdout.readline(), "the server of the tools has not started"
    return server


def client(folder: Path, tool: str) -> list[str]:
    """The command that has a server do a call of a tool."""
    return [sys.executable, "-I", "-S", str(ROOT / "tests" / "lit_client.py"), str(folder / "socket"), tool]


def preload() -> None:
    """Import what calls use, and do one of a long pipeline, which fills the caches that depend on no call: what is
    installed, how dispatch goes, processors. What is there then is never looked through for garbage."""
    from relay.tools.relay_opt import main
    from relay.universe import DIALECTS, PASSES

    for module in TOOLS.values():
        import_module(module)
    for factory in (*DIALECTS.values(), *PASSES.values()):
        factory()
    with (
        suppress(Exception),  # the files tell what is wrong
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        tempfile.NamedTemporaryFile("w", suffix=".mlir") as file,
    ):
        file.write(WARMING)
        file.flush()
        main([file.name, "-p", PIPELINE])
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def serve(path: str) -> None:
    """Answer calls, each in a process of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        print("ready", flush=True)
        while True:
            call, _ = server.accept()
            if os.fork() == 0:
                server.close()
                os._exit(answer(call))
            call.close()


def answer(call: socket.socket) -> int:
    """Do one call; the status goes back before the process ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(call, 4, 3)
    size = int.from_bytes(head, "little")
    data = b""
    while len(data) < size:
        data += call.recv(size - len(data))
    arguments, environment, folder = marshal.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(environment)
    status = run(arguments)
    call.sendall(bytes([status & 255]))
    return 0


def run(arguments: list[str]) -> int:
    """A tool with these arguments, as a program of its own would be."""
    sys.argv = arguments
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        setattr(sys, name, open(number, mode, closefd=False))
    try:
        status = import_module(TOOLS[arguments[0]]).main()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(status, str):
        os.write(2, status.encode() + b"\n")
        return 1
    return status or 0


def end_with_parent() -> None:
    """End when nobody holds the other end of standard input any more."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    preload()
    threading.Thread(target=end_with_parent, daemon=True).start()
    serve(sys.argv[1])
