"""`Fields`: a node with named settings, whose types are checked when they are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar, cast

from relay.errors import Malformed
from relay.frontend.importing.builder import Place, is_list, is_value

T = TypeVar("T")


class Fields(Place):
    """A node's settings by name, checked when they are read; a missing one, or None, has the default that its reader
    gives."""

    __slots__ = ()
    FIELD: ClassVar[str] = ""
    """The word that errors write before the name of a setting."""

    @abstractmethod
    def entry(self, name: str) -> object:
        """The value that the model file gives for the node's setting `name`, such as an attribute; None if it is
        missing."""

    def wrong(self, name: str, what: str) -> Malformed:
        return self.malformed(f"{self.FIELD}{name} is {repr(self.entry(name))[:80]}, no {what}")

    def _known(self, name: str, found: Sequence[object]) -> None:
        if any(is_value(each) for each in found):
            what = f"{self.FIELD}{name} follows from sizes that are not known"
            raise self.unsupported(what, "give its shapes")

    def plain(self, name: str, kind: type[T], default: T | None, what: str) -> T:
        """The value of the setting `name`, or `default` if it is missing. Raises Malformed if the value is not an
        instance of `kind`; `what` is the word for the expected value in the error. A bool is not accepted as a
        number."""
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
        """A setting that is one of these words, by default the first one."""
        found = self.word(name, words[0])
        if found not in words:
            raise self.unsupported(
                f"{self.FIELD}{name} is {found[:40]!r}", f"it may be {', '.join(filter(None, words))}"
            )
        return found

    def number_of(self, name: str, default: float | None = None) -> float:
        """A setting that is an integer or a float; non-finite floats may also be written as text, such as
        `-Infinity`."""
        found = self.entry(name)
        if isinstance(found, str) and found.lower().lstrip("-") in ("inf", "infinity", "nan"):
            return float(found)
        return found if isinstance(found, int) else self.plain(name, float, default, "number")

    def real(self, name: str, default: float | None = None) -> float:
        return float(self.number_of(name, default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A setting that is a list of integers; a single integer counts as a list of one."""
        found = self.entry(name)
        return self.integers_of([*default] if found is None and default is not None else found, name)

    def integers_of(self, given: object, name: str) -> list[int]:
        """Check that `given`, the value of the setting `name` or a part of it, is a list of integers, and return it; a
        single integer counts as a list of one. Raises Malformed if it is anything else."""
        rows = given if is_list(given) else [given]
        self._known(name, rows)
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in rows):
            raise self.malformed(f"{self.FIELD}{name} is {str(given)[:80]}, no integers")
        return cast("list[int]", rows)

    def each(self, name: str, count: int, default: int | None = None) -> list[int]:
        """A setting with an integer for each axis; a single integer is used for all."""
        missing = None if default is None else [default]
        found = self.integers(name, missing) or missing or []
        found = found * count if len(found) == 1 else found
        if len(found) != count:
            raise self.malformed(f"{self.FIELD}{name} is {found} for {count} axes")
        return found
