"""The same model gives the same bytes: text, object code, saved file and export, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.numeric.test_models_interpreted import MODELS
from tests.unit.test_build import DIGITS

pytestmark = pytest.mark.ci
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, tempfile
from hashlib import sha256
from pathlib import Path
import relay
mod = relay.frontend.from_tflite(sys.argv[1])
print(sha256(mod.to_text().encode()).hexdigest())
executable = relay.build(mod)
for kind in ("mlir", "ll"):
    print(sha256(executable.get_source(kind).encode()).hexdigest())
folder = Path(tempfile.mkdtemp())
executable.save(folder / "model")
executable.export(folder)
for name in ("model", "relay_model.o", "relay_model.h"):
    print(sha256((folder / name).read_bytes()).hexdigest())
"""


def sums(path: Path, seed: str, folder: Path) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def check(path: Path, folder: Path) -> None:
    first, second = (sums(path, seed, folder) for seed in ("1", "4242"))
    assert first == second and len(first) == 6


def test_digits(tmp_path: Path):
    check(DIGITS, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet8_int8", "kws_fp32", "keras_lstm_mnist_ptq", "mobilenet_v1_0.25_128_quant"])
def test_models(name: str, tmp_path: Path):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    check(path, tmp_path)
