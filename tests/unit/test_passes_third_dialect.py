"""A dialect of another package takes part in the build by its entry points alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PACKAGE = """
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.universe import Universe

from relay.dialects import relay
from relay.transforms.legalization import Legalization


@irdl_op_definition
class DoubleOp(IRDLOperation):
    name = "third.double"
    input = operand_def(TensorType[Attribute])
    result = result_def(TensorType[Attribute])


class Double(Legalization):
    def match_and_rewrite(self, op, rewriter):
        if isinstance(op, DoubleOp):
            rewriter.replace_op(op, relay.AddOp.make([op.input, op.input], like=op))


@dataclass(frozen=True)
class Halve(ModulePass):
    name = "third-halve"

    def apply(self, ctx, op):
        for inner in list(op.walk()):
            if isinstance(inner, DoubleOp):
                Rewriter.replace_op(inner, [], [inner.input])


PATTERNS = [Double]
UNIVERSE = Universe(
    all_dialects={"third": lambda: Dialect("third", [DoubleOp])},
    all_passes={"third-halve": lambda: Halve},
)
"""

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "third.double"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""

SCRIPT = """
import numpy as np
import relay
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from third_dialect import DoubleOp
from relay.passes import Pipeline

type = TensorType(f32, [4])
function = FuncOp("main", ([type], [type]))
double = DoubleOp.create(operands=[function.body.block.args[0]], result_types=[type])
function.body.block.add_ops([double, ReturnOp(double.result)])
mod = relay.IRModule()
mod["main"] = function
x = np.arange(4, dtype=np.float32)
print(np.asarray(relay.build(mod).run(x)), np.asarray(relay.build(mod, pipeline="third-halve").run(x)))
print(np.asarray(relay.build("third.mlir").run(x)))
print(relay.default_pipeline().insert_before("legalize", "third-halve").index("third-halve"))
"""


@pytest.mark.ci
def test_a_third_dialect_takes_part_in_the_build(tmp_path: Path):
    (tmp_path / "third_dialect.py").write_text(PACKAGE)
    (tmp_path / "third.mlir").write_text(TEXT)
    info = tmp_path / "third_dialect-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-dialect\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[relay.legalize]\nthird = third_dialect:PATTERNS\n[xdsl.universe]\nthird = third_dialect:UNIVERSE\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0. 2. 4. 6.] [0. 1. 2. 3.]", "[0. 2. 4. 6.]", "2"]
    command = [sys.executable, "-m", "relay.tools.relay_opt", "-p", "legalize"]
    done = subprocess.run(command, input=TEXT, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "relay.add" in done.stdout, done.stderr


def test_importing_relay_is_quick():
    code = "import time; start = time.process_time(); import relay; print(time.process_time() - start)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert float(done.stdout) < 0.4
