"""Plug-ins by name: relay's own, those of installed packages (entry points), and those registered at run time."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

from relay.errors import RelayError, Unsupported

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

T = TypeVar("T")
DISTRIBUTION = "relay-mlir"
REPAIR = "repair or uninstall the plug-in"
"""The hint of errors about plug-ins that are not what their group requires."""


def installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of this group, sorted by name. Scanning the installed packages takes milliseconds, so the result
    is cached until `sys.path` or one of its folders changes."""
    found = _installed(tuple((folder, changed(folder)) for folder in sys.path))
    return tuple(sorted(found(group=group), key=lambda point: (point.name, point.value)))


def changed(folder: str) -> int:
    """The modification time of a folder in nanoseconds; 0 if there is no such folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _installed(path: tuple[tuple[str, int], ...]) -> Callable[..., EntryPoints]:
    from importlib.metadata import entry_points  # here: most executables need no plug-in

    return entry_points().select


def load_point(point: EntryPoint, where: str, what: str, hint: str) -> object:
    """Import what an entry point names. Raises Unsupported, at `where`, if `what` cannot be loaded, with the `hint` if
    a module is missing; a RelayError of the plug-in stays as it is."""
    try:
        return point.load()
    except RelayError:
        raise
    except (Exception, SystemExit) as error:
        repair = hint if isinstance(error, ModuleNotFoundError) else REPAIR
        raise Unsupported(where, f"{what}cannot be loaded: {error}", repair) from error


def installation(extra: str) -> str:
    """The pip command that installs an extra of this distribution; for an uninstalled checkout it names the checkout's
    folder. Empty if `extra` is."""
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
    """The error line of a command that cannot start because a package is missing."""
    package = (error.name or "").partition(".")[0]
    return f"{name}: the package {package} is not installed; pip install {package}"


@dataclass
class PlugIns(Generic[T]):
    """The plug-ins of one kind, by name. For equal names, a plug-in registered in this process is preferred to relay's
    own, and relay's own to that of an installed package."""

    kind: str
    """The word for a plug-in of this kind in messages."""
    group: str
    """The entry point group of these plug-ins."""
    ours: dict[str, str]
    """Relay's own plug-ins, as `package.module:object` by name; they work without installing relay."""
    registered: dict[str, T] = field(default_factory=dict[str, T])
    """The plug-ins registered in this process, by name; the last one registered under a name is kept."""

    def register(self, name: str, plug_in: T) -> None:
        """Register a plug-in in this process. Warns if it hides another one of that name; redefining the same object,
        as in notebooks, replaces it silently."""
        hidden = [spelled(self.registered[name])] if name in self.registered else []
        self._warn(name, spelled(plug_in), [each for each in (*hidden, *self.places(name)) if each != spelled(plug_in)])
        self.registered[name] = plug_in

    def places(self, name: str) -> list[str]:
        """The places (`package.module:object`) of the unregistered plug-ins of a name: relay's own, then those of
        packages."""
        ours = [self.ours[name]] if name in self.ours else []
        return list(dict.fromkeys([*ours, *(point.value for point in installed(self.group) if point.name == name)]))

    def chosen(self, name: str) -> EntryPoint | None:
        """The entry point of the plug-in `name` that no call has registered: relay's own if there is one, else that of
        an installed package. None if there is neither. Warns of further entry points of this name, which are
        ignored."""
        from importlib.metadata import EntryPoint

        places = self.places(name)
        if not places:
            return None
        self._warn(name, places[0], places[1:])
        return EntryPoint(name, places[0], self.group)

    def names(self) -> list[str]:
        """All known names, sorted; nothing is imported."""
        return sorted({*self.ours, *self.registered, *(point.name for point in installed(self.group))})

    def _warn(self, name: str, chosen: str, hidden: Sequence[str]) -> None:
        if hidden:
            what = f"{self.kind} {name}: {chosen} hides {' and '.join(hidden)}; give one of them another name"
            warnings.warn(what, RuntimeWarning, stacklevel=4)


def spelled(plug_in: object) -> str:
    """The place of a class or function in entry point notation, `package.module:name`."""
    return f"{plug_in.__module__}:{getattr(plug_in, '__qualname__', type(plug_in).__qualname__)}"
