"""Models of which a plug-in computes some ops, against the stored outputs of LiteRT: as equal as without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay
from tests.abacus_plug_in import installed
from tests.numeric.test_models_compiled import close, outputs_of
from tests.numeric.test_models_interpreted import MODELS

PARTS = {"resnet8_int8": 3, "tf2_mobilenet_v2_1.0_224_ptq": 10}
"""Models, and their residual sums: each is a function of its own, since a convolution is between any two."""


@pytest.mark.parametrize("name", ["resnet8_int8", pytest.param("tf2_mobilenet_v2_1.0_224_ptq", marks=pytest.mark.slow)])
def test_sums_of_codes_by_a_plug_in(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    installed(tmp_path, monkeypatch)
    executable = relay.build(path, external="abacus", exact=True)
    assert len(executable.externals) == PARTS[name]
    executable.save(tmp_path / "model.relay")
    loaded = relay.runtime.load(tmp_path / "model.relay")
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    for tag in sorted({key.split("_in")[0] for key in golden.files if "_in" in key}):
        for each in (executable, loaded):
            (result,) = outputs_of(each, golden[f"{tag}_in0"])
            assert close(result, golden[f"{tag}_out0"]), f"{name}, input {tag}"
