# A compiler engineer: a pass of their own in a file, run among ours from the shell.
# needs: .
cat > twice.py <<'PYTHON'
from dataclasses import dataclass

from relay.dialects import relay as ops
from relay.passes import Pass, registry


@dataclass(frozen=True)
class DropNegations(Pass):
    """Replace the negative of a negative by its operand."""

    name = "drop-negations"

    def apply(self, ctx, op):
        for inner in list(op.walk()):
            if isinstance(inner, ops.NegativeOp) and isinstance(inner.input.owner, ops.NegativeOp):
                inner.result.replace_all_uses_with(inner.input.owner.input)


registry.register(DropNegations)
PYTHON
cat > twice.mlir <<'MLIR'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = relay.negative %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = relay.negative %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
MLIR
relay-opt twice.mlir --load twice.py -p drop-negations,dce > out.mlir
grep -q "return %x" out.mlir && ! grep -q negative out.mlir
