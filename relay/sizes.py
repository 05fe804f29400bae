"""`Symbol`: a size that is not known but has a name, as the compiler and the runtime know it."""

from __future__ import annotations

from dataclasses import dataclass

from relay.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Symbol:
    """One size, wherever it stands."""

    name: str
    places: tuple[tuple[int, int], ...]
    """Argument and axis, in order."""
    minimum: int = 1
    maximum: int | None = None
    multiple: int = 1

    def check(self, size: int) -> int:
        """The size. Raises InvalidArgument if it is not one that the symbol may be."""
        most = size if self.maximum is None else self.maximum
        if not self.minimum <= size <= most or size % self.multiple:
            upto = "" if self.maximum is None else f" to {self.maximum}"
            steps = "" if self.multiple == 1 else f", a multiple of {self.multiple}"
            raise InvalidArgument(f"size {self.name}", f"is {size}", f"it is from {self.minimum}{upto}{steps}")
        return size
