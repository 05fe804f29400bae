"""Runs passes on a module: skips those above the optimization level, runs others first that they require or the module
requests, calls instruments, verifies the module, and discards analyses that a pass invalidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from relay.arguments import instance
from relay.dialects.context import make_context
from relay.errors import InvalidArgument, RelayError
from relay.module import IRModule
from relay.passes import analyses, registry, requests
from relay.passes.checking import Verifier
from relay.passes.config import check_options, override
from relay.passes.context import PassContext
from relay.passes.info import DescribedPass, M, PassGroup, PassInfo, as_module, info_of, names_of
from relay.passes.instruments import PassInstrument
from relay.passes.requirements import Providers, Requirements

MOST_REQUESTS = 100
"""The maximum number of requested passes that run before, or after, one pass."""


@cache
def _prepared() -> Context:
    return make_context()


def fresh_context() -> Context:
    """A context with relay's dialects, as `make_context` makes it, cloned from one that is kept: each call but the
    first takes a fiftieth of the time of `make_context`."""
    return _prepared().clone()


class Runner:
    """Runs passes on one module, in place. `options` maps names `pass.option` to values: a pass gets these for options
    that have their default values, and keeps the other values that it was created with."""

    def __init__(
        self,
        op: ModuleOp,
        ctx: Context | None = None,
        *,
        providers: Providers | None = None,
        options: Mapping[str, object] | None = None,
    ):
        self.mod = IRModule(op)
        self.xdsl = ctx or fresh_context()
        self.ctx = PassContext.current()
        self.options = options or {}
        self.verifier = Verifier(self.mod, self.ctx.config.get("relay.verify") is not False)
        self.requirements = Requirements(self.ctx, self._looks, providers)
        self.served: dict[str, str] = {}
        """The passes that ran because others required them, each with the first pass that did."""

    def _looks(self, cls: type[DescribedPass]) -> bool:
        return cls.holds(self.mod.op)

    def run(self, items: PassGroup | Sequence[ModulePass | PassGroup], *, explicit: bool = False) -> None:
        """Run a pipeline or items; the level of the outermost pipeline is ignored. With `explicit`, the items run
        whatever their levels."""
        if self.ctx.is_default and not analyses.CACHES.stack:
            self.ctx.diagnostics.diagnostics.clear()
        analyses.CACHES.stack.append((self.mod.op, {}))
        try:
            if isinstance(items, PassGroup):
                self.requirements.satisfy(items.info, self.required)
            for item in items.members if isinstance(items, PassGroup) else items:
                self.item(item, explicit)
        finally:
            analyses.CACHES.stack.pop()

    def reach(self, goal: str, properties: Sequence[str]) -> None:
        """Run the passes that are needed for these properties to hold; `goal` names, in error messages, the step that
        requires them."""
        self.requirements.satisfy(PassInfo(goal, 0, tuple(properties), (), (), None), self.required)

    def item(self, item: ModulePass | PassGroup, explicit: bool = False) -> None:
        """Run a pass or a nested pipeline, if it is enabled and no instrument refuses it."""
        if isinstance(item, ModulePass):
            self.requested("before", item)
            self.step(item, explicit)
            self.requested("after", item)
            return
        info = item.info
        if self.ctx.enabled(info) and self.wanted(info):
            self.requirements.satisfy(info, self.required)
            with Told(self.mod, info, self.ctx.instruments):
                for inner in item.members:
                    self.item(inner)

    def step(self, step: ModulePass, explicit: bool = False) -> None:
        """Run one pass of the pipeline, after the passes that it requires."""
        info = info_of(step)
        enabled = info.name not in self.ctx.disabled_pass if explicit else self.ctx.enabled(info)
        if enabled and self.wanted(info):
            self.requirements.satisfy(info, self.required)
            try:
                self.apply(step, info)
            except RelayError as error:
                if (later := self.served.get(info.name)) is None:
                    raise
                what = f"ran already, since {later} requires it, and fails after that: {error}"
                raise type(error)(f"pass {info.name}", what, f"put it before {later}") from error

    def wanted(self, info: PassInfo) -> bool:
        """Whether every instrument lets the pass run; all of them are asked."""
        return all([instrument.should_run(self.mod, info) for instrument in self.ctx.instruments])

    def required(self, step: ModulePass, needed_by: str) -> None:
        """Run a pass that the pass `needed_by` requires, whatever its level."""
        self.apply(step, info_of(step))
        self.served.setdefault(step.name, needed_by)

    def apply(self, step: ModulePass, info: PassInfo) -> None:
        """Run a pass and record it. The module is verified before it is lowered below the `relay` dialect, and after
        passes of other packages."""
        step = override(step, {**self.options, **self.ctx.config})
        check_options(step)
        with Told(self.mod, info, self.ctx.instruments):
            self.verifier.before(step, info)
            try:
                step.apply(self.xdsl, self.mod.op)
            except BaseException as error:
                self.ctx.diagnostics.move_errors(error)
                if isinstance(error, Exception) and not isinstance(error, RelayError):
                    error.add_note(f"in pass {info.name}")
                raise
            self.ctx.diagnostics.raise_errors(f"pass {info.name}")
            self.verifier.after(info)
        self.requirements.ran(info)
        analyses.forget(self.mod.op, step.preserves if isinstance(step, DescribedPass) else ())

    def requested(self, when: str, step: ModulePass) -> None:
        """Run the passes that the module requests before or after (`when`) this pass, in the order of the requests.
        Raises InvalidArgument if they never end, as those of a pass that requests itself."""
        for number in count(1):
            if (text := requests.take(self.mod.op, when, names_of(type(step)))) is None:
                return
            if number > MOST_REQUESTS:
                where, what = f"request_pass('{text}', {when}='{step.name}')", f"follows {MOST_REQUESTS} others"
                raise InvalidArgument(where, what, "a pass that requests itself has to stop")
            for pass_ in registry.parse(text, "request_pass"):
                self.step(pass_, explicit=True)


class Told:
    """`with Told(mod, info, instruments):` calls the instruments before and after a pass. If the pass or an instrument
    fails, the failure is reported to the instruments that were called before the pass, but not yet after it."""

    def __init__(self, mod: IRModule, info: PassInfo, instruments: Sequence[PassInstrument]):
        self.mod, self.info, self.instruments = mod, info, list(instruments)
        self.told: list[PassInstrument] = []

    def __enter__(self) -> None:
        try:
            for instrument in self.instruments:
                instrument.run_before_pass(self.mod, self.info)
                self.told.append(instrument)
        except BaseException as error:
            self.failed(error)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.failed(error)
            return
        try:
            for instrument in reversed(self.instruments):
                instrument.run_after_pass(self.mod, self.info)
                self.told.remove(instrument)
        except BaseException as raised:
            self.failed(raised)
            raise

    def failed(self, error: BaseException) -> None:
        """Report the failure to the instruments. An exception that an instrument raises becomes a note on `error`."""
        for instrument in reversed(self.told):
            try:
                instrument.run_failed_pass(self.mod, self.info, error)
            except Exception as second:
                error.add_note(f"instrument {type(instrument).__name__}: {type(second).__name__}: {second}")


def call(
    items: PassGroup | Sequence[ModulePass | PassGroup],
    mod: M,
    ctx: PassContext | None = None,
    *,
    explicit: bool = False,
) -> M:
    """Clone the module or function, run the items on the clone, and return the clone, which has the type of the
    argument (`IRModule`, `ModuleOp` or `FuncOp`)."""
    if ctx is not None:
        with instance(ctx, PassContext, "pass(mod, ctx)", "give a PassContext, or leave it out"):
            return call(items, mod, explicit=explicit)
    if isinstance(mod, FuncOp):
        return cast(M, call_on_function(items, mod, explicit))
    clone = as_module(mod).op.clone()
    Runner(clone).run(items, explicit=explicit)
    return cast(M, IRModule(clone) if isinstance(mod, IRModule) else clone)


def call_on_function(items: PassGroup | Sequence[ModulePass | PassGroup], function: FuncOp, explicit: bool) -> FuncOp:
    """Run the items on a function in a module of its own, in which the other functions are declarations; return the new
    function."""
    name, holder = function.sym_name.data, function.parent_op()
    clone = function.clone()
    others = IRModule(holder).functions.values() if isinstance(holder, ModuleOp) else ()
    types = [(other.sym_name.data, other.function_type) for other in others if other is not function]
    module = IRModule(ModuleOp([clone, *(FuncOp.external(n, t.inputs.data, t.outputs.data) for n, t in types)]))
    before = set(module.functions)
    Runner(module.op).run(items, explicit=explicit)
    made = [other for other in module.functions if other not in before]
    if made:
        raise InvalidArgument(f"@{name}", f"the pass made other functions ({', '.join(made)})", "give it the module")
    result = module[name]
    result.detach()
    return result
