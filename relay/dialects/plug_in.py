"""Dialects of other packages: what a package declares about its dialect, and how relay finds it by the dialect's name.
Nothing of a package is imported before text, a model or a caller names its dialect."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from typing import Any

from xdsl.ir import Dialect, Operation
from xdsl.universe import Universe

from relay.errors import InvalidArgument, RelayError, Unsupported, did_you_mean, near
from relay.plug_ins import PlugIns, installed

Table = str | Mapping[Any, Any]
"""A mapping from keys to functions or classes, or the `package.module:NAME` of such a mapping."""
EMPTY: Mapping[Any, Any] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class DialectPlugIn:
    """All that a package declares about a dialect: the dialect itself, and rows for its ops in the tables of relay's
    stages.

    A package names one by an entry point of the group `relay.dialect`, whose name is the dialect's. What a field names
    as `package.module:NAME` is imported when it is first needed; a field may also be the object itself."""

    dialect: str | Dialect
    """The `xdsl.ir.Dialect`: its ops, types and attributes."""
    meanings: Table = field(default_factory=lambda: EMPTY)
    """A mapping from op class to its reference implementation in numpy, `f(op, *operands)`, which the interpreter and
    constant folding run."""
    expansions: Table = field(default_factory=lambda: EMPTY)
    """A mapping from op class to `f(new, op)`, which builds simpler ops with equal results (`new` is a
    `relay.transforms.expansion.Expansion`) and returns the values that replace the op's results, or None to leave the
    op as it is. `new.target` is the machine that the model is built for."""
    patterns: str | Sequence[Any] = ()
    """Subclasses of `relay.transforms.legalization.Legalization`, or the `package.module:NAME` of a sequence of them.
    They are tried before `expansions`; unlike those, they can match patterns of several ops."""
    lowerings: Table = field(default_factory=lambda: EMPTY)
    """A mapping from op class to `f(emitter, op, operands)`, which emits `linalg` ops (`emitter` is a
    `relay.lowering.linalg.emitter.Emitter`): for ops that `relay` ops cannot express."""
    scalars: Table = field(default_factory=lambda: EMPTY)
    """A mapping from the class of an `ELEMENTWISE` op to `f(emitter, op, numbers)`, which emits `arith` and `math` ops
    that compute one element: `numbers` has one element of each operand, and the function returns one element of each
    result. Such an op may be fused with other ops into one loop nest."""
    passes: Table = field(default_factory=lambda: EMPTY)
    """A mapping from pass name to `package.module:Class`. The options of a `relay.passes.Pass` are keys of
    `PassContext.config`."""
    tflite: Table = field(default_factory=lambda: EMPTY)
    """A mapping from the custom code of a TFLite operator to `f(importer, node)`, as `from_tflite(custom_ops=...)`
    takes it."""
    onnx: Table = field(default_factory=lambda: EMPTY)
    """A mapping from `domain.Operator` of ONNX to `f(importer, node)`, as `from_onnx(custom_ops=...)` takes it."""
    examples: str = ""
    """`package:file.mlir`: functions that use the dialect's ops, and texts that must be refused; `relay-dialect test`
    tests the tables of this plug-in with them."""


DIALECTS: PlugIns[DialectPlugIn] = PlugIns("dialect", "relay.dialect", {})
"""The registry of other packages' dialects. `DIALECTS.register(name, DialectPlugIn(...))` adds one to this process."""


KINDS: dict[str, tuple[type[object], ...]] = {"dialect": (Dialect,), "patterns": (list, tuple)}
"""The accepted classes of the values of a plug-in's fields, by field name; fields that are missing here hold
mappings."""


def known(name: str) -> str:
    """Return the name if an installed package has a dialect of this name. Raises InvalidArgument otherwise."""
    names = DIALECTS.names()
    if name not in names:
        hint = did_you_mean(near(name, names), f"there are {', '.join(names) or 'none'}")
        raise InvalidArgument(f"dialect {name}", "is of no package that is installed", hint)
    return name


def place_of(dialect: str) -> str:
    """How error messages name a plug-in: `dialect sfx of relay-sfx 0.1`."""
    point = None if dialect in DIALECTS.registered else DIALECTS.chosen(dialect)
    points = () if point is None else (each for each in installed(DIALECTS.group) if each.value == point.value)
    dist = next((each.dist for each in points if each.name == dialect), None)
    return f"dialect {dialect}" if dist is None else f"dialect {dialect} of {dist.name} {dist.version}"


@contextmanager
def blamed(dialect: str, what: str) -> Generator[None]:
    """A context for calls of plug-in code: an exception other than RelayError becomes an error that names the
    package."""
    try:
        yield
    except RelayError:
        raise
    except Exception as error:
        said = str(error).strip().splitlines()
        what = f"{what}: {type(error).__name__}{f': {said[0]}' if said else ''}"
        raise Unsupported(place_of(dialect), what, "repair or uninstall the package") from error


