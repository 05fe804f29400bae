"""The table of operators: what `from_tflite` can import, and how. One row per kind, written by `@operator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node

Convert = Callable[[Importer, Node], Sequence[SSAValue]]
"""Builds the ops of one operator and returns its outputs. It raises Unsupported for what it has no formula for."""


class Row(NamedTuple):
    """How one kind of operator is imported."""

    versions: tuple[int, int]
    """The first and last version of the operator that the formula covers."""
    inputs: tuple[int, int]
    """The least and largest number of inputs."""
    outputs: tuple[int, int]
    convert: Convert
    known: Mapping[str, str] = {}
    """Beside LiteRT's: the runtimes whose integers the formula gives, and on which types of codes."""


TABLE: dict[str, Row] = {}
QUANTISED: dict[str, tuple[frozenset[str], Row]] = {}
"""Rows for codes of some types, which come before those of `TABLE`."""
ANY = 1 << 16
EVERYWHERE = {"*": "INT8 UINT8 INT16"}
"""Of kinds whose results are codes of their inputs, or that have one formula in every runtime."""


def operator(
    *kinds: str,
    versions: tuple[int, int],
    inputs: tuple[int, int],
    outputs: tuple[int, int] = (1, 1),
    known: Mapping[str, str] = {},
) -> Callable[[Convert], Convert]:
    """Enter a function into the table under one or more kinds."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            TABLE[kind] = Row(versions, inputs, outputs, convert, known)
        return convert

    return enter


def quantised(
    *kinds: str, types: str, versions: tuple[int, int], inputs: tuple[int, int], outputs: tuple[int, int] = (1, 1)
) -> Callable[[Convert], Convert]:
    """Enter a function for operators on codes of these types (`INT8 UINT8`): quantised tensors, inputs or outputs."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            QUANTISED[kind] = frozenset(types.split()), Row(versions, inputs, outputs, convert)
        return convert

    return enter


def join() -> None:
    """Enter every row of `QUANTISED` into `TABLE`, before the row that is there."""
    for kind, (types, row) in QUANTISED.items():
        TABLE[kind] = _either(types, row, TABLE.get(kind))


def _either(types: frozenset[str], first: Row, second: Row | None) -> Row:
    """A row that takes codes of these types as the first says, all else as the second does."""

    def convert(importer: Importer, node: Node) -> Sequence[SSAValue]:
        row = first if second is None or node.codes_of(types) else second
        return row.convert(importer, node)

    if second is None:
        return first._replace(convert=convert)
    versions, inputs, outputs = (
        (min(a[0], b[0]), max(a[1], b[1]))
        for a, b in ((first.versions, second.versions), (first.inputs, second.inputs), (first.outputs, second.outputs))
    )
    return Row(versions, inputs, outputs, convert, second.known)
