"""The values of the option `numerics` of `from_tflite`: the runtime whose integers are reproduced, and the operators
for which they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from relay.frontend.tflite.operators import TABLE, tflm, tvm, xnnpack
from relay.frontend.tflite.profile import LITERT, Profile
from relay.frontend.tflite.table import Convert


class Numerics(NamedTuple):
    """A runtime's arithmetic, and its own formulas for some operators."""

    profile: Profile
    rows: Mapping[str, Convert] = {}
    """Kinds of operators that are imported by another function than the table's."""
    types: str = ""
    """The codes on which these functions give the runtime's integers."""
    all_kinds: bool = True
    """Whether every row of the table gives the runtime's integers; else those that name it (`Row.known`) do."""

    @property
    def kinds(self) -> list[str] | None:
        """The kinds of operators on codes that are covered; None: all."""
        return None if self.all_kinds else sorted(kind for kind in TABLE if self.types_of(kind))

    def types_of(self, kind: str) -> frozenset[str]:
        """The codes on which an operator gives the runtime's integers, where not all are known to."""
        found = self.types if kind in self.rows else ""
        if kind in TABLE:
            known = TABLE[kind].known
            found = f"{found} {known.get('*', '')} {known.get(self.profile.name, '')}"
        return frozenset(found.split())

    def covers(self, kind: str, type: str) -> bool:
        """Whether the integers of an operator on codes are known to be the runtime's."""
        return self.all_kinds or kind.startswith("CUSTOM:") or type in self.types_of(kind)


PROFILES = {
    numerics.profile.name: numerics
    for numerics in (
        Numerics(LITERT),
        Numerics(Profile("litert-1.2", dense="tflite")),
        Numerics(Profile("tflm", dense="tflite", curves="tflm", factors=np.float64), tflm.ROWS, all_kinds=False),
        Numerics(Profile("xnnpack", products="f32_even", dense="f32_even"), xnnpack.ROWS),
        Numerics(Profile("ort", products="f32_even", dense="f32_even", pairs="ort")),
        Numerics(
            Profile("tvm", products="upward", dense="upward", bounds_to_even=True),
            tvm.ROWS,
            "INT8 UINT8",
            all_kinds=False,
        ),
    )
}
"""By name."""
