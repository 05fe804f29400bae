"""Interrupts and the end of a process while executables, threads and builds are alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relay
from tests.unit.pass_modules import DATA, DIGITS, ROOT, small

pytestmark = pytest.mark.ci
START = """
import atexit, os, signal, sys, threading, time
import numpy as np
from relay.runtime import load

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have commands in the background ignore it
model, image = sys.argv[1], np.load(sys.argv[2])["int8_images"][:1]
made = load(sys.argv[3])
wanted = made.run(image).tobytes()
made.num_threads = 2
made.set_input(0, image)

def forever():
    while True:
        made.run()
        assert made.run(image).tobytes() == wanted

def thread(work):
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
"""
ENDINGS = {
    "with threads that run": "made.run(); thread(forever)",
    "with a thread that builds": "import relay; thread(lambda: [relay.build(model) for _ in range(100)])",
    "with a run at exit": "thread(forever); atexit.register(lambda: made.run(image)); made.run()",
    "by an exception": "thread(forever); sys.exit(0)",
    "as a child": """
made.run()
child = os.fork()
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert made.run(image).tobytes() == wanted
""",
}
INTERRUPTS = """
def interrupting():
    while going:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3e-5)

def until(end, *inputs):
    while time.monotonic() < end:
        made.run(*inputs)

for inputs in ((), (image,)):
    going, caught, end = [True], 0, time.monotonic() + 0.7
    started = False
    while time.monotonic() < end or caught <= 10 and time.monotonic() < end + 60:
        try:
            if not started:
                started = True
                threading.Timer(0.01, interrupting).start()
            until(time.monotonic() + 0.1, *inputs)
        except KeyboardInterrupt:
            caught += 1
    while going:
        try:
            going.clear()
            time.sleep(0.02)
        except KeyboardInterrupt:
            pass
    assert caught > 10, caught
signal.alarm(20)  # the next call must not wait for a lock that nobody gives back
made.run()
assert made.get_output().tobytes() == wanted and made.run(image).tobytes() == wanted
"""
BUILDS = """
import relay
print("ready", flush=True)
try:
    while True:
        relay.build(model)
except KeyboardInterrupt:
    assert relay.build(model).run(image).tobytes() == wanted
    print("interrupted")
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How a process is started that has loaded the digits; what it does is added."""
    saved = tmp_path_factory.mktemp("endings") / "digits.relay"
    relay.build(DIGITS).save(saved)
    return [sys.executable, "-c", "exec(__import__('sys').argv.pop())", str(DIGITS), str(DATA), str(saved)]


def started(command: list[str], body: str) -> subprocess.Popen[str]:
    """That process, in a session of its own: a signal to one does not reach the others."""
    pipe, line = subprocess.PIPE, [*command, START + body]
    return subprocess.Popen(line, cwd=ROOT, text=True, start_new_session=True, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("body", [*ENDINGS.values(), INTERRUPTS], ids=[*ENDINGS, "after interrupts of runs"])
def test_the_process_ends_well(body: str, command: list[str]) -> None:
    process = started(command, body)
    assert process.communicate(timeout=200) == ("", "") and process.returncode == 0


def test_an_interrupt_as_soon_as_a_run_has_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    made = relay.build(small())
    made.set_input(0, np.ones(4, np.float32))
    acquire: Callable[[], bool] = made.__dict__["_acquire"]

    def interrupted() -> None:
        acquire()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(made, "_acquire", interrupted)
        made.run()
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "the lock was not given back"


def sessions() -> dict[int, int]:
    """The session of each process that has not ended."""
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(") ")[2].split()[:4]
        except OSError:
            continue
        if state != "Z":
            found[int(path.parent.name)] = int(session)
    return found


@pytest.mark.parametrize(("sent", "ends"), [(signal.SIGINT, 0), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_signals_in_a_build(sent: signal.Signals, ends: int, command: list[str]) -> None:
    """SIGINT is one KeyboardInterrupt, and the next build is right; no process of the build outlives it."""
    process = started(command, BUILDS)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    os.kill(process.pid, sent)
    try:
        said, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:  # Python drops a KeyboardInterrupt that is raised in a finalizer, and says so
        os.kill(process.pid, sent)
        said, errors = process.communicate(timeout=120)
        assert errors.startswith("Exception ignored in: <finalize")
        errors = ""
    assert (process.returncode, errors, said) == (ends, "", "interrupted\n" if ends == 0 else "")
    end = time.monotonic() + 20
    while process.pid in sessions().values():
        assert time.monotonic() < end, "a process of the build is left"
        time.sleep(0.05)
