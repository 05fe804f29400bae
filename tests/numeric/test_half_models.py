"""`ToMixedPrecision` on real float models: how far results move, and that no half is computed by itself."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.frontend import from_pytorch
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.to_mixed_precision import ToMixedPrecision
from tests.numeric import test_onnx_models as onnx_models
from tests.numeric.test_models_interpreted import MODELS, module
from tests.unit.test_optimizations import AttachTarget

TARGET = "x86_64-unknown-linux-gnu -mcpu=sapphirerapids"
PAIRS = re.compile(r"\bvdpbf16ps\b")
SCALAR_HALF = re.compile(r"\bv(add|sub|mul|div|sqrt|max|min|fn?m\w+)sh\b|__(extend|trunc)\w*h")
BOUND = {"f16": 2.0**-6, "bf16": 2.0**-4}
"""Of the largest number of a result: 16 roundings to 11 bits, or 8 to 8 bits, in the same direction."""
TFLITE = ("ad01_fp32", "kws_fp32", "resnet8_fp32", "vww_96_float", "mobilenetv2_224_f32")
TORCH = ("bert_tiny.pt2",)
FAST = ("ad01_fp32",)
SLOW = ("mobilenetv2_224_f32", "minilm_l6_int8_weights", "silero_vad_if", "superresolution", "ultraface_slim")


def loops(assembly: str) -> str:
    """What runs more than once in a kernel: from a label to a jump back to it."""
    found, labels, every = list[str](), dict[str, int](), assembly.splitlines()
    for number, line in enumerate(every):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = number
        elif (jump := re.match(r"\s+j\w+\s+(\.L\w+)", line)) and jump[1] in labels:
            found += every[labels[jump[1]] : number]
    return "\n".join(found)


def given(name: str) -> tuple[IRModule, list[Array]]:
    """The model and its inputs of one run."""
    if name in TFLITE:
        with np.load(MODELS / "golden" / f"{name}.npz") as golden:
            return module(name), [golden["rand0_in0"]]
    if name in TORCH:
        mod = from_pytorch(MODELS / "onnx" / name, shapes=dict.fromkeys("amt", (2, 16)))
        ids = np.random.default_rng(0).integers(0, 1000, (2, 16))
        return mod, [ids, np.ones_like(ids), np.zeros_like(ids)]
    mod, inputs, _ = onnx_models.given(name, "r0")
    return mod, inputs


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [] if name in FAST else [pytest.mark.ci])
        for name in (*TFLITE, *TORCH, *onnx_models.FLOATS)
    ],
)
def test_results_stay_near_and_halves_in_vectors(name: str, dtype: str):
    if not MODELS.exists():
        pytest.skip("the models are not here")
    mod, inputs = given(name)
    half = ToMixedPrecision(dtype=dtype)(AttachTarget(TARGET)(mod))
    assert f"dtype = {dtype}" in str(half["main"])
    off = 0.0
    for got, want in zip(run(half, inputs), run(mod, inputs), strict=True):
        off = max(off, float(np.abs(got - want).max() / np.abs(want).max()))
    print(f"{name}, {dtype}: {off:.1e} of the largest")
    assert off <= BOUND[dtype]
    repeated = loops(relay.build(half, target=TARGET).get_source("asm"))
    assert "vmov" in repeated and SCALAR_HALF.search(repeated) is None
    assert (PAIRS.search(repeated) is not None) == (dtype == "bf16")
