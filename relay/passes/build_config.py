"""`BuildConfig`: options of a build that stand for passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.passes import ModulePass

from relay.arguments import mapping, names
from relay.errors import InvalidArgument, Unsupported
from relay.passes.context import DEFAULT_LEVEL, PassContext
from relay.passes.instruments import PassInstrument
from relay.passes.pipeline import Pipeline


class BuildConfig(PassContext):
    """`with BuildConfig(remove=["simplify"]): relay.build(mod)`: a `PassContext` that also edits the default pipeline.

    Nothing is hidden: `relay.default_pipeline()` inside the block is the edited pipeline. `before` and `after` name a
    pass and what runs before or after it (a pass, a pipeline or a text); `remove` names passes to leave out. The
    options of quantization raise Unsupported: there are no passes that they could stand for.
    """

    def __init__(
        self,
        opt_level: int = DEFAULT_LEVEL,
        required_pass: Sequence[str] = (),
        disabled_pass: Sequence[str] = (),
        instruments: Sequence[PassInstrument] = (),
        config: Mapping[str, object] | None = None,
        *,
        before: Mapping[str, ModulePass | Pipeline | str] | None = None,
        after: Mapping[str, ModulePass | Pipeline | str] | None = None,
        remove: Sequence[str] = (),
        **quantize: object,
    ):
        super().__init__(opt_level, required_pass, disabled_pass, instruments, config)
        for what, given in (("before", before), ("after", after)):
            mapping(given or {}, what, "{'fuse-ops': 'cse'}")
        self.before, self.after, self.remove = dict(before or {}), dict(after or {}), names(remove, "remove")
        for name in quantize:
            if not name.startswith("quantize_"):
                raise InvalidArgument("BuildConfig", f"has no option {name}", "see help(relay.BuildConfig)")
        if any(value is not False for value in quantize.values()):
            given = ", ".join(f"{name}={value!r}" for name, value in quantize.items())
            hint = "quantise the model where it was trained, and import the quantised model"
            raise Unsupported(f"BuildConfig({given})", "there are no passes that quantise a model", hint)

    def expand(self, pipeline: Pipeline) -> None:
        """Edit a pipeline as the options say."""
        for name, step in self.before.items():
            pipeline.insert_before(name, step)
        for name, step in self.after.items():
            pipeline.insert_after(name, step)
        for name in self.remove:
            pipeline.remove(name)
