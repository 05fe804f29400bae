"""`Symbol`: a named size that is unknown at compile time, used by the compiler and the runtime."""

from __future__ import annotations

from dataclasses import dataclass

from relay.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Symbol:
    """One unknown size, and all the axes that have it."""

    name: str
    places: tuple[tuple[int, int], ...]
    """The axes that have the symbol's size, as pairs (argument index, axis), in order."""
    minimum: int = 1
    maximum: int | None = None
    multiple: int = 1

    def check(self, size: int) -> int:
        """The size, if the symbol may have it. Raises InvalidArgument otherwise."""
        most = size if self.maximum is None else self.maximum
        if not self.minimum <= size <= most or size % self.multiple:
            upto = "" if self.maximum is None else f" to {self.maximum}"
            steps = "" if self.multiple == 1 else f", a multiple of {self.multiple}"
            raise InvalidArgument(f"size {self.name}", f"is {size}", f"it is from {self.minimum}{upto}{steps}")
        return size
