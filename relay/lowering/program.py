"""The LLVM IR of a program: its text as one module, or in units that are compiled separately."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

UNIT_SIZE = 64 * 1024
"""The fewest characters of a unit: each unit costs LLVM some milliseconds."""
USED = re.compile(r"@([\w.$-]+)")
"""Matches the name of a function after `@`, wherever LLVM IR calls or mentions it."""

ROLLED_LOOP = "!0"
"""The metadata node of loops that LLVM does not unroll."""


def with_metadata(text: str) -> str:
    """Return a module's text with the metadata nodes that its loops name."""
    if f"!llvm.loop {ROLLED_LOOP}" not in text:
        return text
    return f'{text}\n{ROLLED_LOOP} = distinct !{{{ROLLED_LOOP}, !{{!"llvm.loop.unroll.disable"}}}}'


@dataclass(frozen=True)
class FunctionText:
    """A function of a program: its name, its arguments with their types, the functions of its parallel loops, and its
    body."""

    name: str
    arguments: tuple[str, ...]
    private: bool
    tasks: str
    body: str

    def __len__(self) -> int:
        return len(self.tasks) + len(self.body)

    def text(self, linkage: str) -> str:
        """Return the text of the whole function. `linkage` is `internal`, or `hidden` if other units call it."""
        attributes = "noinline " if self.private else ""
        head = f"define {linkage} void @{self.name}({', '.join(self.arguments)}) {attributes}#0 {{"
        return "\n".join([*([self.tasks] if self.tasks else []), head, self.body])

    @property
    def declaration(self) -> str:
        """The declaration of the function for other units."""
        return f"declare hidden void @{self.name}({', '.join(arg.rsplit(' %')[0] for arg in self.arguments)}) #0"


@dataclass(frozen=True)
class Program:
    """The LLVM IR of a module: its functions by name, in order; `entries`, the texts that follow them, which define the
    entry points and the functions of a team of threads; and the declarations of external functions and LLVM intrinsics
    that both use. `attributes`: the text of LLVM attributes of all functions."""

    functions: Mapping[str, FunctionText]
    entries: Sequence[str]
    declarations: Mapping[str, str]
    attributes: str

    @property
    def text(self) -> str:
        """The whole program as one module."""
        functions = [function.text("internal") for function in self.functions.values()]
        return self._module([*functions, *self.entries], self.declarations.values())

    def part(self, own: Sequence[FunctionText], entries: Sequence[str] = ()) -> str:
        """Return the LLVM IR of a module that defines the functions `own` and the texts `entries`, and declares the
        other functions that they use."""
        texts = [*(function.text("hidden") for function in own), *entries]
        used = dict.fromkeys(name for text in texts for name in USED.findall(text))
        names = {function.name for function in own}
        others = [self.functions[name].declaration for name in used if name in self.functions and name not in names]
        return self._module(texts, [*others, *(line for name, line in self.declarations.items() if name in used)])

    def _module(self, texts: Iterable[str], declarations: Iterable[str]) -> str:
        text = with_metadata("\n".join([*texts, *declarations]))
        return f"{text}\nattributes #0 = {{ nounwind {self.attributes} }}\n"


class Units:
    """Divides a program into units, modules that are compiled separately and linked, while its functions are written
    one by one; calls `ready` with the text of each unit. If `apart`, each unit is one function, else it has at least
    `UNIT_SIZE` characters; the last unit has the functions that call others, and all entries. A program too short for
    two units is passed as one module."""

    def __init__(self, program: Program, names: Iterable[str], ready: Callable[[str], object], apart: bool = False):
        self.program, self.names, self.ready = program, frozenset(names), ready
        self.size = 0 if apart else UNIT_SIZE
        self.last: list[FunctionText] = []
        self.group: list[FunctionText] = []
        self.full: list[list[FunctionText]] = []
        self.told = 0

    def add(self, function: FunctionText) -> None:
        """Assign the next function of the program to a unit, and pass units that are complete to `ready`."""
        if not function.private or not self.names.isdisjoint(USED.findall(function.body + function.tasks)):
            self.last.append(function)
            return
        self.group.append(function)
        if sum(map(len, self.group)) >= self.size:
            self.full.append(self.group)
            self.group = []
        while len(self.full) > max(self.told, 1):
            self.ready(self.program.part(self.full[self.told]))
            self.told += 1

    def finish(self) -> None:
        """Pass the last unit (a module that is compiled separately) to `ready`: it has all functions that are left and
        the entries, or is the whole program if no unit was passed before."""
        self.ready(
            self.program.part([*self.group, *self.last], self.program.entries) if self.told else self.program.text
        )
