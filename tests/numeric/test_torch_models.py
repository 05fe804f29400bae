"""Networks of torchvision, timm and transformers with random weights, exported by torch, against eager PyTorch.

    pytest -m torch tests/numeric/test_torch_models.py

docs/pytorch.md says how an environment with torch is made without its CUDA libraries.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import relay
from relay.frontend import from_pytorch
from relay.interpreters import run
from tests.numeric.torch_nets import (
    AT_RUN_TIME,
    FORMS,
    NETS,
    applies,
    distance,
    eager,
    exported,
    rounded,
    row,
    torchvision,
)

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
"""What warns here are the libraries that make the models."""
CASES = [(net, form) for net in NETS for form in FORMS if applies(net, form)]
TIES = ("GPT-2", "Llama", "Whisper decoder")
"""Networks whose results in the form `int8 dynamic` move by more than 1e-3 of the largest where float sums are rounded
otherwise: the element of a row that gives the scale, if negative, lies on the tie of two codes."""


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} makes the models", exc_type=ImportError)


def packages() -> None:
    """Skip where one of those that make the models is missing."""
    package("torch")
    if find_spec("torchvision") is not None:
        torchvision()  # before others import it
    for name in ("torchvision", "timm", "transformers", "torchao", "executorch"):
        package(name)


@pytest.mark.parametrize(("net", "form"), CASES)
def test_is_near_eager(net: str, form: str) -> None:
    """Interpreted and compiled, of a file. Static codes of every operator, fed eager PyTorch's, are within one. Where
    scales are found at run time, operators that are fed eager PyTorch's values give its integers; of the whole network
    a rounding error of a float sum may move a value to the next code, in eager PyTorch as here."""
    packages()
    found = row(net, form)
    limit = 1e-5
    if form in AT_RUN_TIME:
        furthest, integers = found["operators"]
        assert furthest <= 1e-5 and not integers
        limit = max(1e-3, 2 * found["eager off"])
    if form == "PT2E static":
        most, share = found["operators"]
        assert most <= 1 and share <= 1e-3 and found["compiled codes"] == 0
    else:
        assert found["eager"] <= limit and found["compiled"] <= limit


@pytest.mark.parametrize("net", TIES)
def test_eager_itself_is_no_nearer(net: str) -> None:
    """Operators that compute in float64 and round once give eager PyTorch's result within 1e-6 in float, but not within
    1e-3 where scales of rows are found at run time: no other order of float sums can be nearer."""
    packages()
    for form, near in (("float", True), ("int8 dynamic", False)):
        program, given = exported(net, form)
        off = distance(eager(program, given)[0], rounded(program, given))
        assert off <= 1e-6 if near else off > 1e-3, form


def test_a_program_is_taken_as_it_is() -> None:
    """An ExportedProgram is saved to memory, and read as a file is."""
    torch = package("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()
    x = torch.randn(2, 4)
    (found,) = run(from_pytorch(torch.export.export(model, (x,))), [x.numpy()])
    assert distance(found, model(x).detach().numpy()) <= 1e-6


RESIZES: dict[str, dict[str, object]] = {
    "nearest to a size": {"size": (4, 5)},
    "nearest by a factor": {"scale_factor": 2.0},
    "bilinear": {"size": (14, 15), "mode": "bilinear"},
    "bilinear from corner to corner": {"size": (14, 15), "mode": "bilinear", "align_corners": True},
    "bilinear by a factor that is computed again": {
        "scale_factor": 1.7,
        "mode": "bilinear",
        "recompute_scale_factor": True,
    },
    "bicubic": {"size": (14, 15), "mode": "bicubic"},
    "bilinear, smaller, antialiased": {"size": (4, 5), "mode": "bilinear", "antialias": True},
    "bilinear to one pixel, antialiased": {"size": (1, 1), "mode": "bilinear", "antialias": True},
    "bicubic, smaller, antialiased": {"size": (4, 5), "mode": "bicubic", "antialias": True},
    "bicubic, larger, antialiased": {"size": (14, 15), "mode": "bicubic", "antialias": True},
}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", RESIZES)
def test_interpolation(name: str, decomposed: bool) -> None:
    """As `export` writes it: sizes without factors, and factors without sizes."""
    torch = package("torch")

    class Resize(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.interpolate(x, **RESIZES[name])

    x = torch.randn(2, 3, 9, 11)
    program = torch.export.export(Resize().eval(), (x,))
    (found,) = run(from_pytorch(program.run_decompositions() if decomposed else program), [x.numpy()])
    assert distance(found, Resize()(x).numpy()) <= 2e-6


def test_a_live_program_is_built_for_any_batch() -> None:
    """A layer that is imported again for each number of rows, from the program itself."""
    torch = package("torch")

    class Last(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.steps, self.end = torch.nn.LSTM(4, 5, batch_first=True), torch.nn.Linear(5, 2)

        def forward(self, x: Any) -> Any:
            return self.end(self.steps(x)[0][:, -1])

    model, x = Last().eval(), torch.randn(3, 6, 4)
    executable = relay.build(torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},)))
    for rows in (3, 1, 8):
        x = torch.randn(rows, 6, 4)
        assert distance(executable.run(x.numpy()), model(x).detach().numpy()) <= 2e-6


def test_regions_of_autocast() -> None:
    torch = package("torch")

    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.first, self.last = torch.nn.Linear(8, 4), torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.last(torch.softmax(self.first(x), -1)).float()

    model, x = Mixed().eval(), torch.randn(2, 8)
    (found,) = run(from_pytorch(torch.export.export(model, (x,))), [x.numpy()])
    assert distance(found, model(x).detach().numpy()) <= 2**-7  # two roundings to bfloat16
