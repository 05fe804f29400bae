"""Recurrent layers: concatenated gates, and unrolled steps."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.tensors import TensorBuilder

States = list[Scalar]
"""The hidden state, followed by the cell state for LSTM."""


def gates(importer: TensorBuilder, value: SSAValue, count: int) -> list[Scalar]:
    """Split a value into its gates, which are adjacent along the last axis."""
    axis, size = importer.rank(value) - 1, importer.shape(value)[-1] // count
    return [Scalar(importer, importer.slice(value, {axis: (g * size, (g + 1) * size)})) for g in range(count)]


def unrolled(
    importer: TensorBuilder, rows: SSAValue, axis: int, states: States, step: Callable[[SSAValue, States], States],
    back: bool,
) -> tuple[list[SSAValue], States]:  # fmt: skip
    """Unroll a recurrent layer along an axis of `rows`, from its end if `back`. `step` returns the new states from a
    step's row and the previous states. Returns the hidden state after each step, in the order of the steps, and the
    last states."""
    outputs: list[SSAValue] = []
    for index in range(importer.shape(rows)[axis])[:: -1 if back else 1]:
        states = step(importer.row(rows, index, axis), states)
        outputs.append(states[0].value)
    return outputs, states
