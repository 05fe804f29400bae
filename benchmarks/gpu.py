"""A GPU of NVIDIA's in one call: values against the CPU's, then times. `python -m benchmarks.gpu [MODEL.tflite ...]`

What the device can do at most, products of codes, each model at each batch, whole and by kernel, and torch beside them
where it is installed. Nothing is begun when the time is over, and no model that should take longer than is left; what
was measured until then is in the JSON file, which is written anew after each row, and at last in a section of the page,
with the device and the date. A run that finds the file of one that was stopped, on such a device for the same target,
keeps the parts that were finished.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import gpu_torch
from benchmarks.gpu_device import limits
from benchmarks.gpu_models import Kernel, Timed, model_at, products
from relay.errors import RelayError
from relay.runtime import cuda_driver
from relay.target import resolve_gpu

ROOT = Path(__file__).parents[1]
MODELS = [ROOT / "../shared/models" / f"{name}.tflite" for name in ("resnet50_224_int8", "mobilenet_v2_1.0_224_quant")]
SECONDS = 540.0
MODEL, TORCH = 60.0, 60.0
"""Seconds that a model at one batch is expected to take, its build above all, and that are kept for torch."""
PEAKS = ("int8 by mma.sync", "int8 by wgmma")
HOPPER = (9, 0)
PAGE = "page"
"""The last part of a run."""
TITLE = """# Measured on GPUs

`python -m benchmarks.gpu` writes a section for each run. Times are of the device, medians; inputs and outputs lie there
but for the column `run`, which is a user's run from and to arrays of the host. Values were equal to the CPU's first.
"""


@dataclass
class Report:
    """What was measured."""

    device: str
    target: str
    date: str
    limits: list[tuple[str, float, str]] = field(default_factory=list[tuple[str, float, str]])
    products: list[Timed] = field(default_factory=list[Timed])
    models: list[Timed] = field(default_factory=list[Timed])
    torch: list[tuple[str, float | str]] = field(default_factory=list[tuple[str, float | str]])
    errors: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    """Parts that are finished."""

    @property
    def peak(self) -> float:
        """The most operations on codes a second, by 10^12, that were measured."""
        return max((value for name, value, _ in self.limits if name in PEAKS), default=0.0)

    def share(self, timed: Timed) -> str:
        """How much of that a product or model reached."""
        return f"{100 * timed.tops / self.peak:.0f} %" if self.peak and timed.tops else ""

    def page(self) -> Iterator[str]:
        """A section in markdown."""
        yield f"\n## {self.device}, {self.target}, {self.date}\n"
        yield "| at most | |\n|---|---|"
        yield from (f"| {name} | {value:.4g} {unit} |" for name, value, unit in self.limits)
        yield "\n| what | batch | launches | device, ms | run, ms | images/s | TOPS | of the most | build, s |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for row in (*self.products, *self.models):
            if row.wrong:
                yield f"| {row.name} | {row.batch} | | | | | | {row.wrong} | {row.build:.1f} |"
                continue
            images = f"{row.images:.0f}" if row in self.models else ""
            times = f"{row.device:.4f} | {row.run:.3f} | {images} | {row.tops:.1f} | {self.share(row)}"
            yield f"| {row.name} | {row.batch} | {row.launches} | {times} | {row.build:.1f} |"
        yield "\n| torch | ms |\n|---|---|"
        yield from (f"| {name} | {f'{ms:.4f}' if isinstance(ms, float) else ms} |" for name, ms in self.torch)
        for row in self.models:
            if row.kernels:
                yield f"\n| {row.name}, batch {row.batch} | what | us | TOPS |\n|---|---|---|---|"
                for kernel in row.kernels:
                    tops = f"{2 * kernel.macs / (1e6 * kernel.us):.1f}" if kernel.macs and kernel.us else ""
                    yield f"| {kernel.name} | {kernel.what} | {kernel.us:.1f} | {tops} |"
        yield from (f"\nNot measured: {error}" for error in self.errors)


@dataclass
class Run:
    """A run of everything, until its time is over."""

    report: Report
    file: Path
    until: float
    took: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of the longest section of each kind."""

    def section(
        self, name: str, rows: Callable[[], Iterator[object]], into: list[object], kind: str = "", left: float = 0.0
    ) -> None:
        """Measure rows one by one; an error ends its section only. One of a kind is not begun if it would take too long
        by the longest before it, `MODEL` for the first, and `left` seconds are for what follows."""
        if name in self.report.done:
            print(f"{name}: kept", flush=True)
            return
        start = time.monotonic()
        try:
            if start > self.until:
                raise TimeoutError("no time was left")
            expected = self.took.get(kind, MODEL) if kind else 0.0
            if start + expected + left > self.until:
                raise TimeoutError(f"would take about {expected:.0f} s; {self.until - start:.0f} s were left")
            for row in rows():
                into.append(row)
                print(f"{name}: {row}"[:200], flush=True)
                self.write()
                if time.monotonic() > self.until:
                    raise TimeoutError("no time was left for more")
        except Exception as error:  # whatever fails, what comes after it is measured
            self.report.errors.append(f"{name}: {type(error).__name__}: {error}")
            print(self.report.errors[-1], file=sys.stderr, flush=True)
            self.write()
        else:
            self.took[kind] = max(self.took.get(kind, 0.0), time.monotonic() - start)
            self.report.done.append(name)
            self.write()

    def write(self) -> None:
        """The JSON file, as far as it is known."""
        self.file.write_text(json.dumps(asdict(self.report), indent=1))


