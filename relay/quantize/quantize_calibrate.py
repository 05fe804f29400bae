"""The pass `quantize-calibrate`: chooses scales and zero points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from os import PathLike
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.arg_spec import ArgSpec

from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pass
from relay.quantize import marks
from relay.quantize.calibration import Calibration, calibrate, is_calibration
from relay.quantize.layers import Layer, layers_of
from relay.quantize.observing import observed
from relay.quantize.parameters import FIXED, Parameters, of_range
from relay.quantize.ranges import METHODS, check_method, union
from relay.quantize.rounding import adaptive_codes
from relay.quantize.rules import same_scale
from relay.quantize.samples import Sample
from relay.quantize.shifting import corrected_bias, set_bias, set_weights
from relay.quantize.weights import fit_bias, kernel_of

ROUNDINGS = ("nearest", "adaptive")


@dataclass(frozen=True)
class QuantizeCalibrate(Pass):
    """Choose the scale and zero point of each value that `quantize-annotate` marked. It also chooses those of layers'
    weights.

    `data` is an iterable of samples (see `relay.quantize.calibrate`), a `Calibration`, or the path of a saved one;
    `statistics` is such a path as text. `executor` and `progress` are those of `relay.quantize.calibrate`. `method`:
    `min-max`, `moving-average` (of the samples' extremes, with weights `momentum` for the old mean and `1 - momentum`
    for the new sample), `percentile` (leaves out `100 - percentile` percent at each end), `kl` (least Kullback-Leibler
    divergence) or `mse` (least mean squared error). Activations have one asymmetric scale per tensor, `int16` ones a
    symmetric one; weights have symmetric scales per output channel, or per tensor without `per_channel`; weights beside
    `uint8` activations have one asymmetric scale per tensor.

    `bias_correction` subtracts the mean error of rounded weights from the biases. `rounding=adaptive` rounds each
    weight up or down such that the layer's output, instead of the weight, has the least squared error; it needs the
    second moments of the layers' inputs.
    """

    name: ClassVar[str] = "quantize-calibrate"
    requires = ("quantize-annotate",)
    invalidates = ("folded",)
    why = "chooses scales"
    method: str = "min-max"
    percentile: float = 99.99
    momentum: float = 0.9
    per_channel: bool = True
    bias_correction: bool = True
    rounding: str = "nearest"
    statistics: str = ""
    data: object = field(default=None, compare=False, repr=False)
    executor: object = field(default=None, compare=False, repr=False)
    progress: object = field(default=None, compare=False, repr=False)

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        """Whether every value that `quantize-annotate` named has a scale; false if there is no such value."""
        values = observed(marks.main_of(op, cls.name))
        return bool(values) and all("scale" in marks.of_value(value) for value in values.values())

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """The options that can be written as text."""
        return without_objects(super().spec(include_default=include_default), OBJECTS)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_method(self.method, self.percentile, self.name)
        if self.rounding not in ROUNDINGS:
            raise InvalidArgument(self.name, f"rounding {self.rounding!r} is unknown", f"use {', '.join(ROUNDINGS)}")
        function = marks.main_of(op, self.name)
        values = observed(function)
        if not values:
            return
        dtype = marks.text(function.attributes, marks.DTYPE) or "int8"
        found = self.calibration(function)
        found.check(function, self.features(), values)
        for value, chosen in choose(values, found, self.method, self.percentile, dtype).items():
            marks.write_parameters(value, chosen)
        for layer in layers_of(function):
            if marks.integer(layer.anchor):
                self.weigh(layer, found, values, dtype)

    def features(self) -> list[str]:
        """The sorted names of the statistics that calibration must collect for this pass's options: "range", that of
        the method, "means" for bias correction, "moments" for adaptive rounding."""
        found = {"range", METHODS[self.method][1]}
        found |= {"means"} if self.bias_correction else set()
        found |= {"moments"} if self.rounding == "adaptive" else set()
        return sorted(found)

    def calibration(self, function: FuncOp) -> Calibration:
        """The calibration that the options name, run on the samples if necessary. Raises InvalidArgument if they name
        none."""
        if self.data is None and not self.statistics:
            hint = "write samples = [array, ...] with some tens of real inputs, then Quantize(calibration=samples); "
            hint += "or give statistics=path of a saved calibration"
            raise InvalidArgument(self.name, "has nothing to calibrate with", hint)
        data: object = self.statistics if self.data is None else self.data
        if isinstance(data, Calibration):
            return data
        if is_calibration(data):
            return Calibration.load(cast(str | PathLike[str], data))
        if isinstance(data, Mapping) or not isinstance(data, Iterable):
            raise InvalidArgument(self.name, "cannot calibrate with one thing", "give samples: [sample, ...]")
        return calibrate(
            IRModule(cast(ModuleOp, function.parent_op())),
            cast(Iterable[Sample], data),
            features=self.features(),
            executor=cast(Executor | None, self.executor),
            progress=self.progress if self.progress is None or callable(self.progress) else bool(self.progress),
            momentum=self.momentum,
        )

    def weigh(self, layer: Layer, found: Calibration, values: Mapping[str, SSAValue], dtype: str) -> None:
        """Choose and store the scales of a layer's weights, and round the weights and correct the bias as the options
        say. `found`: the calibration; `values`: the observed values by name."""
        data = marks.parameters(layer.anchor.data, dtype)
        name = marks.name_of(layer.anchor.data)
        assert data is not None and name is not None
        kind = "uint8" if dtype == "uint8" else "int8"
        kernel = fit_bias(kernel_of(layer.weights, layer.axis, kind, self.per_channel), layer.vector, data)
        marks.write_kernel(layer.anchor, kernel)
        codes = kernel.codes(layer.weights)
        if self.rounding == "adaptive":
            codes = adaptive_codes(layer, kernel, found.moments[f"layer{layer.index}"])
        rounded, means = kernel.reals(codes), found.values[name].means
        bias = corrected_bias(layer, rounded, means) if self.bias_correction and means is not None else None
        if self.rounding == "adaptive":
            set_weights(layer, rounded)
        if bias is not None:
            set_bias(layer, bias)


OBJECTS = ("data", "executor", "progress")


def without_objects(spec: ArgSpec, names: Iterable[str]) -> ArgSpec:
    """The options of a pass that can be written as text: all but those in `names`."""
    return ArgSpec(spec.name, {key: value for key, value in spec.parameters.items() if key not in names})


def choose(
    values: Mapping[str, SSAValue], found: Calibration, method: str, percentile: float, dtype: str
) -> dict[SSAValue, Parameters]:
    """Choose the scale and zero point of each value from its statistics in `found`. Values with the same mark `group`
    get the same parameters: fixed ones if one of them needs these, else those of the union of their ranges. Results of
    ops that only move or compare elements do not contribute to this union."""
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(marks.text(marks.of_value(value), "group") or name, []).append(name)
    chosen: dict[SSAValue, Parameters] = {}
    for names in groups.values():
        fixed = [f for name in names if (f := fixed_parameters(values[name], dtype)) is not None]
        sources = [name for name in names if is_source(values[name])] or names
        rule = METHODS[method][0]
        parameters = fixed[0] if fixed else None
        if parameters is None:
            parameters = of_range(*union([rule(found.values[name], dtype, percentile) for name in sources]), dtype)
        chosen.update({values[name]: parameters for name in names})
    return chosen


def fixed_parameters(value: SSAValue, dtype: str) -> Parameters | None:
    """The scale and zero point that TFLite's quantization specification prescribes for the result of an op such as
    softmax, if the value is the result of such an op and the op is to be computed on codes; else None."""
    op = value.owner
    return FIXED.get(op.name, {}).get(dtype) if isinstance(op, Operation) and marks.integer(op) else None


def is_source(value: SSAValue) -> bool:
    """Whether the value has a range of its own: False for the result of a quantized op that keeps the scale of its
    operands, such as an op that only moves elements."""
    op = value.owner
    return not (isinstance(op, Operation) and marks.integer(op) and same_scale(op))
