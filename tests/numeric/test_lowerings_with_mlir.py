"""The ops' examples at stage 2: upstream's verifiers take what they become."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.transforms.legalize import Legalize
from tests.ops.examples import FILES, functions, runnable
from tests.ops.test_ops import file_name

TOOL = next((found for name in ("mlir-opt-22", "mlir-opt") if (found := shutil.which(name))), None)


@pytest.mark.skipif(TOOL is None, reason="mlir-opt is not installed")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.ci if path.stem.startswith("qnn") else (), id=file_name(path))
        for path in FILES  # ops of qnn become those of the other files before they are lowered
    ],
)
def test_lowerings(path: Path) -> None:
    assert TOOL is not None
    found = filter(None, map(runnable, functions(path)))
    module = RelayToLinalg()(Legalize()(ModuleOp([function.clone() for function in found])))
    done = subprocess.run([TOOL], input=str(module), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