def measure(arguments: argparse.Namespace) -> Report:
    """Measure everything. Raises RelayError where there is no GPU."""
    start = time.monotonic()
    driver = cuda_driver.driver(0)
    major, minor = driver.capability
    target = arguments.target or ("cuda -arch=sm_90a" if (major, minor) == HOPPER else "cuda")
    report = Report(f"{driver.name} (sm_{major}{minor})", target, str(date.today()))
    keep(arguments.json, report)
    run = Run(report, arguments.json, start + arguments.seconds)
    sizes, batches, chip = arguments.sizes, arguments.batches, resolve_gpu(target)
    run.section("limits", lambda: limits(driver, arguments.bytes, arguments.turns, chip), list_of(report.limits))
    targets = list(dict.fromkeys((target, "cuda")))
    run.section("product", lambda: products(sizes, driver, targets), list_of(report.products))
    for batch in batches:
        for path in arguments.models:

            def one(path: Path = path, batch: int = batch) -> Iterator[Timed]:
                yield model_at(path, batch, driver, target)

            left = TORCH if find_spec("torch") else 0.0
            run.section(f"{path.stem}, batch {batch}", one, list_of(report.models), path.stem, left)
    run.section("torch", lambda: gpu_torch.rows(sizes, batches, run.until - 30), list_of(report.torch))
    run.write()
    return report


def keep(file: Path, report: Report) -> None:
    """Take what a run that was stopped has finished from its file; nothing of another device, target or day, nor of a
    run that measured everything."""
    try:
        found = json.loads(file.read_text())
        other = any(found[name] != getattr(report, name) for name in ("device", "target", "date"))
        if other or (PAGE in found["done"] and not found["errors"]):
            return
        report.done += [name for name in found["done"] if name != PAGE]
        report.models += map(timed_of, found["models"])
        if "product" in report.done:
            report.products += map(timed_of, found["products"])
        for name in {"limits", "torch"} & set(report.done):
            list_of(getattr(report, name)).extend(tuple(row) for row in found[name])
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"benchmarks.gpu: nothing is kept of {file}: {error}", file=sys.stderr)


def timed_of(row: dict[str, Any]) -> Timed:
    """A row of the file."""
    values: dict[str, Any] = {**row, "kernels": tuple(Kernel(**kernel) for kernel in row["kernels"])}
    return Timed(**values)


def list_of(rows: Sequence[object]) -> list[object]:
    """The list itself, of rows of any kind."""
    assert isinstance(rows, list)
    return rows


def main(given: Sequence[str] | None = None) -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", help='"cuda", "cuda -arch=sm_90a": if not given, what the device has')
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 128, 32], help="the last are left out first")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048, 4096, 8192], help="of square products")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="of the largest copy")
    parser.add_argument("--turns", type=int, default=1 << 14, help="of the loop that multiplies only")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="nothing is begun after so many")
    parser.add_argument("--json", type=Path, default=Path("gpu.json"))
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "performance_gpu.md")
    parser.add_argument("models", nargs="*", type=Path, default=MODELS)
    arguments = parser.parse_args(given)
    try:
        report = measure(arguments)
    except RelayError as error:
        sys.exit(f"benchmarks.gpu: {error}")
    old = arguments.page.read_text() if arguments.page.exists() else TITLE
    section = "\n".join(report.page())
    report.done.append(PAGE)
    arguments.json.write_text(json.dumps(asdict(report), indent=1))
    arguments.page.write_text(f"{old.rstrip()}\n{section}\n")
    print(section)


if __name__ == "__main__":
    main()
