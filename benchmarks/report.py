"""What was measured, as tables, rows of JSON and a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.kernels import Timed
from benchmarks.macs import Work
from relay.tools.peers.rounds import Runner, difference


def row_of(runner: Runner, work: Work, peak: Mapping[str, float], ours: Runner | None) -> dict[str, Any]:
    """One line of the results, in base units."""
    row: dict[str, Any] = {"peer": runner.peer, "threads": runner.threads, "note": runner.note}
    if runner.note:
        return row
    rate = work.macs / runner.median
    row |= {
        "median_s": runner.median,
        "minimum_s": runner.minimum,
        "processor_s": runner.processor,
        "macs_per_s": rate,
        "peak_share": rate / peak[work.kind] / runner.threads if work.kind in peak else None,
        "build_s": runner.loaded["build_s"],
        "memory_mib": runner.loaded["memory_mib"],
    }
    if ours is not None and not ours.note:
        row["ours_over_it"] = ours.median / runner.median
        row["processor_ratio"] = ours.processor / runner.processor
        row["difference"] = difference(ours.results(), runner.results())
    return row


HEAD = (
    "peer",
    "threads",
    "median ms",
    "min ms",
    "CPU ms",
    "ours/it",
    "of CPU",
    "GMAC/s",
    "peak",
    "build s",
    "MiB",
    "outputs against ours",
)


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row of results as text."""
    start = [str(row["peer"]), str(row["threads"])]
    if row["note"]:
        return [*start, str(row["note"]), *[""] * (len(HEAD) - 3)]
    share = "" if row["peak_share"] is None else f"{row['peak_share']:.0%}"
    ratio = f"{row['ours_over_it']:.2f}" if "ours_over_it" in row else ""
    return [
        *start,
        f"{row['median_s'] * 1e3:.4g}",
        f"{row['minimum_s'] * 1e3:.4g}",
        f"{row['processor_s'] * 1e3:.4g}",
        ratio,
        f"{row['processor_ratio']:.2f}" if ratio else "",
        f"{row['macs_per_s'] / 1e9:.1f}",
        share,
        f"{row['build_s']:.1f}",
        f"{row['memory_mib']:.0f}",
        str(row.get("difference", "")),
    ]


def best_ratios(rows: Sequence[Mapping[str, Any]], threads: int) -> dict[str, float]:
    """Ours against the fastest of the others on as many threads: of the median times, the least, and processor time.
    Empty where none of them ran."""
    ran = [row for row in rows if row["threads"] == threads and not row["note"]]
    ours = next((row for row in ran if row["peer"] == "ours"), None)
    others = [row for row in ran if row["peer"] != "ours"]
    if ours is None or not others:
        return {}
    return {key: ours[key] / min(row[key] for row in others) for key in ("median_s", "minimum_s", "processor_s")}


def summary(results: Mapping[str, Sequence[Mapping[str, Any]]], threads: int) -> str:
    """A table of ours against the best peer, by model, and the geometric means."""
    ratios = {model: found for model, rows in results.items() if (found := best_ratios(rows, threads))}
    if not ratios:
        return ""
    keys = list(next(iter(ratios.values())))
    means = {key: float(np.exp(np.mean([np.log(found[key]) for found in ratios.values()]))) for key in keys}
    lines = [
        [model, *(f"{found[key]:.2f}" for key in keys)] for model, found in [*ratios.items(), ("geometric mean", means)]
    ]
    head = (f"ours / the best peer, threads: {threads}", "of medians", "of least times", "of CPU times")
    return table(head, lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [[text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in (head, *rows)]
    rule = ["-" * width for width in widths]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


KERNEL_HEAD = ("kernel", "us", "share", "GMAC/s", "peak", "work", "schedule")


def kernel_row(timed: Timed, total: float, peak: Mapping[str, float]) -> dict[str, Any]:
    """One call, in base units."""
    rate = timed.work.macs / timed.seconds if timed.seconds else 0.0
    return {
        "kernel": timed.kernel,
        "seconds": timed.seconds,
        "share": timed.seconds / total,
        "macs": timed.work.macs,
        "macs_per_s": rate,
        "peak_share": rate / peak[timed.work.kind] if timed.work.kind in peak and timed.work.macs else None,
        "work": timed.work.what,
        "schedule": timed.schedule,
    }


def kernel_cells(row: Mapping[str, Any]) -> list[str]:
    """One call as text."""
    return [
        str(row["kernel"]),
        f"{row['seconds'] * 1e6:.2f}",
        f"{row['share']:.1%}",
        f"{row['macs_per_s'] / 1e9:.1f}" if row["macs"] else "",
        "" if row["peak_share"] is None else f"{row['peak_share']:.0%}",
        str(row["work"]),
        str(row["schedule"]),
    ]


def plot(results: Mapping[str, Sequence[Mapping[str, Any]]], path: str) -> None:
    """Bars of latency over ours, per model and peer, on one thread. Needs matplotlib."""
    pyplot = import_module("matplotlib.pyplot")
    peers = [name for name in dict.fromkeys(row["peer"] for rows in results.values() for row in rows)]
    figure, axes = pyplot.subplots(figsize=(2 + 1.2 * len(results), 4), layout="constrained")
    width = 0.8 / max(len(peers), 1)
    for number, peer in enumerate(peers):
        heights: list[float] = []
        for rows in results.values():
            found = [r for r in rows if r["peer"] == peer and r["threads"] == 1 and not r["note"]]
            heights.append(1 / found[0]["ours_over_it"] if found and "ours_over_it" in found[0] else 0.0)
        axes.bar(np.arange(len(results)) + number * width, heights, width, label=peer)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(np.arange(len(results)) + width * (len(peers) - 1) / 2, list(results), rotation=30, ha="right")
    axes.set_ylabel("latency over ours (1 thread)")
    axes.set_yscale("log")
    axes.legend()
    figure.savefig(path, dpi=120)
