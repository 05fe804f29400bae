"""`fork` while other threads build or run: the child builds and runs, and is done soon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.pass_modules import DATA, DIGITS, ROOT

START = """
import os, sys, threading, time
import numpy as np
import relay
from relay.runtime import load

model, image = sys.argv[1], np.load(sys.argv[2])["int8_images"][:1]
relay.build(model).save(sys.argv[3])
made = load(sys.argv[3])
wanted = made.run(image).tobytes()
made.set_input(0, image)

def in_child(check):
    child = os.fork()
    if not child:
        os._exit(0 if check() else 3)
    end = time.monotonic() + 40
    while time.monotonic() < end:
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            assert os.waitstatus_to_exitcode(ended[1]) == 0
            return
        time.sleep(0.01)
    os.kill(child, 9)
    sys.exit("the child hangs")
"""
BUILDS = """
def forever():
    while True:
        relay.build(model)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
in_child(lambda: relay.build(model).run(image).tobytes() == wanted)
os._exit(0)
"""
RUNS = """
def forever():
    while True:
        made.run()
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
for turn in range(6):
    time.sleep(0.003)
    in_child(lambda: made.run() is None and made.get_output().tobytes() == wanted)
os._exit(0)
"""


@pytest.mark.ci
@pytest.mark.parametrize("body", [BUILDS, RUNS], ids=["builds", "runs"])
def test_fork_while_other_threads_work(body: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", START + body, str(DIGITS), str(DATA), f"{tmp_path}/digits.relay"]
    environment = os.environ | {"RELAY_CACHE_BYTES": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
