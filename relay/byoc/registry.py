"""External compilers by name: ours, those of installed packages, and those that a program registers."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from relay.errors import InvalidArgument, RelayError, Unsupported

if TYPE_CHECKING:
    from relay.byoc.compiler import Compiler

GROUP = "relay.byoc"
"""The group of entry points that name compilers: `name = "package.module:Class"`."""

OURS: dict[str, str] = {
    "c": "relay.byoc.c.compiler:CCompiler",
    "litert": "relay.byoc.xnnpack.compiler:LiteRTCompiler",
    "onednn": "relay.byoc.onednn.compiler:OneDnnCompiler",
    "onnxruntime": "relay.byoc.onnxruntime.compiler:OnnxRuntimeCompiler",
    "systolic": "relay.byoc.systolic.compiler:SystolicCompiler",
    "xnnpack": "relay.byoc.xnnpack.compiler:XnnpackCompiler",
}
"""Compilers of this package, there without being installed; each is imported when it is asked for."""

REGISTERED: dict[str, type[Compiler]] = {}
"""What `register` was given, by name; the last of a name. It goes before the others."""

Class = TypeVar("Class", bound="type[Compiler]")


def register(compiler: Class) -> Class:
    """Make a compiler known to this process, as a function or as a class decorator. Packages use an entry point.

    Warns where it hides another of its name; a class that is defined again, as notebooks do, takes the old one's place.

    Raises InvalidArgument if it is no `Compiler` or has no name.
    """
    if not is_compiler(compiler):
        raise InvalidArgument("register", f"{compiler!r} is no external compiler", "derive it from relay.byoc.Compiler")
    name = name_of(compiler)
    check_version(compiler)
    hidden = [spelled(REGISTERED[name])] if name in REGISTERED else []
    warn(name, spelled(compiler), [each for each in (*hidden, *others(name)) if each != spelled(compiler)])
    REGISTERED[name] = compiler
    return compiler


def spelled(compiler: type[Compiler]) -> str:
    """Where a class is, as an entry point says it."""
    return f"{compiler.__module__}:{compiler.__qualname__}"


def others(name: str) -> list[str]:
    """Where the compilers of a name are that nobody registered: ours, then those of packages."""
    ours = [OURS[name]] if name in OURS else []
    return list(dict.fromkeys([*ours, *(point.value for point in installed() if point.name == name)]))


def installed() -> tuple[EntryPoint, ...]:
    """The entry points of packages."""
    return _installed(tuple((folder, changed(folder)) for folder in sys.path), entry_points)


def changed(folder: str) -> int:
    """When something was last installed into a folder; 0 if it is none."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _installed(path: tuple[tuple[str, int], ...], search: Callable[..., EntryPoints]) -> tuple[EntryPoint, ...]:
    """Looking through all that is installed takes milliseconds, so it is done once for a path as it is."""
    return tuple(sorted(search(group=GROUP), key=lambda point: (point.name, point.value)))


def warn(name: str, chosen: str, hidden: Sequence[str]) -> None:
    """Say that a compiler hides others of its name."""
    if hidden:
        what = f"compiler {name}: {chosen} hides {' and '.join(hidden)}; give one of them another name"
        warnings.warn(what, RuntimeWarning, stacklevel=3)


def check_version(compiler: type[Compiler]) -> None:
    """Raise InvalidArgument for a version that is no text: executables keep it as one, and loaders compare it."""
    version: object = getattr(compiler, "version", None)
    if not isinstance(version, str):
        raise InvalidArgument(f"compiler {compiler.__name__}", f"has the version {version!r}", "give it a text")


def is_compiler(value: object) -> TypeGuard[type[Compiler]]:
    """Whether this is a class of compilers that can be made."""
    from relay.byoc.compiler import Compiler

    return isinstance(value, type) and issubclass(value, Compiler) and not inspect.isabstract(value)


def name_of(compiler: type[Compiler]) -> str:
    """The compiler's name, which must be one word: it becomes part of symbols."""
    name = getattr(compiler, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidArgument(f"compiler {compiler.__name__}", f"has the name {name!r}", "give it one word as `name`")
    return name


def names() -> list[str]:
    """Every known compiler, sorted; nothing is imported."""
    return sorted({*OURS, *REGISTERED, *(point.name for point in installed())})


def find(name: str, options: Mapping[str, object] | None = None, where: str = "external compiler") -> Compiler:
    """The compiler of this name, made with these options.

    Raises InvalidArgument for a name or option that it does not know, naming the nearest, and Unsupported if the
    plug-in cannot be loaded or something that it needs is not installed, naming what to install.
    """
    from relay.byoc.guard import blame

    cls = load(name, where)
    known = [field.name for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else []
    for option in options or {}:
        if option not in known:
            near = get_close_matches(option, known)
            hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known) or 'none'}"
            raise InvalidArgument(f"compiler {name}", f"has no option '{option}'", hint)
    check_version(cls)
    try:
        compiler = cls(**dict(options or {}))
        missing = compiler.missing()
    except RelayError as error:
        blame(error, name)
        raise
    except Exception as error:
        raise Unsupported(f"compiler {name}", f"cannot be made: {error}", "see its options") from error
    if missing is not None:
        raise Unsupported(f"compiler {name}", missing, installation(cls.extra))
    return compiler


def load(name: str, where: str = "external compiler") -> type[Compiler]:
    """The class of this name: the last one registered, else ours, else a package's. Warns where it hides another's
    of this name. Raises as `find` does."""
    if name in REGISTERED:
        return REGISTERED[name]
    if found := others(name):
        warn(name, found[0], found[1:])
        return _loaded(EntryPoint(name, found[0], GROUP), ours=name in OURS)
    known = names()
    near = get_close_matches(name, known)
    hint = f"did you mean {' or '.join(near)}" if near else f"there are {', '.join(known) or 'none'}"
    raise InvalidArgument(where, f"there is no compiler '{name}'", f"{hint}, or install the package that has it")


def _loaded(point: EntryPoint, ours: bool) -> type[Compiler]:
    from relay.byoc.guard import blame

    where = f"compiler {point.name}"
    try:
        found: object = point.load()
    except RelayError as error:
        blame(error, point.name)
        raise
    except ModuleNotFoundError as error:
        hint = installation(point.name) if ours else "install what the plug-in needs"
        raise Unsupported(where, f"cannot be loaded: {error}", hint) from error
    except Exception as error:
        raise Unsupported(where, f"cannot be loaded: {error}", "repair or uninstall the plug-in") from error
    if not is_compiler(found):
        raise Unsupported(where, f"{point.value} is no external compiler", "repair or uninstall the plug-in")
    if name_of(found) != point.name:
        raise Unsupported(where, f"{point.value} calls itself '{found.name}'", "repair or uninstall the plug-in")
    return found


def requirement(name: str) -> str:
    """What pip would install a compiler of this name with: an extra of this distribution, or a package; "" for one
    that no package brings."""
    if name in REGISTERED or name in OURS:
        extra = load(name).extra
        return f"relay-mlir[{extra}]" if extra else ""
    for point in installed():
        if point.name == name and point.dist is not None:
            return point.dist.name
    return ""


def installation(extra: str) -> str:
    """How to install an extra of this distribution; nothing for what has none."""
    return f"pip install 'relay-mlir[{extra}]'" if extra else ""
