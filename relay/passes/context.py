"""`PassContext`: the context in which passes run: level, required and disabled passes, options, instruments."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from copy import copy
from types import TracebackType
from typing import Self

from relay.arguments import every, mapping, names
from relay.errors import InvalidArgument
from relay.passes import config as configuration
from relay.passes import registry
from relay.passes.diagnostics import Reporter
from relay.passes.info import LEVELS, PassInfo, check_level
from relay.passes.instruments import PassInstrument, checked, enter_all, exit_all
from relay.universe import INSTRUMENTS, instrument

__all__ = ["DEFAULT_LEVEL", "LEVELS", "PassContext", "activated"]

DEFAULT_LEVEL = 2


class _Stack(threading.local):
    """The contexts entered in one thread, innermost last."""

    def __init__(self) -> None:
        self.entered: list[PassContext] = []
        self.default: PassContext | None = None


_STACK = _Stack()


class PassContext:
    """`with PassContext(opt_level=3, disabled_pass=["cse"]): relay.build(mod)`. Contexts are per thread; the innermost
    one applies.

    A pass runs if it is not in `disabled_pass`, and is in `required_pass` or of a level up to `opt_level` (0-4). A pass
    that a later one requires (`Pass.requires`) runs at any level; disabling it is an error that names the requiring
    pass. `config` sets options of passes that leave them at their defaults, `{"fold-constant.max_bytes": 1024}`; every
    key has a type and a default (`list_configs`). Names are canonical ones or aliases. `{"relay.check_numbers":
    inputs}` runs the interpreter after each pass, and raises an error for the pass that changed an integer result, or a
    float by more than 1e-4 of the largest.

    Raises InvalidArgument for a level, name, key or value that is not known, with the nearest ones.
    """

    def __init__(
        self,
        opt_level: int = DEFAULT_LEVEL,
        required_pass: Sequence[str] = (),
        disabled_pass: Sequence[str] = (),
        instruments: Sequence[PassInstrument] = (),
        config: Mapping[str, object] | None = None,
    ):
        self.opt_level = check_level(opt_level)
        self.required_pass = _canonical(required_pass, "required_pass")
        self.disabled_pass = _canonical(disabled_pass, "disabled_pass")
        self.config = configuration.normalise(mapping(config or {}, "config", "{'fold-constant.max_bytes': 1024}"))
        asked = [instrument(key, self.config[key]) for key in INSTRUMENTS if key in self.config]
        self.instruments = checked([*every(instruments, "instruments"), *asked])
        self.diagnostics = Reporter()

    def __enter__(self) -> Self:
        enter_all(self.instruments)
        _STACK.entered.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        places = [place for place, entered in enumerate(_STACK.entered) if entered is self]
        if not places:
            raise InvalidArgument("PassContext", "is left, but was not entered in this thread", "use it in a with")
        del _STACK.entered[places[-1]]
        exit_all(self.instruments)

    @staticmethod
    def current() -> PassContext:
        """The innermost context that this thread has entered; outside of any context, a default one of level 2."""
        if _STACK.entered:
            return _STACK.entered[-1]
        if _STACK.default is None:
            _STACK.default = PassContext()
        return _STACK.default

    @property
    def is_default(self) -> bool:
        """Whether no context was entered: this is the default one, or a copy of it for another level."""
        return _STACK.default is not None and self.diagnostics is _STACK.default.diagnostics

    @staticmethod
    def list_configs() -> dict[str, configuration.Key]:
        """The keys of `config` by name: type, default and documentation of each."""
        return configuration.all_keys()

    def override_instruments(self, instruments: Sequence[PassInstrument]) -> None:
        """Replace the instruments while the context is entered: the old ones exit, the new ones enter."""
        exit_all(self.instruments)
        self.instruments[:] = checked(instruments)
        enter_all(self.instruments)

    def at_level(self, opt_level: int | None) -> PassContext:
        """This context, or a copy with another level that shares its instruments without entering them again."""
        if opt_level is None or check_level(opt_level) == self.opt_level:
            return self
        other = copy(self)
        other.opt_level = opt_level
        return other

    def with_config(self, config: Mapping[str, object]) -> PassContext:
        """A copy of this context in which these options of passes are set, too."""
        other = copy(self)
        other.config = {**self.config, **configuration.normalise(config)}
        return other

    def with_instruments(self, instruments: Sequence[PassInstrument]) -> PassContext:
        """A context like this one with other instruments, which are not entered."""
        other = copy(self)
        other.instruments = list(instruments)
        return other

    def enabled(self, info: PassInfo) -> bool:
        """Whether a pass runs: not if it is disabled; else if it is required, or its level is at most that of the
        context."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or info.opt_level <= self.opt_level

    def count(self, what: str, number: int = 1) -> None:
        """Add to a counter of the pass that is running; instruments receive it (`OpStatistics`, `relay-opt
        --stats`)."""
        for each in self.instruments:
            each.count(what, number)

    def __repr__(self) -> str:
        said = [f"opt_level={self.opt_level}"]
        for name in ("required_pass", "disabled_pass", "config"):
            if value := getattr(self, name):
                said.append(f"{name}={value!r}")
        return f"PassContext({', '.join(said)})"


def _canonical(given: Sequence[str], where: str) -> list[str]:
    return [registry.canonical(name, where) for name in names(given, where)]


class activated:
    """`with activated(ctx):` makes a context current without entering its instruments."""

    def __init__(self, ctx: PassContext):
        self.ctx = ctx

    def __enter__(self) -> PassContext:
        _STACK.entered.append(self.ctx)
        return self.ctx

    def __exit__(self, *_: object) -> None:
        _STACK.entered.pop()
