"""Loaders: what makes an external compiler's artifact something that runs, by the compiler's name.

A loader is a function `load(artifact, symbol, params, inputs, outputs)` of a module that imports nothing of the
compiler. It is made known by an entry point of the group `relay.byoc.runtime`, or by `register_loader`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

from relay.errors import Malformed, RelayError, Unsupported
from relay.runtime.memory import Array, Form

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "relay.byoc.runtime"
"""The group of entry points that name loaders: `name = "package.module:function"`."""

OURS: dict[str, str] = {
    "c": "relay.byoc.c.loader:load",
    "litert": "relay.byoc.xnnpack.loader:load_reference",
    "onednn": "relay.byoc.onednn.loader:load",
    "onnxruntime": "relay.byoc.onnxruntime.loader:load",
    "systolic": "relay.byoc.systolic.loader:load",
    "xnnpack": "relay.byoc.xnnpack.loader:load",
}
"""Loaders of this package, there without being installed."""


@dataclass(frozen=True)
class Native:
    """A C function `void f(void *context, void **tensors)`: the addresses of the inputs, then of the outputs.

    It may be called by several threads at once, each with tensors of its own. Inputs must not be written, and no two
    of all the tensors overlap where one is written. A tensor starts at a multiple of `alignment` bytes: what lies in
    the arena does in any case, an array of the user is copied if it does not. `keep` lives as long as the executable.
    """

    address: int
    context: int = 0
    keep: object = None
    alignment: int = 64


Run = Callable[[Sequence[Array], Sequence[Array]], None]
"""A function in Python: it reads the inputs (read-only) and fills the outputs, arrays that are valid during the call
only. It returns None: a result that it returns instead would be lost, and is an error. Threads may call it at the same
time: one that cannot have that takes a lock of its own. What it raises, `run` raises as a RelayError that names the
function, with the exception as its `__cause__`."""

Loader = Callable[[bytes, str, Mapping[str, Array], Sequence[Form], Sequence[Form]], Native | Run]

_Loader = TypeVar("_Loader", bound=Callable[..., object])

VERSIONS = "relay_versions"
REGISTERED: dict[str, Loader] = {}


def register_loader(name: str, load: Loader) -> None:
    """Make a loader known to this process, in place of any other of this name. Packages use an entry point.

    Warns where it hides another; one that is defined again, as notebooks do, takes the old one's place.
    """
    hidden = [spelled(REGISTERED[name])] if name in REGISTERED else []
    warn(name, spelled(load), [each for each in (*hidden, *others(name)) if each != spelled(load)])
    REGISTERED[name] = load


def spelled(load: Loader) -> str:
    """Where a loader is, as an entry point says it."""
    kind = load if hasattr(load, "__qualname__") else type(load)
    return f"{kind.__module__}:{kind.__qualname__}"


def others(name: str) -> list[str]:
    """Where the loaders of a name are that nobody registered: ours, then those of packages."""
    ours = [OURS[name]] if name in OURS else []
    return list(dict.fromkeys([*ours, *(point.value for point in installed() if point.name == name)]))


def installed() -> tuple[EntryPoint, ...]:
    """The entry points of packages. Looking through all that is installed takes milliseconds, so it is done once for a
    path as it is."""
    return _installed(tuple((folder, _changed(folder)) for folder in sys.path))


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _installed(path: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # here: most executables need no loader

    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def warn(name: str, chosen: str, hidden: Sequence[str]) -> None:
    """Say that a loader hides others of its name."""
    if hidden:
        what = f"loader {name}: {chosen} hides {' and '.join(hidden)}; give one of them another name"
        warnings.warn(what, RuntimeWarning, stacklevel=3)


def accepts(*versions: str) -> Callable[[_Loader], _Loader]:
    """Decorates a loader: the versions of its compiler whose artifacts it takes. Without it, it is given them all."""

    def mark(load: _Loader) -> _Loader:
        setattr(load, VERSIONS, versions)
        return load

    return mark


def find(name: str, where: str, requirement: str = "") -> Loader:
    """The loader of this name: the last one registered, else ours, else a package's. Warns where it hides another's of
    this name. `requirement` is what pip would install it with.

    Raises Unsupported if there is none, or it cannot be loaded.
    """
    from importlib.metadata import EntryPoint

    hint = f"pip install '{requirement}'" if requirement else "install the package that has it"
    if name in REGISTERED:
        return REGISTERED[name]
    if found := others(name):
        warn(name, found[0], found[1:])
        return _loaded(EntryPoint(name, found[0], GROUP), where, hint)
    known = {*OURS, *REGISTERED, *(point.name for point in installed())}
    if near := get_close_matches(name, known):
        hint += f"; there is {' and '.join(near)}"
    raise Unsupported(where, f"was compiled by '{name}', whose loader is not installed", hint)


def _loaded(point: EntryPoint, where: str, hint: str) -> Loader:
    try:
        found: object = point.load()
    except RelayError:
        raise
    except ModuleNotFoundError as error:
        raise Unsupported(where, f"the loader of '{point.name}' cannot be loaded: {error}", hint) from error
    except Exception as error:
        hint = "repair or uninstall the plug-in"
        raise Unsupported(where, f"the loader of '{point.name}' cannot be loaded: {error}", hint) from error
    if not callable(found):
        raise Unsupported(where, f"{point.value} is no loader", "repair or uninstall the plug-in")
    return cast(Loader, found)


def load(
    compiler: str,
    version: str,
    symbol: str,
    artifact: bytes,
    params: Mapping[str, Array],
    inputs: Sequence[Form],
    outputs: Sequence[Form],
    requirement: str = "",
) -> Native | Run:
    """Have a loader load an artifact.

    Raises Unsupported if it is not installed or does not take this version, Malformed if it refuses the artifact.
    """
    where = f"external function {symbol}"
    loader = find(compiler, where, requirement)
    versions = cast(object, getattr(loader, VERSIONS, None))
    if isinstance(versions, tuple) and version not in versions:
        known = ", ".join(map(str, cast(tuple[object, ...], versions)))
        what = f"was compiled by version {version} of '{compiler}'; the one installed takes {known}"
        raise Unsupported(where, what, "build the model again, or install that version")
    try:
        loaded = loader(artifact, symbol, params, inputs, outputs)
    except RelayError:
        raise
    except Exception as error:
        raise Malformed(where, f"cannot be loaded by '{compiler}': {error}", "build the model again") from error
    if isinstance(loaded, Native):
        whole = [loaded.address, loaded.context, loaded.alignment]
        if not all(isinstance(cast(object, number), int) for number in whole) or loaded.address <= 0:
            raise Malformed(where, f"the loader of '{compiler}' gave {loaded!r}", "a Native holds addresses")
    elif not callable(loaded):
        raise Malformed(where, f"the loader of '{compiler}' gave {loaded!r}", "it gives a Native or a callable")
    return loaded
