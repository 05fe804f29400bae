"""The bytes that `compile` gives and `load` takes: header, program, constants."""

from __future__ import annotations

import struct

from relay.byoc.systolic.isa import Instruction, decode

MAGIC = b"SYSTOLIC"
HEADER = struct.Struct("<8sIIQQQ")
VERSION = 1


def pack(code: list[Instruction], constants: bytes, workspace: int) -> bytes:
    """Header, instructions, constants."""
    text = b"".join(step.encode() for step in code)
    return HEADER.pack(MAGIC, VERSION, 0, len(text), len(constants), workspace) + text + constants


def unpack(data: bytes) -> tuple[list[Instruction], bytes, int]:
    """The program, its constants, the bytes of workspace it needs. Raises ValueError for anything else."""
    if len(data) < HEADER.size:
        raise ValueError(f"{len(data)} bytes are no program")
    magic, version, _, code, constants, workspace = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise ValueError(f"is no program of version {VERSION}")
    if HEADER.size + code + constants != len(data) or workspace > 1 << 32:
        raise ValueError("sizes and bytes do not agree")
    return list(decode(data[HEADER.size : HEADER.size + code])), data[HEADER.size + code :], workspace
