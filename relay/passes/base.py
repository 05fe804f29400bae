"""`Pass`: an xDSL `ModulePass` that can be called, and says what it needs and what it leaves."""

from __future__ import annotations

from typing import overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from relay.module import IRModule
from relay.passes.info import DescribedPass


class Pass(DescribedPass):
    """A pass of ours: subclasses are frozen dataclasses whose fields are the pass's options.

    `mod = SomePass()(mod)` returns a new module and leaves the old as it is; a function gives a new function. The pass
    is a plain `ModulePass` too, and runs unwrapped in xDSL's `PassPipeline`.
    """

    @overload
    def __call__(self, mod: IRModule) -> IRModule: ...
    @overload
    def __call__(self, mod: ModuleOp) -> ModuleOp: ...
    @overload
    def __call__(self, mod: FuncOp) -> FuncOp: ...
    def __call__(self, mod: IRModule | ModuleOp | FuncOp) -> IRModule | ModuleOp | FuncOp:
        from relay.passes.runner import call

        return call([self], mod, explicit=True)
