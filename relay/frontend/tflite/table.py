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
QUANTISED: dict[str, tuple[Sequence[str], Convert]] = {}
"""Quantized types and the import functions for them, which take precedence over those of `TABLE`; the numbers of
versions and inputs in `TABLE` are for both."""
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


def quantised(*kinds: str, types: Sequence[str]) -> Callable[[Convert], Convert]:
    """A decorator that enters an import function into `QUANTISED`, for operators of these kinds with a quantized tensor
    of one of these types."""

    def enter(convert: Convert) -> Convert:
        QUANTISED.update(dict.fromkeys(kinds, (types, convert)))
        return convert

    return enter


def join() -> None:
    """Combine every function of `QUANTISED` with that in `TABLE`, over which it takes precedence."""
    for kind, (types, convert) in QUANTISED.items():
        TABLE[kind] = TABLE[kind]._replace(convert=_either(types, convert, TABLE[kind].convert))


def _either(types: Sequence[str], first: Convert, second: Convert) -> Convert:
    """A function that imports operators on these quantized types by `first`, and all others by `second`."""

    def convert(importer: Importer, node: Node) -> Sequence[SSAValue]:
        return (first if node.codes_of(types) else second)(importer, node)

    return convert
