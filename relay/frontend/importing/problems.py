"""`Problems`: collects all nodes of a file that cannot be imported, for one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.frontend.importing.builder import Place

T = TypeVar("T")

MOST = 100
"""The maximum number of problems that one error lists."""


class Problems:
    """The reasons why a file cannot be imported, in the order of its nodes."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[tuple[str, str]] = []

    def add(self, where: str, what: str, hint: str = "") -> None:
        self.found.append((where.removeprefix(f"{self.file}: "), f"{what}; {hint}" if hint else what))

    def tried(self, node: Place, convert: Callable[[], T], *, by_caller: bool = False) -> T | None:
        """Call `convert`, which imports `node`, and return its result. If it raises Unsupported, the error is added to
        the problems, and the result is None. Once there is a problem, the shapes that follow from it are not reliable:
        from then on, Malformed errors are ignored, with the result None.

        An InvalidArgument becomes Malformed, since the file is at fault; if `by_caller`, `convert` is a function of
        relay's user, and the InvalidArgument is not changed.
        """
        try:
            return convert()
        except Unsupported as error:
            self.add(node.title, error.what, error.hint)
        except Malformed:
            if not self.found:
                raise
        except InvalidArgument as error:
            if by_caller:
                raise
            if not self.found:
                raise node.malformed(f"{error.where} {error.what}") from None
        return None

    def raise_all(self) -> None:
        """Raise Unsupported if there are problems, with a list of them; a single problem is reported in one line."""
        if not self.found:
            return
        if len(self.found) == 1:
            raise Unsupported(f"{self.file}: {self.found[0][0]}", self.found[0][1])
        count = len(self.found)
        lines = [f"{place}: {what}" for place, what in self.found[:MOST]]
        lines += [f"and {count - MOST} more"] * (count > MOST)
        what = "\n  ".join([f"{count} problem{'s' * (count > 1)}:", *lines])
        raise Unsupported(self.file, what)
