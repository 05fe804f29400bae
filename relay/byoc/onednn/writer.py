"""`Writer`: builds a oneDNN program from a region's values and ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from relay.byoc import refusals
from relay.byoc.onednn.program import Program, Scaling, Step, Tensor
from relay.byoc.quantized import Bounds, Codes, Window, dtype
from relay.byoc.refusals import FLOAT
from relay.byoc.regions import Region, Values
from relay.dialects.attributes import Array
from relay.dialects.op import shape

LARGEST = float(np.finfo(np.float32).max)
TO_FIRST = (0, 3, 1, 2)
"""The permutation of NHWC images: oneDNN's logical order of axes is NCHW; in memory channels stay last."""
MOST_AXES = 6
"""The maximum rank of elementwise primitives; reorders support more."""

Post = tuple[tuple[str, float, float], ...]


def type_refusal(op: Operation, *allowed: str) -> str | None:
    """The reason why an op is not supported, if an operand or result has none of the allowed types or too many axes;
    else None."""
    return refusals.type_refusal(op, *allowed) or refusals.axes_refusal((*op.operands, *op.results), MOST_AXES)


def limits(bounds: Bounds) -> tuple[float, float]:
    low, high = bounds
    return (-LARGEST if low is None else low, LARGEST if high is None else high)


def clipped(bounds: Bounds) -> Post:
    """The clamp to these bounds as a post-op."""
    return () if bounds == (None, None) else (("clip", *limits(bounds)),)


def reals(bounds: Bounds, codes: Codes) -> Bounds:
    """Return the bounds of a clamp as real numbers; `bounds` are quantized values with the parameters `codes`."""
    low, high = (None if bound is None else (bound - codes.zero_point) * codes.scale for bound in bounds)
    return low, high


def scaling(codes: Codes) -> Scaling:
    return Scaling((codes.scale,), codes.zero_point)


def window_options(window: Window, **kernel: Sequence[int]) -> dict[str, Sequence[int]]:
    """A primitive's options for this window; `kernel` is its size for primitives that have no weights."""
    top, left, bottom, right = window.padding
    dilations = tuple(d - 1 for d in window.dilation)
    ends = {"dilations": dilations, "before": (top, left), "after": (bottom, right)}
    return {"strides": window.strides, **kernel, **ends}


class Writer:
    """Builds the program of one region."""

    def __init__(self, region: Region, saturates: bool = False) -> None:
        self.region = region
        self.saturates = saturates
        """Whether quantized convolutions are computed in float32."""
        self._sizes: list[int] = []
        self._constants: dict[int, Array] = {}
        self.values: Values[Tensor] = Values(region, self.constant)
        self._steps: list[Step] = []
        self._inputs = [self.define(value).buffer for value in region.inputs]

    def finish(self) -> Program:
        """The finished program. An output that does not fill a buffer of its own is copied to a new buffer."""
        outputs: list[int] = []
        for value in self.region.outputs:
            found = self.read(value)
            taken = found.buffer in (*self._inputs, *outputs, *self._constants)
            if taken or found != Tensor.whole(found.buffer, found.shape, found.dtype):
                target = self.temporary(found.shape, found.dtype)
                self.emit(Step("reorder", (found,), target))
                found = target
            outputs.append(found.buffer)
        return Program(self._sizes, self._constants, self._inputs, outputs, self._steps)

    def _buffer(self, size: int) -> int:
        self._sizes.append(size)
        return len(self._sizes) - 1

    def temporary(self, dims: Sequence[int], type: str) -> Tensor:
        """A new tensor in a buffer of its own."""
        size = int(np.prod(dims, dtype=np.int64)) * np.dtype(type).itemsize
        return Tensor.whole(self._buffer(size), dims, type)

    def constant(self, array: Array) -> Tensor:
        made = self.temporary(array.shape, array.dtype.name)
        self._constants[made.buffer] = array
        return made

    def define(self, value: SSAValue) -> Tensor:
        """The new tensor of a result or of an argument of the function."""
        made = self.temporary(shape(value), dtype(value).name)
        self.values[value] = made
        return made

    def read(self, value: SSAValue) -> Tensor:
        """The tensor of an operand."""
        return self.values[value]

    def image(self, found: Tensor) -> Tensor:
        """Return a view of the NHWC tensor `found` with its axes in the order NCHW, which oneDNN's primitives expect;
        the data are not moved."""
        return found.permuted(TO_FIRST)

    def emit(self, step: Step) -> None:
        self._steps.append(step)

    def reorder(self, source: Tensor, result: Tensor, scalings: Mapping[str, Scaling] | None = None) -> None:
        self.emit(Step("reorder", (source,), result, scalings=scalings or {}))

    def real(self, value: SSAValue, codes: Codes) -> Tensor:
        """The quantized value dequantized to floats, in a new tensor."""
        made = self.temporary(shape(value), FLOAT)
        self.reorder(self.read(value), made, {"src": scaling(codes)})
        return made

    def coded(self, source: Tensor, value: SSAValue, codes: Codes) -> None:
        """Define the value by quantizing a tensor of floats."""
        self.reorder(source, self.define(value), {"dst": scaling(codes)})
