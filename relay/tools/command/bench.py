"""`relay bench`."""

from __future__ import annotations

import resource
from time import perf_counter
from typing import Any

import rich_click as click

from relay.errors import InvalidArgument
from relay.tools.command import options


@click.command("bench", cls=options.ModelCommand)
@click.argument("file", type=options.MODEL, metavar="FILE|MODEL")
@options.input_options
@click.option("--warmup", type=click.IntRange(0), default=10, help="runs before (default: 10)")
@click.option("--repeat", type=click.IntRange(1), help="runs that are timed (default: as many as fit)")
@click.option("--seconds", type=click.FloatRange(0), default=1.0, help="how long runs are timed (default: 1)")
@click.option("--threads", default="1", metavar="1,2", help="numbers of threads, one row each (default: 1)")
@options.model_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, file: str, as_json: bool, **chosen: Any) -> None:
    """Time runs: median, p90, p99, multiply-accumulates per second, memory, time to load or build."""
    from relay.tools.command import inputs as reading

    build, rest = options.arguments_of(chosen)
    counts = [int(word) if word.isdecimal() else 0 for word in rest["threads"].split(",")]
    if 0 in counts:
        raise InvalidArgument("--threads", f"{rest['threads']!r} are no numbers of threads", "write --threads 1,2")
    start = perf_counter()
    executable = options.executable(file, build, manner)
    loaded = perf_counter() - start
    values = reading.gather(executable.inputs, *(rest[name] for name in ("inputs", "given", "fill", "seed", "pixels")))
    for name, value in values.items():
        executable.set_input(name, value)
    macs = 0
    if not options.is_saved(file):
        from relay.viewer.summary import summary

        macs = summary(options.module(file, build)).macs
    rows: list[dict[str, Any]] = []
    for count in counts:
        executable.num_threads = count
        timed = executable.benchmark(warmup=rest["warmup"], repeat=rest["repeat"], seconds=rest["seconds"])
        row: dict[str, Any] = {"threads": count, **timed.to_json()}
        rows.append(row | ({"macs_per_s": macs / timed.median} if macs else {}))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    columns = ("median", "p90", "p99", "min")
    table = [["threads", *(f"{name} us" for name in columns), "GMAC/s", "runs"]]
    for row in rows:
        rate = f"{row['macs_per_s'] / 1e9:.2f}" if "macs_per_s" in row else ""
        table.append([str(row["threads"]), *(f"{row[n] * 1e6:.4g}" for n in columns), rate, str(row["runs"])])
    text = options.rows(table, frozenset(range(len(table[0]))))
    text += f"\nloaded in {loaded:.3g} s; at most {memory / 2**20:.0f} MiB of memory"
    options.show({"file": file, "load_s": loaded, "peak_rss_bytes": memory, "rows": rows}, text, as_json)
