"""The table of operators that `from_tflite` can import, with one row per kind, entered by `@operator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node

Convert = Callable[[Importer, Node], Sequence[SSAValue]]
"""Builds the ops for one operator of a model, and returns a value for each of its outputs. Raises Unsupported for an
operator that relay cannot compute."""


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
"""The value of `Row.known` for operators that give the same integers in every runtime (`*`) for all three quantized
types, because they only move elements or because every runtime computes the same formula."""


def operator(
    *kinds: str,
    versions: tuple[int, int],
    inputs: tuple[int, int],
    outputs: tuple[int, int] = (1, 1),
    known: Mapping[str, str] = {},
) -> Callable[[Convert], Convert]:
    """A decorator that enters an import function for these kinds of TFLite operators into `TABLE`. `versions`, `inputs`
    and `outputs` are the smallest and largest numbers that the function covers; `known`: see `Row.known`."""

    def enter(convert: Convert) -> Convert:
        for kind in kinds:
            TABLE[kind] = Row(versions, inputs, outputs, convert, known)
        return convert

    return enter


def quantised(
    *kinds: str, types: str, versions: tuple[int, int], inputs: tuple[int, int], outputs: tuple[int, int] = (1, 1)
) -> Callable[[Convert], Convert]:
    """A decorator that enters an import function into `QUANTISED`, for operators of these kinds whose tensors have one
    of the quantized types `types`, such as `INT8 UINT8`."""

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
