"""The table of operators: what `from_tflite` can import, and how. One row per kind, written by `@operator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import SSAValue

from relay.frontend.tflite.node import Node

if TYPE_CHECKING:
    from relay.frontend.tflite.graph import Importer

Convert = Callable[["Importer", Node], Sequence[SSAValue]]
"""Builds the ops of one operator and returns its outputs. It raises Unsupported for what it has no formula for."""


class Row(NamedTuple):
    """How one kind of operator is imported."""

    versions: tuple[int, int]
    """The first and last version of the operator that the formula covers."""
    inputs: tuple[int, int]
    """The least and largest number of inputs."""
    outputs: tuple[int, int]
    convert: Convert


TABLE: dict[str, Row] = {}
ANY = 1 << 16


def operator(
    *kinds: str, versions: tuple[int, int], inputs: tuple[int, int], outputs: tuple[int, int] = (1, 1)
) -> Callable[[Convert], Convert]:
    """Enter a function in the table under one or more kinds."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            TABLE[kind] = Row(versions, inputs, outputs, convert)
        return convert

    return enter
