"""Modules and passes that the tests of the pass machinery share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from relay.module import IRModule
from relay.passes import Pass, PassInfo, PassInstrument

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
DATA = ROOT / "examples" / "digits" / "digits_test.npz"
SMALL = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = relay.constant dense<1.0> : tensor<4xf32>
  %d = relay.add %c, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %r = relay.add %y, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
NO_PATTERNS = ()
"""What an entry point of `relay.legalize` names that takes nothing."""


def small() -> IRModule:
    """Four ops, one of which is constant."""
    return IRModule.parse(SMALL)


def image() -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """One digit."""
    return np.load(DATA)["int8_images"][:1]


@dataclass(frozen=True)
class Mark(Pass):
    """Appends its letter to the module's attribute `trace`."""

    name: ClassVar[str] = "mark"
    letter: str = "m"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["trace"] = StringAttr(trace(op) + self.letter)


def trace(mod: IRModule | ModuleOp) -> str:
    """The letters of the passes that have run."""
    attr = (mod.op if isinstance(mod, IRModule) else mod).attributes.get("trace")
    return attr.data if isinstance(attr, StringAttr) else ""


class Log(PassInstrument):
    """Writes down what it is told."""

    def __init__(self, tag: str = "", lines: list[str] | None = None):
        self.tag = tag
        self.lines: list[str] = [] if lines is None else lines

    def note(self, text: str) -> None:
        self.lines.append(f"{self.tag}{text}")

    def enter_pass_ctx(self) -> None:
        self.note("enter")

    def exit_pass_ctx(self) -> None:
        self.note("exit")

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.note(f"before {info.name}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.note(f"after {info.name}")

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        self.note(f"failed {info.name}")
