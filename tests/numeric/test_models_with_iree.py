"""Stage 2 of real models, as printed, built and run by IREE, against the stored outputs of LiteRT's reference kernels.

IREE's tools (`pip install iree-base-compiler iree-base-runtime`, in an environment of their own) are found by PATH.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from relay import signature
from relay.frontend import from_tflite
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize

MODELS = Path(__file__).parents[2] / "../shared/models"
NAMES = (
    "ad01_int8",
    "ad01_fp32",
    "kws_int8",
    "kws_fp32",
    "resnet8_int8",
    "resnet8_fp32",
    "vww_96_int8",
    "mobilenet_v1_0.25_128_quant",
)
COMPILE, RUN = shutil.which("iree-compile"), shutil.which("iree-run-module")


@pytest.mark.slow
@pytest.mark.skipif(COMPILE is None or RUN is None, reason="iree-compile and iree-run-module are not installed")
@pytest.mark.parametrize("name", NAMES)
def test_a_model(name: str, tmp_path: Path) -> None:
    if not (path := MODELS / f"{name}.tflite").exists():
        pytest.skip(f"the model {name} is not here")
    golden, mod = np.load(MODELS / "golden" / f"{name}.npz"), from_tflite(path)
    inputs, outputs = signature.read(mod["main"])
    for each in (Legalize(), FoldConstant(), FuseOps(), RelayToLinalg()):
        mod = each(mod)
    text, code = tmp_path / "model.mlir", tmp_path / "model.vmfb"
    text.write_text(mod.to_text(weights=True))
    options = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    finish([COMPILE, text, *options, "--iree-llvmcpu-target-cpu=host", "-o", code])
    given = [tmp_path / f"in{number}.npy" for number in range(len(inputs))]
    found = [tmp_path / f"out{number}.npy" for number in range(len(outputs))]
    for number, file in enumerate(given):
        array = golden[f"rand0_in{number}"]
        np.save(file, array.view(np.int8) if array.dtype == np.uint8 else array)  # stage 2 has no unsigned types
    finish(
        [RUN, f"--module={code}", "--device=local-sync", "--function=main"]
        + [f"--input=@{file}" for file in given]
        + [f"--output=@{file}" for file in found]
    )
    for number, file in enumerate(found):
        expected = golden[f"rand0_out{number}"]
        result = np.load(file).view(expected.dtype)
        tolerance = 1e-5 if name.endswith("fp32") else 0.0
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def finish(command: Sequence[object]) -> None:
    """Run a command; what it says when it fails fails the test."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
