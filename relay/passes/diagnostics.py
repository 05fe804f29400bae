"""Problems that passes collect, with locations, and show together in the caret form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from relay.dialects.source import line_of
from relay.errors import RelayError


class Severity(Enum):
    """How severe a diagnostic is."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnostic:
    """One problem, found at one op."""

    severity: Severity
    place: str
    message: str
    source: str
    """The source line, or the op's own text, with a caret below it."""

    def __str__(self) -> str:
        return f"{self.place}: {self.severity.value}: {self.message}\n{self.source}"


class CollectedErrors(RelayError):
    """The errors that passes have reported, raised together: `place: error: message`, the source line, and a caret
    under the column."""

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, where: str, diagnostics: tuple[Diagnostic, ...]):
        count = sum(d.severity is Severity.ERROR for d in diagnostics)
        super().__init__(where, f"{count} error{'' if count == 1 else 's'}")
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[type[CollectedErrors], tuple[str, tuple[Diagnostic, ...]]]:
        return CollectedErrors, (self.where, self.diagnostics)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *map(str, self.diagnostics)])


class Reporter:
    """Collects diagnostics. A pass continues after it reports an error; when it ends, its errors are raised together as
    `CollectedErrors`. Warnings stay in `diagnostics`: those of a context until it ends, those outside of any context
    until the next pipeline runs."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def error(self, op: Operation, message: str) -> None:
        """Report something that the pass cannot handle."""
        self._add(Severity.ERROR, op, message)

    def warning(self, op: Operation, message: str) -> None:
        """Report something that the user may not intend; it is shown with errors, and kept in `diagnostics`."""
        self._add(Severity.WARNING, op, message)

    def note(self, op: Operation, message: str) -> None:
        """Add a note to the last diagnostic."""
        self._add(Severity.NOTE, op, message)

    def _add(self, severity: Severity, op: Operation, message: str) -> None:
        self.diagnostics.append(Diagnostic(severity, _place(op), message, _source(op)))

    def move_errors(self, error: BaseException) -> None:
        """Add the collected errors as notes to an exception of another kind, and forget them."""
        for diagnostic in self.diagnostics:
            if diagnostic.severity is Severity.ERROR:
                error.add_note(str(diagnostic))
        self.diagnostics = [each for each in self.diagnostics if each.severity is not Severity.ERROR]

    def raise_errors(self, where: str) -> None:
        """Raise the diagnostics collected so far if there is an error among them, and forget them."""
        if any(d.severity is Severity.ERROR for d in self.diagnostics):
            found = tuple(self.diagnostics)
            self.diagnostics.clear()
            raise CollectedErrors(where, found)


def _file(location: Attribute) -> FileLineColLoc | None:
    """The file location inside a (possibly named or fused) location; None if there is none."""
    match location:
        case FileLineColLoc():
            return location
        case NameLoc():
            return _file(location.location)
        case FusedLoc() if isa(parts := location.locations, ArrayAttr[Attribute]):
            return next(filter(None, map(_file, parts)), None)
        case _:
            return None


def _place(op: Operation) -> str:
    found = _file(op.location)
    if found is not None:
        return f"{found.filename.data}:{found.line.data}:{found.column.data}"
    named = op.location
    return named.desc.data if isinstance(named, NameLoc) else op.name


def _source(op: Operation) -> str:
    """The line of the source with a caret under the column; where no source is known, the op as it is printed now."""
    found = _file(op.location)
    line = None if found is None else line_of(found) or _line_of_file(found)
    if found is not None and line is not None:
        before = "".join(character if character == "\t" else " " for character in line[: found.column.data - 1])
        return f"  {line}\n  {before}^"
    try:
        line = str(op).splitlines()[0]
    except Exception:  # an op that is not valid need not be printable
        line = op.name
    return f"  {line}\n  {' ' * max(line.find(op.name), 0)}^"


def _line_of_file(location: FileLineColLoc) -> str | None:
    try:
        return Path(location.filename.data).read_text().splitlines()[location.line.data - 1]
    except (OSError, ValueError, IndexError):
        return None
