"""The typed view of a kernel's attribute `relay.schedule`: the decisions about each of its operations, and their
reasons.

The attribute is a dictionary of builtin attributes: the decisions about the kernel's only operation, or `ops`, an array
of such dictionaries, and `threads`, the loops that threads share. A record has a field for each decision; `why` is for
human readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from relay.arguments import instance
from relay.dialects.attributes import scalar_attr
from relay.errors import InvalidArgument

ATTRIBUTE = "relay.schedule"

Value: TypeAlias = "bool | int | str | tuple[Value, ...] | Mapping[str, Value] | OpSchedule"
Given: TypeAlias = Mapping[str, Value]
"""Decisions by name."""


@dataclass(frozen=True, kw_only=True)
class OpSchedule:
    """The decisions about an operation. `op`: its number among the fills, copies and generics of the kernel; `cycles`:
    estimated cycles on one core; `why`: the reason for the decisions."""

    strategy: ClassVar[str]
    keeps_order: ClassVar[frozenset[str]] = frozenset()
    """The names of decisions that do not affect the order in which floats are added."""
    op: int = 0
    cycles: int = 0
    why: str = ""

    @property
    def decisions(self) -> dict[str, Value]:
        """The fields that this strategy's record adds to `OpSchedule`, in order."""
        general = {field.name for field in fields(OpSchedule)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in general}

    def attribute(self, *, numbered: bool = False) -> DictionaryAttr:
        """Return the record as an attribute. With `numbered`, it includes the number of the op, which kernels with
        several ops need."""
        first: dict[str, Value] = {"strategy": self.strategy, **({"op": self.op} if numbered else {})}
        last: dict[str, Value] = {"cycles": self.cycles, "why": self.why}
        return DictionaryAttr({name: encode(value) for name, value in {**first, **self.decisions, **last}.items()})


@dataclass(frozen=True)
class SharedLoop:
    """A loop whose iterations are divided among threads. `loop`: its number among the kernel's independent loops;
    `turns`: its number of iterations; `around`: the number of an enclosing loop before which the threads start, so that
    they start only once: each executes the whole enclosing loop, and its own part of the shared loop in each iteration.
    `around` is equal to `loop` if there is no such loop."""

    loop: int
    around: int
    turns: int

    def attribute(self) -> DictionaryAttr:
        return DictionaryAttr({name: encode(number) for name, number in vars(self).items()})


@dataclass(frozen=True)
class Entry:
    """An attribute's decisions about one operation, not checked yet. `strategy` or `op` is None if the attribute does
    not name it."""

    strategy: str | None
    op: int | None
    given: Given

    @classmethod
    def of(cls, attr: DictionaryAttr, where: str) -> Entry:
        """Read the decisions about one operation from a dictionary of the attribute `relay.schedule`; estimates and
        comments in it are left out. Raises InvalidArgument if `strategy` or `op` has the wrong type."""
        given = decode_dictionary(attr, where)
        strategy, op = given.get("strategy"), given.get("op")
        if not isinstance(strategy, str | None) or not isinstance(op, int | None) or isinstance(op, bool):
            raise InvalidArgument(where, "strategy is a name and op a number", 'write {strategy = "nest", op = 0, ...}')
        left = {name: v for name, v in given.items() if name not in ("strategy", "op", "cycles", "why", "threads")}
        return cls(strategy, op, left)


def entries_of(function: FuncOp) -> list[Entry]:
    """Return the decisions about each operation that the function's attribute `relay.schedule` contains; an empty list
    without the attribute. Raises InvalidArgument if the attribute has another form."""
    attr, where = function.attributes.get(ATTRIBUTE), place_of(function)
    if attr is not None and not isinstance(attr, DictionaryAttr):
        raise InvalidArgument(where, "is not a dictionary", 'write {strategy = "nest", ...}')
    return [] if attr is None else [Entry.of(each, where) for each in dictionaries(attr, where)]


def dictionaries(attr: DictionaryAttr, where: str) -> list[DictionaryAttr]:
    """Return the dictionary of each operation's schedule in `attr`, the value of an attribute `relay.schedule`: those
    in its entry `ops`, or `attr` itself if it describes a single operation. Raises InvalidArgument, naming `where`, if
    the attribute has neither form."""
    if (ops := attr.data.get("ops")) is None:
        if "strategy" not in attr.data and set(attr.data) - {"threads"}:
            raise InvalidArgument(where, "names no strategy", 'write {strategy = "nest", ...}, or ops = [{...}, ...]')
        return [attr] if "strategy" in attr.data else []
    if others := sorted(set(attr.data) - {"ops", "threads"}):
        raise InvalidArgument(where, f"has {others[0]} beside ops", "write it in an entry of ops")
    every = ops.data if isa(ops, ArrayAttr[Attribute]) else ()
    found = [each for each in every if isinstance(each, DictionaryAttr)]
    if not found or len(found) < len(every):
        raise InvalidArgument(where, "ops is not an array of dictionaries", "write ops = [{strategy = ...}, ...]")
    return found


def schedules_in(function: FuncOp, kinds: Mapping[str, type[OpSchedule]]) -> list[OpSchedule]:
    """Return the records of a function's schedule attribute, one for each operation; every record must be complete.
    Raises InvalidArgument."""
    function = instance(function, FuncOp, "schedules_of", "give a function: module['conv2d_0']")
    attr, where = function.attributes.get(ATTRIBUTE), place_of(function)
    found = dictionaries(attr, where) if isinstance(attr, DictionaryAttr) else []
    try:
        return [typed(decode_dictionary(each, where), kinds) for each in found]
    except (KeyError, TypeError) as error:
        raise InvalidArgument(where, "a strategy or a decision is missing", "run `schedule` to have all") from error


