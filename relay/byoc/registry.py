"""The registry of external compilers: relay's own, those of installed packages, and those registered at run time."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from relay.errors import InvalidArgument, RelayError, Unsupported, did_you_mean, near
from relay.plug_ins import REPAIR, PlugIns, installation, installed, load_point

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from relay.byoc.compiler import Compiler

OURS: dict[str, str] = {
    "c": "relay.byoc.c.compiler:CCompiler",
    "litert": "relay.byoc.xnnpack.compiler:LiteRTCompiler",
    "onednn": "relay.byoc.onednn.compiler:OneDnnCompiler",
    "onnxruntime": "relay.byoc.onnxruntime.compiler:OnnxRuntimeCompiler",
    "systolic": "relay.byoc.systolic.compiler:SystolicCompiler",
    "xnnpack": "relay.byoc.xnnpack.compiler:XnnpackCompiler",
}
"""The compilers of this package, which work without entry points; each is imported when it is used."""

COMPILERS: PlugIns[type[Compiler]] = PlugIns("compiler", "relay.byoc", OURS)
"""All known compilers; a package registers its own by an entry point: `name = "package.module:Class"`."""

Class = TypeVar("Class", bound="type[Compiler]")


def register(compiler: Class) -> Class:
    """Register a compiler in this process; usable as a class decorator. Packages use an entry point instead. Warns if
    it hides another compiler of that name; redefining the same class, as in notebooks, replaces it silently.

    Raises InvalidArgument if it is no `Compiler` or has no name.
    """
    if missing := sorted(getattr(compiler, "__abstractmethods__", ())):
        where, hint = f"compiler {compiler.__name__}", "every compiler defines them"
        raise InvalidArgument(where, f"does not define {', '.join(missing)}", hint)
    if not is_compiler(compiler):
        raise InvalidArgument("register", f"{compiler!r} is no external compiler", "derive it from relay.byoc.Compiler")
    name = name_of(compiler)
    check_version(compiler)
    COMPILERS.register(name, compiler)
    return compiler


def check_version(compiler: type[Compiler]) -> None:
    """Raise InvalidArgument if the compiler's version is no text: executables store it as text, and loaders compare
    it."""
    version: object = getattr(compiler, "version", None)
    if not isinstance(version, str):
        raise InvalidArgument(f"compiler {compiler.__name__}", f"has the version {version!r}", "give it a text")


def is_compiler(value: object) -> TypeGuard[type[Compiler]]:
    """Whether the value is a concrete class of compilers."""
    from relay.byoc.compiler import Compiler

    return isinstance(value, type) and issubclass(value, Compiler) and not inspect.isabstract(value)


def name_of(compiler: type[Compiler]) -> str:
    """The compiler's name. Raises InvalidArgument if it is no identifier, since it becomes part of symbols."""
    name = getattr(compiler, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidArgument(f"compiler {compiler.__name__}", f"has the name {name!r}", "give it one word as `name`")
    return name


def names() -> list[str]:
    """The names of all known compilers, sorted; nothing is imported."""
    return COMPILERS.names()


def find(name: str, options: Mapping[str, object] | None = None, where: str = "external compiler") -> Compiler:
    """Instantiate the compiler of this name with these options.

    Raises InvalidArgument for an unknown name or option, naming similar ones, and Unsupported if the plug-in cannot be
    loaded or a requirement is not installed, naming what to install.
    """
    from relay.byoc.guard import blame

    cls = load(name, where)
    known = [field.name for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else []
    for option in options or {}:
        if option not in known:
            hint = did_you_mean(near(option, known), f"it has {', '.join(known) or 'none'}")
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
    """The compiler class of this name: the last one registered, or else relay's own, or else a package's. Warns if it
    hides another of this name. Raises the errors of `find`."""
    if name in COMPILERS.registered:
        return COMPILERS.registered[name]
    if point := COMPILERS.chosen(name):
        return _loaded(point, ours=name in OURS)
    known = names()
    alike = near(name, known)
    hint = f"did you mean {' or '.join(alike)}" if alike else f"there are {', '.join(known) or 'none'}"
    raise InvalidArgument(where, f"there is no compiler '{name}'", f"{hint}, or install the package that has it")


def _loaded(point: EntryPoint, ours: bool) -> type[Compiler]:
    from relay.byoc.guard import blame

    where = f"compiler {point.name}"
    try:
        found = load_point(point, where, "", installation(point.name) if ours else "install what the plug-in needs")
    except RelayError as error:
        blame(error, point.name)
        raise
    if not is_compiler(found):
        raise Unsupported(where, f"{point.value} is no external compiler", REPAIR)
    if name_of(found) != point.name:
        raise Unsupported(where, f"{point.value} calls itself '{found.name}'", REPAIR)
    return found


def requirement(name: str) -> str:
    """The pip requirement that installs a compiler of this name: an extra of this distribution, or a package; "" if no
    package provides it."""
    if name in COMPILERS.registered or name in OURS:
        extra = load(name).extra
        return f"relay-mlir[{extra}]" if extra else ""
    for point in installed(COMPILERS.group):
        if point.name == name and point.dist is not None:
            return point.dist.name
    return ""
