"""The pass `qdq-to-integer`: replaces float ops between dequantize and quantize by integer ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from relay.dialects import qnn, relay
from relay.dialects.op import TensorOp
from relay.module import IRModule
from relay.passes import Pass
from relay.quantize import marks
from relay.quantize.folds import fold, fold_index
from relay.quantize.fused_folds import Fold, dequantize_later
from relay.quantize.fused_sums import Product, Stays, to_reals
from relay.transforms.dead_ops import erase_dead
from relay.transforms.later_reshapes import LaterReshape
from relay.transforms.legalization import own, settle
from relay.transforms.location import place
from relay.transforms.simplification import ReshapeOfReshape, SameType

STAYED = "relay.qdq"
"""The module attribute that lists the float ops on dequantized values that the pass could not replace by integer ops:
an array of dictionaries with the keys `op` (its location) and `why` (the reason)."""


@dataclass(frozen=True)
class QdqToInteger(Pass):
    """Replace float ops between `qnn.dequantize` and `qnn.quantize` by integer ops.

    Ops whose results are rounded with halves away from zero become those of TFLite's kernels, to which pre-quantised
    models are imported: convolution and product (with bias and clamp), sums, differences, products, means, clamps,
    softmax, sigmoid and tanh with fixed scales; ops that only move or compare elements, if all scales agree;
    requantization; argmax and argmin.

    Ops whose results are rounded to even (`rounding = "even"`, as in ONNX models) get the formulas of ONNX Runtime's
    integer kernels, for signed and unsigned values: convolutions and products, with float biases too, sums, products,
    means, lookup tables for any function of one quantized value, and ops that move or compare elements. A product of
    such values whose result is used as a real becomes the exact integer sum times the scales. PyTorch's rounding
    (`even_inverse`) gets the same, except that softmax and pooling means stay in float; its means of whole axes are
    integer ops.

    Any other op with a dequantized operand stays, and the module's attribute `relay.qdq` says why:
    `relay.quantize.stayed(mod)` lists it. `relay.quantize.integer_share(mod["main"])` is the share of integer
    multiply-accumulates.
    """

    name: ClassVar[str] = "qdq-to-integer"
    aliases = ("FoldQdq", "FakeQuantizationToInteger")
    invalidates = ("folded",)
    why = "replaces dequantize, float op, quantize by an integer op"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        reasons: dict[Operation, str] = {}
        settle(op, [LaterReshape(), ReshapeOfReshape(), SameType()])
        for inner in list(own(op)):
            if isinstance(inner, qnn.QuantizeOp):
                if inner.rounding.data != "even_sum":
                    self.fold(inner, reasons)
            elif isinstance(inner, TensorOp) and evenly(inner) and (later := dequantize_later(inner)) is not None:
                Rewriter.insert_op(later, InsertPoint.before(inner))
                Rewriter.replace_op(inner, [], later[-1].results)
            elif isinstance(inner, relay.ArgOp) and isinstance(source := inner.input.owner, qnn.DequantizeOp):
                if (new := fold_index(inner, source)) is not None:
                    Rewriter.insert_op(new, InsertPoint.before(inner))
                    Rewriter.replace_op(inner, [], new.results)
        for inner in list(own(op)):
            if isinstance(inner, Product) and evenly(inner) and (inner.results[0].uses.get_length()):
                if (new := to_reals(inner)) is not None:
                    Rewriter.insert_op(new.ops, InsertPoint.before(inner))
                    Rewriter.replace_op(inner, [], new.ops[-1].results)
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and function.body.blocks and "compiler" not in function.attributes:
                erase_dead(function.body.walk())
        tell(op, reasons)

    def fold(self, quantize: qnn.QuantizeOp, reasons: dict[Operation, str]) -> None:
        """Replace a `qnn.quantize` and the float op before it by integer ops: with TFLite's formulas if it rounds half
        away from zero, else with those of ONNX Runtime's kernels. If that is impossible, record the reason in
        `reasons`, under the op that prevents it."""
        try:
            if quantize.rounding.data == "away":
                new: list[Operation] = []
                result = fold(quantize, new)
            else:
                fused = Fold(quantize)
                result, new = fused.run(), fused.new.ops
        except Stays as stays:
            reasons[stays.op] = stays.why
            return
        if result.name_hint is None:
            result.name_hint = quantize.result.name_hint
        if new and marks.VALUE in quantize.attributes:
            new[-1].attributes[marks.VALUE] = quantize.attributes[marks.VALUE]
        Rewriter.insert_op(new, InsertPoint.before(quantize))
        Rewriter.replace_op(quantize, [], [result])


def evenly(op: TensorOp) -> bool:
    """Whether the op reads dequantized values of a model that rounds to even."""
    return any(isinstance(v.owner, qnn.DequantizeOp) and v.owner.product.data == "f32" for v in op.operands)


def tell(module: ModuleOp, reasons: dict[Operation, str]) -> None:
    """Store on the module which float ops still read dequantized values, and why."""
    rows: list[Attribute] = []
    for op in own(module):
        if not isinstance(op, TensorOp) or isinstance(op, qnn.QuantizeOp | qnn.DequantizeOp):
            continue
        if any(isinstance(value.owner, qnn.DequantizeOp) for value in op.operands):
            readers = [use.operation for result in op.results for use in result.uses]
            if readers and all(
                isinstance(each, qnn.QuantizeOp) and each.rounding.data == "even_sum" for each in readers
            ):
                continue  # ONNX Runtime has an integer kernel for this mean of reals
            around = [op, *readers, *(value.owner for value in op.operands)]
            found = (reasons[each] for each in around if isinstance(each, Operation) and each in reasons)
            why = next(found, "its result is not quantised")
            rows.append(DictionaryAttr({"op": StringAttr(place(op)), "why": StringAttr(why)}))
    if rows:
        module.attributes[STAYED] = ArrayAttr(rows)
    else:
        module.attributes.pop(STAYED, None)


def stayed(mod: IRModule | ModuleOp) -> list[tuple[str, str]]:
    """The location of each op that the last `qdq-to-integer` left in float although it reads dequantized values, and
    why."""
    rows = (mod.op if isinstance(mod, IRModule) else mod).attributes.get(STAYED)
    if not isa(rows, ArrayAttr[DictionaryAttr]):
        return []
    return [(marks.text(row.data, "op") or "", marks.text(row.data, "why") or "") for row in rows]
