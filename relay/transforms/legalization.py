"""Lists the legalization patterns, and applies them.

A dialect's patterns rewrite its ops to legal `relay` and `byoc` ops. They are in this folder, or in another package:
those of a `DialectPlugIn`, or of an entry point of the group `relay.legalize` (its name: the dialect; its object: a
list of `Legalization` classes). Nothing is imported for a dialect that neither the context has loaded nor the module
uses.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from inspect import cleandoc, getclosurevars
from typing import Any, ClassVar, cast, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from relay.dialects import byoc, plug_in
from relay.dialects.op import DYNAMIC, TensorOp, is_tensor
from relay.errors import RelayError, Unsupported
from relay.passes import Pass
from relay.passes.context import PassContext
from relay.plug_ins import installed
from relay.target import Target, target_of
from relay.target.record import UNKNOWN
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion
from relay.transforms.location import place

ENTRY_POINTS = "relay.legalize"
LEGAL = ("relay", "byoc")
"""The legal dialects. Their ops may have patterns, too (choices of a target), and may stay."""
EXPANDED = "%x  =>  the ops of its row in the expansions of its plug-in"
ROUNDS = 32
"""The maximum number of rounds; if patterns still apply after that, two of them undo each other."""


@dataclass(frozen=True)
class Legalization(RewritePattern, ABC):
    """A pattern that rewrites an op for which the next stage has no rules; what it rewrites it to may depend on the
    target. The first paragraph of its docstring shows the rewrite, as `before => after`."""

    REPLACES: ClassVar[frozenset[type[Operation]]] = frozenset()
    """Ops of a dialect in `LEGAL` that this pattern removes completely: they have no lowering."""
    target: Target = UNKNOWN

    @property
    def features(self) -> frozenset[str]:
        """The target's features, by LLVM's names."""
        return self.target.features

    def choice(self) -> str:
        """The choice that the pattern makes for its target, in words; empty if its result is the same for all
        targets."""
        return ""

    def replaces(self, op: Operation) -> bool:
        """Whether this pattern must remove the op, because it has no lowering, although it belongs to a dialect whose
        ops may otherwise stay (`relay` or `byoc`)."""
        return type(op) in self.REPLACES


Values = SSAValue | Sequence[SSAValue]


def pattern(build: Callable[[Expansion, Any], Values]) -> type[Legalization]:
    """A pattern that replaces ops by the values that a function builds: the ops of the type of its parameter `op`. The
    pattern has the function's documentation and its name, in camel case."""
    expected_type = get_type_hints(build)["op"]

    def match_and_rewrite(self: Legalization, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, expected_type):
            new = Expansion(op, self.target)
            found = build(new, op)
            new.replace(rewriter, *([found] if isinstance(found, SSAValue) else found))

    members = {"match_and_rewrite": match_and_rewrite, "__doc__": build.__doc__, "__module__": build.__module__}
    return type(build.__name__.title().replace("_", ""), (Legalization,), members)


Patterns = Sequence[type[Legalization]]


REGISTRY: list[tuple[str, str]] = [
    ("qnn", "relay.transforms.qnn_patterns:PATTERNS"),
    ("relay", "relay.transforms.widening:PATTERNS"),
    ("relay", "relay.transforms.expansions:PATTERNS"),
]
"""Pairs of a dialect and the import path of its patterns, in the order in which they are applied."""


@dataclass(frozen=True)
class ExpandRows(Legalization):
    """op %x  =>  the ops that the function of `ROWS` for the class of the op builds

    An op with unknown sizes is left unchanged, unless it is elementwise.
    """

    ROWS: ClassVar[Mapping[type[Operation], Callable[..., Values | None]]] = {}

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if type(op) not in self.ROWS:
            return
        new = Expansion(op, self.target)
        if (found := self.expanded(new, op)) is not None:
            new.replace(rewriter, *([found] if isinstance(found, SSAValue) else found))

    def expanded(self, new: Expansion, op: Operation) -> Values | None:
        """Build the simpler ops by the function of `ROWS` for the op's class, and return their result; None if the op
        stays."""
        elementwise = isinstance(op, TensorOp) and op.ELEMENTWISE
        return self.ROWS[type(op)](new, op) if elementwise or is_static(op) else None


