"""`--verify-diagnostics` as in mlir-opt: comments in the text state which errors are expected, and on which line.

`// expected-error@+1 {{words}}` expects an error on the next line; `@below` and `@above` are +1 and -1, `@12` is line
12, `@unknown` is any line, and without `@` it is the comment's own line. In the words of `expected-error-re`, what is
between further `{{` and `}}` is a regular expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COMMENT = re.compile(
    r"expected-(error|warning|note|remark)(-re)?\s*(?:@([+-]\d+|\d+|above|below|unknown))?\s*\{\{(.*)\}\}"
)
TOLD = re.compile(r"^[^\n]*?:(\d+):\d+: (?:error: )?(.*)$", re.MULTILINE)
OFFSETS = {"above": -1, "below": 1}


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a comment expects."""

    line: int | None
    """The line of the diagnostic; None for `@unknown`, which matches any line."""
    words: str
    pattern: bool

    def meets(self, line: int, said: str) -> bool:
        """Whether a diagnostic `said` on `line` is the expected one."""
        parts = re.split(r"\{\{(.*?)\}\}", self.words) if self.pattern else [self.words]
        pattern = "".join(f"(?:{part})" if number % 2 else re.escape(part) for number, part in enumerate(parts))
        return bool(re.search(pattern, said)) and self.line in (None, line)


def expected(text: str, first: int) -> list[Expected]:
    """The diagnostics that the comments of a piece of text expect. `first` is the number of lines before the piece in
    its file. Expected notes are skipped, since relay-opt prints none."""
    found: list[Expected] = []
    for number, line in enumerate(text.split("\n"), first + 1):
        for kind, pattern, where, words in COMMENT.findall(line):
            if where[:1] in ("+", "-"):
                at = number + int(where)
            else:
                at = int(where) if where.isdecimal() else number + OFFSETS.get(where, 0)
            if kind != "note":
                found.append(Expected(None if where == "unknown" else at, words, bool(pattern)))
    return found


def unmet(wanted: list[Expected], error: str, file: str) -> list[str]:
    """A line for each expected error that did not occur, and for each error that occurred but was not expected."""
    left, lines = list(wanted), list[str]()
    told = [(int(line), said) for line, said in TOLD.findall(error)] or ([(0, error)] if error else [])
    for line, said in told:
        met = next((each for each in left if each.meets(line, said)), None)
        if met is None:
            lines.append(f"{file}:{line}: unexpected error: {said}")
        else:
            left.remove(met)
    for each in left:
        place = file if each.line is None else f"{file}:{each.line}"
        lines.append(f"{place}: the expected error {each.words!r} did not come")
    return lines
