"""The pass `infer-types`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from relay.dialects.op import DYNAMIC, TensorOp, compatible, is_tensor
from relay.errors import Malformed
from relay.passes import Pass
from relay.transforms.location import place


@dataclass(frozen=True)
class InferTypes(Pass):
    """Recompute, in program order, every type that is determined by other types. The results of `relay` and `qnn` ops
    get theirs from the ops' operands and properties, a function's results from what it returns, a call's from its
    callee, those of `scf.if` and `scf.while` from what their blocks yield; a size that differs between two branches is
    unknown. After a change of a function's argument types, this pass updates all others. A module whose types are right
    is unchanged. Raises Malformed where an op does not accept its operands, or a loop's values change their types
    between iterations."""

    name: ClassVar[str] = "infer-types"
    aliases = ("InferType",)
    establishes = ("typed",)
    invalidates = ()
    why = "recomputes types after an edit"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.walk() if isinstance(f, FuncOp)}
        done: set[str] = set()
        for name in functions:
            infer_function(name, functions, done)


def infer_function(
    name: str, functions: dict[str, FuncOp], done: set[str], inferred: Callable[[Operation], object] | None = None
) -> None:
    """Infer the types of the function `name`, after those of the functions that it calls; functions in `done` are
    skipped. `inferred` is called for each op once its types are inferred, and may replace the op."""
    if name in done or name not in functions:
        return
    done.add(name)
    function = functions[name]
    for op in list(function.body.walk()):
        if op.parent is None:
            continue
        if isinstance(op, CallOp):
            callee = op.callee.string_value()
            infer_function(callee, functions, done, inferred)
            if callee in functions:
                retype(op, functions[callee].function_type.outputs.data)
        elif isinstance(op, TensorOp):
            try:
                op.set_result_types(op.infer())
            except VerifyException as error:
                raise Malformed(place(op), str(error)) from None
        elif isinstance(op, scf.WhileOp):
            _retype(op.before_region.block.args, op.operand_types)
        elif isinstance(op, scf.ConditionOp | scf.YieldOp):
            _end(op)
        elif isinstance(op, ReturnOp) and op.parent_op() is function:
            function.properties["function_type"] = FunctionType.from_lists(
                function.function_type.inputs.data, op.operand_types
            )
        if inferred is not None:
            inferred(op)


def retype(op: Operation, types: Sequence[Attribute]) -> None:
    """Set the result types of an op that is not a `TensorOp`."""
    _retype(list(op.results), types)


def _retype(values: Sequence[SSAValue], types: Sequence[Attribute]) -> None:
    for value, type in zip(values, types, strict=True):
        if value.type != type:
            Rewriter.replace_value_with_new_type(value, type)


def _end(op: scf.ConditionOp | scf.YieldOp) -> None:
    """Infer the types that follow from the terminator of a block of `scf.if` or `scf.while`."""
    around = op.parent_op()
    if isinstance(op, scf.ConditionOp) and isinstance(around, scf.WhileOp):
        types = op.operand_types[1:]  # behind the condition
        _retype(around.after_region.block.args, types)
        retype(around, types)
    elif isinstance(around, scf.WhileOp):
        states = around.before_region.block.arg_types
        if not all(map(compatible, op.operand_types, states)):
            found, before = (", ".join(map(str, each)) for each in (op.operand_types, states))
            raise Malformed(place(around), f"a turn gives {found}, from {before}", "types must stay the same")
    elif isinstance(around, scf.IfOp) and op.parent_region() is around.regions[-1]:
        ends = [region.block.last_op for region in around.regions]
        retype(around, [_of_both(*types) for types in zip(*(end.operand_types for end in ends if end), strict=True)])


def _of_both(a: Attribute, b: Attribute) -> Attribute:
    """The type of a value that may have either type; a size in which they differ is unknown."""
    if a == b or not is_tensor(a) or not is_tensor(b) or len(a.get_shape()) != len(b.get_shape()):
        return a
    pairs = zip(a.get_shape(), b.get_shape(), strict=True)
    return TensorType(a.element_type, [left if left == right else DYNAMIC for left, right in pairs])
