"""What was measured, as tables, rows of JSON and a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
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
        "spread": runner.spread,
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
    "spread",
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
        f"{row['spread']:.1%}",
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


COLOURS = ("#2f62e8", "#e08a1e", "#1f9a86", "#9355d8", "#d6498a", "#7c9a1d")


def plot(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """An SVG: times of each peer over ours, a row for each model, on one thread and a logarithmic scale."""
    rows = {model: ratios(found) for model, found in results.items()}
    peers = [*dict.fromkeys(peer for found in rows.values() for peer in found)]
    most = max((ratio for found in rows.values() for ratio in found.values()), default=2.0)
    top, left, high = 44, 250, 9 * len(peers) + 12
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= most * 1.2]

    def x(ratio: float) -> float:
        return left + 480 * np.log(ratio / 0.45).item() / np.log(most * 1.2 / 0.45).item()

    parts = [text(left, 14, "processor time of a run over that of ours, one thread (logarithmic): more is slower")]
    for number, peer in enumerate(peers):
        parts += [f'<rect x="{left + 110 * number}" y="22" width="10" height="10" fill="{COLOURS[number + 1]}"/>']
        parts += [text(left + 14 + 110 * number, 31, peer)]
    bottom = top + high * len(rows)
    for tick in ticks:
        stroke = "#2f62e8" if tick == 1 else "#8884"
        parts += [
            f'<path d="M{x(tick):.1f} {top}V{bottom}" stroke="{stroke}"/>',
            text(x(tick) - 6, bottom + 14, f"{tick:g}"),
        ]
    for line, (model, found) in enumerate(rows.items()):
        y = top + high * line + 4
        parts += [text(0, y + high / 2, model)]
        for number, peer in enumerate(peers):
            if peer in found:
                low, end = sorted((x(1), x(found[peer])))
                box = f'x="{low:.1f}" y="{y + 9 * number}" width="{end - low:.1f}" height="8"'
                parts += [
                    f'<rect {box} fill="{COLOURS[number + 1]}"/>',
                    text(end + 4, y + 9 * number + 8, f"{found[peer]:.1f}"),
                ]
    size = f'viewBox="0 0 800 {bottom + 20}" width="800" height="{bottom + 20}"'
    style = 'font-family="system-ui, sans-serif" font-size="11" fill="#888"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(parts)}</svg>\n'


def text(x: float, y: float, words: str) -> str:
    """Words in an SVG."""
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


def ratios(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Processor times over ours on one thread, by peer: others on the machine disturb them least."""
    return {
        row["peer"]: 1 / row["processor_ratio"]
        for row in rows
        if row["threads"] == 1 and row["peer"] != "ours" and "processor_ratio" in row
    }


def exactness(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A table: how many outputs are others than those of LiteRT's reference kernels."""
    peers = [*dict.fromkeys(row["peer"] for rows in results.values() for row in rows if "from_reference" in row)]
    lines: list[list[str]] = []
    for model, rows in results.items():
        found = {row["peer"]: row["from_reference"] for row in rows if "from_reference" in row}
        lines.append([model, *(found.get(peer, "") for peer in peers)])
    return table(["outputs that differ", *peers], lines)
