"""The calls of every function of a module, and the values that calls pass for an argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.lowering.walking import walked
from relay.passes.analyses import Analysis


class CallGraph:
    """The `func.call` ops among the given ops, by callee; `CallGraph(walked(module))` finds those of a module. A pass
    creates it once, before it changes anything: it stays valid if operands of calls change, but not if a call is
    replaced."""

    def __init__(self, ops: Iterable[Operation]):
        self.by_callee: dict[str, list[CallOp]] = {}
        for op in ops:
            if op.name == CallOp.name and isinstance(op, CallOp):
                self.by_callee.setdefault(op.callee.string_value(), []).append(op)

    def of(self, function: FuncOp) -> Sequence[CallOp]:
        """Return the calls of a function, in the order of the module."""
        return self.by_callee.get(function.sym_name.data, ())

    def given(self, argument: BlockArgument) -> list[SSAValue]:
        """Return the values that calls pass for an argument of a function; empty if no call is known, or the block is
        not the body of a function."""
        function = argument.owner.parent_op()
        calls = self.of(function) if isinstance(function, FuncOp) else ()
        return [call.arguments[argument.index] for call in calls]

    def constants(self, argument: BlockArgument) -> list[arith.ConstantOp] | None:
        """Return the constants that calls pass for an argument, one for each call; None if a call passes anything else,
        or no call is known."""
        owners = [value.owner for value in self.given(argument)]
        found = [owner for owner in owners if isinstance(owner, arith.ConstantOp)]
        return found if owners and len(found) == len(owners) else None


calls_in: Analysis[CallGraph] = Analysis("calls", lambda module: CallGraph(walked(module)))
"""The analysis that returns the call graph of a module. Within a pipeline it is computed again only after a pass that
does not preserve it."""
