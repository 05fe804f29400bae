"""The pass `attach-target`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.passes import Pass
from relay.target import ATTRIBUTE, attach, resolve


@dataclass(frozen=True)
class AttachTarget(Pass):
    """Say on the module which machine it is compiled for. The passes after this one read it there.

    `target` is what `build` takes: `llvm` (this machine), `TRIPLE -mcpu=NAME -mattr=+A,-B`, `cuda -arch=sm_90`,
    `opencl`, each with `-costs=NAME=NUMBER,...` where numbers were measured. Without it, the module keeps the target
    that it has; inside `build`, it gets that of the build, else this machine. `build` refuses a module whose target is
    of another triple, or has features that the build's does not. The attribute is
    `relay.target = {kind = "cpu", triple = "...", cpu = "...", features = "+a,+b"}`, with the measured `costs`.
    """

    name: ClassVar[str] = "attach-target"
    invalidates = ()
    why = "says on the module what it is compiled for"
    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target or ATTRIBUTE not in op.attributes:
            attach(op, resolve(self.target or "llvm"))
