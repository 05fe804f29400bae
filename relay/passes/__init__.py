"""The pass machinery: `Pass`, a callable xDSL `ModulePass`, and `Sequential`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from relay.dialects.context import make_context
from relay.module import IRModule


class Pass(ModulePass, ABC):
    """An xDSL pass that can also be called: `mod = SomePass()(mod)` returns a new module; the old stays as it is."""

    @overload
    def __call__(self, mod: IRModule) -> IRModule: ...
    @overload
    def __call__(self, mod: ModuleOp) -> ModuleOp: ...
    def __call__(self, mod: IRModule | ModuleOp) -> IRModule | ModuleOp:
        op = mod.op if isinstance(mod, IRModule) else mod
        clone = op.clone()
        self.apply(make_context(), clone)
        return IRModule(clone) if isinstance(mod, IRModule) else clone


class Sequential:
    """Passes in order, callable as one: clones the module once and runs in place."""

    def __init__(self, passes: Sequence[ModulePass]):
        self.passes = list(passes)

    def apply(self, mod: IRModule | ModuleOp) -> None:
        """Run in place."""
        PassPipeline(tuple(self.passes)).apply(make_context(), mod.op if isinstance(mod, IRModule) else mod)

    @overload
    def __call__(self, mod: IRModule) -> IRModule: ...
    @overload
    def __call__(self, mod: ModuleOp) -> ModuleOp: ...
    def __call__(self, mod: IRModule | ModuleOp) -> IRModule | ModuleOp:
        op = (mod.op if isinstance(mod, IRModule) else mod).clone()
        self.apply(op)
        return IRModule(op) if isinstance(mod, IRModule) else op
