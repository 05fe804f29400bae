"""Passes by name: those of relay, of xDSL and of other packages, and those that decorators have made."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, cast, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, PipelineLexer, SpecTokenKind, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa

from relay.arguments import shown
from relay.arguments import text as checked_text
from relay.dialects import plug_in
from relay.dialects.plug_in import universe_of, universes
from relay.errors import InvalidArgument, Unsupported, did_you_mean, near
from relay.passes.info import FOREIGN, DescribedPass, names_of
from relay.universe import PROVIDERS, RENAMED, public_names

Factory = Callable[[], type[ModulePass]]

GROUP = "xdsl.universe"
OURS = EntryPoint("relay", "relay.universe:UNIVERSE", GROUP)
XDSL = EntryPoint("xdsl", "xdsl.universe:XDSL_UNIVERSE", GROUP)
"""The entry point of xDSL's passes, which needs no installation."""

MADE: dict[str, type[ModulePass]] = {}
"""The passes made by `module_pass` and `function_pass`, or registered by a program, by name."""


def register(cls: type[ModulePass]) -> None:
    """Register a pass under its name. Registering it again, as when a notebook's cell runs twice, replaces it.

    Raises InvalidArgument if the name is that of a pass of relay or xDSL (or an alias of one), or of another pass
    registered here.
    """
    where, hint = f"pass {cls.name}", "give it another: name='my-...'"
    if any(kebab(cls.name) in _factories(point) for point in (OURS, XDSL)) or cls.name in public_names():
        raise InvalidArgument(where, "has the name of a pass of relay or xDSL", hint)
    other = MADE.get(cls.name, cls)
    if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InvalidArgument(where, f"has the name of {other.__module__}.{other.__qualname__}, a pass too", hint)
    MADE[cls.name] = cls


@cache
def _factories(point: EntryPoint) -> dict[str, Factory]:
    universe = universe_of(point)
    return {} if universe is None else dict(universe.all_passes)


def plugged() -> dict[str, Factory]:
    """The passes of other installed packages, by name."""
    merged = plug_in.passes()
    for universe in universes():
        merged = universe.all_passes | merged
    return merged


def factories() -> dict[str, Factory]:
    """A mapping from every pass's canonical name to a factory that imports the pass."""
    merged = plugged()
    for point in (XDSL, OURS):
        merged.update(_factories(point))
    return merged | {name: _given(cls) for name, cls in MADE.items()}


def _given(cls: type[ModulePass]) -> Factory:
    return lambda: cls


def ours() -> Iterator[type[DescribedPass]]:
    """The classes of relay's passes, of plug-in dialects' passes, and of passes from decorators, in the order of their
    tables."""
    for factory in (*_factories(OURS).values(), *plug_in.passes().values()):
        if issubclass(cls := factory(), DescribedPass):
            yield cls
    yield from (cls for cls in MADE.values() if issubclass(cls, DescribedPass))


def find(name: str, where: str = "pipeline", first: Mapping[str, Factory] | None = None) -> type[ModulePass]:
    """The pass with this name or alias; one in the table `first` has priority. Raises InvalidArgument that suggests the
    nearest names."""
    checked_text(name, where, "passes are told by their names")
    if (now := RENAMED.get(kebab(name))) is not None:
        warnings.warn(f"the pass {name} is deprecated: write {now}", DeprecationWarning, stacklevel=3)
        name = now
    if first is not None and name in first:
        return load(name, first[name])
    if name in MADE:
        return MADE[name]
    for candidate in (name, kebab(name)):
        for point in (OURS, XDSL):
            if candidate in (table := _factories(point)):
                return load(candidate, table[candidate])
    known = factories()
    if name in known:
        return load(name, known[name])
    for foreign, facts in FOREIGN.items():
        if name in facts.aliases:
            return known[foreign]()
    by_alias = {alias: cls for cls in ours() for alias in names_of(cls)}
    if name in by_alias:
        return by_alias[name]
    named = {**{name: name for name in known}, **{alias: cls.name for alias, cls in by_alias.items()}}
    alike = dict.fromkeys(named[each] for each in near(name, named))
    raise InvalidArgument(where, f"there is no pass '{name}'", did_you_mean(alike, "see relay-opt --list-passes"))


def load(name: str, factory: Factory) -> type[ModulePass]:
    """Import a pass. Raises Unsupported where a package that it needs is not installed."""
    try:
        return factory()
    except ModuleNotFoundError as error:
        raise Unsupported(f"pass {name}", str(error), "install the package that it needs") from error


