"""The interpreter of functions, branches and loops: blocks are run op by op, and every value is freed after its last
use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from relay.dialects import byoc
from relay.dialects.attributes import Array
from relay.dialects.plug_in import blamed, row
from relay.errors import InvalidArgument, Unsupported
from relay.interpreters.meaning import Meanings, apply


class Machine:
    """Runs functions of one module. It keeps no values between runs."""

    def __init__(self, functions: dict[str, func.FuncOp], meanings: Meanings):
        self.functions = functions
        self.meanings = meanings

    def body(self, name: str) -> Block:
        """The body of a function of the module. Raises InvalidArgument if there is no such function, Unsupported unless
        it has exactly one block."""
        function = self.functions.get(name)
        if function is None:
            known = ", ".join(self.functions) or "none"
            raise InvalidArgument(f"function {name}", "is not in the module", f"it has {known}")
        blocks = function.body.blocks
        if len(blocks) != 1:
            hint = "the interpreter runs neither declarations nor branches"
            raise Unsupported(f"function {name}", "has no body of one block", hint)
        return blocks[0]

    def call(self, name: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """Run a function of the module; return its results."""
        return self.block(self.body(name), arguments)

    def block(
        self, block: Block, arguments: Sequence[Array], outside: Mapping[SSAValue, Array] | None = None
    ) -> tuple[Array, ...]:
        """Run a block; return the operands of its terminator. `outside` holds the values that it uses from enclosing
        blocks."""
        values: dict[SSAValue, Array] = {**(outside or {}), **dict(zip(block.args, arguments, strict=True))}
        dead = last_uses(block)
        for op in block.ops:
            operands = [values[operand] for operand in op.operands]
            if isinstance(op, func.ReturnOp | byoc.YieldOp | scf.YieldOp | scf.ConditionOp):
                return tuple(operands)
            if isinstance(op, scf.IfOp):
                taken = op.true_region if operands[0] else op.false_region
                results = self.block(taken.block, (), values) if taken.blocks else ()
            elif isinstance(op, scf.WhileOp):
                results = self.loop(op, operands, values)
            else:
                results = self.op(op, operands)
            values.update(zip(op.results, results, strict=True))
            for value in dead.get(op, ()):
                values.pop(value, None)
        raise Unsupported("block", "ends without func.return, scf.yield or byoc.yield")

    def loop(self, op: scf.WhileOp, arguments: Sequence[Array], outside: Mapping[SSAValue, Array]) -> tuple[Array, ...]:
        """Run a `scf.while`; return its results, which are the values that the condition passes on when it becomes
        false."""
        carried = tuple(arguments)
        while True:
            go, *carried = self.block(op.before_region.block, carried, outside)
            if not go:
                return tuple(carried)
            carried = self.block(op.after_region.block, carried, outside)

    def op(self, op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
        """Compute the results of one op. Raises Unsupported if the interpreter does not implement the op."""
        meaning = self.meanings.get(type(op))
        if meaning is not None:
            return apply(meaning, op, operands)
        if isinstance(op, func.CallOp):
            return self.call(op.callee.string_value(), operands)
        if isinstance(op, byoc.Body):
            return self.block(op.body.block, operands)
        if isinstance(op, tensor.ExtractOp):
            return (np.asarray(operands[0][tuple(int(index) for index in operands[1:])]),)
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr | FloatAttr):
            return (np.asarray(op.value.value.data),)
        dialect = op.name.partition(".")[0]
        if (meaning := row(op, "meanings")) is not None:
            with blamed(dialect, f"its meaning of {op.name} fails"):
                return apply(meaning, op, operands)
        hint = "it runs relay, qnn, byoc and func ops, scf.if, scf.while, and what reads their conditions"
        raise Unsupported(f"op {op.name}", "has no meaning for the interpreter", hint)


def last_uses(block: Block) -> dict[Operation, list[SSAValue]]:
    """For each op, the block's values that can be freed after it: operands used for the last time, and results that are
    never used."""
    seen: set[SSAValue] = set()
    dead: dict[Operation, list[SSAValue]] = {}
    for op in reversed(block.ops):
        last: list[SSAValue] = []
        captured = [value for inner in op.walk() for value in inner.operands] if op.regions else op.operands
        for value in (*captured, *op.results):
            if value not in seen:
                seen.add(value)
                last.append(value)
        if last:
            dead[op] = last
    return dead
