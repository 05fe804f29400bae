"""docs/scaling.md: workers without a compiler score; the server refuses what is too much, and answers right."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
PAGE = (ROOT / "docs" / "scaling.md").read_text()
PROGRAM, _, RAY = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WITHOUT = """
def without_compiler():
    import sys
    assert "xdsl" not in sys.modules
    sys.modules.update(dict.fromkeys(("xdsl", "llvmlite")))  # from now on they cannot be imported

"""


@pytest.mark.slow
def test_dask_workers_need_no_compiler(tmp_path: Path):
    pytest.importorskip("distributed", reason="needs the extra dask")
    program = PROGRAM.replace("        everywhere =", "        client.run(without_compiler)\n        everywhere =")
    (tmp_path / "score.py").write_text(program.replace("def score", f"{WITHOUT}\ndef score"))
    done = subprocess.run([sys.executable, tmp_path / "score.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0.9


@pytest.mark.slow
def test_ray(tmp_path: Path):
    pytest.importorskip("ray", reason="needs the package ray")
    (tmp_path / "ray_score.py").write_text(RAY)
    done = subprocess.run([sys.executable, tmp_path / "ray_score.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "level 2" in done.stdout and "failed" not in done.stdout


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example, which serves the digits."""
    pytest.importorskip("starlette", reason="needs the extra explore")
    relay.build(DIGITS).save(tmp_path / "digits.relay")
    monkeypatch.setenv("MODEL", str(tmp_path / "digits.relay"))
    spec = importlib.util.spec_from_file_location("serving_app", ROOT / "examples" / "serving" / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(app: Any, path: str, body: bytes | None = None) -> tuple[int, dict[bytes, bytes], Any]:
    """The status, headers and JSON that an ASGI application answers to a GET, or to a POST of a body."""
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body or b""}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    method = "GET" if body is None else "POST"
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [],
        "root_path": "",
    }
    asyncio.run(app(scope, receive, send))
    return said[0]["status"], dict(said[0]["headers"]), json.loads(said[1]["body"])


def test_what_the_server_answers(app: Any):
    image = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    status, _, outputs = asked(app.app, "/", image.tobytes())
    assert (status, outputs) == (200, [np.asarray(relay.build(DIGITS).run(image)).tolist()])
    assert asked(app.app, "/", b"short")[0] == 400
    room, app.room = app.room, 0
    status, headers, _ = asked(app.app, "/", image.tobytes())
    assert status == 503 and headers[b"retry-after"] == b"1"
    app.room = room
    assert asked(app.app, "/", image.tobytes())[0] == 200
    assert asked(app.app, "/health")[2]["room"] == room


def test_fastapi_takes_the_same_routes(app: Any):
    fastapi: Any = pytest.importorskip("fastapi", reason="needs the package fastapi")
    image = np.zeros((1, 8, 8, 1), np.int8)
    assert asked(fastapi.FastAPI(routes=app.routes), "/", image.tobytes()) == asked(app.app, "/", image.tobytes())


@pytest.mark.slow
def test_four_times_what_the_server_can_do():
    pytest.importorskip("uvicorn", reason="needs the extra explore")
    serving = pytest.importorskip("benchmarks.serving")
    found = serving.measure(DIGITS, 1024, 3.0)
    for each in found["rounds"]:
        assert set(each["answers"]) == {"200", "503"}
    assert found["memory_mib"][-1] - found["memory_mib"][0] < 4
