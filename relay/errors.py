"""The errors a user of relay may see: each names a place, a fact and, where there is one, a way out."""

from __future__ import annotations


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
        return f"{self.where}: {self.what}; {self.hint}" if self.hint else f"{self.where}: {self.what}"


class Malformed(RelayError):
    """Bytes or text from outside break the rules of their own format."""


class Unsupported(RelayError):
    """The input is valid, but relay cannot handle it."""


class InvalidArgument(RelayError, ValueError):
    """A function of the public interface was called wrongly."""
