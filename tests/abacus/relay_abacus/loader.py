"""Runs what `abacus` compiled; may be called by several threads at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relay.runtime import accepts

Array = npt.NDArray[Any]


@accepts("1", "2")
def load(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[object], outputs: Sequence[object]
) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """The program as a function in Python."""
    program: dict[str, Any] = json.loads(artifact)

    def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        values: list[Array] = list(inputs)
        for step in program["steps"]:
            takes: list[int] = step["takes"]
            values.append(apply(step["does"], params, [values[number] for number in takes]))
        for array, number in zip(outputs, program["gives"], strict=True):
            array[...] = values[number]

    return run


def apply(does: str, params: Mapping[str, Array], operands: Sequence[Array]) -> Array:
    """One step: a constant, a table of codes, or a function of numpy's."""
    if does not in params:
        return getattr(np, does)(*operands)
    if not operands:
        return params[does]
    lhs, rhs = (operand.view(np.uint8) for operand in operands)
    return params[does][lhs, rhs]
