"""The results of alternatives, kept in a JSON file so that an interrupted exploration can continue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import median, quantiles
from typing import cast

from xdsl.utils.hints import isa

from relay.errors import InvalidArgument, Malformed
from relay.files import replace_file

FORMAT = 1


Value = float | tuple[float, ...]


def _middle_half(column: list[float]) -> tuple[float, float]:
    if len(column) == 1:
        return column[0], column[0]
    low, _, high = quantiles(column, n=4, method="inclusive")
    return low, high


@dataclass(frozen=True)
class Trial:
    """The result of building and measuring one alternative."""

    name: str
    options: Mapping[str, object]
    """The build options of this alternative as a JSON object (`Choice.describe`)."""
    values: tuple[Value, ...] = ()
    """The value of each measurement: a number, or a tuple of numbers."""
    seconds: float = 0.0
    """The seconds that building and measuring took."""
    error: str | None = None
    """The reason why the alternative has no measured value; None if it has one."""
    checked: bool = False
    """Whether the results were compared with the first alternative's and are equal."""

    @property
    def columns(self) -> list[list[float]]:
        """For each number that the measure returns, all its measurements; empty if the trial failed."""
        rows = [value if isinstance(value, tuple) else (value,) for value in self.values]
        return [] if self.error is not None or not rows else [list(column) for column in zip(*rows, strict=True)]

    @property
    def medians(self) -> tuple[float, ...]:
        """The median of each number that the measure returns; empty if the trial failed."""
        return tuple(map(median, self.columns))

    @property
    def value(self) -> Value | None:
        """The median of the measurements, as a number or a tuple of numbers; None if the trial failed."""
        found = self.medians
        return None if not found else found if isinstance(self.values[0], tuple) else found[0]

    @property
    def spread(self) -> tuple[tuple[float, float], ...]:
        """For each number that the measure returns, the range in which the middle half of its measurements lies."""
        return tuple(_middle_half(column) for column in self.columns)

    def dominates(self, other: Trial) -> bool:
        """Whether no median is larger than the other trial's, and at least one is smaller."""
        ours, theirs = self.medians, other.medians
        return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))

    def ties(self, other: Trial) -> bool:
        """Whether the measurements cannot distinguish the two trials: for every measured number, the ranges between the
        first and the third quartile of its rounds overlap."""
        pairs = zip(self.spread, other.spread, strict=True)
        return all(low <= other_high and other_low <= high for (low, high), (other_low, other_high) in pairs)

    def failed(self, error: str) -> Trial:
        """A copy that failed with this error."""
        return replace(self, error=error, checked=False)

    def to_json(self) -> dict[str, object]:
        """The trial as a JSON object without its name."""
        return {name: value for name, value in vars(self).items() if name != "name"}

    @staticmethod
    def from_json(name: str, row: Mapping[str, object]) -> Trial:
        """Create a trial from `to_json`'s object. Raises LookupError or TypeError if the object has another form."""
        options, values, seconds, error = row["options"], row["values"], row["seconds"], row["error"]
        if isa(values, list[list[float]]):
            values = [tuple(each) for each in values]
        elif not isa(values, list[float]):
            raise TypeError(f"'{name}' is not a trial")
        if not isa(options, dict[str, object]) or not isinstance(seconds, float):
            raise TypeError(f"'{name}' is not a trial")
        if not isinstance(error, str | None):
            raise TypeError(f"the error of '{name}' is no text")
        return Trial(name, options, tuple(values), seconds, error, row["checked"] is True)


@dataclass(frozen=True)
class Log:
    """The JSON file of trials, with a description of their subject: trials of another module, other inputs or another
    measure are not valid here."""

    path: Path
    subject: Mapping[str, str]

    @staticmethod
    def at(path: str | PathLike[str], subject: Mapping[str, str]) -> Log:
        """A log at this path; the file need not exist yet."""
        return Log(Path(path), subject)

    def read(self) -> dict[str, Trial]:
        """Read the trials by name; empty if the file does not exist.

        Raises Malformed if the file is no log, InvalidArgument if its trials are of another module, other inputs or
        another measure than `self.subject` describes.
        """
        where = f"log {self.path}"
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(where, f"cannot be read: {error}") from None
        try:
            content = cast(dict[str, object], json.loads(text))
            if content["format"] != FORMAT:
                raise TypeError(f"its format is {content['format']}")
            subject, rows = content["subject"], content["trials"]
            if not isa(subject, dict[str, str]) or not isa(rows, dict[str, dict[str, object]]):
                raise TypeError("its parts are of other types")
            trials = {name: Trial.from_json(name, row) for name, row in rows.items()}
        except (ValueError, LookupError, TypeError) as error:
            raise Malformed(where, f"is no log of an exploration: {error}", "name another file") from None
        for key, wanted in self.subject.items():
            if subject.get(key) != wanted:
                hint = "name another file, or remove this one to start anew"
                raise InvalidArgument(where, f"is of another {key}: {subject.get(key)}, not {wanted}", hint)
        return trials

    def write(self, trials: Mapping[str, Trial]) -> None:
        """Write the file and replace the old one atomically, so that it is complete whenever the process ends."""
        content = {
            "format": FORMAT,
            "subject": dict(self.subject),
            "trials": {name: trial.to_json() for name, trial in trials.items()},
        }
        try:
            replace_file(self.path, json.dumps(content, indent=1).encode())
        except InvalidArgument as error:
            raise InvalidArgument(f"log {error.where}", error.what) from None
