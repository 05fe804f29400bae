"""The pass `fold-constant`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import relay
from relay.dialects.attributes import dtype_of, elements, to_numpy
from relay.dialects.element_types import StoredType
from relay.dialects.op import DYNAMIC, TensorOp, shape, tensor
from relay.interpreters import evaluate, has_meaning
from relay.mapping import spilled
from relay.module import is_constant
from relay.passes import Pass
from relay.transforms.legalization import own


@dataclass(frozen=True)
class FoldConstant(Pass):
    """Replace ops whose operands are all constants by constants. The interpreter computes them. An op with a result
    over `max_bytes` stays, as does one with a constant whose elements are missing (a `dense_resource` that was parsed
    without them). The limit does not hold for an op of one operand whose result has no more elements than
    this operand: weights that are stored in another type are converted when the model is compiled, not in each run. A
    constant that is only reshaped keeps its label, and shares its memory."""

    name: ClassVar[str] = "fold-constant"
    aliases = ("ConstFolding", "ConstantFolding")
    opt_level = 1
    establishes = ("folded",)
    invalidates = ()
    why = "evaluates ops of constants at compile time"
    max_bytes: int = 16 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(own(op)):
            if isinstance(inner, TensorOp) and inner.operands and self.foldable(inner):
                fold(inner)

    def foldable(self, op: TensorOp) -> bool:
        """Whether the operands are constants, the interpreter can compute the op, and the results are not too large."""
        if not all(is_constant(value.owner) for value in op.operands) or not has_meaning(op):
            return False
        count = prod(shape(op.operands[0])) if len(op.operands) == 1 else 0
        return all(
            DYNAMIC not in shape(result)
            and not isinstance(tensor(result).element_type, StoredType)  # which no constant has
            and (prod(shape(result)) <= count or bytes_of(result) <= self.max_bytes)
            for result in op.results
        )


def bytes_of(value: SSAValue) -> int:
    return prod(shape(value)) * dtype_of(tensor(value).element_type).itemsize


def fold(op: TensorOp) -> None:
    """Replace one op by constants, and erase constants that only this op used."""
    sources = [value.owner for value in op.operands if isinstance(value.owner, relay.ConstantOp)]
    results = evaluate(op, [to_numpy(source.value) for source in sources])
    label: StringAttr | None = sources[0].label if isinstance(op, relay.ReshapeOp) else None
    constants: list[Operation] = []
    for array in results:
        value = elements(spilled(array), label="weight" if label is None else label.data)
        constants.append(relay.ConstantOp.make([], {"value": value, "label": label}, like=op))
    Rewriter.insert_op(constants, InsertPoint.before(op))
    Rewriter.replace_op(op, [], [constant.results[0] for constant in constants])
    for source in dict.fromkeys(sources):
        if source.result.first_use is None:
            Rewriter.erase_op(source)
