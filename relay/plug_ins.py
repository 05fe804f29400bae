"""Plug-ins by name: ours, those of installed packages (entry points), and those that a program registers."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

T = TypeVar("T")
DISTRIBUTION = "relay-mlir"


def installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of this group, sorted by name. Looking through all that is installed takes milliseconds, so it
    is done once for a path as it is, for every group."""
    found = _installed(tuple((folder, changed(folder)) for folder in sys.path))
    return tuple(sorted(found(group=group), key=lambda point: (point.name, point.value)))


def changed(folder: str) -> int:
    """When something was last installed into a folder; 0 if it is none."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _installed(path: tuple[tuple[str, int], ...]) -> Callable[..., EntryPoints]:
    from importlib.metadata import entry_points  # here: most executables need no plug-in

    return entry_points().select


def installation(extra: str) -> str:
    """The command that installs an extra of this distribution, published or not: pip keeps what is installed; a
    checkout that is not installed is named by its folder. Empty for no extra."""
    from importlib.metadata import PackageNotFoundError, distribution

    if not extra:
        return ""
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        if os.path.exists(os.path.join(folder, "pyproject.toml")):
            return f"pip install -e '{folder}[{extra}]'"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def lacking(name: str, error: ModuleNotFoundError) -> str:
    """The line of a command that cannot start for lack of a package."""
    package = (error.name or "").partition(".")[0]
    return f"{name}: the package {package} is not installed; pip install {package}"


@dataclass
class PlugIns(Generic[T]):
    """The plug-ins of one kind. What was registered goes before ours, and ours before those of packages."""

    kind: str
    """What a plug-in is called in messages."""
    group: str
    """The group of entry points that name them."""
    ours: dict[str, str]
    """Those of this package, there without being installed: name to `package.module:object`."""
    registered: dict[str, T] = field(default_factory=dict[str, T])
    """What this process was given, by name; the last of a name."""

    def register(self, name: str, plug_in: T) -> None:
        """Make a plug-in known to this process. Warns where it hides another of its name; one that is defined again, as
        notebooks do, takes the old one's place."""
        hidden = [spelled(self.registered[name])] if name in self.registered else []
        self._warn(name, spelled(plug_in), [each for each in (*hidden, *self.places(name)) if each != spelled(plug_in)])
        self.registered[name] = plug_in

    def places(self, name: str) -> list[str]:
        """Where the plug-ins of a name are that nobody registered: ours, then those of packages."""
        ours = [self.ours[name]] if name in self.ours else []
        return list(dict.fromkeys([*ours, *(point.value for point in installed(self.group) if point.name == name)]))

    def chosen(self, name: str) -> EntryPoint | None:
        """The one of a name that nobody registered: ours, else a package's. Warns where it hides another."""
        from importlib.metadata import EntryPoint

        places = self.places(name)
        if not places:
            return None
        self._warn(name, places[0], places[1:])
        return EntryPoint(name, places[0], self.group)

    def names(self) -> list[str]:
        """Every known name, sorted; nothing is imported."""
        return sorted({*self.ours, *self.registered, *(point.name for point in installed(self.group))})

    def _warn(self, name: str, chosen: str, hidden: Sequence[str]) -> None:
        if hidden:
            what = f"{self.kind} {name}: {chosen} hides {' and '.join(hidden)}; give one of them another name"
            warnings.warn(what, RuntimeWarning, stacklevel=4)


def spelled(plug_in: object) -> str:
    """Where a class or a function is, as an entry point says it."""
    return f"{plug_in.__module__}:{getattr(plug_in, '__qualname__', type(plug_in).__qualname__)}"
