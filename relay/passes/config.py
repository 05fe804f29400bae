"""The keys of `PassContext.config`: every option of every pass, and further declared keys, each with a type and a
default."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import cast, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.hints import isa, type_repr

from relay.arguments import is_mapping, shown
from relay.errors import InvalidArgument, did_you_mean, near
from relay.passes import registry
from relay.passes.info import DescribedPass


@dataclasses.dataclass(frozen=True)
class Key:
    """One key of the configuration: its type, default and documentation."""

    name: str
    type: object
    default: object
    doc: str = ""
    deprecated: bool = False
    """Whether the key is accepted with a warning, and not listed."""

    def check(self, value: object, where: str = "") -> object:
        """Return the value, converted to the key's type: an `int` becomes a `float`, a list a tuple, a mapping of
        fields a dataclass; a `bool` is not an `int`. Raises InvalidArgument for a value of another type."""
        cls = self.type
        if is_mapping(value) and isinstance(cls, type) and dataclasses.is_dataclass(cls):
            return self._make(cast(type[object], cls), value)
        given = float(value) if self.type is float and type(value) is int else value
        given = tuple(cast(list[object], given)) if isinstance(given, list) else given
        if isinstance(given, bool) and self.type in (int, float) or not isa(given, cast(type[object], self.type)):
            said = f"{shown(value)} is not of type {type_repr(self.type)}"
            raise InvalidArgument(where or f"config['{self.name}']", said)
        return given

    def _make(self, cls: type[object], given: Mapping[str, object]) -> object:
        hints = get_type_hints(cls)
        for name, value in given.items():
            if name not in hints:
                where = f"config['{self.name}']"
                raise InvalidArgument(where, f"has no field '{name}'", f"it has {', '.join(hints)}")
            Key(f"{self.name}.{name}", hints[name], None).check(value)
        return cls(**given)


NO_OPTIONS: Mapping[str, Key] = {}
DECLARED = {
    "relay.check_numbers": Key(
        "relay.check_numbers", object, None, "inputs of @main, for which no pass may change what the interpreter gives"
    ),
    "relay.verify": Key(
        "relay.verify", bool, True, "verify what passes that are not ours leave, and what is to be lowered"
    ),
}
"""The keys that are not options of a pass, by name."""


def declare(name: str, type: object, default: object, doc: str) -> Key:
    """Add a key to those that `PassContext.config` accepts besides the options of passes, and return it. Declaring it
    again in the same way changes nothing; in another way, it raises InvalidArgument."""
    key = Key(name, type, default, doc)
    if DECLARED.setdefault(name, key) != key:
        raise InvalidArgument(f"config['{name}']", "is declared already, with another type or default")
    return key


@lru_cache(maxsize=256)
def options(cls: type[ModulePass]) -> Mapping[str, Key]:
    """The options of a pass by name."""
    hints = get_type_hints(cls)
    found: dict[str, Key] = {}
    for field in dataclasses.fields(cls):
        if field.name != "name" and field.init and field.default is not dataclasses.MISSING:
            deprecated = bool(field.metadata.get("deprecated"))
            found[field.name] = Key(f"{cls.name}.{field.name}", hints[field.name], field.default, deprecated=deprecated)
    return found


def all_keys() -> dict[str, Key]:
    """Every key: the declared ones, then the options of passes: of relay's, of plug-ins', and of those that a decorator
    has made."""
    return DECLARED | {key.name: key for cls in registry.ours() for key in options(cls).values()}


def normalise(config: Mapping[str, object]) -> dict[str, object]:
    """Checked values by canonical key: `relay.FoldConstant.max_bytes` is `fold-constant.max_bytes`, and so is
    `max_bytes` in a mapping at the key `fold-constant`.

    Raises InvalidArgument for an unknown key, naming the nearest ones, and for a value of another type.
    """
    found: dict[str, object] = {}
    for name, value in config.items():
        nested = {f"{name}.{option}": given for option, given in value.items()} if is_mapping(value) else None
        for each, given in {name: value}.items() if nested is None or name in DECLARED else nested.items():
            key = _key(each)
            found[key.name] = key.check(given)
    return found


def _key(name: str) -> Key:
    if name in DECLARED:
        return DECLARED[name]
    pass_name, _, option = name.removeprefix("relay.").rpartition(".")
    try:
        keys = options(registry.find(pass_name)) if pass_name else NO_OPTIONS
    except InvalidArgument:
        keys = NO_OPTIONS
    option = option.replace("-", "_")
    if option in keys:
        return keys[option]
    known = [key.name for key in keys.values()] or list(all_keys())
    alike = near(name.removeprefix("relay."), known, cutoff=0.5) or [k.name for k in keys.values()]
    raise InvalidArgument(
        f"config['{name}']", "is not a known key", did_you_mean(alike, "see PassContext.list_configs()")
    )


def check_options(step: ModulePass) -> None:
    """Raise InvalidArgument if an option of one of relay's passes has a value of another type than declared."""
    if isinstance(step, DescribedPass):
        for name, key in options(type(step)).items():
            if (value := getattr(step, name)) is not key.default:
                key.check(value, f"pass {step.name}, option {name}")


def override(step: ModulePass, config: Mapping[str, object]) -> ModulePass:
    """The pass, with the value from `config` for each option that has its default value; options with other values keep
    them."""
    prefix = f"{step.name}."
    given = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    if not given:
        return step
    keys = options(type(step))
    changes = {n: v for n, v in given.items() if n in keys and getattr(step, n) == keys[n].default}
    return dataclasses.replace(step, **changes) if changes else step
