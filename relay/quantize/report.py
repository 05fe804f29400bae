"""`report`: the error of a quantised module against the float one, layer by layer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation

from relay import signature
from relay.byoc.partitioning.work import multiplications
from relay.compile.entry import build
from relay.dialects.op import is_integer, tensor
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes.context import PassContext
from relay.passes.info import as_module
from relay.quantize import marks
from relay.quantize.comparison import Comparison, Pair, Side, pairs_of, returned
from relay.quantize.layers import layers_of
from relay.quantize.observing import returning
from relay.quantize.samples import Sample, arrange

WHERE = "report"
DROP = 3.0
"""The loss in decibels from which `suggestions` proposes to keep a layer in float."""
MOST = 3
"""The maximum number of layers that `suggestions` proposes."""
LINE, LEFT, WIDTH = 16, 330, 420
SHOWN = 48


@dataclass(frozen=True, slots=True)
class Row:
    """A value of the float module that is computed as codes in the quantized one."""

    value: str
    name: str
    """The name of the tensor in the model's file, or of the op."""
    op: str
    layer: int | None
    """The index of the layer, as `skip_layers` takes it; None for other ops."""
    snr: float
    """The signal-to-noise ratio in decibels: `10 log10(sum of squares / sum of squared differences)`, over all
    samples."""
    lost: float
    """How many decibels the signal-to-noise ratio is below that of the worst input of the op or layer; 0 if it is not
    below."""
    saturated: float
    """The share of the float elements that lie outside the range of the quantized values by more than half a scale."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `report`; `print` shows it as a table, with the values of the lowest signal-to-noise ratio
    first."""

    rows: tuple[Row, ...]
    output_snr: tuple[float, ...]
    """The signal-to-noise ratio of each output in decibels."""
    top1: float
    """The share of samples (rows of the first output) for which both modules have the largest element at the same
    index."""
    integer_macs: float
    """The share of multiply-accumulates that are computed on integers."""
    samples: int

    @property
    def suggestions(self) -> list[int]:
        """The indices of the layers to keep in float first: those whose signal-to-noise ratio is furthest below that of
        their worst input (`Row.lost`), by at least `DROP` decibels; at most `MOST` layers."""
        worst = sorted((row for row in self.rows if row.layer is not None), key=lambda row: -row.lost)
        return [row.layer for row in worst[:MOST] if row.layer is not None and row.lost >= DROP]

    def table(self) -> str:
        """The report as a text table."""
        lines = [f"{'SNR dB':>7} {'lost':>6} {'saturated':>9}  layer  op, name"]
        for row in self.rows:
            layer = "" if row.layer is None else str(row.layer)
            lines.append(f"{row.snr:7.1f} {row.lost:6.1f} {row.saturated:9.3%}  {layer:>5}  {row.op} {row.name}")
        outputs = ", ".join(f"{snr:.1f}" for snr in self.output_snr)
        lines.append(f"outputs: SNR {outputs} dB; top-1 agreement {self.top1:.1%} of {self.samples} samples")
        lines.append(f"multiply-accumulates of integers: {self.integer_macs:.1%}")
        if self.suggestions:
            lines.append(f"keep in float first: skip_layers=({', '.join(map(str, self.suggestions))},)")
        return "\n".join(lines)

    __str__ = table

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps({**asdict(self), "suggestions": self.suggestions}, indent=1)

    def plot(self, path: str | PathLike[str]) -> None:
        """Write an SVG bar chart of the signal-to-noise ratio of each value, in program order."""
        order = sorted(self.rows, key=lambda row: (row.value[0] != "a", int(row.value[1:])))
        text = picture([(f"{row.op} {row.name}", row.snr, row.layer in self.suggestions) for row in order])
        Path(fspath(path)).write_text(text)


