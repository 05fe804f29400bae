"""What `relay.tune` brings on this machine: `python -m benchmarks.tuning MODEL... [--trials N] [--records FILE]`.

Of each model: the slowest of random legal schedules, what the tuner makes of these, and two searches from the default
with other seeds. All builds, the default twice, and other runtimes then run in turn, a process each. What counts is the
least of the rounds' processor times: another program on the same core makes a round a third slower. The spread is
what the two processes of the default differ by.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import relay
from benchmarks import tables
from benchmarks.compare import inputs_of
from relay.compile.records import Record, Records
from relay.exploration.tuning import DrawSchedules, Job, measured
from relay.tools.peers.rounds import Runner, interleave, started

PEERS = ("litert", "onnxruntime", "openvino")
BUILDS = ("default", "default again", "worst", "from the worst", "tuned", "tuned again")
HEAD = ("model", *BUILDS, "best peer", "spread", "from the worst", "tuned", "again / tuned", "best peer / tuned")


def worst(model: Path, draws: int, rounds: int) -> Records:
    """Of each kernel the slowest of schedules drawn by chance."""
    every = tuple(DrawSchedules(seed, sums=False, candidates=1) for seed in range(draws))
    found = measured(Job(str(model), False, "llvm", every, None, None, rounds, 0.0))
    start, *others = found.builds
    rows: dict[str, Record] = {}
    for name, kernel in [item for other in others for item in other.items() if item[0] in start]:
        row = Record(kernel.schedule, min(kernel.seconds), min(start[name].seconds))
        if kernel.schedule and (kernel.signature not in rows or row.seconds > rows[kernel.signature].seconds):
            rows[kernel.signature] = row
    return Records({found.processor: rows})


def searches(model: Path, trials: int) -> tuple[Records, list[Records | None]]:
    """What the first search from the default found, and the records of each of `BUILDS`."""
    slowest = worst(model, trials, 2)
    found = [relay.tune(str(model), trials=trials, seed=seed) for seed in (0, 1000)]
    better = slowest | relay.tune(str(model), trials=trials, seed=2000, start=slowest)
    return found[0], [None, None, slowest, better, *found]


def least(runner: Runner) -> float:
    """The processor time of a call in the fastest round."""
    return min(each["processor"] for each in runner.rounds)


def row(model: Path, every: Sequence[Records | None], rounds: int, seconds: float) -> list[str]:
    """All builds and peers in turn: a line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.relay" for name in BUILDS]
        for path, records in zip(files, every, strict=True):
            relay.build(str(model), records=records).save(path)
        peers = [(name, model) for name in PEERS]
        with started([*(("ours", path) for path in files), *peers], [1], inputs_of(model)) as runners:
            running = [runner for runner in runners if not runner.note]
            for _ in interleave(running, rounds, seconds):
                pass
            default, again, _, better, tuned, second = times = [least(runner) for runner in runners[: len(files)]]
            best = min((least(runner), runner.peer) for runner in running if runner.peer != "ours")
            assert len({tuple(array.tobytes() for array in each.results()) for each in runners[: len(files)]}) == 1
    base = min(default, again)
    ratios = (better / base, tuned / base, second / tuned, best[0] / tuned)
    shown = [f"{time * 1e3:.4g}" for time in times]
    spread = f"{abs(default - again) / base:.1%}"
    return [model.stem, *shown, f"{best[0] * 1e3:.4g} {best[1]}", spread, *(f"{ratio:.3f}" for ratio in ratios)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, measure, and print the table, in ms."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each round (default: %(default)s)")
    parser.add_argument("--records", type=Path, help="write what was found here; what it has is kept")
    options = parser.parse_args(arguments)
    lines: list[list[str]] = []
    for model in options.models:
        start = process_time()
        found, every = searches(model, options.trials)
        if options.records:
            known = Records.load(options.records) if options.records.exists() else Records({})
            (known | found).save(options.records)
        lines.append(row(model, every, options.rounds, options.seconds))
        print(f"{model.stem}: {process_time() - start:.0f} s here", flush=True)
    print(f"\n{tables.table(HEAD, lines)}")


if __name__ == "__main__":
    main()
