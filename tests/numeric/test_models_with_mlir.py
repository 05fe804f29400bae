"""Real models at stage 2, run by MLIR's own lowering, against the stored outputs of LiteRT's reference kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay import signature
from relay.frontend import from_tflite
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.passes import Pass
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize
from tests.marks import ci
from tests.numeric import mlir_runner

MODELS = Path(__file__).parents[2] / "../shared/models"
FUSED: tuple[Pass, ...] = (FuseOps(), RelayToLinalg(), ExpandApplyScale())
WHOLE: tuple[Pass, ...] = (RelayToLinalg(),)


@mlir_runner.needs_mlir
@pytest.mark.parametrize(
    "passes", [pytest.param(FUSED, id="fused"), pytest.param(WHOLE, id="whole", marks=pytest.mark.ci)]
)
@pytest.mark.parametrize(
    "name",
    [
        "kws_int8",
        *ci(("ad01_int8", "resnet8_int8", "mobilenet_v1_0.25_128_quant")),
    ],
)
def test_stage2_of_a_model_gives_the_reference_outputs(name: str, passes: tuple[Pass, ...]):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    mod = from_tflite(path)
    inputs, outputs = signature.read(mod["main"])
    arguments = [golden[f"rand0_in{number}"] for number in range(len(inputs))]
    call = mlir_runner.Call("main", arguments, mlir_runner.results_of(mod, "main"))
    mod = Legalize()(mod)
    for each in passes:
        mod = each(mod)
    mlir_runner.verify(mod)
    (results,) = mlir_runner.run(mod, [call])
    assert len(results) == len(outputs)
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, golden[f"rand0_out{number}"].reshape(result.shape))
