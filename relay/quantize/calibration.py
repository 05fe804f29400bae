"""Calibration: the compiled float model runs on samples, and statistics of its values are collected."""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from relay import signature, symbols
from relay.arguments import instance
from relay.arguments import shown as argued
from relay.compile.entry import build
from relay.compile.progress import bar as progress_bar
from relay.dialects import relay
from relay.dialects.attributes import Array, int_values
from relay.dialects.op import four, shape, two
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes.context import PassContext
from relay.passes.info import as_module
from relay.quantize import marks
from relay.quantize.layers import Layer, layers_of
from relay.quantize.observing import fingerprint, observed, returning
from relay.quantize.samples import Sample, arrange
from relay.quantize.statistics import FEATURES, Moments, Statistics, malformed
from relay.quantize.worker import Job, Seen, Window, run

FORMAT = 1
IN_FLIGHT = 8
"""The number of samples that an executor processes at a time."""
WHERE = "calibration"

Progress = Callable[[int], object]


@dataclass(eq=False)
class Calibration:
    """The result of calibration. `save` writes it as JSON, `load` reads it, `calibrate(resume=...)` continues it."""

    fingerprint: str
    """A hash of the function that was calibrated, including its weights, as a hexadecimal string. A calibration is only
    used for a function with the same hash."""
    features: frozenset[str]
    momentum: float = 0.9
    samples: int = 0
    values: dict[str, Statistics] = field(default_factory=dict[str, Statistics])
    moments: dict[str, Moments] = field(default_factory=dict[str, Moments])

    def merge(self, seen: Seen) -> None:
        """Add the statistics of the next sample."""
        self.samples += 1
        for name, found in seen.values.items():
            self.values.setdefault(name, Statistics()).merge(found, self.momentum)
        for name, moments in seen.moments.items():
            self.moments.setdefault(name, Moments()).merge(moments)

    def to_json(self) -> str:
        """The calibration as JSON, from which `from_json` makes an identical one, to the last bit."""
        return json.dumps(
            {
                "format": FORMAT,
                "module": self.fingerprint,
                "features": sorted(self.features),
                "momentum": self.momentum,
                "samples": self.samples,
                "values": {name: found.to_json() for name, found in self.values.items()},
                "moments": {name: found.to_json() for name, found in self.moments.items()},
            }
        )

    @staticmethod
    def from_json(text: str, where: str = WHERE) -> Calibration:
        """Parse the JSON of `to_json`. Raises Malformed for any other text."""
        try:
            data = cast(dict[str, Any], json.loads(text))
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']}")
            return Calibration(
                str(data["module"]),
                frozenset(data["features"]),
                float(data["momentum"]),
                int(data["samples"]),
                {name: Statistics.from_json(row) for name, row in data["values"].items()},
                {name: Moments.from_json(row) for name, row in data["moments"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise malformed(where, error) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibration to a file; an existing file is replaced only once the new one is complete. Raises
        InvalidArgument if it cannot be written."""
        target = Path(fspath(path))
        part = target.with_name(f"{target.name}.part")
        try:
            part.write_text(self.to_json())
            part.replace(target)
        except OSError as error:
            raise InvalidArgument(f"{WHERE} {target}", f"cannot be written: {error}") from None

    @staticmethod
    def load(path: str | PathLike[str]) -> Calibration:
        """Read a file that `save` wrote. Raises InvalidArgument if it cannot be read, Malformed if its text is not a
        calibration."""
        try:
            text = Path(fspath(path)).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"{WHERE} {fspath(path)}", f"cannot be read: {error}") from None
        return Calibration.from_json(text, f"{WHERE} {fspath(path)}")

    def check(self, function: FuncOp, features: Iterable[str], names: Iterable[str]) -> None:
        """Raise InvalidArgument unless the calibration belongs to the function, has seen a sample, collected these
        kinds of statistics (`features`, such as "histogram"), and has statistics of all values `names`."""
        if self.fingerprint != fingerprint(function):
            raise InvalidArgument(WHERE, "is of another module, or of other weights", "calibrate this one")
        lacking = sorted(set(features) - self.features)
        if lacking:
            raise InvalidArgument(WHERE, f"did not remember {', '.join(lacking)}", f"calibrate(features={lacking})")
        missing = [name for name in names if name not in self.values]
        if not self.samples:
            raise InvalidArgument(WHERE, "has seen no samples", "give at least one; an iterator can be read once only")
        if missing:
            hint = "calibrate with the options of quantize-annotate that are used now"
            raise InvalidArgument(WHERE, f"has not seen {', '.join(missing[:5])}", hint)


def calibrate(
    mod: IRModule | ModuleOp,
    data: Iterable[Sample],
    *,
    features: Iterable[str] = ("range", "histogram", "means"),
    executor: Executor | None = None,
    progress: bool | Callable[[int], object] | None = None,
    resume: Calibration | str | PathLike[str] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = 50,
    limit: int | None = None,
    momentum: float = 0.9,
) -> Calibration:
    """Run `@main`, compiled, on each sample, and collect statistics of its values. A sample is an array, a sequence of
    arrays in the order of the inputs, or a mapping by input name; `data` is any iterable, read lazily.

    A module that `quantize-annotate` has not marked is marked with that pass's defaults. `features` are the statistics
    to collect (`relay.quantize.statistics.FEATURES`). `executor` runs samples in parallel, in threads or processes; the
    result does not depend on it. `progress` shows a progress bar (by default on a terminal and in a notebook), or is
    called with the number of samples done. `checkpoint` names a file that is written after every `every` samples and at
    the end. `resume` continues a calibration or such a file: as many samples of `data` as it has seen are skipped.
    `limit` stops after that many samples, skipped ones included. `momentum`, from 0 to below 1, is the weight of the
    earlier samples in the moving averages of the least and the largest values.
    """
    module = as_module(mod)
    function = marks.main_of(module.op, WHERE)
    if not observed(function):
        from relay.quantize.quantize_annotate import QuantizeAnnotate

        module = QuantizeAnnotate()(module)
        function = marks.main_of(module.op, WHERE)
    wanted = frozenset(features)
    if unknown := wanted - {*FEATURES}:
        raise InvalidArgument(WHERE, f"features {sorted(unknown)} are unknown", f"use {', '.join(FEATURES)}")
    if not isinstance(cast(object, data), Iterable):
        raise InvalidArgument(WHERE, f"{argued(data)} are no samples", "give [sample, ...]")
    if executor is not None:
        instance(executor, Executor, f"{WHERE}: executor", "give one of concurrent.futures")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidArgument(f"{WHERE}: limit", f"is {argued(limit)}", "give a number of samples, or None for all")
    found = _start(function, wanted | {"range"}, momentum, resume)
    if checkpoint is not None and not (folder := Path(fspath(checkpoint)).parent).is_dir():
        raise InvalidArgument(f"{WHERE}: checkpoint", f"there is no folder {folder}", "make it")
    stream = enumerate(islice(iter(data), found.samples, limit))
    inputs, _ = signature.read(function)
    samples = (arrange(sample, inputs, found.samples + number) for number, sample in stream)
    first = list(islice(samples, 1))
    samples = chain(first, samples)
    with tempfile.TemporaryDirectory() as folder, _shown(progress, data, found.samples, limit) as bar:
        job = _prepare(function, str(Path(folder) / "observing.relay"), found.features, first)
        _drain(found, job, samples, executor, bar, checkpoint, every)
    if checkpoint is not None:
        found.save(checkpoint)
    return found


def _start(
    function: FuncOp, features: frozenset[str], momentum: float, resume: Calibration | str | PathLike[str] | None
) -> Calibration:
    if not 0 <= momentum < 1:
        raise InvalidArgument(WHERE, f"momentum is {momentum}", "it is at least 0 and below 1")
    if resume is None:
        return Calibration(fingerprint(function), features, momentum)
    given = resume if isinstance(resume, Calibration) else Calibration.load(resume)
    if not given.samples:
        return Calibration(fingerprint(function), features, momentum)
    given.check(function, features, observed(function))
    return Calibration.from_json(given.to_json())


def _prepare(function: FuncOp, path: str, features: frozenset[str], first: Sequence[Sequence[Array]]) -> Job:
    """Compile the function with its observed values as outputs, ignoring any `PassContext` of the caller; unknown sizes
    are specialized to those of the first sample."""
    values = observed(function)
    arguments = tuple((name, v.index) for name, v in values.items() if isinstance(v, BlockArgument))
    inner = {name: value for name, value in values.items() if not isinstance(value, BlockArgument)}
    if inner and first:
        with PassContext():
            executable = build(returning(function, list(inner.values())))
            if symbols.read(function):
                executable.run(*first[0])
            executable.save(path)
    windows = {
        f"layer{layer.index}": window
        for layer in layers_of(function)
        if "moments" in features and marks.integer(layer.anchor) and (window := _window_of(layer)) is not None
    }
    return Job(path, tuple(inner), arguments, features, tuple(windows.items()))


def _window_of(layer: Layer) -> Window | None:
    """The geometry of the windows of its input that the layer multiplies with weights; None if the input is not among
    the tensors whose values calibration observes."""
    anchor = layer.anchor
    name = marks.name_of(anchor.data)
    if name is None:
        return None
    if isinstance(anchor, relay.DenseOp):
        return Window(name)
    kernel = shape(anchor.kernel)
    return Window(
        name,
        two(kernel[:2] if anchor.depthwise else kernel[1:3], "kernel"),
        two(int_values(anchor.strides), "strides"),
        four(int_values(anchor.padding), "padding"),
        two(int_values(anchor.dilation), "dilation"),
        anchor.groups.value.data,
    )


@contextmanager
def _shown(wanted: bool | Progress | None, data: object, done: int, limit: int | None) -> Generator[Progress]:
    """A context that yields the function to call with the number of samples done: `wanted` if it is a function, else
    one that updates a progress bar."""
    if callable(wanted):
        yield wanted
        return
    counts = [count for count in (len(data) if isinstance(data, Sized) else None, limit) if count is not None]
    with progress_bar(wanted, "calibrating", min(counts) if counts else None, done) as update:
        yield lambda finished: update(finished, "")


def _drain(
    found: Calibration,
    job: Job,
    samples: Iterator[Sequence[Array]],
    executor: Executor | None,
    bar: Progress,
    checkpoint: str | PathLike[str] | None,
    every: int,
) -> None:
    for seen in _results(job, samples, executor):
        found.merge(seen)
        bar(found.samples)
        if checkpoint is not None and every > 0 and found.samples % every == 0:
            found.save(checkpoint)


def _results(job: Job, samples: Iterator[Sequence[Array]], executor: Executor | None) -> Iterator[Seen]:
    """The statistics of each sample, in the samples' order; with an executor, `IN_FLIGHT` samples run at a time."""
    work = partial(run, job)
    if executor is None:
        yield from map(work, samples)
        return
    waiting: deque[Future[Seen]] = deque()
    try:
        for sample in samples:
            waiting.append(executor.submit(work, sample))
            if len(waiting) >= IN_FLIGHT:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def is_calibration(data: object) -> bool:
    """Whether `data` is a calibration, or the path of one, rather than samples."""
    return isinstance(data, Calibration | str | PathLike)
