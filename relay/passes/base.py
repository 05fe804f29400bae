"""`Pass`: an xDSL `ModulePass` that can be called, and declares what it requires and what it preserves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay.passes.info import DescribedPass, M

if TYPE_CHECKING:
    from relay.passes.context import PassContext


class Pass(DescribedPass):
    """The base class of relay's passes: subclasses are frozen dataclasses whose fields are the pass's options.

    `mod = SomePass()(mod)` returns a new module and leaves the old as it is; a function gives a new function. The pass
    is a plain `ModulePass` too, and runs unwrapped in xDSL's `PassPipeline`.
    """

    def __call__(self, mod: M, ctx: PassContext | None = None) -> M:
        """Run on a clone, under `ctx` (default: the current context)."""
        from relay.passes.runner import call

        return call([self], mod, ctx, explicit=True)
