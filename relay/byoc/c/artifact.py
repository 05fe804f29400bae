"""The artifact of compiler `c`: one line of JSON that describes a shared object, followed by the shared object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from relay.errors import Malformed

MAGIC = b"relay-c 2\n"


MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}
"""The names of processors by ELF machine number (`e_machine`). Source: the registry of the System V gABI."""


def machine_of(code: bytes) -> str:
    """The name of the processor that an ELF file is for."""
    number = int.from_bytes(code[18:20], "little")
    return MACHINES.get(number, f"ELF machine {number}") if code[:4] == b"\x7fELF" else "no ELF file"


def machine_named(architecture: str) -> str:
    """Return the name in `MACHINES`, such as "arm", of the processor for an architecture, or the architecture itself if
    no name fits. `architecture` is the first word of a target triple, such as "thumbv7em"."""
    known = sorted(MACHINES.values(), key=len, reverse=True)
    architecture = "arm" if architecture.startswith("thumb") else architecture
    return next((name for name in known if architecture.startswith(name)), architecture)


@dataclass(frozen=True, slots=True)
class Header:
    """The description of a shared object that the loader reads."""

    symbol: str
    arena: int
    """The size in bytes of the arena that the function works in."""
    constants: list[str]
    """The names of the constants that the caller passes to the function, in order."""
    features: list[str]
    """The CPU features that the code may use beyond the baseline of its architecture."""


def write(header: Header, code: bytes) -> bytes:
    """The bytes of the artifact."""
    return MAGIC + json.dumps(asdict(header) | {"sha256": sha256(code).hexdigest()}).encode() + b"\n" + code


def read(artifact: bytes, where: str) -> tuple[Header, bytes]:
    """Parse an artifact into its header and the shared object. Raises Malformed."""
    line, _, code = artifact.removeprefix(MAGIC).partition(b"\n")
    if not artifact.startswith(MAGIC):
        raise Malformed(where, "is no artifact of compiler c", "build the module again")
    try:
        fields = json.loads(line)
        digest, header = fields.pop("sha256", None), Header(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise Malformed(where, f"is damaged: {error}") from None
    # the system's loader would map damaged code, and the process would crash at its first use
    if digest != sha256(code).hexdigest():
        raise Malformed(where, "is damaged: the shared object is not what was compiled", "build the module again")
    return header, code
