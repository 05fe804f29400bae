"""Runs one sample through the compiled model and collects its statistics, in this thread, other threads or processes.
All arguments can be pickled, and only relay's runtime is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from relay import runtime
from relay.dialects.attributes import Array
from relay.quantize.statistics import Moments, Statistics, observe
from relay.runtime import Executable

ROWS = 256
"""The number of evenly spaced positions of one sample's tensor that are used for the second moments."""


@dataclass(frozen=True, slots=True)
class Window:
    """The inputs that a layer multiplies with its weights: for a product the last axis (`size` is None), for a
    convolution the taps of each window."""

    value: str
    """The name of the tensor that is the input of the layer, a convolution or product."""
    size: tuple[int, int] | None = None
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Job:
    """What a calibration does with each sample: run an executable, and collect statistics of its outputs and observed
    inputs. `features`: the kinds of statistics; `windows`: the layers whose second moments are collected."""

    path: str
    """The path of the saved executable."""
    names: tuple[str, ...]
    """The names of the executable's outputs."""
    arguments: tuple[tuple[str, int], ...]
    """The observed inputs: names and positions."""
    features: frozenset[str]
    windows: tuple[tuple[str, Window], ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """The statistics of the tensors that a model computes for one calibration sample, by the tensors' names: those from
    which ranges follow (`values`), and second moments of layers' inputs (`moments`)."""

    values: dict[str, Statistics]
    moments: dict[str, Moments]


@lru_cache(maxsize=4)
def _executable(path: str) -> Executable:
    return runtime.load(path)


def run(job: Job, inputs: Sequence[Array]) -> Seen:
    """Run one sample and collect its statistics."""
    arrays: dict[str, Array] = {name: inputs[position] for name, position in job.arguments}
    if job.names:
        result = _executable(job.path).run(*inputs)
        outputs = result if isinstance(result, tuple) else (np.asarray(result),)
        arrays |= dict(zip(job.names, outputs, strict=True))
    values = {name: observe(array, name, job.features) for name, array in arrays.items()}
    moments = {layer: moments_of(arrays[window.value], window) for layer, window in job.windows}
    return Seen(values, moments)


def moments_of(array: Array, window: Window) -> Moments:
    """The sum of `x x^T` over at most `ROWS` of the vectors x that `taps` returns, for each group of channels."""
    rows = taps(array, window)
    step = max(1, -(-rows.shape[0] // ROWS))
    chosen = rows[::step].astype(np.float64)
    return Moments(np.einsum("rgk,rgl->gkl", chosen, chosen, optimize=True), chosen.shape[0])


def taps(array: Array, window: Window) -> Array:
    """The inputs that the weights are multiplied with: [positions, groups, height * width * channels of a group]."""
    if window.size is None:
        return array.reshape(-1, 1, array.shape[-1])
    top, left, bottom, right = window.padding
    padded = np.pad(array, ((0, 0), (top, bottom), (left, right), (0, 0)))
    (height, width), (dy, dx) = window.size, window.dilation
    views = np.lib.stride_tricks.sliding_window_view(padded, ((height - 1) * dy + 1, (width - 1) * dx + 1), (1, 2))
    views = views[:, :: window.strides[0], :: window.strides[1], :, ::dy, ::dx]
    batch, rows, columns, channels = views.shape[:4]
    grouped = views.reshape(batch * rows * columns, window.groups, channels // window.groups, height * width)
    return grouped.transpose(0, 1, 3, 2).reshape(batch * rows * columns, window.groups, -1)
