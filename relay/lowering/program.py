"""A program in LLVM IR: text as one module, or in units that are compiled apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

UNIT_SIZE = 96 * 1024
"""How long a module that is compiled apart is at least: each costs LLVM some milliseconds."""
USED = re.compile(r"@([\w.$-]+)")
"""Functions that a text names."""


@dataclass(frozen=True)
class FunctionText:
    """A function of a program: its arguments with their types, the functions of its parallel loops, its body."""

    name: str
    arguments: tuple[str, ...]
    private: bool
    tasks: str
    body: str

    def __len__(self) -> int:
        return len(self.tasks) + len(self.body)

    def text(self, linkage: str) -> str:
        """All of it. `linkage` is `internal`, or `hidden` where other modules call it."""
        attributes = "noinline " if self.private else ""
        head = f"define {linkage} void @{self.name}({', '.join(self.arguments)}) {attributes}#0 {{"
        return "\n".join([*([self.tasks] if self.tasks else []), head, self.body])

    @property
    def declaration(self) -> str:
        """What another module says of it."""
        return f"declare hidden void @{self.name}({', '.join(arg.rsplit(' %')[0] for arg in self.arguments)}) #0"


@dataclass(frozen=True)
class Program:
    """LLVM IR of a module: functions by name in order, what is behind them, and what they use of LLVM."""

    functions: Mapping[str, FunctionText]
    entries: Sequence[str]
    declarations: Mapping[str, str]
    attributes: str

    @property
    def text(self) -> str:
        """All of it as one module."""
        functions = [function.text("internal") for function in self.functions.values()]
        return self._module([*functions, *self.entries], self.declarations.values())

    def units(self, size: int = UNIT_SIZE) -> list[str]:
        """Modules of at least `size` characters, but for the last, that linked together are the whole: a program that
        has no two such is one."""
        if sum(len(function) for function in self.functions.values()) < 2 * size:
            return [self.text]
        groups: list[list[str]] = [[]]
        room = size
        for name, function in self.functions.items():
            groups[-1].append(name)
            room -= len(function)
            if room <= 0:
                groups.append([])
                room = size
        groups = [group for group in groups if group]
        texts = [[self.functions[name].text("hidden") for name in group] for group in groups]
        texts[0] += self.entries
        return [self._unit(group, functions) for group, functions in zip([*groups], texts, strict=True)]

    def _unit(self, names: Sequence[str], texts: Sequence[str]) -> str:
        used = dict.fromkeys(name for text in texts for name in USED.findall(text))
        own = set(names)
        others = [self.functions[name].declaration for name in used if name in self.functions and name not in own]
        return self._module(texts, [*others, *(line for name, line in self.declarations.items() if name in used)])

    def _module(self, texts: Iterable[str], declarations: Iterable[str]) -> str:
        text = "\n".join([*texts, *declarations])
        return f"{text}\nattributes #0 = {{ nounwind {self.attributes} }}\n"
