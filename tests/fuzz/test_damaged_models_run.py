"""Damaged .tflite files in a process of their own: imported soon, in little memory; built and run without a crash."""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cases
from tests.fuzz.damaged_worker import Outcome, measured
from tests.fuzz.run_cases import run_cases
from tests.fuzz.test_tflite_import_fuzz import DIGITS, written
from tests.fuzz.test_tflite_reader_fuzz import DAMAGES, MODELS, Seed

ROOT = Path(__file__).parents[2]
SMALL = 100_000
"""Bytes of files that are damaged."""
IMPORT_SECONDS = 1.0
"""Of processor time."""
SPARE, PER_BYTE = 1 << 20, 16
"""Bytes that an import may hold at a time: so many, and so many for each of the file's."""
PATIENCE = 300.0
"""Seconds for one file, whatever becomes of it."""
FINE = ("ran", "like one before", "large", "Malformed", "Unsupported", "not built: ")


class Watched:
    """The process, started again after its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start()

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "RELAY_CACHE_DIR": "off"}
        command = [sys.executable, "-m", "tests.fuzz.damaged_worker"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment)

    def __call__(self, file: bytes) -> Outcome:
        self.path.write_bytes(file)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{self.path}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return Outcome(**json.loads(line))
        self.process.kill()
        code = self.process.wait()
        self.start()
        return Outcome("a hang" if not ready else f"the process ended with {code}", 0.0, 0)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    found = Watched(tmp_path_factory.mktemp("damaged") / "model.tflite")
    yield found
    found.close()


def small_models() -> list[Seed]:
    files = [path.read_bytes() for path in (*sorted(DIGITS.glob("*.tflite")), *sorted(MODELS.glob("*.tflite")))]
    return [*(Seed(file) for file in files if len(file) < SMALL), *written()]


def fuzz(watched: Watched, cases: Iterable[int], folder: Path) -> Counter[str]:
    """How each damaged file ended; what must not be is kept."""
    seeds, shares = small_models(), list[float]()

    def draw(case: int) -> bytes:
        rng = random.Random(case)
        return rng.choice(DAMAGES)(rng.choice(seeds), rng)

    def end_of(file: bytes) -> str:
        end, seconds, memory = watched(file)
        shares.append(memory / (SPARE + PER_BYTE * len(file)))
        said = f"{end}, imported in {seconds:.2f} s, {memory} bytes for {len(file)} of the file"
        assert end.startswith(FINE) and seconds <= IMPORT_SECONDS and shares[-1] <= 1, said
        return end

    ends = run_cases(cases, draw, end_of, keep=lambda case, file: (folder / f"{case}.tflite").write_bytes(file))
    print(f"most memory: {max(shares, default=0):.0%} of what its file's size allows")
    return ends


def test_good_files_are_imported_within_the_bounds() -> None:
    for seed in small_models():
        _, (end, seconds, memory) = measured(seed.file)
        assert end == "imported" and seconds < IMPORT_SECONDS and memory < SPARE + PER_BYTE * len(seed.file)


@pytest.mark.ci
def test_a_good_file_runs(watched: Watched) -> None:
    assert watched(small_models()[0].file).end == "ran"


@pytest.mark.ci
def test_damaged_files_do_no_harm(watched: Watched, tmp_path: Path) -> None:
    ends = fuzz(watched, range(8), tmp_path)
    assert ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_files_do_no_harm(watched: Watched, tmp_path: Path, cases: Cases) -> None:
    fuzz(watched, cases(5000), tmp_path)
