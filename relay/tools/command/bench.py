"""`relay bench`: times a model's runs, optionally against other runtimes."""

from __future__ import annotations

import resource
from time import perf_counter
from typing import Any

import rich_click as click

from relay.errors import InvalidArgument
from relay.tools.command import options

ROUNDS = 9
"""With `--against`, the number of rounds into which the measurement of each runtime is split."""


@click.command("bench", cls=options.ModelCommand)
@click.argument("file", type=options.MODEL, metavar="FILE|MODEL")
@options.input_options
@click.option("--warmup", type=click.IntRange(0), default=10, help="untimed runs before the timed ones (default: 10)")
@click.option("--repeat", type=click.IntRange(1), help="timed runs (default: as many as fit into --seconds)")
@click.option("--seconds", type=click.FloatRange(0), default=1.0, help="seconds of timed runs (default: 1)")
@click.option(
    "--threads",
    default="1",
    metavar="1,2",
    help="thread counts to time, instead of --num-threads; one row each (default: 1)",
)
@click.option(
    "--against",
    metavar="A,B",
    shell_complete=options.completing(options.peers),
    help="also time these other runtimes, such as litert, each in its own process, in alternating rounds",
)
@options.model_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, file: str, as_json: bool, **chosen: Any) -> None:
    """Time runs of a model or saved executable: median, p90, p99, multiply-accumulates per second, memory, time to load
    or build."""
    from relay.tools.command import inputs as reading

    build, rest = options.arguments_of(chosen)
    counts = [int(word) if word.isdecimal() else 0 for word in rest["threads"].split(",")]
    if 0 in counts:
        raise InvalidArgument("--threads", f"{rest['threads']!r} are no numbers of threads", "write --threads 1,2")
    start = perf_counter()
    executable = options.executable(file, build, manner)
    loaded = perf_counter() - start
    values = reading.gather(executable.inputs, rest)
    if rest["against"]:
        rows = beside(file, executable, list(values.values()), rest["against"], counts, rest["seconds"])
        options.show({"file": file, "rows": rows}, table_of(rows), as_json)
        return
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


def beside(
    file: str, executable: Any, inputs: list[Any], against: str, threads: list[int], seconds: float
) -> list[dict[str, Any]]:
    """Time relay and other runtimes side by side. Returns a row for each runtime and number of threads; rows of
    runtimes that cannot run have a note. Raises InvalidArgument."""
    import tempfile
    from pathlib import Path

    from relay.tools.peers import installed
    from relay.tools.peers.rounds import difference, interleave, started

    names = against.split(",")
    for name in names:
        options.known(name, options.peers(), "--against")
    if options.is_saved(file):
        raise InvalidArgument("--against", f"{file} is compiled already", "give the model, which the others read")
    absent = [name for name in names if installed(name) is None]
    with tempfile.TemporaryDirectory() as folder:
        executable.save(saved := Path(folder) / "ours.relay")
        models = [("ours", saved), *((name, Path(file)) for name in names if name not in absent)]
        with started(models, threads, inputs) as runners:
            for _ in interleave([one for one in runners if not one.note], ROUNDS, seconds / ROUNDS):
                pass
            ours = {one.threads: one for one in runners if one.peer == "ours" and not one.note}
            rows: list[dict[str, Any]] = []
            for one in runners:
                row: dict[str, Any] = {"peer": one.peer, "threads": one.threads, "note": one.note}
                if not one.note:
                    row |= {"median": one.median, "min": one.minimum, "version": installed(one.peer)}
                    if one.peer != "ours" and (first := ours.get(one.threads)):
                        row |= {"over_ours": one.median / first.median}
                        row |= {"difference": difference(first.results(), one.results())}
                rows.append(row)
    return [*rows, *({"peer": name, "threads": n, "note": "is not installed"} for name in absent for n in threads)]


def table_of(rows: list[dict[str, Any]]) -> str:
    """The table that `--against` prints."""
    table = [["", "threads", "median us", "min us", "times ours", "outputs against ours"]]
    for row in rows:
        name = f"{row['peer']} {row.get('version') or ''}".rstrip()
        numbers = [f"{row[key] * 1e6:.4g}" if key in row else "" for key in ("median", "min")]
        ratio = f"{row['over_ours']:.2f}" if "over_ours" in row else ""
        table.append([name, str(row["threads"]), *numbers, ratio, row["note"] or row.get("difference", "")])
    return options.rows(table, frozenset({1, 2, 3, 4}))
