"""Modules, and what is asked of them, that the tests of the view share."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Thread
from time import monotonic, sleep

from xdsl.utils.hints import isa

from relay.module import IRModule

Json = dict[str, object]
TOKEN = "the-token-of-the-tests"
NOTEBOOK = "_repr_html_"

ADDS = """
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %a = relay.negative %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %b = relay.negative %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %c = relay.add %a, %b : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %c : tensor<1x8xf32>
}
"""
"""`cse` takes one of its six ops away."""

EVIL = '<script>window.pwned=1</script><img src=x onerror="window.pwned=1">\'"&amp;</pre></title>'
"""What a name in a model may be."""


def adds() -> IRModule:
    """A module that `cse` makes smaller."""
    return IRModule.parse(ADDS)


def evil() -> IRModule:
    """A module with `EVIL` wherever a module has a name that its text may spell."""
    quoted = EVIL.replace('"', "\\22").replace("'", "\\27")
    return IRModule.parse(
        f"""
func.func @"{quoted}"(%x: tensor<2xf32>) -> tensor<2xf32> attributes {{compiler = "{quoted}"}} {{
  %w = relay.constant {{label = "{quoted}"}} dense<[1.0, 2.0]> : tensor<2xf32> loc("{quoted}")
  %a = relay.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("{quoted}")
  func.return %a : tensor<2xf32>
}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %r = func.call @"{quoted}"(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("{quoted}")
  func.return %r : tensor<2xf32>
}}
"""
    )


def unpacked(report: str) -> Json:
    """The record that a report holds."""
    found = re.search(r'<script type="text/plain" id="report">([^<]*)</script>', report)
    assert found is not None
    content: object = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert isa(content, Json)
    return content


def rows(answer: Json, key: str) -> list[Json]:
    """A list of objects that an answer holds."""
    found = answer[key]
    assert isa(found, list[Json])
    return found


def in_a_notebook(shown: object) -> str:
    """The HTML that a notebook shows of an object."""
    html: object = getattr(shown, NOTEBOOK)()
    assert isinstance(html, str)
    return html


@dataclass(frozen=True)
class Client:
    """Asks a server, as the page does."""

    port: int

    def ask(
        self, path: str, body: object = None, *, host: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Json]:
        """The status, and the JSON that was answered."""
        status, text, _ = self.raw(path, body, host=host, headers=headers)
        answer: object = json.loads(text)
        assert isa(answer, Json)
        return status, answer

    def raw(
        self, path: str, body: object = None, *, host: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str, dict[str, str]]:
        """The status, the text and the headers that were answered; `body` (bytes as they are) makes it a POST."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"X-Relay-Token": TOKEN} if headers is None else headers
        connection.putrequest("GET" if data is None else "POST", path, skip_host=True)
        connection.putheader("Host", f"127.0.0.1:{self.port}" if host is None else host)
        for name, value in ({**sent, "Content-Length": str(len(data))} if data is not None else sent).items():
            connection.putheader(name, value)
        connection.endheaders(data)
        response = connection.getresponse()
        found = response.status, response.read().decode(), {k.lower(): v for k, v in response.getheaders()}
        connection.close()
        return found

    def finished(self) -> int:
        """The number of the last run, when it has ended."""
        end = monotonic() + 60
        while monotonic() < end:
            _, state = self.ask("/api/state")
            if not state["running"]:
                assert isinstance(state["run"], int)
                return state["run"]
            sleep(0.02)
        raise AssertionError("the run does not end")


@contextmanager
def served(mod: IRModule, pipeline: str | None = None, name: str = "module") -> Generator[Client]:
    """A server of a module, in a thread; its first run has begun."""
    from relay.viewer import server
    from relay.viewer.recording import explained
    from relay.viewer.session import Session

    session = Session(mod, name, "llvm", explained)
    session.start(pipeline, None, False)
    with server.listen(0) as socket:
        port: int = socket.getsockname()[1]
        running = server.make_server(server.application(session, TOKEN, port))
        thread = Thread(target=lambda: running.run(sockets=[socket]), daemon=True)
        thread.start()
        while not running.started:
            sleep(0.01)
        try:
            yield Client(port)
        finally:
            running.should_exit = True
            thread.join(20)
    assert not thread.is_alive()
