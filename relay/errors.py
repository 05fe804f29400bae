"""The errors that users of relay may see; each states a place, a fact and, where there is one, a way out."""

from __future__ import annotations

from collections.abc import Collection, Iterable

LONGEST_NAME = 100
"""The maximum length of a name for which similar names are searched, in characters."""


class RelayError(Exception):
    """An error with the text `where: what; hint`; the hint is left out when there is none.

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
        """The error as text. Control characters, which names in a file may contain, are escaped, because terminals
        interpret them."""
        text = f"{self.where}: {self.what}; {self.hint}" if self.hint else f"{self.where}: {self.what}"
        return "".join(map(_printable, text))


def _printable(character: str) -> str:
    plain = character.isprintable() or character in "\n\t"
    return character if plain else character.encode("unicode_escape").decode()


class Malformed(RelayError):
    """Raised for a file or text that violates the rules of its own format."""


class Unsupported(RelayError):
    """Raised for valid input that relay cannot handle."""


class InvalidArgument(RelayError, ValueError):
    """Raised for a wrong argument of a public function."""


def did_you_mean(alike: Collection[str], otherwise: str) -> str:
    """The hint of an error about an unknown name: the names like it, or `otherwise` if there are none."""
    return f"did you mean {' or '.join(alike)}?" if alike else otherwise


def near(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """At most three known names that are most similar to `name`, the most similar first; none if `name` is longer than
    `LONGEST_NAME`. `cutoff` is the least similarity, from 0 to 1."""
    from difflib import get_close_matches  # here: only errors need it

    return get_close_matches(name, list(known), cutoff=cutoff) if len(name) <= LONGEST_NAME else []
