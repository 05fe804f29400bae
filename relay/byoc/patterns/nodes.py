"""The nodes of the pattern language: each enumerates the ways in which a value matches it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from relay.byoc.patterns.names import COMMUTATIVE, resolve
from relay.byoc.patterns.state import State
from relay.byoc.patterns.values import attribute, dtype, equal, has_dtype, has_shape
from relay.dialects import byoc
from relay.dialects.attributes import to_numpy
from relay.dialects.op import TensorOp
from relay.dialects.relay import ConstantOp
from relay.module import is_constant as at_hand


class Pattern(ABC):
    """A pattern of dataflow graphs. In a match, one pattern object stands for one value, however often it is used."""

    def match(self, value: SSAValue, state: State) -> Iterator[State]:
        """Every way in which the value matches, the preferred one first."""
        known = state.bound.get(self)
        if known is not None:
            if known is value:
                yield state
            return
        for found in self.ways(value, state):
            yield found.bind(self, value)

    @abstractmethod
    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        """Every way in which the value matches, if the pattern is not bound to a value yet."""

    def roots(self) -> frozenset[str] | None:
        """The names of the ops whose results can match; None if they are not known."""
        return None

    def __or__(self, other: Pattern) -> Pattern:
        return Alternative(self, other)

    def __add__(self, other: Pattern) -> Pattern:
        return Call("add")(self, other)

    def __sub__(self, other: Pattern) -> Pattern:
        return Call("subtract")(self, other)

    def __mul__(self, other: Pattern) -> Pattern:
        return Call("multiply")(self, other)

    def __truediv__(self, other: Pattern) -> Pattern:
        return Call("divide")(self, other)

    def has_attr(self, wanted: Mapping[str, object]) -> Where:
        """Require that the op which computes the value has these attributes (numbers, texts, lists, dtypes); None
        requires that it has no such attribute."""
        return Where(self, lambda value: _has(value, wanted))

    def has_dtype(self, wanted: object) -> Where:
        """Require that the value's elements have this dtype: `"int8"`, `"i8"`, `np.int8`, or an xDSL type.

        Raises InvalidArgument if it is no dtype.
        """
        if not isinstance(wanted, Attribute):
            dtype(wanted)
        return Where(self, lambda value: has_dtype(value.type, wanted))

    def has_shape(self, wanted: Sequence[int | None]) -> Where:
        """Require that the value has this shape; None stands for any size."""
        return Where(self, lambda value: has_shape(value.type, wanted))

    def has_type(self, wanted: Attribute | str) -> Where:
        """Require that the value has this type: an xDSL type, or its text, such as `"tensor<1x4xi8>"`."""
        return Where(self, lambda value: wanted in (value.type, str(value.type)))

    def where(self, holds: Callable[[SSAValue], bool]) -> Where:
        """Require that a predicate holds for the value."""
        return Where(self, holds)

    def optional(self, wrap: Callable[[Pattern], Pattern]) -> Pattern:
        """A pattern for `wrap(self)` if that matches, or else for this pattern."""
        return Alternative(wrap(self), self)

    def dominates(self, parent: Pattern, path: Pattern) -> Pattern:
        """A pattern that matches where this one does, if every path backwards from the matched op leads, through ops
        that match `path`, to the same op, which matches `parent`."""
        return Dominator(self, parent, path)

    def named(self, name: str) -> Pattern:
        """Bind the value to a name: `match[name]` is the op that computes it, `match.value(name)` the value."""
        return Named(self, name)


def _has(value: SSAValue, wanted: Mapping[str, object]) -> bool:
    op = value.owner
    return isinstance(op, Operation) and all(equal(attribute(op, name), what) for name, what in wanted.items())


class Wildcard(Pattern):
    """Matches any value."""

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        yield state

    def __call__(self, *operands: Pattern | None) -> Pattern:
        return Call()(*operands)


class Argument(Pattern):
    """Matches an argument of a function or block, with this name if one is given."""

    def __init__(self, name: str | None = None):
        self.name = name

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        if isinstance(value, BlockArgument) and self.name in (None, value.name_hint):
            yield state


class Constant(Pattern):
    """Matches a constant, which is copied into the match."""

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        if isinstance(value.owner, ConstantOp):
            yield state.copy(value.owner)


class Exactly(Pattern):
    """Matches exactly this value, or a constant with these elements."""

    def __init__(self, wanted: SSAValue | Operation | npt.ArrayLike):
        self.wanted = wanted.results[0] if isinstance(wanted, Operation) else wanted

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        if isinstance(self.wanted, SSAValue):
            if value is self.wanted:
                yield state
        elif at_hand(value.owner) and np.array_equal(to_numpy(value.owner.value), np.asarray(self.wanted)):
            yield state.copy(value.owner)


class Call(Pattern):
    """Matches the first result of an op with one of these names (any name if none is given) whose operands match."""

    def __init__(self, *names: str, operands: Sequence[Pattern] | None = None, elementwise: bool = False):
        self.names = tuple(map(resolve, names))
        self.operands = operands
        self.elementwise = elementwise

    def __call__(self, *operands: Pattern | None) -> Pattern:
        """This pattern with patterns for the op's operands; a single `None` instead of them leaves the operands
        unchecked."""
        given = [operand for operand in operands if operand is not None]
        whatever = len(given) < len(operands)
        return Call(*self.names, operands=None if whatever else given, elementwise=self.elementwise)

    def roots(self) -> frozenset[str] | None:
        return frozenset(self.names) or None

    def takes(self, op: Operation) -> bool:
        """Return whether the op matches, whatever its operands are. A pattern with names accepts the ops of these
        names, an elementwise one the elementwise ops, any other one all ops but constants and ops of the dialect
        `byoc`."""
        if self.names:
            return op.name in self.names
        if self.elementwise:
            return isinstance(op, TensorOp) and op.ELEMENTWISE
        return not isinstance(op, ConstantOp | byoc.Body | byoc.Boundary | FuncOp)

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        op = value.owner
        if not isinstance(op, Operation) or value is not op.results[0] or not self.takes(op):
            return
        taken = state.take(op)
        if self.operands is None:
            yield taken
            return
        if len(self.operands) != len(op.operands):
            return
        orders = [tuple(op.operands)]
        if op.name in COMMUTATIVE and len(op.operands) == 2 and op.operands[0] is not op.operands[1]:
            orders.append(orders[0][::-1])
        for order in orders:
            yield from together(self.operands, order, taken)


def together(patterns: Sequence[Pattern], values: Sequence[SSAValue], state: State) -> Iterator[State]:
    """Every way in which all the values match their patterns."""
    if not patterns:
        yield state
        return
    for found in patterns[0].match(values[0], state):
        yield from together(patterns[1:], values[1:], found)


class Output(Pattern):
    """Matches the k-th result (any, if k is None) of the op whose first result matches."""

    def __init__(self, pattern: Pattern, k: int | None):
        self.pattern, self.k = pattern, k

    def roots(self) -> frozenset[str] | None:
        return self.pattern.roots()

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        if isinstance(value, OpResult) and self.k in (None, value.index):
            yield from self.pattern.match(value.owner.results[0], state)


class Alternative(Pattern):
    """Matches any one of several patterns, earlier ones preferred."""

    def __init__(self, *patterns: Pattern):
        self.patterns = patterns

    def roots(self) -> frozenset[str] | None:
        found = [pattern.roots() for pattern in self.patterns]
        names = [name for each in found if each is not None for name in each]
        return None if None in found else frozenset(names)

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        for pattern in self.patterns:
            yield from pattern.match(value, state)


class Where(Pattern):
    """A pattern with a predicate on its value."""

    def __init__(self, pattern: Pattern, holds: Callable[[SSAValue], bool]):
        self.pattern, self.holds = pattern, holds

    def roots(self) -> frozenset[str] | None:
        return self.pattern.roots()

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        if self.holds(value):
            yield from self.pattern.match(value, state)

    def __call__(self, *operands: Pattern | None) -> Pattern:
        """Return this pattern with its predicate, and with patterns for the operands of the op that it matches, as in
        `wildcard().has_attr({...})(x)`. Raises TypeError unless it is a `Wildcard`, `Call` or `Where`."""
        if not isinstance(self.pattern, Wildcard | Call | Where):
            raise TypeError("only patterns of ops take operands")
        return Where(self.pattern(*operands), self.holds)


class Named(Pattern):
    """A pattern whose value is bound to a name."""

    def __init__(self, pattern: Pattern, name: str):
        self.pattern, self.label = pattern, name

    def roots(self) -> frozenset[str] | None:
        return self.pattern.roots()

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        for found in self.pattern.match(value, state):
            yield found.name(self.label, value)


class Dominator(Pattern):
    """Matches `child` if every path backwards from the matched op leads, through ops that match `path`, to the same
    match of `parent`, or to a constant."""

    def __init__(self, child: Pattern, parent: Pattern, path: Pattern):
        self.child, self.parent, self.path = child, parent, path

    def roots(self) -> frozenset[str] | None:
        return self.child.roots()

    def ways(self, value: SSAValue, state: State) -> Iterator[State]:
        for found in self.child.match(value, state):
            for all in self.back(value.owner, found):
                if self.parent in all.bound:
                    yield all

    def back(self, op: object, state: State) -> Iterator[State]:
        """Yield the state of every match in which each operand of the op is a constant or leads back, through ops that
        match `path`, to the same match of `parent`."""
        if isinstance(op, Operation):
            yield from self.lead([value for value in op.operands if not isinstance(value.owner, ConstantOp)], state)

    def lead(self, values: Sequence[SSAValue], state: State) -> Iterator[State]:
        if not values:
            yield state
            return
        for found in self.leads(values[0], state):
            yield from self.lead(values[1:], found)

    def leads(self, value: SSAValue, state: State) -> Iterator[State]:
        yield from self.parent.match(value, state)
        for step in self.path.ways(value, state):
            forget = State(state.bound, step.ops, step.constants, step.names)
            yield from self.back(value.owner, forget)
