"""Replaces calls by the bodies of the called functions."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.errors import Unsupported
from relay.transforms.location import place


def is_public(function: FuncOp) -> bool:
    """Whether a function can be called from outside of its module."""
    return function.sym_visibility is None or function.sym_visibility.data == "public"


def is_no_kernel(function: FuncOp) -> bool:
    """Whether a function is public, or calls others; kernels are private functions that call nothing."""
    return is_public(function) or bool(calls(function))


def inline_calls(module: ModuleOp, chosen: Callable[[FuncOp], bool] = is_no_kernel) -> None:
    """Inline every call of a function that is `chosen`, callees first.

    Functions without a body and those of an external compiler are never inlined; inlined private functions are
    removed. Raises Unsupported if a chosen function is recursive or has several blocks.
    """
    functions = {
        op.sym_name.data: op
        for op in module.body.block.ops
        if isinstance(op, FuncOp) and op.body.blocks and "compiler" not in op.attributes
    }
    done, inlined = set[str](), dict[FuncOp, None]()

    def flatten(name: str, above: tuple[str, ...]) -> None:
        if name in done:
            return
        for call in calls(functions[name]):
            inner = call.callee.string_value()
            if inner in (*above, name):
                if chosen(functions[inner]):
                    raise Unsupported(place(call), f"@{inner} calls itself", "there are no loops by calls")
            elif (callee := functions.get(inner)) is not None:
                flatten(inner, (*above, name))
                if chosen(callee):
                    inline(call, callee)
                    inlined[callee] = None
        done.add(name)

    for name in functions:
        flatten(name, ())
    for callee in inlined:
        if not is_public(callee):
            Rewriter.erase_op(callee)


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
