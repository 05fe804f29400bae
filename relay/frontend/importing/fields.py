"""`Fields`: a node whose settings have names, each checked to be what an operator asks for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar, cast

from relay.errors import Malformed
from relay.frontend.importing.builder import Place, is_list, is_value

T = TypeVar("T")


class Fields(Place):
    """The settings of a node by name, checked when they are read; a missing one, or None, gets the default of its
    reader."""

    __slots__ = ()
    FIELD: ClassVar[str] = ""
    """The word that errors write before a name."""

    @abstractmethod
    def entry(self, name: str) -> object:
        """The value in the file; None if there is none."""

    def wrong(self, name: str, what: str) -> Malformed:
        return self.malformed(f"{self.FIELD}{name} is {repr(self.entry(name))[:80]}, no {what}")

    def _known(self, name: str, found: Sequence[object]) -> None:
        if any(is_value(each) for each in found):
            what = f"{self.FIELD}{name} follows from sizes that are not known"
            raise self.unsupported(what, "give its shapes")

    def plain(self, name: str, kind: type[T], default: T | None, what: str) -> T:
        """A setting of a Python type; a bool does not count as a number."""
        found = self.entry(name)
        if found is None and default is not None:
            return default
        self._known(name, [found])
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.wrong(name, what)
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        return self.plain(name, int, default, "integer")

    def flag(self, name: str, default: bool = False) -> bool:
        return self.plain(name, bool, default, "boolean")

    def word(self, name: str, default: str = "") -> str:
        return self.plain(name, str, default, "text")

    def one_of(self, name: str, words: Sequence[str]) -> str:
        """One of these words; the first one by default."""
        found = self.word(name, words[0])
        if found not in words:
            raise self.unsupported(
                f"{self.FIELD}{name} is {found[:40]!r}", f"it may be {', '.join(filter(None, words))}"
            )
        return found

    def number_of(self, name: str, default: float | None = None) -> float:
        """An integer or a float; files write those that are not finite as text, too: `-Infinity`."""
        found = self.entry(name)
        if isinstance(found, str) and found.lower().lstrip("-") in ("inf", "infinity", "nan"):
            return float(found)
        return found if isinstance(found, int) else self.plain(name, float, default, "number")

    def real(self, name: str, default: float | None = None) -> float:
        return float(self.number_of(name, default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers; a single integer counts as a list of one."""
        found = self.entry(name)
        return self.integers_of([*default] if found is None and default is not None else found, name)

    def integers_of(self, given: object, name: str) -> list[int]:
        """The same of a value that stands in the setting."""
        rows = given if is_list(given) else [given]
        self._known(name, rows)
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in rows):
            raise self.malformed(f"{self.FIELD}{name} is {str(given)[:80]}, no integers")
        return cast("list[int]", rows)

    def each(self, name: str, count: int, default: int | None = None) -> list[int]:
        """A number for each axis; a single one counts for all."""
        missing = None if default is None else [default]
        found = self.integers(name, missing) or missing or []
        found = found * count if len(found) == 1 else found
        if len(found) != count:
            raise self.malformed(f"{self.FIELD}{name} is {found} for {count} axes")
        return found
