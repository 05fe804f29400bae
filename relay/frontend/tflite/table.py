"""The table of operators that `from_tflite` can import, with one row per kind, entered by `@operator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node

Convert = Callable[[Importer, Node], Sequence[SSAValue]]
"""Builds the ops of one operator and returns its outputs. Raises Unsupported for operators without a formula."""


class Row(NamedTuple):
    """How one kind of operator is imported."""

    versions: tuple[int, int]
    """The first and last version of the operator that the function covers."""
    inputs: tuple[int, int]
    """The minimum and maximum number of inputs."""
    outputs: tuple[int, int]
    convert: Convert
    known: Mapping[str, str] = {}
    """The runtimes besides LiteRT whose integers the function reproduces, with the quantized types for which it
    does."""


TABLE: dict[str, Row] = {}
QUANTISED: dict[str, tuple[frozenset[str], Row]] = {}
"""Rows for certain quantized types, which take precedence over those of `TABLE`."""
ANY = 1 << 16
EVERYWHERE = {"*": "INT8 UINT8 INT16"}
"""The value of `Row.known` for operators whose results are elements of their inputs, or that have one formula in every
runtime."""


def operator(
    *kinds: str,
    versions: tuple[int, int],
    inputs: tuple[int, int],
    outputs: tuple[int, int] = (1, 1),
    known: Mapping[str, str] = {},
) -> Callable[[Convert], Convert]:
    """A decorator that enters a function into the table under one or more kinds."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            TABLE[kind] = Row(versions, inputs, outputs, convert, known)
        return convert

    return enter


def quantised(
    *kinds: str, types: str, versions: tuple[int, int], inputs: tuple[int, int], outputs: tuple[int, int] = (1, 1)
) -> Callable[[Convert], Convert]:
    """A decorator that enters a function for operators with quantized tensors of these types (`INT8 UINT8`)."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            QUANTISED[kind] = frozenset(types.split()), Row(versions, inputs, outputs, convert)
        return convert

    return enter


def join() -> None:
    """Combine every row of `QUANTISED` with the row in `TABLE`, over which it takes precedence."""
    for kind, (types, row) in QUANTISED.items():
        TABLE[kind] = _either(types, row, TABLE.get(kind))


def _either(types: frozenset[str], first: Row, second: Row | None) -> Row:
    """A row that handles operators on these quantized types with `first`, and all others with `second`."""

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
