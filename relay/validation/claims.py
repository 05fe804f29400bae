"""The claims that a file makes about its machine code, and their reader: a program of formulas for each kernel, and the
calls of kernels with the places of their tensors in memory."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from relay.runtime.memory import Array
from relay.validation.formulas import FORMULAS, call

VERSION = 2
KNOWN = (1, VERSION)
Json = dict[str, Any]


@dataclass(frozen=True)
class Form:
    """The type and shape of a value in a program."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The value's size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def view(self, data: Array) -> Array:
        """The value whose bytes are `data`."""
        return data.view(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Row:
    """One formula of a program: the numbers of the values that it takes (`operands`) and computes (`results`), and its
    parameters."""

    formula: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    parameters: Json


@dataclass(frozen=True)
class Program:
    """The meaning of a kernel as a list of formulas; values are numbered, the kernel's arguments first."""

    arguments: tuple[Form, ...]
    rows: tuple[Row, ...]
    results: tuple[int, ...]
    forms: Mapping[int, Form]
    values: Mapping[int, Array]
    """The program's constants, by the number of the value."""

    @property
    def floats(self) -> bool:
        """Whether some values are floats, for which the kernel may round differently."""
        return any(form.dtype.kind == "f" for form in (*self.arguments, *self.forms.values()))

    @property
    def unknown(self) -> list[str]:
        """Names of the program's formulas that this checker does not implement, either at all or not with the
        parameters that the program gives them, such as a layout other than NHWC."""
        return sorted({row.formula for row in self.rows if row.formula not in FORMULAS or not is_plain(row)})

    def evaluate(self, given: Mapping[int, Array], rows: Sequence[Row] | None = None) -> dict[int, Array]:
        """Compute the values of the program's formulas, or only of the formulas `rows`, and return them by number.
        `given` holds the arguments by number; it may also hold results of formulas, which are then not computed
        again."""
        values = {**self.values, **given}
        for row in self.rows if rows is None else rows:
            if all(number in values for number in row.results):
                continue
            found = call(row.formula, row.parameters, [values[number] for number in row.operands])
            for number, value in zip(row.results, found, strict=True):
                values[number] = value.astype(self.forms[number].dtype)
        return values


def is_plain(row: Row) -> bool:
    """Whether the functions of `formulas` implement the row's parameters: the layout must be NHWC, slices must not be
    negative, pooling must have neither dilation nor `ceil_mode` nor `count_include_pad`, and a resize no
    `coordinate_transformation_mode`."""
    p = row.parameters
    layouts = {p.get(name) for name in ("layout", "data_layout", "out_layout") if p.get(name)}
    cuts = [*p.get("begin", ()), *p.get("end", ()), *(stride - 1 for stride in p.get("strides", ()))]
    pooled = bool(p.get("ceil_mode") or p.get("count_include_pad")) or set(p.get("dilation") or [1]) != {1}
    gaps = row.formula.endswith("_pool2d") and pooled
    ruled = row.formula == "image.resize2d" and "coordinate_transformation_mode" in p
    return layouts <= {"NHWC"} and not ruled and min(cuts, default=0) >= 0 and not gaps


@dataclass(frozen=True)
class Place:
    """The place of a tensor in memory: in an argument of the entry point (inputs first, then outputs), or in the
    arena."""

    argument: int
    offset: int
    bytes: int

    def overlaps(self, other: Place) -> bool:
        """Whether the two places share a byte."""
        together = self.offset < other.offset + other.bytes and other.offset < self.offset + self.bytes
        return self.argument == other.argument and together


ARENA = -1
"""The value of `Place.argument` for places in the arena."""


@dataclass(frozen=True)
class Weights:
    """The claim about the constant weights of a product of quantized values: for each output channel a digest of the
    weights and the range of its sums."""

    digests: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Projected:
    """The claim about the constant weights of a float convolution or dense layer. `projections`: the products of the
    weights with random vectors over the input channels ("colours"), which give the sums of every image that is made of
    these vectors; for a depthwise convolution (`depthwise`), the weights themselves. `norms`: the Euclidean norm of
    each output channel's weights."""

    projections: Array
    norms: Array
    depthwise: bool


@dataclass(frozen=True)
class Call:
    """A call of a kernel. `code` is the function in the machine code, which several kernels may share; `why` is the
    reason why the call cannot be checked, empty if it can."""

    number: int
    kernel: str
    code: str
    program: Program
    constants: Mapping[int, Array]
    weights: Mapping[int, Weights]
    projected: Mapping[int, Projected]
    operands: Mapping[int, Place]
    results: tuple[Place, ...]
    scratch: tuple[Place, ...]
    reads: tuple[str, ...]
    starts: tuple[str, ...]
    """Names of the constants to which the kernel adds its products; empty if the file does not state them."""
    shown: Mapping[str, str]
    why: str

    @property
    def places(self) -> tuple[Place, ...]:
        """The places of the call's tensors and scratch memory."""
        return (*self.operands.values(), *self.results, *self.scratch)


@dataclass(frozen=True)
class Move:
    """A write to the place `to` by the entry point itself, not by a kernel, after its first `behind` calls of kernels.
    It is a copy of `source`; if `source` is None, it is not known what is written."""

    to: Place
    source: Place | None
    behind: int
    kernel = "the entry point"
    scratch = ()

    @property
    def operands(self) -> Mapping[int, Place]:
        """The source under argument number 0, in the form of `Call.operands`; empty if the source is unknown."""
        return {} if self.source is None else {0: self.source}

    @property
    def results(self) -> tuple[Place]:
        """The place in memory that the store writes."""
        return (self.to,)


@dataclass(frozen=True)
class Claims:
    """All calls of kernels in the order of execution. `flags` are the places of the conditions that loops test."""

    calls: tuple[Call, ...]
    moves: tuple[Move, ...] = ()
    flags: tuple[Place, ...] = ()
    branches: bool = False
    """Whether the entry point contains branches or loops."""

    @property
    def steps(self) -> list[Call | Move]:
        """The calls of kernels, and the writes to memory by the entry point itself, in the order of execution."""
        return [
            step
            for number in range(len(self.calls) + 1)
            for step in (*(move for move in self.moves if move.behind == number), *self.calls[number : number + 1])
        ]


def read(data: bytes) -> Claims:
    """Read the claims in a file. Raises ValueError, LookupError or TypeError if they are malformed."""
    text = cast(Json, json.loads(zlib.decompress(data)))
    if text["version"] not in KNOWN:
        raise ValueError(f"claims of version {text['version']}; this checker knows {' and '.join(map(str, KNOWN))}")
    arrays = {name: array_of(row) for name, row in text["arrays"].items()}
    programs = {name: program_of(row, arrays) for name, row in text["programs"].items()}
    calls = [call_of(n, row, programs, arrays) for n, row in enumerate(text["calls"])]
    moves = [move_of(row) for row in text.get("moves", ())]
    flags = [place_of(where) for where in text.get("flags", ()) if where]
    nested = {each.code for each, row in zip(calls, text["calls"], strict=True) if row.get("nested")}
    for number, each in enumerate(calls):
        why = each.why
        if each.code in nested:
            why = "it is called in a branch or a loop"
        elif len(flags) < len(text.get("flags", ())):
            why = "a loop beside it ends when that is not known"
        elif any(move.to.overlaps(place) for move in moves for place in each.places):
            why = "the entry point itself writes to its tensors"
        elif any(flag.overlaps(place) for flag in flags for place in each.places):
            why = "a loop beside it uses its memory"
        calls[number] = replace(each, why=why)
    return Claims(tuple(calls), tuple(moves), tuple(flags), bool(nested or flags))


def array_of(row: Json) -> Array:
    return np.frombuffer(b64decode(row["data"]), np.dtype(row["dtype"])).reshape(row["shape"])


def program_of(row: Json, arrays: Mapping[str, Array]) -> Program:
    arguments = tuple(form_of(each) for each in row["arguments"])
    forms, rows, values = dict(enumerate(arguments)), list[Row](), dict[int, Array]()
    for each in row["rows"]:
        results = tuple(int(result["number"]) for result in each["results"])
        forms |= {number: form_of(result) for number, result in zip(results, each["results"], strict=True)}
        parameters = cast(Json, each["parameters"])
        if each["formula"] == "constant" and parameters["value"] in arrays:
            values[results[0]] = arrays[parameters["value"]]
            continue
        if parameters.get("kernel_layout") == "HWOI":
            parameters = {**parameters, "depthwise": True}
        rows.append(Row(str(each["formula"]), tuple(each["operands"]), results, parameters))
    return Program(arguments, tuple(rows), tuple(row["results"]), forms, values)


def form_of(row: Json) -> Form:
    try:
        return Form(np.dtype(row["dtype"]), tuple(row["shape"]))
    except (KeyError, TypeError):  # numpy has no such type
        return Form(np.dtype(np.void), ())


def call_of(number: int, row: Json, programs: Mapping[str, Program], arrays: Mapping[str, Array]) -> Call:
    program = programs[row["kernel"]]
    missing = [n for n, name in row["constants"].items() if name not in arrays]
    missing += [n for n, names in row["weights"].items() if not (names and all(names.values()))]
    weights = {
        int(n): Weights(*(arrays[names[part]] for part in ("digests", "low", "high")))
        for n, names in row["weights"].items()
        if names.get("digests")
    }
    head = program.rows[0].parameters if program.rows else {}
    projected = {
        int(n): Projected(arrays[names["projections"]], arrays[names["norms"]], bool(head.get("depthwise")))
        for n, names in row["weights"].items()
        if names.get("projections") and names["norms"]
    }
    operands = {int(n): place_of(where) for n, where in row.get("operands", {}).items()}
    results = tuple(place_of(where) for where in row.get("results", ()))
    pairs = [(program.arguments[n], place) for n, place in operands.items()]
    pairs += zip((program.forms[n] for n in program.results), results, strict=False)
    why = ""
    if program.unknown:
        why = f"no formula in the list for {', '.join(program.unknown)}"
    elif missing:
        floats = any(program.arguments[int(n)].dtype.kind == "f" for n in missing)
        why = "a product of floats" if floats else "the claim does not hold a constant that it needs"
    elif len(results) != len(program.results) or any(form.size != place.bytes for form, place in pairs):
        why = "the claim does not say where its tensors lie"
    return Call(
        number,
        str(row["kernel"]),
        str(row.get("code", row["kernel"])),
        program,
        {int(n): arrays[name] for n, name in row["constants"].items() if name in arrays},
        weights,
        projected,
        operands,
        results,
        tuple(place_of(where) for where in row.get("scratch", ())),
        tuple(row.get("reads", ())),
        tuple(row.get("starts", ())),
        dict(row.get("shown", {})),
        why,
    )


def move_of(row: Json) -> Move:
    known = "arena" in row["from"] or "argument" in row["from"]
    return Move(place_of(row["to"]), place_of(row["from"]) if known else None, int(row["behind"]))


def place_of(row: Json) -> Place:
    if "arena" in row:
        return Place(ARENA, int(row["arena"]), int(row["bytes"]))
    return Place(int(row["argument"]), 0, int(row["bytes"]))
