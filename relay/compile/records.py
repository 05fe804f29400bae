"""`Records`: measured schedules that are faster than the default, for use by `relay.build`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from relay.errors import Malformed
from relay.files import replace_file


@dataclass(frozen=True)
class Record:
    """A measured schedule of a kernel: its `relay.schedule`, and the seconds with it and with the default schedule."""

    schedule: str
    seconds: float
    default_seconds: float


@dataclass(frozen=True)
class Records:
    """Measured schedules by processor and kernel signature. `first | second` joins them; for a kernel in both, the
    second wins."""

    kernels: Mapping[str, Mapping[str, Record]]

    @property
    def text(self) -> str:
        """The schedules without times, as text that the pass `schedule` takes; equal records give equal builds."""
        table = {cpu: {key: row.schedule for key, row in rows.items()} for cpu, rows in self.kernels.items()}
        return json.dumps(table, sort_keys=True)

    def __or__(self, other: Records) -> Records:
        every = {*self.kernels, *other.kernels}
        return Records({cpu: {**self.kernels.get(cpu, {}), **other.kernels.get(cpu, {})} for cpu in every})

    def save(self, path: str | PathLike[str]) -> None:
        """Write the records as JSON. Raises InvalidArgument if the file cannot be written."""
        rows = {cpu: {key: vars(row) for key, row in each.items()} for cpu, each in self.kernels.items()}
        replace_file(str(path), json.dumps({"version": 1, "kernels": rows}, indent=1, sort_keys=True).encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Records:
        """Read a file that `save` wrote. Raises Malformed."""
        try:
            found: Any = json.loads(Path(path).read_bytes())
            if found["version"] != 1:
                raise ValueError(f"version {found['version']} is not 1")
            rows = {cpu: {key: record_of(row) for key, row in each.items()} for cpu, each in found["kernels"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Malformed(str(path), f"has no records: {error}", "write it with Records.save") from error
        return cls(rows)


def record_of(row: Any) -> Record:
    """Convert a row of a records file, as JSON, to a Record. A wrong row raises KeyError, TypeError or ValueError."""
    return Record(str(row["schedule"]), float(row["seconds"]), float(row["default_seconds"]))
