"""Programs that PyTorch exported (`torch_files.py`): what they give is what eager PyTorch gave."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.frontend import from_pytorch
from relay.interpreters import run
from relay.quantize import QdqToInteger, stayed
from tests.numeric.torch_files import BATCHES, FOLDER

NAMES = sorted(path.stem for path in FOLDER.glob("*.pt2"))


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_eager_pytorch_gave(name: str) -> None:
    """Quantized ones by their definition in floats; a state starts as the file has it."""
    with np.load(FOLDER / "results.npz") as file:
        wanted = file[f"{name}_out"]
        inputs = [file[each] for each in sorted(file.files) if each.startswith(f"{name}_in")]
    module = from_pytorch(FOLDER / f"{name}.pt2", numerics="qdq")
    states = [np.zeros((2, 4), np.float32)] if name == "state" else []
    found = run(module, [*inputs, *states])[0]
    assert np.abs(found - wanted).max() <= (1e-3 if name.startswith("torchao") else 1e-5) * np.abs(wanted).max()
    if name == "pt2e_static":
        scale = np.abs(wanted[wanted != 0]).min()
        module = QdqToInteger()(from_pytorch(FOLDER / f"{name}.pt2"))
        assert not stayed(module)
        found = run(module, inputs)[0]
        assert np.abs(found - wanted).max() <= 1.01 * scale
        assert np.array_equal(np.asarray(relay.build(module)(*inputs)).reshape(wanted.shape), found)


@pytest.mark.ci
def test_branches_and_loops_of_any_batch() -> None:
    """Which branch is taken, and how often a loop turns, follows from elements of what has an open batch."""
    executable = relay.build(FOLDER / "branches.pt2")
    with np.load(FOLDER / "results.npz") as file:
        for batch, _ in BATCHES:
            found, wanted = executable.run(file[f"{batch}_branches_in0"]), file[f"{batch}_branches_out"]
            assert isinstance(found, np.ndarray) and found.shape == wanted.shape
            assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()


def test_files_are_small() -> None:
    assert NAMES and sum(path.stat().st_size for path in FOLDER.iterdir()) < 1 << 20
