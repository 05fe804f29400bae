"""Ours against every installed runtime: `python -m benchmarks.compare MODEL... [--kernels] [--json F] [--plot F]`.

Peers run in processes of their own, pinned to the first one or two processors, in interleaved rounds: what disturbs
the machine meets all of them. Between the rounds it is measured how much more several processors do than one.
`onnxruntime` reads the `.onnx` file beside a `.tflite`; an ONNX model with open sizes is measured at its inputs' sizes.
Times are a call of each runtime's Python interface with inputs bound, on the clock and of the processor: on a busy
machine calls of milliseconds, which other programs interrupt, are compared by the latter. Memory is the process's, the
build included.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import relay
from benchmarks import kernels, macs, tables
from relay import signature
from relay.compile import peak
from relay.exploration.references import LiteRt
from relay.frontend import import_model
from relay.tools.peers import PEERS, Array, importer_options, installed
from relay.tools.peers.rounds import difference, interleave, started


def inputs_of(model: Path) -> list[Array]:
    """The first stored inputs (`golden/NAME.npz`) if there are any, else random ones."""
    golden = model.parent / "golden" / f"{model.stem}.npz"
    if golden.exists():
        with np.load(golden) as arrays:
            tag = next(name for name in arrays.files if name.endswith("_in0")).removesuffix("_in0")
            return [arrays[f"{tag}_in{n}"] for n in range(sum(name.startswith(f"{tag}_in") for name in arrays.files))]
    specs = [s for s in signature.read(import_model(str(model), {})["main"])[0] if s.kind == "input"]
    random = np.random.default_rng(0)
    return [made_up(random, spec) for spec in specs]


def reference_of(model: Path) -> Sequence[Array]:
    """The outputs of LiteRT's reference kernels."""
    inputs = {str(number): array for number, array in enumerate(inputs_of(model))}
    return LiteRt(model).run(inputs, layers=False).outputs


def made_up(random: np.random.Generator, spec: signature.TensorInfo) -> Array:
    """Random numbers: codes of the whole range, floats from -1 to 1."""
    if spec.dtype.kind == "f":
        return random.uniform(-1, 1, spec.shape).astype(spec.dtype)
    range = np.iinfo(spec.dtype)
    return random.integers(range.min, range.max, spec.shape, spec.dtype, endpoint=True)


def compare(
    model: Path, names: Sequence[str], threads: Sequence[int], rounds: int, seconds: float, peaks: Mapping[str, float]
) -> tuple[list[dict[str, Any]], dict[int, float]]:
    """Rows of one model, and by number of threads how much more as many processors did than one: the median."""
    processors, scalings = sorted(os.sched_getaffinity(0)), {count: list[float]() for count in threads if count > 1}
    inputs = inputs_of(model)
    work = macs.total(relay.optimize(import_model(str(model), importer_options(model, inputs))))
    with started([(peer, model) for peer in names], threads, inputs) as runners:
        running = [runner for runner in runners if not runner.note]
        for _ in interleave(running, rounds, seconds):
            for count, found in scalings.items():
                found.append(peak.scaling(processors[:count]))
        ours = {runner.threads: runner for runner in running if runner.peer == "ours"}
        rows = [tables.row_of(runner, work, peaks, ours.get(runner.threads)) for runner in runners]
        for row, runner in zip(rows, runners, strict=True):
            if not runner.note and runner.threads == threads[0] and model.suffix == ".tflite":
                row["from_reference"] = difference(reference_of(model), runner.results())
    return rows, {count: float(np.median(found)) for count, found in scalings.items()}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--peers", default=",".join(PEERS), help="separated by commas (default: %(default)s)")
    parser.add_argument("--threads", default="1,2", help="separated by commas (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each round (default: %(default)s)")
    parser.add_argument("--kernels", action="store_true", help="our kernels one by one, instead of other runtimes")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--plot", type=Path, help="draw the results here, as SVG, and print what differs")
    options = parser.parse_args(arguments)
    if unknown := set(options.peers.split(",")) - set(PEERS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; the known ones are {', '.join(PEERS)}")
    if missing := [str(model) for model in options.models if not model.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    return options


def kernel_rows(model: Path, seconds: float, peaks: Mapping[str, float]) -> list[dict[str, Any]]:
    """Our kernels, the slowest first."""
    timed = kernels.time_kernels(model, inputs_of(model), seconds)
    total = sum(one.seconds for one in timed)
    rows = [tables.kernel_row(one, total, peaks) for one in timed]
    return sorted(rows, key=lambda row: -row["seconds"])


def main(arguments: Sequence[str] | None = None) -> dict[str, list[dict[str, Any]]]:
    """Measure and print; returns the rows of each model."""
    options = parse(arguments)
    first, *_ = every = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {first})
    peaks = peak.measure()
    os.sched_setaffinity(0, every)
    print("one core at most:", ", ".join(f"{kind} {rate / 1e9:.1f} GMAC/s" for kind, rate in peaks.items()))
    results: dict[str, list[dict[str, Any]]] = {}
    scalings: dict[str, dict[int, float]] = {}
    threads = [int(count) for count in options.threads.split(",") if int(count) <= len(every)]
    versions = {name: installed(name) for name in options.peers.split(",")}
    if not options.kernels:
        print(", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items()))
    for model in options.models:
        print(f"\n{model.stem}\n", flush=True)
        if options.kernels:
            os.sched_setaffinity(0, {first})
            rows = kernel_rows(model, options.rounds * options.seconds, peaks)
            print(tables.table(tables.KERNEL_HEAD, [tables.kernel_cells(row) for row in rows]))
            print(f"\nall: {sum(row['seconds'] for row in rows) * 1e3:.4g} ms")
        else:
            names = [name for name, version in versions.items() if version is not None]
            rows, scalings[model.stem] = compare(model, names, threads, options.rounds, options.seconds, peaks)
            print(tables.table(tables.HEAD, [tables.cells(row) for row in rows]))
            for count, more in scalings[model.stem].items():
                print(f"\nmeanwhile, {count} processors did {more:.2f} times as much as one")
        results[model.stem] = rows
        if options.json:  # after every model: nothing is lost if a later one fails
            found = {"peak": peaks, "versions": versions, "models": results, "processors": scalings}
            options.json.write_text(json.dumps(found, indent=1) + "\n")
    for count in [] if options.kernels else threads:
        print(f"\n{tables.summary(results, count)}")
    if options.plot and not options.kernels:
        options.plot.write_text(tables.plot(results))
        print(f"\n{tables.exactness(results)}")
    return results


if __name__ == "__main__":
    main()