def is_static(op: Operation) -> bool:
    """Whether all dimensions of the op's operands and results are known."""
    types = (value.type for value in (*op.operands, *op.results))
    return not any(DYNAMIC in type.get_shape() for type in types if is_tensor(type))


@dataclass(frozen=True)
class PlugInPatterns:
    """The legalization patterns of a plug-in's dialect, with the attribute `name` and the method `load` of an
    `EntryPoint` of Python's packaging metadata."""

    name: str

    def load(self) -> Patterns:
        """The plug-in's patterns; if its table `expansions` (op classes with functions that rewrite them) is not empty,
        followed by a pattern that applies the table."""
        found: list[type[Legalization]] = [*plug_in.part(self.name, "patterns")]
        if rows := plug_in.part(self.name, "expansions"):
            found.append(type("Expand", (ExpandRows,), {"ROWS": rows, "__doc__": f"{self.name}.* {EXPANDED}"}))
        return found


class Guarded(RewritePattern):
    """A pattern of a plug-in, whose exceptions become errors that name the plug-in."""

    def __init__(self, dialect: str, pattern: Legalization):
        self.dialect, self.pattern = dialect, pattern

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        with plug_in.blamed(self.dialect, f"its pattern {type(self.pattern).__name__} fails on {op.name}"):
            self.pattern.match_and_rewrite(op, rewriter)


def registered() -> list[EntryPoint | PlugInPatterns]:
    """`REGISTRY`, followed by other packages' patterns in the order of their names. Imports nothing."""
    ours = [EntryPoint(name, value, ENTRY_POINTS) for name, value in REGISTRY]
    return [*ours, *installed(ENTRY_POINTS), *(PlugInPatterns(name) for name in plug_in.DIALECTS.names())]


@dataclass(frozen=True)
class ListedPattern:
    """A pattern as `--list-patterns` shows it: the dialect, the name of its class, the rewrite, and its choice on a
    target."""

    dialect: str
    name: str
    summary: str
    choice: str


def patterns_of(target: Target = UNKNOWN, dialects: Sequence[str] | None = None) -> list[ListedPattern]:
    """The patterns that `legalize` applies for a target, in order, of these dialects (default: every one that has
    patterns, including other packages')."""
    found: list[ListedPattern] = []
    for point in registered():
        for pattern in cast(Patterns, point.load()) if dialects is None or point.name in dialects else ():
            first = cleandoc(pattern.__doc__ or "").partition("\n\n")[0]
            summary = " ".join(first.split())
            found.append(ListedPattern(point.name, pattern.__name__, summary, pattern(target).choice()))
    return found


def legalize(ctx: Context, module: ModuleOp, target: Target = UNKNOWN, dialects: Sequence[str] | None = None) -> None:
    """Apply the patterns of the dialects (default: every registered one in use) until none applies any more.

    Raises Unsupported for a remaining op of a dialect that has patterns (several are reported together), and RelayError
    if the patterns never stop changing the module.
    """
    used = {op.name.split(".")[0] for op in own(module)} | {dialect.name for dialect in ctx.loaded_dialects}
    asked = [point for point in registered() if point.name in used and (dialects is None or point.name in dialects)]
    patterns: list[RewritePattern] = []
    first: list[RewritePattern] = []
    for point in asked:
        made = [pattern(target) for pattern in cast(Patterns, point.load())]
        if isinstance(point, PlugInPatterns):
            guarded = [Guarded(point.name, pattern) for pattern in made]
            first += [each for each in guarded if not isinstance(each.pattern, ExpandRows)]
            patterns += guarded
        else:
            patterns += made
    if first:
        settle(module, first)  # of several ops, of which an expansion would replace the first
    settle(module, patterns)
    targets = {point.name for point in asked} - set(LEGAL)
    left = [op for op in own(module) if stays_not(op, targets)]
    if len(left) == 1:
        raise Unsupported(place(left[0]), "no legalization pattern takes it", "see the op's documentation")
    for op in left:
        PassContext.current().diagnostics.error(op, f"no legalization pattern takes {op.name}")


