"""Replaces calls of functions that are not kernels by the bodies of the functions."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.errors import Unsupported
from relay.transforms.location import place


def inline_calls(module: ModuleOp) -> None:
    """Inline every call of a function that is public, or that calls others.

    Only calls of kernels (private functions that call nothing) and of external functions remain; inlined private
    functions are removed. Raises Unsupported for recursive functions, and for one with several blocks.
    """
    inliner = Inliner(module)
    for name in inliner.functions:
        inliner.flatten(name, ())
    for callee in inliner.inlined:
        if callee.sym_visibility is not None and callee.sym_visibility.data != "public":
            callee.detach()
            callee.erase()


class Inliner:
    """Inlines calls in the functions of a module, callees first."""

    def __init__(self, module: ModuleOp):
        self.functions = {
            op.sym_name.data: op
            for op in module.body.block.ops
            if isinstance(op, FuncOp) and op.body.blocks and "compiler" not in op.attributes
        }
        self.done: set[str] = set()
        self.inlined: dict[FuncOp, None] = {}

    def flatten(self, name: str, above: tuple[str, ...]) -> None:
        """Inline the calls in a function. `above`: the chain of callers, to find cycles."""
        if name in self.done:
            return
        for call in calls(self.functions[name]):
            callee = self.functions.get(call.callee.string_value())
            if callee is None:
                continue
            inner = callee.sym_name.data
            if inner in (*above, name):
                raise Unsupported(place(call), f"@{inner} calls itself", "there are no loops by calls")
            self.flatten(inner, (*above, name))
            if callee.sym_visibility is None or callee.sym_visibility.data == "public" or calls(callee):
                inline(call, callee)
                self.inlined[callee] = None
        self.done.add(name)


def calls(function: FuncOp) -> list[CallOp]:
    """The calls in a function, in order."""
    return [op for op in function.walk() if isinstance(op, CallOp)]


def inline(call: CallOp, callee: FuncOp) -> None:
    """Replace a call by a copy of the function's ops."""
    if len(callee.body.blocks) > 1:
        raise Unsupported(place(call), f"@{callee.sym_name.data} has several blocks", "lower control flow first")
    block = callee.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, call.arguments, strict=True))
    end = block.last_op
    assert isinstance(end, ReturnOp)
    copies: list[Operation] = [op.clone(values) for op in block.ops if op is not end]
    Rewriter.replace_op(call, copies, [values[value] for value in end.arguments])
