"""The values of the option `numerics` of `from_tflite`: the runtimes whose integers can be reproduced, and the
operators for which that is known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from relay.frontend.tflite.operators import TABLE, tvm, xnnpack
from relay.frontend.tflite.operators.activation import TFLM
from relay.frontend.tflite.profile import LITERT, Profile
from relay.frontend.tflite.table import Convert


class Numerics(NamedTuple):
    """The arithmetic of a runtime, and the import functions of operators that this runtime computes in a different
    way."""

    profile: Profile
    rows: Mapping[str, Convert] = {}
    """The import functions, by operator kind, that replace the table's."""
    types: str = ""
    """The quantized types for which the functions in `rows` reproduce the runtime's integers."""
    all_kinds: bool = True
    """Whether the import functions of all operators, the rows of `TABLE`, reproduce the runtime's integers; if not,
    those do whose `Row.known` names the runtime."""

    @property
    def kinds(self) -> list[str] | None:
        """The kinds of quantized operators for which the runtime's integers are reproduced; None for all kinds."""
        return None if self.all_kinds else sorted(kind for kind in TABLE if self.types_of(kind))

    def types_of(self, kind: str) -> frozenset[str]:
        """The quantized types for which an import function of operators of this kind, in `TABLE` or in `rows`, is
        stated to reproduce the runtime's integers."""
        found = self.types if kind in self.rows else ""
        if kind in TABLE:
            known = TABLE[kind].known
            found = f"{found} {known.get('*', '')} {known.get(self.profile.name, '')}"
        return frozenset(found.split())

    def covers(self, kind: str, type: str) -> bool:
        """Whether an operator on this quantized type is known to reproduce the runtime's integers."""
        return self.all_kinds or kind.startswith("CUSTOM:") or type in self.types_of(kind)


PROFILES = {
    numerics.profile.name: numerics
    for numerics in (
        Numerics(LITERT),
        Numerics(Profile("litert-1.2", dense="tflite")),
        Numerics(Profile("tflm", dense="tflite", curves="tflm", factors=np.float64), TFLM, all_kinds=False),
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
"""The values of `numerics` by name."""
