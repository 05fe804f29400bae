"""All figures on one page, and the README's plot: `python -m benchmarks.report [PAGE] [--only NAME...]`.

Each section is another benchmark's command, in a process of its own; the page says the machine, the versions, how busy
the machine was, and what each section took (its load: processes that wanted a processor in the last minute of it).
Tables of peers have a column with the spread of their rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from shlex import join
from time import perf_counter

from relay.tools.peers import PEERS, installed

ROOT = Path(__file__).parents[1]
MODELS = ROOT.parent / "shared" / "models"
DIGITS = ROOT / "examples" / "digits"
PLOT = ROOT / "docs" / "latency.svg"
PLOTTED = (
    "resnet50_224_int8",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v1_0.25_128_quant",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "vww_96_int8",
    "kws_int8",
    "resnet8_int8",
    "ad01_int8",
)
"""The models of the plot, where the folder has them; else those of `examples/digits`."""
FLOATS = ("mobilenetv2_224_f32", "vww_96_float", "resnet8_fp32", "kws_fp32", "ad01_fp32")
PACKAGES = ("numpy", "llvmlite", "xdsl")


def sections(models: Path, plot: Path) -> dict[str, list[str]]:
    """By title, a module of `benchmarks` and its arguments."""
    plotted, floats = (
        [str(path) for name in names if (path := models / f"{name}.tflite").exists()] for names in (PLOTTED, FLOATS)
    )
    plotted, floats = plotted or [str(DIGITS / "digits_int8.tflite")], floats or [str(DIGITS / "digits_float.tflite")]
    peers = ["--peers", "ours,litert,openvino", "--threads", "1", "--rounds", "7", "--seconds", "0.1"]
    return {
        "Integers": ["compare", *plotted, *peers, "--plot", str(plot)],
        "Floats": ["compare", *floats, *peers],
        "Two threads": ["compare", *plotted[:3], *peers[:2], "--threads", "2", *peers[4:]],
        "A vision transformer": ["vision", "--rounds", "5"],
        "Text encoders": ["transformers", "minilm_128", "minilm_128_f32", "four_bits_32", "--rounds", "5"],
        "A token of a decoder": ["decoding", "gpt2_int8", "--rounds", "9"],
        "What a call costs": ["overhead", str(DIGITS / "digits_int8.tflite")],
        "What a shared loop costs": ["threads"],
    }


def machine() -> str:
    """The processor and the number of cores that this process may use, and how many processes want one."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)  # the first processor's
    found = {name.strip(): value.strip() for name, value in facts.items()}
    kind = ", ".join(f"{name} {found[name]}" for name in ("cpu family", "model") if name in found)
    name = found.get("model name", platform.machine())
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"{name} ({kind}), {cores} processors, {load:.1f} processes that wanted one in the last minute"


def head() -> str:
    """Date, machine and versions."""
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    peers = [f"{name} {installed(name) or 'not installed'}" for name in PEERS]
    versions = ", ".join([f"Python {platform.python_version()}", *packages, *peers])
    return f"# Figures of {date.today()}\n\n{machine()}; {platform.system()} {platform.release()}.\n\n{versions}.\n"


def processor_seconds() -> float:
    """Of all processes that were started here and have ended, with those that they started."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def section(title: str, command: Sequence[str]) -> str:
    """Its command, what that printed, and the end of its errors where it failed."""
    start, before = perf_counter(), processor_seconds()
    called = [sys.executable, "-m", f"benchmarks.{command[0]}", *command[1:]]
    ran = subprocess.run(called, capture_output=True, text=True, cwd=ROOT)
    names = [Path(part).name if part.startswith("/") else part for part in command[1:]]
    took = f"{perf_counter() - start:.0f} s, {processor_seconds() - before:.0f} s of processor time"
    said = f"`{join(['python', '-m', f'benchmarks.{command[0]}', *names])}`: {took}, load {os.getloadavg()[0]:.1f}"
    failed = f"\nended with {ran.returncode}:\n\n    {ran.stderr.strip()[-500:]}\n" if ran.returncode else ""
    return f"## {title}\n\n{said}\n\n{ran.stdout.strip()}\n{failed}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page section by section; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("page", nargs="?", type=Path, default=Path("figures.md"), help="(default: %(default)s)")
    parser.add_argument("--plot", type=Path, default=PLOT, help="the README's plot (default: docs/latency.svg)")
    parser.add_argument("--models", type=Path, default=MODELS, help="a folder of .tflite files (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=[*sections(MODELS, PLOT)], help="repeatable")
    options = parser.parse_args(arguments)
    parts, start = [head()], perf_counter()
    for title, command in sections(options.models.resolve(), options.plot.resolve()).items():
        if title in (options.only or [title]):
            print(f"{title} ...", flush=True)
            parts.append(section(title, command))
            options.page.write_text("\n".join(parts))
    parts.append(f"All of it: {perf_counter() - start:.0f} s, {processor_seconds():.0f} s of processor time.\n")
    options.page.write_text("\n".join(parts))
    print(f"{options.page} written")
    return int(any("\nended with " in part for part in parts))


if __name__ == "__main__":
    raise SystemExit(main())