def kebab(name: str) -> str:
    """A name in CamelCase in kebab-case: `FoldConstant` becomes `fold-constant`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def canonical(name: str, where: str = "pipeline") -> str:
    """The canonical name of the pass with this name or alias."""
    return find(name, where).name


def create(spec: ArgSpec, where: str = "pipeline", first: Mapping[str, Factory] | None = None) -> ModulePass:
    """Make the pass, with its options, that one element of a pipeline's text describes."""
    cls = find(spec.name, where, first)
    try:
        return cls.from_pass_spec(ArgSpec(cls.name, spec.parameters))
    except ValueError as error:
        check_values(cls, spec)
        raise InvalidArgument(f"pass {spec.name}", str(error), "see relay-opt --list-passes") from error


def check_values(cls: type[ModulePass], spec: ArgSpec) -> None:
    """Raise InvalidArgument for an option that the pass does not have, or whose value is not of the option's type."""
    types, known = get_type_hints(cls), [field.name for field in fields(cast(Any, cls)) if field.name != "name"]
    for option, value in spec.parameters.items():
        if (name := option.replace("-", "_")) not in known:
            hint = did_you_mean(near(name, known), f"it has {', '.join(known) or 'none'}")
            raise InvalidArgument(f"pass {spec.name}", f"has no option '{option}'", hint) from None
        if not (isa(value, types[name]) or (len(value) <= 1 and isa(next(iter(value), None), types[name]))):
            given, kind = " ".join(map(str, value)), getattr(types[name], "__name__", types[name])
            raise InvalidArgument(f"pass {spec.name}", f"option {option} is '{given}', and not {kind}") from None


def parse(text: str, where: str = "pipeline", first: Mapping[str, Factory] | None = None) -> list[ModulePass]:
    """Parse a pipeline's text, in xDSL's syntax, to passes: `legalize,fold-constant{max_bytes=1024}`."""
    checked_text(text, where, "write for example 'cse,dce'")
    plain = DOTTED.sub(_without_dots, ",".join(flat(text, where)) if "(" in text else text)
    try:
        specs = list(parse_pipeline(plain))
    except ArgSpecParseError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise InvalidArgument(where, f"'{text}': {lines[-1]}", "write for example 'cse,dce'") from None
    check_options(plain)
    return [create(spec, where, first) for spec in specs]


ANCHORS = ("builtin.module", "func.func", "any")
PART = re.compile(r'"(?:[^"\\]|\\.)*"|[{}(),]|[^"{}(),]+|.')
"""A pattern for one token: a quoted text, one of `{}(),`, or the text between them."""


def flat(text: str, where: str = "pipeline") -> list[str]:
    """Flatten a nested pipeline text, such as upstream's `builtin.module(func.func(cse),dce)`, to a list of passes with
    their options.

    Every pass runs on the whole module. Raises InvalidArgument for another anchor, and for parentheses that do not
    match.
    """
    found, item, depth, braces = list[str](), "", 0, 0
    for part in [*PART.findall(text), ","]:
        if part in ("{", "}"):
            braces += 1 if part == "{" else -1
        if braces or part not in ("(", ")", ","):
            item += part
        elif part == "(":
            if item.strip() not in ANCHORS:
                hint = f"anchors are {', '.join(ANCHORS)}; leave others out: passes run on the module"
                raise InvalidArgument(where, f"{shown(item.strip())} is no anchor of a nested pipeline here", hint)
            depth, item = depth + 1, ""
        else:
            if item.strip():
                found.append(item.strip())
            depth, item = depth - (part == ")"), ""
            if depth < 0:
                break
    if depth or braces:
        raise InvalidArgument(where, f"{shown(text)} has parentheses or braces that do not match", "count them")
    return found


def check_options(text: str) -> None:
    """Raise InvalidArgument if a pass has one option twice: xDSL's parser would silently use the last one."""
    lexer, step, given, last = PipelineLexer(text), "", set[str](), None
    while (token := lexer.lex()).kind is not SpecTokenKind.EOF:
        if token.kind is SpecTokenKind.L_BRACE:
            step, given = last.span.text if last else "", set[str]()
        elif token.kind is SpecTokenKind.IDENT and last and last.kind in (SpecTokenKind.L_BRACE, SpecTokenKind.SPACE):
            option = token.span.text.replace("-", "_")
            if option in given:
                raise InvalidArgument(f"pass {step}", f"has the option '{option}' twice", "write a=1,2")
            given.add(option)
        last = token


DOTTED = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w-])[A-Za-z_][\w-]*+(?:\.[A-Za-z_][\w-]*+)+')
"""A pattern for a quoted text, or a name with dots such as `qnn.Legalize`, which xDSL's syntax lacks. It is anchored at
the start of a word; otherwise matching a long name would take quadratic time."""


def _without_dots(found: re.Match[str]) -> str:
    name = found.group()
    return name if name.startswith('"') else canonical(name)


def provider(prop: str) -> type[ModulePass] | None:
    """The first pass that establishes a property: relay's own, then those from decorators; None if there is none."""
    if prop in PROVIDERS:
        return find(PROVIDERS[prop])
    return next((cls for cls in MADE.values() if issubclass(cls, DescribedPass) and prop in cls.establishes), None)
