"""`BuildConfig`: options of a build that add, remove or configure passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.passes import ModulePass

from relay.arguments import mapping, names
from relay.errors import InvalidArgument
from relay.passes import registry
from relay.passes.config import options
from relay.passes.context import DEFAULT_LEVEL, PassContext
from relay.passes.instruments import PassInstrument
from relay.passes.pipeline import Pipeline

PREFIX, MODEL = "quantize_", "quantize_model"
_ALIASES = {"quantize_start_layer": "from_layer"}


class BuildConfig(PassContext):
    """`with BuildConfig(remove=["simplify"]): relay.build(mod)`: a `PassContext` that also edits the default pipeline.

    Inside the block, `relay.default_pipeline()` returns the edited pipeline. `before` and `after` name a pass and what
    runs before or after it (a pass, a pipeline or a text); `remove` names passes to leave out. `quantize_model=True`
    runs the pass `quantize` first, with its options, each with the prefix `quantize_` (`quantize_calibration=samples`);
    `quantize_start_layer` is its `from_layer`. Any of these options also makes `quantize` run, unless
    `quantize_model=False`.
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
        self.quantize_model = bool(quantize.get(MODEL, quantize))
        self.quantize_options: dict[str, object] = {}
        known = set(options(registry.find("quantize"))) if quantize else set[str]()
        for name, value in quantize.items():
            option = _ALIASES.get(name, name).removeprefix(PREFIX)
            if name != MODEL and not (name.startswith(PREFIX) and option in known):
                raise InvalidArgument("BuildConfig", f"has no option {name}", "see help(relay.BuildConfig)")
            if name != MODEL:
                self.quantize_options[option] = value

    def expand(self, pipeline: Pipeline) -> None:
        """Edit a pipeline according to these options, in place."""
        if self.quantize_model:
            pipeline.items.insert(0, registry.find("quantize")(**self.quantize_options))
        for name, step in self.before.items():
            pipeline.insert_before(name, step)
        for name, step in self.after.items():
            pipeline.insert_after(name, step)
        for name in self.remove:
            pipeline.remove(name)
