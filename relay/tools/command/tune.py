"""`relay tune`: searches for faster schedules by measuring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from relay.tools.command import options


@click.command("tune", cls=options.ModelCommand)
@click.argument("model", type=options.MODEL)
@click.option("-o", "--output", required=True, metavar="FILE", help="JSON file to which the schedules found are added")
@click.option("--trials", type=click.IntRange(1), default=24, help="schedules to try for each kernel (default: 24)")
@click.option(
    "--rounds", type=click.IntRange(2), default=5, help="rounds in which each schedule is measured (default: 5)"
)
@click.option("--seconds", type=click.FloatRange(0), default=0.02, help="seconds of each round (default: 0.02)")
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", default=0, help="seed of the random choice of schedules (default: 0)"
)
@options.TARGET
@options.import_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, model: str, output: str, as_json: bool, **chosen: Any) -> None:
    """Search for faster schedules of a model's kernels by measuring them on this machine; the model's results do
    not change."""
    import relay

    build, rest = options.arguments_of(chosen)
    known = relay.Records.load(output) if Path(output).exists() else relay.Records({})
    found = relay.tune(options.module(model, build), build.get("target", "llvm"), **rest)
    (known | found).save(output)
    rows: list[dict[str, Any]] = []
    lines = [["default", "tuned", "ratio", "schedule"]]
    for cpu, records in found.kernels.items():
        for key, record in records.items():
            rows.append({"kernel": key, "processor": cpu, **vars(record)})
            times = [record.default_seconds * 1e6, record.seconds * 1e6]
            lines.append([*(f"{time:.3f} us" for time in times), f"{times[0] / times[1]:.2f}", record.schedule])
    table = options.rows(lines, frozenset((0, 1, 2))) if rows else "no kernel is faster than with its default schedule"
    options.show({"file": output, "kernels": rows}, f"{table}\n\n{output} written", as_json)
