"""The server: for who has the token and names it rightly, never blocked by a run, never ended by an error."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

pytest.importorskip("starlette", reason="needs the extra explore: pip install 'relay-mlir[explore]'")
pytest.importorskip("uvicorn", reason="needs the extra explore: pip install 'relay-mlir[explore]'")

from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import PassContext, module_pass, registry
from relay.viewer.server import LARGEST_REQUEST, listen
from tests.unit.explore_modules import EVIL, TOKEN, Client, adds, rows, served


@pytest.fixture(scope="module")
def client() -> Generator[Client]:
    with served(adds(), "cse,dce") as found:
        found.finished()
        yield found


def test_the_page(client: Client):
    status, text, headers = client.raw(f"/?token={TOKEN}", headers={})
    assert status == 200 and text.startswith("<!DOCTYPE html>") and headers["content-type"].startswith("text/html")
    assert TOKEN not in text
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers and "access-control-allow-origin" not in headers


PATHS = ["/", "/api/state", "/api/overview?run=1", "/api/snapshot/0?run=1", "/api/passes", "/nothing"]


@pytest.mark.parametrize("path", [*PATHS, "/api/run", "/api/stop"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "tøken"])
def test_every_request_needs_the_token(client: Client, path: str, token: str | None):
    headers = {} if token is None else {"X-Relay-Token": token}
    body: object = {} if path in ("/api/run", "/api/stop") else None
    status, answer = client.ask(path, body, headers=headers)
    assert status == 403 and "token" in str(answer["error"])


def test_the_token_in_the_address(client: Client):
    assert client.ask(f"/api/state?token={TOKEN}", headers={})[0] == 200
    assert client.ask(f"/api/state?token={TOKEN}&token={TOKEN}", headers={})[0] == 403
    assert client.ask("/api/state?token=wrong", headers={})[0] == 403
    assert client.ask(f"/api/state?token={TOKEN}", headers={"X-Relay-Token": "wrong"})[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_another_name_of_the_host_is_refused(client: Client, path: str):
    names = [
        "evil.example",
        f"evil.example:{client.port}",
        "127.0.0.1",
        "localhost:1",
        f"127.0.0.1:{client.port}.evil",
        "",
    ]
    for host in names:
        status, answer = client.ask(path, host=host)
        assert status == 403 and "another name" in str(answer["error"]), host
    assert client.ask("/api/state", host=f"localhost:{client.port}")[0] == 200


def test_it_listens_on_this_machine_only():
    with listen(0) as socket:
        host, port = socket.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(InvalidArgument, match=rf"--port {port}: cannot be had: Address already in use"):
            socket.listen()
            listen(port)
    with pytest.raises(InvalidArgument, match="--port 99999: cannot be had"):
        listen(99999)


def test_the_parts_of_a_record(client: Client):
    status, overview = client.ask("/api/overview?run=1")
    assert status == 200 and [step["name"] for step in rows(overview, "steps")] == ["cse", "dce"]
    assert overview["pipeline"] == "cse,dce" and [held["ops"] for held in rows(overview, "snapshots")] == [6, 5]
    assert client.ask("/api/snapshot/1?run=1")[1]["text"] != client.ask("/api/snapshot/0?run=1")[1]["text"]
    assert client.ask("/api/changes/0?run=1")[1]["hunks"]
    nodes = rows(client.ask("/api/graph/1/0?run=1")[1], "nodes")
    assert [node["name"] for node in nodes] == ["x", "relay.negative", "relay.add", "return"]


@pytest.mark.parametrize(
    "path",
    ["/api/snapshot/7?run=1", "/api/changes/7?run=1", "/api/graph/0/7?run=1", "/api/snapshot/0", "/api/overview?run=2",
     "/api/overview?run=x", "/api/overview?run=%C2%B2", "/api/overview?run=" + "1" * 5000, "/api/snapshot/-1?run=1",
     "/api/snapshot/" + "1" * 5000 + "?run=1"],
)  # fmt: skip
def test_what_is_not_there_is_an_error(client: Client, path: str):
    status, answer = client.ask(path)
    assert status == 400 and answer["error"]


def test_what_no_one_serves(client: Client):
    assert client.raw("/nothing")[0] == 404 and client.raw("/api/run")[0] == 405


def test_passes_and_default(client: Client):
    passes = rows(client.ask("/api/passes")[1], "passes")
    names = [row["name"] for row in passes]
    assert names.index("legalize") < names.index("cse") and "canonicalize" in names
    assert any("max_bytes: int" in str(row["options"]) for row in passes)
    assert ",cse," in str(client.ask("/api/default?level=2")[1]["pipeline"])
    assert ",cse," not in str(client.ask("/api/default?level=0")[1]["pipeline"])
    assert client.ask("/api/default?level=9")[0] == 400
    assert client.ask("/api/default?level=" + "2" * 5000)[0] == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"pipeline": "nosuch"}, "there is no pass 'nosuch'"),
        ({"pipeline": EVIL}, "pipeline"),
        ({"pipeline": "cse", "level": 9}, "opt_level=9"),
        ({"pipeline": 1}, "another type"),
        ({"pipeline": "cse", "verify": "yes"}, "another type"),
        ([], "no JSON object"),
        (b"{", "no JSON object"),
        (b"\xff", "no JSON object"),
        (b"[" * 60_000, "no JSON object"),
        ({"pipeline": "\ud800"}, "no Unicode text"),
        ({"pipeline": "n" * 50_000}, "there is no pass"),
    ],
)
def test_a_bad_run_is_refused(client: Client, body: object, words: str):
    status, answer = client.ask("/api/run", body)
    assert status == 400 and words in str(answer["error"])
    assert client.ask("/api/state")[1]["run"] == 1


def test_a_request_that_is_too_large_is_refused(client: Client):
    assert client.ask("/api/run", b" " * (LARGEST_REQUEST + 1))[0] == 413
    assert client.ask("/api/state")[0] == 200


def test_runs_again():
    with served(adds(), "dce") as client:
        run = client.finished()
        assert client.ask("/api/run", {"pipeline": "cse", "level": None, "verify": True})[0] == 200
        assert client.finished() == run + 1
        assert rows(client.ask(f"/api/overview?run={run + 1}")[1], "snapshots")[-1]["ops"] == 5
        assert client.ask(f"/api/overview?run={run}")[0] == 400


def test_an_error_of_a_pass_ends_the_run_and_not_the_server():
    with served(adds(), 'bufferize,mlir-opt{executable="/nowhere"}') as client:
        run = client.finished()
        overview = client.ask(f"/api/overview?run={run}")[1]
        assert overview["error"] and "failed" in str(overview["steps"])
        assert client.ask("/api/run", {"pipeline": "cse"})[0] == 200
        assert client.ask(f"/api/overview?run={client.finished()}")[1]["error"] == ""


@contextmanager
def held() -> Generator[tuple[threading.Event, threading.Event]]:
    """A pass `held`: when it has begun, and until when it waits."""
    begun, go = threading.Event(), threading.Event()

    @module_pass(opt_level=0, name="held")
    def wait(mod: IRModule, ctx: PassContext) -> IRModule:
        """Waits."""
        begun.set()
        assert go.wait(30)
        return mod

    try:
        yield begun, go
    finally:
        go.set()
        del registry.MADE[wait.name]


def test_a_run_blocks_nothing_and_a_second_one_is_refused():
    with held() as (begun, go), served(adds(), "cse") as client:
        run = client.finished()
        assert client.ask("/api/run", {"pipeline": "cse,held,dce"})[0] == 200 and begun.wait(30)
        state = client.ask("/api/state")[1]
        assert (state["running"], state["doing"], state["done"], state["passes"]) == (True, "held", 1, 3)
        status, answer = client.ask("/api/run", {"pipeline": "cse"})
        assert status == 409 and "another run is going on" in str(answer["error"])
        assert client.raw("/")[0] == 200 and client.ask(f"/api/snapshot/0?run={run}")[0] == 200
        go.set()
        assert client.finished() == run + 1


def test_stop():
    with held() as (begun, go), served(adds(), "held,cse") as client:
        assert begun.wait(30) and client.ask("/api/stop", {})[0] == 200
        go.set()
        overview = client.ask(f"/api/overview?run={client.finished()}")[1]
        assert overview["error"] == "before cse: stopped"
        assert client.ask("/api/stop", {})[0] == 200


def test_two_at_the_same_moment_are_one():
    with held() as (_, go), served(adds(), "cse") as client:
        client.finished()
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda: statuses.append(client.ask("/api/run", {"pipeline": "held"})[0]))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200, 409, 409, 409]
        go.set()
        client.finished()