def report(float_mod: IRModule | ModuleOp, int_mod: IRModule | ModuleOp, data: Iterable[Sample]) -> Report:
    """Run both modules, compiled, on samples of the float module's inputs, and compare the values that are quantized in
    the other module. Corresponding values are found by the attribute `quantize.value`, which `Quantize` leaves on ops,
    or else by names in the model's file.

    Raises InvalidArgument if the modules' inputs or outputs differ in shape or number, or `data` is empty.
    """
    source, target = (marks.main_of(as_module(mod).op, WHERE) for mod in (float_mod, int_mod))
    pairs = pairs_of(source, target)
    inputs, outputs = signature.read(source)
    theirs, results = signature.read(target)
    if [info.shape for info in inputs] != [info.shape for info in theirs] or len(outputs) != len(results):
        raise InvalidArgument(WHERE, "the modules do not take and give tensors of the same shapes")
    sides = [Side(source, [pair.real for pair in pairs], inputs), Side(target, [pair.codes for pair in pairs], theirs)]
    with PassContext():
        executables = [build(returning(side.function, side.wanted())) for side in sides]
    found, ends = [Comparison() for _ in pairs], [Comparison() for _ in outputs]
    agree = rows = samples = 0
    for sample in data:
        arrays = arrange(sample, inputs, samples)
        real, other = (side.run(executable, arrays) for side, executable in zip(sides, executables, strict=True))
        for pair, comparison, wanted, codes in zip(pairs, found, real.values, other.values, strict=True):
            comparison.add(wanted, pair.parameters.reals(codes), pair.parameters)
        for comparison, wanted, given, info in zip(ends, real.outputs, other.outputs, results, strict=True):
            comparison.add(wanted, returned(given, info), None)
        best = [np.atleast_1d(np.atleast_1d(ran.outputs[0]).argmax(axis=-1)) for ran in (real, other) if ran.outputs]
        if best:
            agree, rows = agree + int((best[0] == best[1]).sum()), rows + best[0].size
        samples += 1
    if not samples:
        raise InvalidArgument(WHERE, "there is no sample", "give the inputs of some runs")
    return Report(
        tuple(sorted(_rows(source, pairs, found), key=lambda row: row.snr)),
        tuple(comparison.snr for comparison in ends),
        agree / max(rows, 1),
        integer_share(target),
        samples,
    )


def _rows(function: FuncOp, pairs: list[Pair], found: list[Comparison]) -> list[Row]:
    snrs = {pair.real: comparison.snr for pair, comparison in zip(pairs, found, strict=True)}
    layers = {layer.result: layer for layer in layers_of(function)}
    rows: list[Row] = []
    for pair, comparison in zip(pairs, found, strict=True):
        layer = layers.get(pair.real)
        first = pair.real.owner if layer is None else layer.anchor
        before = [snrs[value] for value in first.operands if value in snrs] if isinstance(first, Operation) else []
        lost = max(0.0, min(before) - comparison.snr) if before else 0.0
        op = "argument" if isinstance(pair.real, BlockArgument) else _kind(first)
        index = None if layer is None else layer.index
        rows.append(Row(pair.value, pair.name, op, index, comparison.snr, lost, comparison.saturated))
    return rows


def _kind(op: object) -> str:
    return op.name.removeprefix("relay.") if isinstance(op, Operation) else "value"


def picture(bars: Sequence[tuple[str, float, bool]]) -> str:
    """An SVG bar chart. `bars`: for each bar its name, its length in decibels, and whether it is red."""
    longest = max([60.0, *(min(value, 120.0) for _, value, _ in bars)])
    height = LINE * (len(bars) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="{LEFT}" y="{LINE - 4}">signal to noise, dB</text>',
    ]
    for number, (name, value, marked) in enumerate(bars, 1):
        top, size = LINE * number, max(0.0, min(value, 120.0)) / longest * WIDTH
        short = name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
        color = "#c0392b" if marked else "#2e6da4"
        lines.append(f'<text x="{LEFT - 6}" y="{top + 11}" text-anchor="end">{escape(short)}</text>')
        lines.append(f'<rect x="{LEFT}" y="{top + 2}" width="{size:.1f}" height="{LINE - 4}" fill="{color}"/>')
        lines.append(f'<text x="{LEFT + size + 4:.1f}" y="{top + 11}">{value:.1f}</text>')
    return "\n".join([*lines, "</svg>", ""])


def integer_share(function: FuncOp) -> float:
    """The share of a function's multiply-accumulates whose sums are integers; 1 if there are none."""
    counts = {True: 0, False: 0}
    for op in function.body.walk():
        if macs := multiplications(op):
            counts[is_integer(tensor(op.results[0]).element_type)] += macs
    total = counts[True] + counts[False]
    return counts[True] / total if total else 1.0
