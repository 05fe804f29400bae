"""The pass `quantize`: runs the passes that quantise a float module."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from relay.passes import Pass, Pipeline
from relay.quantize import marks
from relay.quantize.equalize_layers import EqualizeLayers
from relay.quantize.observing import observed
from relay.quantize.quantize_annotate import QuantizeAnnotate
from relay.quantize.quantize_calibrate import QuantizeCalibrate, without_objects
from relay.quantize.quantize_realize import QuantizeRealize, check_io


@dataclass(frozen=True)
class Quantize(Pass):
    """Quantize a float module after training, with calibration samples. Runs `equalize-layers` (if `equalize` is set),
    `quantize-annotate`, `quantize-calibrate` and `quantize-realize`; the other options are theirs.

    `calibration` is an iterable of samples (arrays, lists of arrays, or mappings by input name), a result of
    `relay.quantize.calibrate`, or the path of a saved one. `executor` is a `concurrent.futures.Executor` that runs the
    samples. A module without float convolutions and products is not changed and needs no samples.
    """

    name: ClassVar[str] = "quantize"
    aliases = ("PostTrainingQuantize",)
    invalidates = None
    why = "replaces float ops by integer ones"
    from_layer: int = 0
    dtype: str = "int8"
    method: str = "min-max"
    percentile: float = 99.99
    momentum: float = 0.9
    per_channel: bool = True
    bias_correction: bool = True
    equalize: bool = False
    rounding: str = "nearest"
    skip_layers: tuple[int, ...] = ()
    skip_names: tuple[str, ...] = ()
    skip_ops: tuple[str, ...] = ()
    keep_float: tuple[str, ...] = ()
    io: str = "float"
    simulate: bool = False
    statistics: str = ""
    calibration: object = field(default=None, compare=False, repr=False)
    executor: object = field(default=None, compare=False, repr=False)
    progress: object = field(default=None, compare=False, repr=False)

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """The options that can be written as text."""
        spec = super().spec(include_default=include_default)
        return without_objects(spec, ("calibration", "executor", "progress"))

    def passes(self) -> Pipeline:
        """The passes that this pass runs, with their options."""
        calibrate = self.step(QuantizeCalibrate, data=self.calibration)
        steps = [self.step(QuantizeAnnotate), calibrate, self.step(QuantizeRealize)]
        return Pipeline([EqualizeLayers(), *steps] if self.equalize else steps)

    def step(self, kind: type[Pass], **given: object) -> Pass:
        """Make a pass of class `kind`. Its options are those of this pass with the same names, and those in `given`."""
        own = {each.name: getattr(self, each.name) for each in fields(kind) if hasattr(self, each.name)}
        return kind(**own, **given)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_io(self.io, self.name)
        for step in self.passes():
            step.apply(ctx, op)
            if isinstance(step, QuantizeAnnotate) and not observed(marks.main_of(op, self.name)):
                return
