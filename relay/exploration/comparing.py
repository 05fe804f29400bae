"""`compare`: run a compiled model beside another runtime, and compare all outputs, and tensors inside the model if
asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relay.arguments import shown
from relay.compile.entry import IMPORTER, build, with_options
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.exploration.intermediates import Point, observed
from relay.exploration.measuring import Inputs, inputs_of, results_of
from relay.exploration.references import Built, Interpreted, LiteRt, OnnxRuntime, Reference, outputs_of
from relay.frontend import import_model
from relay.frontend.importing.formats import detect
from relay.module import IRModule
from relay.passes.info import as_module
from relay.runtime import Executable, load
from relay.runtime.container import is_saved
from relay.tables import aligned
from relay.transforms.equality import mismatch
from relay.universe import shown_in_notebook

NAMES = ("litert", "onnxruntime", "interpreter")
"""The names of the references that `compare` knows."""
TOLERANCE = 1e-5
"""The default tolerance for floats, relative to the largest magnitude in a tensor."""


@dataclass(frozen=True)
class Row:
    """The comparison of one tensor of the compiled model with the reference's."""

    name: str
    kind: str
    """"output" for an output of the model, "tensor" for a tensor between operators."""
    operator: str
    """The operator of the source model that computes the tensor; empty for outputs."""
    equal: bool
    """Whether all elements are equal; floats may differ by the tolerance."""
    largest: float
    """The largest absolute difference between an element and the reference's; for quantized values, in quantization
    steps."""
    count: int
    """The number of elements that differ."""
    size: int
    snr: float | None
    """The ratio of signal to noise in decibels, where the reference is the signal; None if no element differs at
    all."""
    first: str = ""
    """The index of the first element that differs, and both values; empty if all are equal."""


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`; `print` shows it as a table. `rows` lists outputs first, then tensors in the order of
    execution."""

    reference: str
    how: str
    """A sentence that says how tensors between operators were obtained; empty if they were not compared."""
    rows: tuple[Row, ...]

    @property
    def equal(self) -> bool:
        """Whether every compared tensor is equal within the tolerance."""
        return all(row.equal for row in self.rows)

    @property
    def first(self) -> Row | None:
        """The first tensor in the order of execution that differs; an output if only outputs differ, None if nothing
        does."""
        return next((row for row in (*self.tensors, *self.outputs) if not row.equal), None)

    @property
    def outputs(self) -> list[Row]:
        """The rows of the model's outputs."""
        return [row for row in self.rows if row.kind == "output"]

    @property
    def tensors(self) -> list[Row]:
        """The rows that compare tensors which one operator computes for another, not the model's outputs."""
        return [row for row in self.rows if row.kind == "tensor"]

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object."""
        first = None if self.first is None else asdict(self.first)
        rows = [asdict(row) for row in self.rows]
        return {"reference": self.reference, "how": self.how, "equal": self.equal, "first": first, "tensors": rows}

    def _repr_html_(self) -> str:
        return shown_in_notebook(self)

    def __str__(self) -> str:
        table = [("", "differ", "of", "largest", "SNR dB", "tensor")]
        table += [cells(row) for row in self.rows]
        head = [f"compared with {self.reference}", *([self.how] if self.how else [])]
        return "\n".join([*head, "", *aligned(table, range(1, 5)), "", self.verdict])

    @property
    def verdict(self) -> str:
        """One line: that all tensors are equal, or which tensor differs first and how."""
        if self.first is None:
            tensors = f" and {len(self.tensors)} tensors" if self.tensors else ""
            return f"equal: {len(self.outputs)} outputs{tensors}"
        row = self.first
        what = f"{row.count} of {row.size} elements differ, by {row.largest:.6g} at most; {row.first}"
        later = "" if any(not row.equal for row in self.outputs) else "; the outputs are equal all the same"
        only = "; no tensor before it differs" if row.kind == "output" and self.tensors else ""
        return f"first difference: {row.operator or row.name}: {what}{only}{later}"


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a tensor's row in the printed table."""
    snr = "" if row.snr is None else f"{row.snr:.1f}"
    sign = "equal" if row.equal else "DIFFERS"
    return sign, str(row.count), str(row.size), f"{row.largest:.6g}", snr, row.operator or row.name


def compare(
    model: IRModule | ModuleOp | Executable | str | PathLike[str],
    reference: str | PathLike[str] | Executable | IRModule | ModuleOp | Reference | None = None,
    inputs: Inputs | Callable[[Executable], Inputs] | None = None,
    *,
    layers: bool = False,
    tolerance: float = TOLERANCE,
    frontend: Mapping[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Run a model and a reference on the same inputs, and compare their results. `inputs` are arrays, or a function
    that gets the executable and returns them; by default always the same random ones.

    `reference` is one of:

    - "litert", "onnxruntime" or "interpreter"; by default "litert" for `.tflite` files, "onnxruntime" for `.onnx`
      files, "interpreter" for others;
    - a file: a saved executable, or another model, which is compiled;
    - an executable, a module, or an object of `relay.exploration.references`.

    A quantized model is compared with a float model after dequantizing its results. With `layers`, every tensor between
    operators of the source model is compared too. `frontend` and `options` are those of `relay.build`. Integers must be
    equal, floats within `tolerance` times the largest magnitude in a tensor. Raises RelayError.
    """
    if not 0.0 <= tolerance < math.inf:
        raise InvalidArgument("tolerance", f"is {shown(tolerance)}", "give a number, relative to a tensor's largest")
    path = None if isinstance(model, IRModule | ModuleOp | Executable) else _path(model)
    plain = options
    if path is not None:
        imported = {name: value for name, value in options.items() if name in IMPORTER}
        plain = {name: value for name, value in options.items() if name not in IMPORTER}
        frontend = with_options(frontend, imported)
    module: IRModule | None = None
    if isinstance(model, Executable):
        executable = model
    elif path is not None and is_saved(path):
        executable = load(path)
    else:
        module = import_model(path, frontend or {}) if path is not None else as_module(cast(IRModule, model))
        executable = build(module, **plain)
    other = _reference(reference, path, module, frontend or {}, options)
    given = inputs_of(executable, inputs(executable) if callable(inputs) else inputs)
    if layers and module is None:
        raise InvalidArgument("layers", "a compiled model does not have them", "give the model's file")
    wanted = other.run(other.translated(executable, given) if isinstance(other, Built) else given, layers)
    found = outputs_of(executable, results_of(executable, given))
    if len(found) != len(wanted.outputs):
        raise InvalidArgument(other.title, f"has {len(wanted.outputs)} outputs; the model has {len(found)}")
    specs = [spec for spec in executable.outputs if spec.kind == "output"]
    others = [spec for spec in other.executable.outputs if spec.kind == "output"] if isinstance(other, Built) else specs
    rows: list[Row] = []
    for spec, second, a, b in zip(specs, others, found, wanted.outputs, strict=True):
        if a.dtype != b.dtype:
            a, b = spec.dequantize(a), second.dequantize(b)
        rows.append(row_of(spec.name, "output", "", a, b, tolerance))
    how = ""
    if layers and module is not None:
        opened, points = observed(module, whole=True)
        results = results_of(build(opened, **plain), given)
        rows += tensor_rows(points, results, wanted.tensors, tolerance)
        how = (
            f"{len(points)} tensors were added to the outputs of a second build, whose kernels end there; "
            "the outputs are those of the plain build"
        )
    return Comparison(other.title, how, tuple(rows))


def tensor_rows(
    points: Sequence[Point],
    results: Sequence[Array],
    wanted: Mapping[int, Sequence[tuple[str, Array]]],
    tolerance: float,
) -> Iterator[Row]:
    """Compare the tensors that operators of the source model compute, each with the reference's tensor of the same
    operator, type and shape; yield a row for each. Tensors without such a counterpart are left out."""
    ours: dict[int, list[Point]] = {}
    for point in points:
        ours.setdefault(point.node, []).append(point)
    for node, mine in ours.items():
        theirs = list(wanted.get(node, ()))
        for point in mine:
            array = results[point.output]
            form = array.dtype, array.shape
            match = next((n for n, (_, other) in enumerate(theirs) if (other.dtype, other.shape) == form), None)
            if match is None:
                continue
            name, other = theirs.pop(match)
            operator = point.operators[0] if point.operators else point.op
            yield row_of(name or point.name, "tensor", operator, array, other, tolerance)


def row_of(name: str, kind: str, operator: str, found: Array, wanted: Array, tolerance: float) -> Row:
    """Compare the tensor `found` with the tensor `wanted` of the reference, and return the differences as a row of the
    comparison. Raises InvalidArgument if the types or shapes of the two differ."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        what = f"is {found.dtype}{list(found.shape)}; the reference has {wanted.dtype}{list(wanted.shape)}"
        raise InvalidArgument(f"tensor '{name}'", what)
    wrong = mismatch(found, wanted, tolerance)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        noise, signal = float((apart**2).sum()), float((wanted.astype(np.float64) ** 2).sum())
        snr = None if noise == 0 else 10 * math.log10(signal / noise) if signal > 0 else -math.inf
    largest = float(apart.max(initial=0.0))
    if wrong is None:
        return Row(name, kind, operator, True, largest, 0, found.size, snr)
    first = f"[{wrong.first}] {wrong.found} instead of {wrong.wanted}"
    return Row(name, kind, operator, False, largest, wrong.count, wrong.size, snr, first)


def _path(model: object) -> str:
    if not isinstance(model, str | PathLike):
        raise InvalidArgument("model", f"{shown(model)} is no model", "give a path, a module or an executable")
    return str(fspath(cast("str | PathLike[str]", model)))


BY_FORMAT = {"tflite": "litert", "onnx": "onnxruntime"}
"""The default reference for each model format; "interpreter" for the other formats."""


def _reference(
    reference: str | PathLike[str] | Executable | IRModule | ModuleOp | Reference | None,
    path: str | None,
    module: IRModule | None,
    frontend: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Reference:
    if reference is None:
        kind = "" if path is None or module is None else str(detect(path, path))
        reference = "litert" if module is None else BY_FORMAT.get(kind, "interpreter")
    if isinstance(reference, Executable):
        return Built(reference, "the other executable")
    if isinstance(reference, IRModule | ModuleOp):
        return Built(build(reference, **options), "the other module")
    if not isinstance(reference, str | PathLike):
        return reference
    text = _path(reference)
    name, _, file = text.partition(":")
    if text == "interpreter":
        if module is None:
            raise InvalidArgument("interpreter", "runs no compiled model", "give the model's file")
        return Interpreted(module)
    if name in NAMES:
        source, kind = file or path, "tflite" if name == "litert" else "onnx"
        if source is None or (module is None and not file):
            raise InvalidArgument(name, "needs the model's file", f"write {name}:FILE")
        if (found := detect(source, source)) != kind:
            raise InvalidArgument(f"{name}: {source}", f"is {found} and not {kind}", f"write {name}:FILE")
        return LiteRt(source, str(frontend.get("numerics", "litert"))) if name == "litert" else OnnxRuntime(source)
    return Built(load(text) if is_saved(text) else build(text, **options), text)