def dialect_plug_in(name: str) -> DialectPlugIn | None:
    """The plug-in of a dialect; None if the dialect has none. Raises Unsupported if the plug-in cannot be loaded."""
    if name in DIALECTS.registered:
        return DIALECTS.registered[name]
    point = DIALECTS.chosen(name)
    if point is None:
        return None
    with blamed(name, "cannot be loaded"):
        found: object = point.load()
    if not isinstance(found, DialectPlugIn):
        hint = "its entry point must name a relay.dialects.plug_in.DialectPlugIn"
        raise Unsupported(place_of(name), f"{point.value} is {type(found).__name__}", hint)
    return found


def part(name: str, kind: str) -> Any:
    """The value of the field `kind` of a dialect's `DialectPlugIn`, such as `lowerings`; a name `package.module:NAME`
    is imported. An empty mapping if the dialect has no plug-in. Raises Unsupported, naming the package, if the import
    fails or the value is not of the field's type."""
    plug_in = dialect_plug_in(name)
    if plug_in is None:
        return EMPTY
    given: object = getattr(plug_in, kind)
    if isinstance(given, str):
        where = given
        with blamed(name, f"its {kind}, {where}, cannot be loaded"):
            given = resolve_name(where)
    if not isinstance(given, KINDS.get(kind, (Mapping,))):
        raise Unsupported(place_of(name), f"its {kind} is {type(given).__name__}", "see relay.dialects.plug_in")
    return given


def row(op: Operation, kind: str) -> Any:
    """The entry for an op's class in the table `kind` (such as `expansions`) of its dialect's plug-in; None if there is
    none."""
    return part(op.name.partition(".")[0], kind).get(type(op))


def has_lowering(op: Operation) -> bool:
    """Whether the plug-in of the op's dialect lowers the op to linalg, so that earlier passes may leave it in place."""
    return any(row(op, kind) is not None for kind in ("lowerings", "scalars"))


def universe_of(point: EntryPoint) -> Universe | None:
    """The universe that an entry point names; None if the object is not a universe. Raises Unsupported if it cannot be
    loaded."""
    try:
        universe: object = point.load()
    except Exception as error:
        raise Unsupported(f"plug-in {point.name}", f"cannot be loaded: {error}", "repair or uninstall it") from error
    return universe if isinstance(universe, Universe) else None


def universes() -> Iterator[Universe]:
    """The universes of packages other than xDSL and relay, found by their entry points."""
    for point in installed("xdsl.universe"):
        if point.name not in ("relay", "xdsl") and (universe := universe_of(point)) is not None:
            yield universe


def dialect_of(name: str) -> Dialect:
    """The dialect of a plug-in. Raises Unsupported, naming the package, if it cannot be loaded."""
    found: object = part(name, "dialect")
    if not isinstance(found, Dialect) or found.name != name:
        said = f"the dialect {found.name}" if isinstance(found, Dialect) else type(found).__name__
        raise Unsupported(place_of(name), f"its dialect is {said}", f"name an xdsl.ir.Dialect called {name}")
    return found


def plugged(name: str) -> Callable[[], Dialect] | None:
    """The constructor of the dialect of this name from another package; None if no package has it."""
    if name in DIALECTS.names():
        return lambda: dialect_of(name)
    return next((each.all_dialects[name] for each in universes() if name in each.all_dialects), None)


def passes() -> dict[str, Callable[[], Any]]:
    """The passes of all plug-ins as a mapping from name to a function that imports and returns the pass class."""
    found: dict[str, Callable[[], Any]] = {}
    for name in DIALECTS.names():
        for each, where in part(name, "passes").items():
            found.setdefault(each, partial(_pass, name, each, where))
    return found


def _pass(dialect: str, name: str, where: object) -> Any:
    with blamed(dialect, f"its pass {name} cannot be loaded"):
        return resolve_name(where) if isinstance(where, str) else where


def importers(format: str) -> dict[str, Any]:
    """The functions that plug-ins have for operators of a format (`tflite`, `onnx`), by operator name. Raises
    Unsupported where two plug-ins have one operator."""
    found: dict[str, tuple[str, Any]] = {}
    for dialect in DIALECTS.names():
        for name, function in part(dialect, format).items():
            if name in found:
                what = f"imports the {format} operator {name}, and so does {place_of(found[name][0])}"
                raise Unsupported(place_of(dialect), what, "uninstall one, or give a function in custom_ops")
            found[name] = dialect, function
    return {name: _guarded(dialect, name, function) for name, (dialect, function) in found.items()}


def _guarded(dialect: str, name: str, function: object) -> object:
    """Wrap an importer function so that its exceptions become errors that name the package."""
    if not callable(function):
        return function  # which the importer says

    @wraps(function)
    def convert(*given: Any) -> Any:
        with blamed(dialect, f"its import by {place_of(dialect)} fails"):
            return function(*given)

    return convert
