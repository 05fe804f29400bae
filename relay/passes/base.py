"""`Pass`: an xDSL `ModulePass` that can be called, and declares what it requires and what it preserves."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from relay.module import IRModule
from relay.passes.info import DescribedPass

if TYPE_CHECKING:
    from relay.passes.context import PassContext


class Pass(DescribedPass):
    """The base class of relay's passes: subclasses are frozen dataclasses whose fields are the pass's options.

    `mod = SomePass()(mod)` returns a new module and leaves the old as it is; a function gives a new function. The pass
    is a plain `ModulePass` too, and runs unwrapped in xDSL's `PassPipeline`.
    """

    @overload
    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule: ...
    @overload
    def __call__(self, mod: ModuleOp, ctx: PassContext | None = None) -> ModuleOp: ...
    @overload
    def __call__(self, mod: FuncOp, ctx: PassContext | None = None) -> FuncOp: ...
    def __call__(
        self, mod: IRModule | ModuleOp | FuncOp, ctx: PassContext | None = None
    ) -> IRModule | ModuleOp | FuncOp:
        """Run on a clone, under `ctx` (default: the current context)."""
        from relay.passes.runner import call

        return call([self], mod, ctx, explicit=True)
