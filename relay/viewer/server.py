"""The server of `relay-explore`'s page. It listens on 127.0.0.1, requires a token, and serves one module."""

from __future__ import annotations

import dataclasses
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from xdsl.utils.hints import isa

from relay.errors import InvalidArgument, Malformed, RelayError
from relay.passes.documentation import documented
from relay.passes.registry import factories
from relay.viewer import data, page
from relay.viewer.recording import Record, default_text
from relay.viewer.session import Busy, Session

LARGEST_REQUEST = 1 << 16
"""The largest size of a request, in bytes."""
LONGEST_NUMBER = 10
"""Numbers in an address must have fewer digits than this."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Passes on requests that name this server as their host and contain the token; refuses all others.

    Checking the host keeps out pages of other sites whose name was made to resolve to this machine (DNS rebinding); the
    token keeps out other users and programs on this machine. The token is in the header `X-Relay-Token`, or is the
    parameter `token` of the address.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]):
        self.app, self.token, self.hosts = app, token.encode(), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        refusal = self.refusal(Headers(scope=scope), scope["query_string"])
        if refusal:
            await JSONResponse({"error": refusal}, 403)(scope, receive, send_safely)
        else:
            await self.app(scope, receive, send_safely)

    def refusal(self, headers: Headers, query: bytes) -> str:
        """The reason why a request is refused; "" if it is not."""
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return "this server has another name; open the address that relay-explore has printed"
        given = headers.getlist("x-relay-token") or parse_qs(query.decode("latin-1")).get("token", [])
        if len(given) != 1 or not secrets.compare_digest(given[0].encode("utf-8", "surrogatepass"), self.token):
            return "the token is missing or wrong; open the address that relay-explore has printed"
        return ""


def application(session: Session, token: str, port: int) -> ASGIApp:
    """The server as an ASGI application; `port` is the port at which it will be served."""

    def answer(make: Callable[[Request], object]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that calls `make` in a thread and returns its result as JSON; a RelayError becomes an error
        response."""

        async def endpoint(request: Request) -> Response:
            try:
                return JSONResponse(await run_in_threadpool(make, request))
            except Busy as error:
                return JSONResponse({"error": str(error)}, 409)
            except RelayError as error:
                return JSONResponse({"error": session.explain(error, "")}, 400)

        return endpoint

    async def index(_: Request) -> Response:
        return HTMLResponse(page.live(session.name))

    async def run(request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_REQUEST:
                return JSONResponse({"error": f"the request has over {LARGEST_REQUEST} bytes"}, 413)
        return await answer(lambda _: start(session, body))(request)

    def stop(_: Request) -> object:
        session.stop()
        return {}

    def default(request: Request) -> object:
        return {"pipeline": default_text(session.target, number(request.query_params.get("level", "")))}

    def of_record(make: Callable[[Record, list[int]], object]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for a part of the last record; the parameter `run` must be its number, and numbers in the path
        select the part."""

        def part(request: Request) -> object:
            record = session.record(number(request.query_params.get("run", "")) or 0)
            at = [index for text in request.path_params.values() if (index := number(text)) is not None]
            try:
                if len(at) < len(request.path_params):
                    raise IndexError
                return make(record, at)
            except IndexError:
                raise InvalidArgument(request.url.path, "is no part of the record") from None

        return answer(part)

    routes = [
        Route("/", index),
        Route("/api/state", answer(lambda _: dataclasses.asdict(session.state()))),
        Route("/api/passes", answer(lambda _: {"passes": passes()})),
        Route("/api/default", answer(default)),
        Route("/api/run", run, methods=["POST"]),
        Route("/api/stop", answer(stop), methods=["POST"]),
        Route("/api/overview", of_record(lambda record, _: data.overview(record))),
        Route("/api/snapshot/{number}", of_record(lambda record, at: data.snapshot(record, *at))),
        Route("/api/changes/{number}", of_record(lambda record, at: data.changes(record, *at))),
        Route("/api/graph/{number}/{part}", of_record(lambda record, at: data.graph(record, *at))),
    ]
    hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
    return Guard(Starlette(routes=routes), token, hosts)


def passes() -> list[dict[str, object]]:
    """The passes that a user may insert in a pipeline: this project's first, then those of plug-ins."""
    found = sorted(documented(factories()), key=lambda row: not row.ours)
    return [dataclasses.asdict(row) for row in found]


def start(session: Session, body: bytes) -> dict[str, object]:
    """Start the run that a request's JSON body describes. Raises RelayError if the body is invalid."""
    try:
        asked: object = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isa(asked, dict[str, object]):
        raise Malformed("run", "is no JSON object")
    pipeline, level, verify = asked.get("pipeline"), asked.get("level"), asked.get("verify", False)
    if (
        not isinstance(pipeline, str | None)
        or not isinstance(verify, bool)
        or not (level is None or type(level) is int)
    ):
        raise Malformed("run", "has a pipeline, a level or a verify of another type")
    if pipeline is not None and any("\ud800" <= character <= "\udfff" for character in pipeline):
        raise Malformed("run", "has a pipeline that is no Unicode text")
    session.start(pipeline, level, verify)
    return {}


def number(text: str) -> int | None:
    """Parse a number in a request's URL, such as the index of a pass; None if the text is no number or too long."""
    return int(text) if text.isdecimal() and len(text) < LONGEST_NUMBER else None


def listen(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1; port 0 chooses a free port. Raises InvalidArgument if the port is not
    available."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen()
    except (OSError, OverflowError) as error:
        found.close()
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidArgument(f"--port {port}", f"cannot be had: {said}", "leave it out to take any free one") from None
    return found


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A uvicorn server without log output: `run(sockets=[listen(port)])` serves until Ctrl-C."""
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", ws="none", server_header=False)
    return uvicorn.Server(config)
