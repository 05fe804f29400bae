"""The pass `infer-types`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from relay.dialects.op import TensorOp
from relay.errors import Malformed
from relay.passes import Pass
from relay.transforms.location import place


@dataclass(frozen=True)
class InferTypes(Pass):
    """Recompute every type that follows from another, in program order: the results of `relay` and `qnn` ops from their
    operands and properties, a function's results from what it returns, a call's from its callee.

    Change a function's argument types, run this, and the rest follows. A module whose types are right stays as it is.
    Raises Malformed where an op does not take its operands.
    """

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
    """Infer one function, and first those that it calls. `inferred` is told each op whose types are known now, and may
    replace it."""
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
        elif isinstance(op, ReturnOp) and op.parent_op() is function:
            function.properties["function_type"] = FunctionType.from_lists(
                function.function_type.inputs.data, op.operand_types
            )
        if inferred is not None:
            inferred(op)


def retype(op: Operation, types: Sequence[Attribute]) -> None:
    """Give the results of an op that is not ours these types."""
    for result, type in zip(list(op.results), types, strict=True):
        if result.type != type:
            Rewriter.replace_value_with_new_type(result, type)
