"""The artifact of compiler `c`: one line of JSON about a shared object, then the shared object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from relay.errors import Malformed

MAGIC = b"relay-c 1\n"


@dataclass(frozen=True, slots=True)
class Header:
    """What the loader needs to know of a shared object."""

    symbol: str
    arena: int
    """Bytes of the arena that the function works in."""
    constants: list[str]
    """The names of the constants that it gets from outside, in order."""
    machine: str
    """As `platform.machine()` says it."""
    features: list[str]
    """The CPU features it may use beyond those of every such machine."""


def write(header: Header, code: bytes) -> bytes:
    """The artifact."""
    return MAGIC + json.dumps(asdict(header) | {"sha256": sha256(code).hexdigest()}).encode() + b"\n" + code


def read(artifact: bytes, where: str) -> tuple[Header, bytes]:
    """The header and the shared object. Raises Malformed."""
    line, _, code = artifact.removeprefix(MAGIC).partition(b"\n")
    if not artifact.startswith(MAGIC):
        raise Malformed(where, "is no artifact of compiler c", "build the module again")
    try:
        fields = json.loads(line)
        digest, header = fields.pop("sha256", None), Header(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise Malformed(where, f"is damaged: {error}") from None
    if digest != sha256(code).hexdigest():  # the system's loader would map it, and the process die at its first use
        raise Malformed(where, "is damaged: the shared object is not what was compiled", "build the module again")
    return header, code
