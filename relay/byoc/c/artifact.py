"""The artifact of compiler `c`: one line of JSON about a shared object, then the shared object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from relay.errors import Malformed

MAGIC = b"relay-c 2\n"


MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}
"""Processors by the number that ELF has for them: `e_machine`. Source: the gABI's registry."""


def machine_of(code: bytes) -> str:
    """The processor that an ELF file is for."""
    number = int.from_bytes(code[18:20], "little")
    return MACHINES.get(number, f"ELF machine {number}") if code[:4] == b"\x7fELF" else "no ELF file"


def machine_named(architecture: str) -> str:
    """The same for the first part of a triple."""
    known = sorted(MACHINES.values(), key=len, reverse=True)
    architecture = "arm" if architecture.startswith("thumb") else architecture
    return next((name for name in known if architecture.startswith(name)), architecture)


@dataclass(frozen=True, slots=True)
class Header:
    """What the loader needs to know of a shared object."""

    symbol: str
    arena: int
    """Bytes of the arena that the function works in."""
    constants: list[str]
    """The names of the constants that it gets from outside, in order."""
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
