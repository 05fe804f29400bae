"""A module at one point of a pipeline, kept as text with the source location of each line, and the graphs of its
functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer
from xdsl.traits import SymbolTable

from relay.module import IRModule
from relay.transforms.location import words
from relay.viewer.dataflow import Graph, graph_of
from relay.viewer.effects import Effects

Lines = tuple[int, int]
"""The first line of an op, counted from 0, and the line after its last."""


class Pieces(StringIO):
    """A stream that appends each written text to a list."""

    def __init__(self, pieces: list[str]):
        super().__init__()
        self.pieces = pieces

    def write(self, text: str, /) -> int:
        self.pieces.append(text)
        return len(text)


class LinePrinter(Printer):
    """xDSL's printer, which also records the lines on which each op is printed.

    The text is xDSL's. The text of each attribute is kept and reused, since equal attributes are printed equally
    everywhere; this halves the time.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.lines: dict[Operation, Lines] = {}
        self._spelled: dict[int, tuple[Attribute, str]] = {}
        super().__init__(Pieces(self.pieces))

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" in text:
            super().print_string(text, indent=indent)
            return
        self._current_column += len(text)
        self.pieces.append(text)

    def print_attribute(self, attribute: Attribute) -> None:
        known = self._spelled.get(id(attribute))
        if known is not None:
            self.print_string(known[1])
            return
        start = len(self.pieces)
        super().print_attribute(attribute)
        self._spelled[id(attribute)] = (attribute, "".join(self.pieces[start:]))

    def print_op(self, op: Operation) -> None:
        first = self._current_line
        super().print_op(op)
        self.lines[op] = (first, self._current_line + 1)


@dataclass(frozen=True)
class Part:
    """A function of the module, or (named `module`) all ops that are in no function."""

    name: str
    lines: Lines
    ops: int
    compiler: str
    """The external compiler that runs the function; "" for the host."""
    graph: Graph
    loose: bool = False
    """Whether the part consists of the ops that are in no function."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The text of a module as `str(module)` gives it (weights over 1 KiB appear only by name), with the source
    locations of its lines, its functions, and its number of ops by name."""

    text: str
    kinds: Mapping[str, int]
    """The number of ops by name."""
    sources: Sequence[str]
    """The distinct source locations, as text."""
    source_of: Sequence[int]
    """For each line, the index in `sources` of its first op's location; -1 if it has none."""
    parts: Sequence[Part]

    @property
    def ops(self) -> int:
        """The number of ops in the module, including the module itself."""
        return sum(self.kinds.values())

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the module's text, `text`."""
        return self.text.splitlines()


def take(mod: IRModule) -> Snapshot:
    """Take a snapshot of a module. It shares nothing with the module that a pass could change."""
    printer = LinePrinter()
    printer.print_op(mod.op)
    text = "".join(printer.pieces) + "\n"
    sources: dict[str, int] = {}
    spelled: dict[int, int] = {}
    source_of = [-1] * text.count("\n")
    for op, (first, _) in reversed(printer.lines.items()):
        location = op.location
        if id(location) not in spelled:
            said = words(location)
            spelled[id(location)] = sources.setdefault(said, len(sources)) if said else -1
        source_of[first] = spelled[id(location)]
    kinds = Counter(op.name for op in mod.op.walk())
    return Snapshot(text, kinds, list(sources), source_of, parts_of(mod.op, printer.lines))


def parts_of(module: ModuleOp, lines: Mapping[Operation, Lines]) -> list[Part]:
    """The functions of the module and of modules in it, in order, preceded by a part with the ops outside of functions
    if there are any."""
    effects = Effects(module)
    found: list[Part] = []
    loose: list[Operation] = []
    pending = list(module.body.ops)
    while pending:
        op = pending.pop(0)
        name = op.properties.get("sym_name", op.attributes.get("sym_name"))
        if op.has_trait(SymbolTable):
            pending[:0] = [inner for region in op.regions for block in region.blocks for inner in block.ops]
        elif isinstance(name, StringAttr) and op.regions:
            compiler = op.attributes.get("compiler")
            taken_by = compiler.data if isinstance(compiler, StringAttr) else ""
            ops = [inner for region in op.regions for block in region.blocks for inner in block.ops]
            arguments = op.regions[0].blocks[0].args if op.regions[0].blocks else ()
            graph = graph_of(arguments, ops, lines, effects, taken_by)
            found.append(Part(name.data, lines[op], sum(1 for _ in op.walk()), taken_by, graph))
        else:
            loose.append(op)
    if loose:
        span = (lines[loose[0]][0], lines[loose[-1]][1])
        graph = graph_of((), loose, lines, effects, "")
        found.insert(0, Part("module", span, sum(1 for op in loose for _ in op.walk()), "", graph, loose=True))
    return found
