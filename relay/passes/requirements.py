"""Which properties hold at a point of a pipeline, and which passes must run to meet a pass's requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.passes import ModulePass

from relay.errors import InvalidArgument
from relay.passes import registry
from relay.passes.context import PassContext
from relay.passes.info import DescribedPass, PassInfo, info_of

Providers = Mapping[str, ModulePass]
"""Passes by their names and by the names of the properties that they establish. A required pass or property is looked
up here first, then in the registry of passes."""


def providers_of(passes: Sequence[ModulePass]) -> dict[str, ModulePass]:
    """The passes by name and by property; for a property, the first pass that establishes it."""
    found: dict[str, ModulePass] = {}
    for step in passes:
        for name in (step.name, *info_of(step).establishes):
            found.setdefault(name, step)
    return found


class Requirements:
    """Tracks which properties hold. A property holds from the pass that establishes it until one that invalidates it.
    After a pass that does not declare which properties it invalidates, each is checked in the module again."""

    def __init__(
        self, ctx: PassContext, looks: Callable[[type[DescribedPass]], bool], providers: Providers | None = None
    ):
        self.ctx = ctx
        self.looks = looks
        self.providers = providers or {}
        self.valid: dict[str, frozenset[str]] = {}

    def holds(self, prop: str) -> bool:
        """Whether the property is known to hold."""
        return any(prop in properties for properties in self.valid.values())

    def ran(self, info: PassInfo) -> None:
        """Record that a pass has run."""
        lost = None if info.invalidates is None else frozenset(info.invalidates)
        self.valid = {} if lost is None else {name: held for name, held in self.valid.items() if not held & lost}
        self.valid[info.name] = frozenset((info.name, *info.establishes))

    def satisfy(self, info: PassInfo, run: Callable[[ModulePass, str], None], chain: tuple[str, ...] = ()) -> None:
        """Call `run(pass, requiring pass)` for every pass that must run before this one, in order. Raises
        InvalidArgument for a cycle, an unknown name, and a disabled pass."""
        chain = (*chain, info.name)
        for _ in range(len(info.requires) + 1):
            missing = [prop for prop in info.requires if not self.holds(self._canonical(prop, info))]
            if not missing:
                return
            for prop in missing:
                self._satisfy(prop, info, run, chain)
        raise InvalidArgument(f"pass {info.name}", f"its requirements undo each other: {', '.join(info.requires)}")

    def _satisfy(
        self, prop: str, info: PassInfo, run: Callable[[ModulePass, str], None], chain: tuple[str, ...]
    ) -> None:
        """Run the passes that make one property hold."""
        step = self._provider(self._canonical(prop, info), info)
        if self._seen(step, chain):
            return
        if step.name in chain:
            circle = " -> ".join((*chain, step.name))
            raise InvalidArgument(f"pass {chain[0]}", f"requirements go in a circle: {circle}")
        if step.name in self.ctx.disabled_pass:
            said = "" if prop == step.name else f" (it needs '{prop}')"
            hint = f"disable {info.name} too"
            raise InvalidArgument(f"disabled_pass '{step.name}'", f"is required by {info.name}{said}", hint)
        self.satisfy(info_of(step), run, chain)
        run(step, info.name)

    def _seen(self, step: ModulePass, chain: tuple[str, ...]) -> bool:
        """Whether an inspection of the module shows that it has the properties that the pass establishes and requires;
        if so, the properties are recorded as holding. `chain`: the passes being inspected, to stop at cycles."""
        info = info_of(step)
        if not isinstance(step, DescribedPass) or step.name in chain or not self.looks(type(step)):
            return False
        for prop in info.requires:
            name = self._canonical(prop, info)
            if not self.holds(name) and not self._seen(self._provider(name, info), (*chain, step.name)):
                return False
        self.valid[step.name] = frozenset((step.name, *info.establishes))
        return True

    def _canonical(self, prop: str, info: PassInfo) -> str:
        """The name itself if it is a property, else the canonical name of the pass."""
        if prop in self.providers or registry.provider(prop) is not None:
            return prop
        return registry.canonical(prop, f"pass {info.name}, required")

    def _provider(self, name: str, info: PassInfo) -> ModulePass:
        """The pass that establishes a property, or has that name."""
        if name in self.providers:
            return self.providers[name]
        cls = registry.provider(name) or registry.find(name)
        try:
            return cls()
        except TypeError as error:
            hint = f"put {cls.name} into the pipeline before it"
            raise InvalidArgument(
                f"pass {info.name}", f"requires {cls.name}, which has options to give", hint
            ) from error
