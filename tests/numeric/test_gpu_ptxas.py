"""NVIDIA's assembler takes every kernel of every model, and spills next to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import relay
from benchmarks.ptxas import CHIPS, assemble, find_ptxas, find_tool, instructions, parse
from relay.lowering.gpu.formats import FLOATS
from relay.lowering.gpu.tiles import GroupTile, Tile, TurnTile
from tests.numeric.test_models_compiled import DIGITS
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS

MOST_STACK = 16
"""Bytes of a thread's stack: the largest tiles of `wgmma` have 128 sums of 255 registers, and `ptxas` puts up to four
others there, outside of the loop."""


def check(path: Path, chip: str, option: str = "", batch: int = 1) -> None:
    tool = find_ptxas()
    if tool is None:
        pytest.skip("ptxas is not installed (pip install nvidia-cuda-nvcc)")
    if not path.exists():
        pytest.skip(f"the model {path.stem} is not here")
    executable = relay.build(path, target=f"cuda -arch={chip}{option}", batch=batch)
    found = {kernel.name: kernel for kernel in assemble(executable.get_source("ptx"), chip, tool)}
    assert {row["kernel"] for row in executable.graph["device"]["launches"]} == set(found)
    most = MOST_STACK if batch > 1 else 0
    assert [kernel for kernel in found.values() if kernel.stack > most or kernel.chip != chip] == []


def test_digits_are_taken():
    check(DIGITS / "digits_int8.tflite", "sm_80")


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", [*ALL, *LARGE])
def test_model_is_taken(name: str, chip: str):
    check(MODELS / f"{name}.tflite", chip)


RESULTS = {"conv2d_1": 674, "conv2d_9": 722, "conv2d_10": 375, "conv2d_18": 747} | {
    "conv2d_12": 1209, "conv2d_21": 1253, "conv2d_32": 1279}  # fmt: skip
"""Instructions of kernels of ResNet-50 for 128 images, by wgmma, by ptxas 13.0 (docs/gpu.md): 1 x 1 convolutions, the
last three with a residual sum."""


TURNS = {"conv2d_1": 532, "conv2d_9": 805, "conv2d_10": 675, "conv2d_18": 802} | {
    "conv2d_12": 804, "conv2d_21": 1365, "conv2d_32": 1362} | {
    "conv2d_3": 715, "conv2d_11": 919, "conv2d_20": 971}  # fmt: skip
"""The same by groups in turns, for 128 results of a thread, 64 in conv2d_1, conv2d_3 and conv2d_12, with what prepares
barriers and asks for copies; the last three are 3 x 3 convolutions, whose windows the device finds."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "results"), [(GroupTile, RESULTS), (TurnTile, TURNS)])
def test_results_take_few_instructions(kind: type[Tile], results: dict[str, int], monkeypatch: pytest.MonkeyPatch):
    tool, disassembler, path = find_ptxas(), find_tool("nvdisasm"), MODELS / "resnet50_224_int8.tflite"
    if tool is None or disassembler is None or not path.exists():
        pytest.skip("ptxas, nvdisasm or the model is not here")
    cost = Tile.cost

    def most_by_groups(tile: Tile, *given: Any) -> float:
        return cost(tile, *given) * (1 if type(tile) is kind else 1000)

    monkeypatch.setattr(Tile, "cost", most_by_groups)
    text = relay.build(path, target="cuda -arch=sm_90a", batch=128).get_source("ptx")
    found = instructions(text, "sm_90a", tool, disassembler)
    counts = {name: found[f"{name}_kernel"] for name in results}
    assert all(counts[name] <= 1.01 * most for name, most in results.items()), counts


@pytest.mark.slow
def test_large_products_are_taken():
    check(MODELS / "resnet50_224_int8.tflite", "sm_90a", batch=128)


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("format", FLOATS)
def test_products_of_floats_are_taken(format: str, chip: str):
    check(MODELS / "mobilenetv2_224_f32.tflite", chip, f" -matmul={format}")


def test_what_the_assembler_prints_is_read():
    text = """ptxas info    : Compiling entry function 'conv' for 'sm_80'
ptxas info    : Function properties for conv
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 242 registers, used 1 barriers, 16 bytes cumulative stack size, 65536 bytes smem, 400 bytes cmem[0]
"""
    (kernel,) = parse(text)
    assert (kernel.name, kernel.chip, kernel.registers, kernel.stack, kernel.spills) == ("conv", "sm_80", 242, 16, 20)
    assert kernel.shared == 65536
