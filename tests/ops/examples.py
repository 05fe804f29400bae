"""The examples of the ops: `KIND.mlir` beside this file, in the form that relay/tools/examples.py says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdsl.dialects.func import FuncOp

from relay.tools import examples

__all__ = ["FILES", "functions", "invalid", "runnable", "valid"]

FILES = sorted(Path(__file__).parent.glob("*.mlir"))


def valid(path: Path) -> str:
    """The examples of a file that are valid, all in one module."""
    return examples.valid(path.read_text())


def invalid(path: Path) -> list[tuple[str, str]]:
    """The others: what the error says, and the text."""
    return examples.invalid(path.read_text(), path.name)


@cache
def functions(path: Path) -> list[FuncOp]:
    """The valid examples, which every test reads, and none changes."""
    return examples.functions(path.read_text(), path.name)


@cache
def runnable(function: FuncOp) -> FuncOp | None:
    """A copy of one of them that can be run, or None; nobody changes it either."""
    return examples.runnable(function)
