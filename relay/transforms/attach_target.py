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
    """Attach to the module the target for which it is compiled.

    Later passes read the target from the module. `target` is written as for `build`: `llvm` (this machine), `TRIPLE
    -mcpu=NAME -mattr=+A,-B`, `cuda -arch=sm_90`, `opencl`, each with `-costs=NAME=NUMBER,...` for measured costs.
    Without `target`, the module keeps the target that it has; if it has none, `build` attaches the target of the build,
    and any other caller attaches this machine. `build` refuses a module whose target has another triple than the
    build's target, or features that the build's target lacks. The attribute is `relay.target = {kind = "cpu", triple =
    "...", cpu = "...", features = "+a,+b"}`, with the measured `costs`.
    """

    name: ClassVar[str] = "attach-target"
    invalidates = ()
    why = "says on the module what it is compiled for"
    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target or ATTRIBUTE not in op.attributes:
            attach(op, resolve(self.target or "llvm"))