def place_of(function: FuncOp) -> str:
    """Return `@function: relay.schedule`, with which errors about the schedule of a function begin."""
    return f"@{function.sym_name.data}: {ATTRIBUTE}"


def not_scheduled(function: FuncOp) -> InvalidArgument:
    """Return the error for a function that has the attribute `relay.schedule`, but no operation to schedule."""
    what = "the function has nothing to schedule"
    return InvalidArgument(place_of(function), what, "write the attribute on a kernel that it calls")


def threads_of(function: FuncOp) -> list[SharedLoop] | None:
    """Return the loops that the function's `relay.schedule` divides among threads, as its entry `threads` lists them;
    None without this entry. Raises InvalidArgument if the entry is not valid."""
    if (threads := data_of(function).get("threads")) is None:
        return None
    found: list[SharedLoop] = []
    where, hint = place_of(function), "write threads = [{loop = 0}, ...], or [] for none"
    for each in threads.data if isa(threads, ArrayAttr[Attribute]) else [threads]:
        given = decode_dictionary(each, where) if isinstance(each, DictionaryAttr) else {}
        numbers = {name: value for name, value in given.items() if type(value) is int}
        if "loop" not in numbers or len(numbers) < len(given):
            raise InvalidArgument(where, "threads is not an array of loops", hint)
        if unknown := sorted(numbers.keys() - {"loop", "around", "turns"}):
            raise InvalidArgument(where, f"threads says {unknown[0]} of a loop", "it may say loop, around and turns")
        if (turns := numbers.get("turns", 0)) < 0:
            raise InvalidArgument(where, f"threads share a loop of {turns} turns", "leave turns out: it is not read")
        found.append(SharedLoop(numbers["loop"], numbers.get("around", numbers["loop"]), turns))
    return found


def write(function: FuncOp, ops: Sequence[OpSchedule]) -> None:
    """Set the schedule attribute of the function; an existing `threads` entry is kept."""
    threads = {name: value for name, value in data_of(function).items() if name == "threads"}
    if len(ops) == 1:
        data = dict(ops[0].attribute().data)
    else:
        data: dict[str, Attribute] = {"ops": ArrayAttr([each.attribute(numbered=True) for each in ops])}
    function.attributes[ATTRIBUTE] = DictionaryAttr(data | threads)


def write_threads(function: FuncOp, loops: Sequence[SharedLoop]) -> None:
    """Set the `threads` entry of the function's schedule attribute: the loops that threads share."""
    threads = ArrayAttr([each.attribute() for each in loops])
    function.attributes[ATTRIBUTE] = DictionaryAttr({**data_of(function), "threads": threads})


def data_of(function: FuncOp) -> Mapping[str, Attribute]:
    """Return the function's attribute `relay.schedule` as a dictionary of its entries, such as `ops` and `threads`; an
    empty one without the attribute."""
    attr = function.attributes.get(ATTRIBUTE)
    return attr.data if isinstance(attr, DictionaryAttr) else {}


def typed(given: Given, kinds: Mapping[str, type[OpSchedule]]) -> OpSchedule:
    """Return a schedule made from a dictionary of its strategy's name and all its decisions; `kinds` maps names of
    strategies to the classes of their schedules. Raises KeyError or TypeError if the strategy or a decision is
    missing."""
    values = {name: typed_parts(value, kinds) for name, value in given.items() if name not in ("strategy", "threads")}
    return kinds[str(given["strategy"])](**cast(Any, values))


def typed_parts(value: Value, kinds: Mapping[str, type[OpSchedule]]) -> Value:
    """Return a decision in which each dictionary of a tuple is replaced by the `OpSchedule` that it describes; other
    decisions are returned unchanged. `kinds`: the classes by the names of their strategies."""
    if isinstance(value, tuple):
        return tuple(typed(each, kinds) if isinstance(each, Mapping) else each for each in value)
    return value


# Values


BOOLEANS = {value: BoolAttr.from_bool(value) for value in (False, True)}


def encode(value: Value) -> Attribute:
    """Convert a decision to an attribute."""
    match value:
        case bool():
            return BOOLEANS[value]
        case int():
            return scalar_attr(value, i64)
        case str():
            return StringAttr(value)
        case OpSchedule():
            return value.attribute()
        case tuple():
            numbers = [each for each in value if isinstance(each, int)]
            if len(numbers) == len(value):
                return DenseArrayBase.from_list(i64, numbers)
            return ArrayAttr([encode(each) for each in value])
        case _:
            return DictionaryAttr({name: encode(each) for name, each in value.items()})


def decode_dictionary(attr: DictionaryAttr, where: str) -> dict[str, Value]:
    """Convert a dictionary attribute to decisions by name. Raises InvalidArgument, with the place `where`, for a value
    that cannot be a decision."""
    return {name: decode(value, f"{where}: {name}") for name, value in attr.data.items()}


def decode(attr: Attribute, where: str) -> Value:
    """Convert an attribute to a decision: a bool, a number, a name, or an array of numbers, names or dictionaries.
    Raises InvalidArgument."""
    if isa(attr, IntegerAttr[IntegerType]):
        return bool(attr.value.data) if attr.type == i1 else attr.value.data
    if isinstance(attr, StringAttr):
        return attr.data
    if isa(attr, DenseArrayBase[IntegerType]):
        return attr.get_values()
    if isa(attr, ArrayAttr[Attribute]):
        return tuple(decode(each, where) for each in attr.data)
    if isinstance(attr, DictionaryAttr):
        return decode_dictionary(attr, where)
    raise InvalidArgument(where, f"{attr} is no decision", "write true, a number, a name, or an array of these")
