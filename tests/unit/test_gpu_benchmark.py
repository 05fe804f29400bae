"""`python -m benchmarks.gpu` from its first line to its last, on the emulated device, with and without torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks import gpu, gpu_device, gpu_models, gpu_torch
from relay.compile import gpu as device_build
from relay.lowering.gpu.codegen import DeviceCode, compile_kernels
from relay.target import GpuTarget
from tests.unit.gpu_driver import FakeCuda, emulated_cuda

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def known_to(driver: FakeCuda) -> Callable[..., DeviceCode]:
    """The compiler, telling the driver what it compiled."""

    def compile(text: str, target: GpuTarget, level: int = 3) -> DeviceCode:
        code = compile_kernels(text, target, level)
        driver.texts[code.code] = text
        return code

    return compile


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_device, "ROUNDS", 1)
    monkeypatch.setattr(gpu_models, "RUNS", 1)


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[dict[str, Any], str]:
    with emulated_cuda() as driver:
        for module in (device_build, gpu_device):
            monkeypatch.setattr(module, "compile_kernels", known_to(driver))
        files = ["--json", str(folder / "gpu.json"), "--page", str(folder / "page.md")]
        small = ["--batches", "1", "2", "--sizes", "32", "--bytes", "65536", "--turns", "2"]
        gpu.main([*files, *small, *options, str(DIGITS)])
    return json.loads((folder / "gpu.json").read_text()), (folder / "page.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_every_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found, page = run(tmp_path, monkeypatch)
    assert found["errors"] == []
    assert tuple(row[0] for row in found["limits"])[-2:] == gpu.PEAKS and all(row[1] > 0 for row in found["limits"])
    assert [row["wrong"] for row in (*found["products"], *found["models"])] == [""] * 4
    assert [(row["batch"], row["launches"] > 5) for row in found["models"]] == [(1, True), (2, True)]
    assert found["models"][1]["macs"] == 2 * found["models"][0]["macs"] > 1000
    assert found["products"][0]["macs"] == 32**3 and found["products"][0]["kernels"][0]["us"] > 0
    assert "## emulator (sm_90), cuda -arch=sm_90a, " in page and "| conv2d_0 | 3x3" in page and "of the most" in page


def nothing(*arguments: object) -> Iterator[object]:
    yield from ()


@pytest.mark.usefixtures("few")
def test_an_error_costs_its_section_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments: object) -> gpu_models.Timed:
        raise ArithmeticError("no")

    monkeypatch.setattr(gpu, "model_at", broken)
    monkeypatch.setattr(gpu, "products", nothing)
    found, page = run(tmp_path, monkeypatch)
    assert found["errors"] == [f"digits_int8, batch {batch}: ArithmeticError: no" for batch in (1, 2)]
    assert found["limits"] and found["torch"] and page.count("Not measured: ") == 2


def test_nothing_is_begun_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found, _ = run(tmp_path, monkeypatch, "--seconds", "0")
    assert not found["limits"] and len(found["errors"]) == 5
    assert all("no time was left" in error for error in found["errors"])


def five_minutes_each(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have models take 300 seconds, and all else none; returns the batches that are measured from now on."""
    asked, clock = list[int](), SimpleNamespace(now=0.0)

    def measured(path: Path, batch: int, *arguments: object) -> gpu_models.Timed:
        asked.append(batch)
        clock.now += 300
        return gpu_models.Timed(path.stem, batch, 1.0, "", device=1.0, kernels=(gpu_models.Kernel("k", "", 1.0, 2),))

    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(gpu, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(gpu, "model_at", measured)
    for part in ("products", "limits"):
        monkeypatch.setattr(gpu, part, nothing)
    monkeypatch.setattr(gpu_torch, "rows", nothing)
    return asked


@pytest.mark.usefixtures("few")
def test_a_model_that_would_take_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first batch is expected to fit, and takes so long that the second one does not."""

    five_minutes_each(monkeypatch)
    found, page = run(tmp_path, monkeypatch, "--seconds", "540")
    assert [row["batch"] for row in found["models"]] == [1]
    assert found["errors"] == ["digits_int8, batch 2: TimeoutError: would take about 300 s; 240 s were left"]
    assert "Not measured: digits_int8, batch 2" in page


@pytest.mark.usefixtures("few")
def test_a_run_that_was_stopped_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first run has no time for the second batch; the next one measures that one only, and one after it all."""
    asked = five_minutes_each(monkeypatch)
    file = tmp_path / "gpu.json"
    run(tmp_path, monkeypatch, "--seconds", "540")
    stopped = json.loads(file.read_text())
    assert asked == [1] and stopped["done"] == ["limits", "product", "digits_int8, batch 1", "torch", gpu.PAGE]
    found, _ = run(tmp_path, monkeypatch, "--seconds", "540")
    assert asked == [1, 2] and [row["batch"] for row in found["models"]] == [1, 2]
    assert found["models"][0] == stopped["models"][0] and found["errors"] == []
    run(tmp_path, monkeypatch, "--seconds", "5400")
    assert asked == [1, 2, 1, 2]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"device": "emulator (sm_90)"}', "\0"])
def test_a_damaged_file_is_not_kept(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gpu.json").write_text(text)
    found, _ = run(tmp_path, monkeypatch, "--seconds", "0")
    assert found["done"] == [gpu.PAGE] and len(found["errors"]) == 5


class Anything:
    """Whatever torch has: each attribute, call, item and product is another of these."""

    def __getattr__(self, name: str) -> Anything:
        return self

    def __call__(self, *arguments: object, **options: object) -> Anything:
        return self

    def __matmul__(self, other: object) -> Anything:
        return self

    def __truediv__(self, other: object) -> float:
        return 1.0

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *error: object) -> None: ...


def count(times: Sequence[float]) -> float:
    return float(len(times))


def test_torch_is_timed_where_it_is(monkeypatch: pytest.MonkeyPatch):
    def imported(name: str) -> object:
        return Anything()

    monkeypatch.setattr(gpu_torch, "importlib", SimpleNamespace(import_module=imported))
    monkeypatch.setattr(gpu_torch, "median", count)
    rows = [*gpu_torch.rows([64], [1, 2], float("inf"))]
    assert len(rows) == 1 + 2 + 4 * 2 and {ms for _, ms in rows[1:]} == {float(gpu_torch.ROUNDS)}
    assert {ms for _, ms in [*gpu_torch.rows([64], [1], 0.0)][1:]} == {"no time was left"}


def test_torch_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> ModuleType:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(gpu_torch, "importlib", SimpleNamespace(import_module=missing))
    assert [*gpu_torch.rows([64], [1], float("inf"))] == [("torch", "No module named 'torch'")]


def test_without_a_driver(tmp_path: Path):
    with pytest.raises(SystemExit, match="benchmarks.gpu: cuda: there is no driver"):
        gpu.main(["--json", str(tmp_path / "gpu.json"), "--page", str(tmp_path / "page.md"), str(DIGITS)])
