"""The errors a user of relay may see: each names a place, a fact and, where there is one, a way out."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_NAME = 100
"""Characters of a name that may be a misspelt one."""


class RelayError(Exception):
    """`where: what; hint`. The hint is left out when there is none.

    `where` is the place in the user's terms (a file and byte, an operator, an argument), `what` is the fact found
    there, `hint` is what the user can do about it.
    """

    where: str
    what: str
    hint: str

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        super().__init__(where, what, hint)
        self.where = where
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        """The error as text; control characters, which names in a file may have, are escaped: terminals obey them."""
        text = f"{self.where}: {self.what}; {self.hint}" if self.hint else f"{self.where}: {self.what}"
        return "".join(map(_printable, text))


def _printable(character: str) -> str:
    plain = character.isprintable() or character in "\n\t"
    return character if plain else character.encode("unicode_escape").decode()


class Malformed(RelayError):
    """Bytes or text from outside break the rules of their own format."""


class Unsupported(RelayError):
    """The input is valid, but relay cannot handle it."""


class InvalidArgument(RelayError, ValueError):
    """A function of the public interface was called wrongly."""


def near(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The known names most like this one, best first, at most three; none for what is too long to be a misspelt name.
    `cutoff` is how much alike they are at least, from 0 to 1."""
    from difflib import get_close_matches  # here: only errors need it

    return get_close_matches(name, list(known), cutoff=cutoff) if len(name) <= LONGEST_NAME else []
