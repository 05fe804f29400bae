"""The page of `relay-explore` as one HTML file, with its style and script, and, for a report, with the record.

The file loads nothing and allows no script but its own (Content-Security-Policy with hashes). Text of a model is only
inserted escaped (the title) or compressed (the record), and the script inserts it into the page only as text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from functools import cache
from importlib.resources import files

from relay.viewer import data
from relay.viewer.recording import Record

SCRIPTS = ("dom", "source", "code", "changes", "text", "graph", "pipeline", "main")
"""The names of the files that form the page's script, in order."""


@cache
def asset(name: str) -> str:
    """The text of one of the page's files."""
    return (files("relay.viewer") / "assets" / name).read_text(encoding="utf-8")


def script() -> str:
    """The page's script."""
    return "".join(asset(f"{name}.js") for name in SCRIPTS)


def policy(connect: str) -> str:
    """The Content-Security-Policy: the page may run its own script and style, and connect to `connect`."""

    def own(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    rules = {
        "default-src": "'none'",
        "script-src": own(script()),
        "style-src": own(asset("page.css")),
        "img-src": "data:",
        "connect-src": connect,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _page(name: str, mode: str, connect: str, held: str) -> str:
    fields = {
        "{policy}": policy(connect),
        "{title}": html.escape(f"{name} · relay explore"),
        "{style}": asset("page.css"),
        "{mode}": mode,
        "{data}": held,
        "{script}": script(),
    }
    text = asset("page.html")
    pieces: list[str] = []
    for field, value in fields.items():
        before, _, text = text.partition(field)
        pieces += before, value
    return "".join([*pieces, text])


def live(name: str) -> str:
    """The page that the server serves; its script requests all data from the server."""
    return _page(name, "live", "'self'", "")


def report(record: Record) -> str:
    """The page with a record in it, which can be viewed without a server."""
    content = {"overview": data.overview(record), "parts": dict(data.parts(record))}
    packed = gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0)
    held = f'<script type="text/plain" id="report">{base64.b64encode(packed).decode()}</script>'
    return _page(record.name, "static", "'none'", held)