def stays_not(op: Operation, targets: Collection[str]) -> bool:
    """Whether the op must be legalized: it belongs to one of these dialects, and has no lowering of its own."""
    return op.name.split(".")[0] in targets and not plug_in.has_lowering(op)


def legal(module: ModuleOp, dialects: Sequence[str] | None = None) -> bool:
    """Whether the module has no illegal op. An op of the `dialects` (default: every registered one with patterns,
    except `relay` and `byoc`) is illegal if it has no lowering; by default, so is an op of `relay` or `byoc` that a
    pattern must replace on the module's target."""
    points = registered()
    targets = {point.name for point in points} - set(LEGAL) if dialects is None else set(dialects)
    every = [*own(module)]
    if any(stays_not(op, targets) for op in every):
        return False
    relays = [point for point in points if point.name in LEGAL and dialects is None]
    target = target_of(module)
    patterns = [pattern(target) for point in relays for pattern in cast(Patterns, point.load())]
    return not any(pattern.replaces(op) for op in every for pattern in patterns)


def settle(module: ModuleOp, patterns: Sequence[RewritePattern]) -> bool:
    """Apply the patterns to every op, in order, until a round changes nothing. Returns whether something changed."""
    offered: dict[type[Operation], list[RewritePattern]] = {}
    for round in range(ROUNDS):
        changed = False
        for op in list(own(module)):
            if op.parent is None:
                continue
            if (taking := offered.get(op.__class__)) is None:
                taking = [pattern for pattern in patterns if issubclass(op.__class__, taken_by(type(pattern)))]
                offered[op.__class__] = taking
            if not taking:
                continue
            rewriter = PatternRewriter(op)
            for pattern in taking:
                pattern.match_and_rewrite(op, rewriter)
                if rewriter.has_done_action:
                    changed = True
                    break
        if not changed:
            return round > 0
    raise RelayError("legalize", f"the patterns still changed the module after {ROUNDS} rounds", "two undo each other")


@cache
def taken_by(pattern: type[RewritePattern]) -> type[Operation]:
    """The ops that a pattern's `op_type_rewrite_pattern` accepts, as a class or union; `Operation` if it has no such
    decorator. Patterns are called only for these ops, because the decorator's own check is slow."""
    return getclosurevars(pattern.match_and_rewrite).nonlocals.get("expected_type", Operation)


@dataclass(frozen=True)
class PatternPass(Pass):
    """Base of passes that apply patterns until none applies, and then erase dead ops."""

    PATTERNS: ClassVar[Sequence[type[RewritePattern]]]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        settle(op, [pattern() for pattern in self.PATTERNS])
        erase_dead(op.walk())


def blocks_of(module: ModuleOp) -> list[Block]:
    """The blocks of the module that contain ops, in order, except blocks inside functions and ops of external compilers
    (see `own`)."""
    return list(dict.fromkeys(inner.parent for inner in own(module) if inner.parent is not None))


def own(op: Operation) -> Iterator[Operation]:
    """The ops inside `op`, in order, except those that belong to an external compiler: the bodies of functions with an
    attribute `compiler`, of `byoc.region` and of `byoc.composite`."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if "compiler" in inner.attributes and isinstance(inner, FuncOp):
                    continue
                yield inner
                if inner.regions and not isinstance(inner, byoc.Body):
                    yield from own(inner)
