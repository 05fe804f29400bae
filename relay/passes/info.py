"""Declarations of a pass (level, properties, aliases), and the `PassInfo` that instruments receive about a pass or
group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from relay.arguments import shown
from relay.errors import InvalidArgument
from relay.module import IRModule

LEVELS = range(5)
M = TypeVar("M", bound=IRModule | ModuleOp | FuncOp)
"""What a pass or pipeline is called with, and returns."""


class DescribedPass(ModulePass, ABC):
    """A pass that declares its level, and the properties that it requires, establishes and invalidates. `Pass` adds
    that it can be called."""

    name: ClassVar[str]
    """The canonical name: unique, stable, kebab-case; printed everywhere."""
    aliases: ClassVar[Sequence[str]] = ()
    """Further names, besides the name of its class."""
    opt_level: ClassVar[int] = 0
    """The lowest level of a `PassContext` at which the pass runs; 0 for a pass that correctness needs."""
    requires: ClassVar[Sequence[str]] = ()
    """Properties that must hold before the pass (`legal`, ...), or names of passes that must have run."""
    establishes: ClassVar[Sequence[str]] = ()
    """Properties that hold after the pass; the pass's own name is always such a property."""
    invalidates: ClassVar[Sequence[str] | None] = None
    """Properties that may no longer hold after the pass. None: not declared, so each property is checked again when it
    is needed."""
    preserves: ClassVar[Sequence[str]] = ()
    """Analyses whose results are still valid after the pass."""
    why: ClassVar[str] = ""
    """Why the default pipeline contains the pass, in a few words."""

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        """Whether the module can be seen to have the property that the pass establishes. False if that cannot be
        seen."""
        return False

    @property
    def info(self) -> PassInfo:
        """The `PassInfo` that instruments receive about this pass."""
        return info_of(self)


class PassGroup(ABC):
    """Passes and groups in order, with a name and a level: a `Pipeline`."""

    name: str

    @property
    @abstractmethod
    def members(self) -> Sequence[ModulePass | PassGroup]:
        """The passes and groups directly in this group."""

    @property
    @abstractmethod
    def info(self) -> PassInfo:
        """The `PassInfo` that instruments receive about this group when it is nested in another one."""

    @abstractmethod
    def __iter__(self) -> Iterator[ModulePass]:
        """Iterate over the passes in this group and in nested groups."""


@dataclass(frozen=True)
class PassInfo:
    """The description of a pass or nested pipeline that is about to run, as instruments receive it."""

    name: str
    opt_level: int
    requires: tuple[str, ...]
    establishes: tuple[str, ...]
    invalidates: tuple[str, ...] | None
    step: ModulePass | PassGroup | None
    """The pass or pipeline. None if the information describes no pass, but a step after the passes, such as code
    generation, with the properties that it requires."""

    @property
    def required(self) -> tuple[str, ...]:
        """The same tuple as `requires`, under the name that TVM's Relay gives it."""
        return self.requires

    @property
    def mandatory(self) -> bool:
        """Whether correctness needs the pass: bisection never skips it."""
        return self.opt_level == 0 and bool(self.establishes)


@dataclass(frozen=True)
class Facts:
    """Relay's declarations about one of xDSL's passes."""

    aliases: tuple[str, ...]
    opt_level: int
    why: str


FOREIGN = {
    "canonicalize": Facts((), 1, "folds and simplifies upstream ops"),
    "cse": Facts(("EliminateCommonSubexpr",), 2, "merges equal ops"),
    "dce": Facts((), 1, "removes ops whose results are unused"),
}
"""xDSL's passes that invalidate none of relay's properties, by name."""


def info_of(step: ModulePass) -> PassInfo:
    """The `PassInfo` of a pass: its own declarations, or, for another package's pass, those in `FOREIGN`."""
    if isinstance(step, DescribedPass):
        invalidates = None if step.invalidates is None else tuple(step.invalidates)
        return PassInfo(step.name, step.opt_level, tuple(step.requires), tuple(step.establishes), invalidates, step)
    facts = FOREIGN.get(step.name)
    return PassInfo(step.name, facts.opt_level if facts else 0, (), (), () if facts else None, step)


def names_of(cls: type[ModulePass]) -> tuple[str, ...]:
    """Every name of a pass, the canonical one first."""
    aliases = tuple(cls.aliases) if issubclass(cls, DescribedPass) else ()
    if not isinstance(getattr(cls, "name", None), str):
        raise InvalidArgument(f"pass {cls.__name__}", "has no name", "give the class one: name = 'my-pass'")
    facts = FOREIGN.get(cls.name)
    return (cls.name, cls.__name__, *aliases, *(facts.aliases if facts else ()))


def why_of(step: ModulePass) -> str:
    """Why the default pipeline contains the pass; empty if no reason is declared."""
    if isinstance(step, DescribedPass):
        return step.why
    return FOREIGN[step.name].why if step.name in FOREIGN else ""


def as_module(mod: IRModule | ModuleOp) -> IRModule:
    """The module as an `IRModule`. Raises InvalidArgument for anything else."""
    check_module(mod)
    return mod if isinstance(mod, IRModule) else IRModule(mod)


def check_step(step: object) -> ModulePass:
    """Return the argument if it is a pass. Raises InvalidArgument for anything else, also for a pass class."""
    if isinstance(step, type):
        raise InvalidArgument("pass", f"{step.__name__} is a class", f"write {step.__name__}()")
    if not isinstance(step, ModulePass):
        raise InvalidArgument("pass", f"{shown(step)} is no pass", "use function_pass or module_pass to make one")
    return step


def check_module(mod: object) -> None:
    """Raise InvalidArgument unless this is a module."""
    if not isinstance(mod, IRModule | ModuleOp):
        raise InvalidArgument("module", f"{shown(mod)} is no module", "import a model with relay.frontend")


def check_level(opt_level: object, where: str = "") -> int:
    """Return the level if it is 0 to 4. Raises InvalidArgument for anything else."""
    if type(opt_level) is not int or opt_level not in LEVELS:
        said = f"opt_level={shown(opt_level)}"
        raise InvalidArgument(f"{where}, {said}" if where else said, "is not one of 0, 1, 2, 3, 4")
    return opt_level
