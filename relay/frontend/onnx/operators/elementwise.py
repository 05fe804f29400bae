"""Elementwise operators: functions, arithmetic, comparisons, logic, bits, casts."""

from __future__ import annotations

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import TensorOp
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op

_UNARY: dict[str, type[TensorOp]] = {
    "Abs": relay.AbsOp, "Acos": relay.AcosOp, "Acosh": relay.AcoshOp, "Asin": relay.AsinOp, "Asinh": relay.AsinhOp,
    "Atan": relay.AtanOp, "Atanh": relay.AtanhOp, "BitwiseNot": relay.BitwiseNotOp, "Ceil": relay.CeilOp,
    "Cos": relay.CosOp, "Cosh": relay.CoshOp, "Erf": relay.ErfOp, "Exp": relay.ExpOp, "Floor": relay.FloorOp,
    "IsNaN": relay.IsnanOp, "Log": relay.LogOp, "Neg": relay.NegativeOp, "Not": relay.LogicalNotOp,
    "Relu": relay.ReluOp, "Sigmoid": relay.SigmoidOp, "Sign": relay.SignOp, "Sin": relay.SinOp, "Sinh": relay.SinhOp,
    "Sqrt": relay.SqrtOp, "Tan": relay.TanOp, "Tanh": relay.TanhOp,
}  # fmt: skip
_BINARY: dict[str, type[TensorOp]] = {
    "Add": relay.AddOp, "And": relay.LogicalAndOp, "BitwiseAnd": relay.BitwiseAndOp, "BitwiseOr": relay.BitwiseOrOp,
    "BitwiseXor": relay.BitwiseXorOp, "Div": relay.DivideOp, "Equal": relay.EqualOp, "Greater": relay.GreaterOp,
    "GreaterOrEqual": relay.GreaterEqualOp, "Less": relay.LessOp, "LessOrEqual": relay.LessEqualOp,
    "Mul": relay.MultiplyOp, "Or": relay.LogicalOrOp, "Sub": relay.SubtractOp, "Xor": relay.LogicalXorOp,
}  # fmt: skip


@op(*_UNARY)
def unary(importer: Importer, node: Node) -> SSAValue:
    return importer.call(_UNARY[node.kind], node.input(0))


@op(*_BINARY)
def binary(importer: Importer, node: Node) -> SSAValue:
    return importer.call(_BINARY[node.kind], node.input(0), node.input(1))
