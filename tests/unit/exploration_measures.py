"""What the tests of `explore` measure, importable by other processes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes import Pass
from relay.runtime import Executable


def arena(executable: Executable) -> float:
    """Bytes of intermediate results."""
    return executable.graph["arena_bytes"]


def adds(executable: Executable) -> float:
    """Additions and subtractions of floats in the code."""
    text = executable.get_source("mlir")
    return text.count("arith.addf") + text.count("arith.subf")


def process(executable: Executable) -> float:
    """Which process has measured."""
    return os.getpid()


def end(executable: Executable) -> float:
    """Ends the process, as a crash would."""
    os._exit(1)


@dataclass(frozen=True)
class Tighter(Pass):
    """Lowers every upper bound of a clip by one: wrong."""

    name: ClassVar[str] = "tighter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.name == "relay.clip":
                inner.properties["a_max"] = inner.properties["a_min"]
