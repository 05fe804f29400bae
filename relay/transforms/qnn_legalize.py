"""The pass `qnn-legalize`: expands `qnn` ops into integer `relay` ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relay.transforms.legalize import Legalize


@dataclass(frozen=True)
class QnnLegalize(Legalize):
    """Expand `qnn` ops into integer `relay` ops with equal results. Patterns of other dialects are not applied."""

    name: ClassVar[str] = "qnn-legalize"
    aliases = ("qnn.Legalize",)
    establishes = ("no-qnn",)
    why = "lowers quantised ops to integer ones"
    DIALECTS: ClassVar[tuple[str, ...] | None] = ("qnn",)
