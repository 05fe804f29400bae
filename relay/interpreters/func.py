"""Meaning of functions: blocks run op by op, and every value is dropped after its last use."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from relay.dialects import byoc
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.interpreters.meaning import Meanings, apply


class Machine:
    """Runs functions of one module. Nothing is kept between runs."""

    def __init__(self, functions: dict[str, func.FuncOp], meanings: Meanings):
        self.functions = functions
        self.meanings = meanings

    def body(self, name: str) -> Block:
        """The one block of a function of the module."""
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
        """The results of a function of the module."""
        return self.block(self.body(name), arguments)

    def block(self, block: Block, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """The operands of the block's terminator."""
        values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
        dead = last_uses(block)
        for op in block.ops:
            operands = [values[operand] for operand in op.operands]
            if isinstance(op, func.ReturnOp | byoc.YieldOp):
                return tuple(operands)
            results = self.op(op, operands)
            values.update(zip(op.results, results, strict=True))
            for value in dead.get(op, ()):
                del values[value]
        raise Unsupported("block", "ends without func.return or byoc.yield")

    def op(self, op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results of one op."""
        meaning = self.meanings.get(type(op))
        if meaning is not None:
            return apply(meaning, op, operands)
        if isinstance(op, func.CallOp):
            return self.call(op.callee.string_value(), operands)
        if isinstance(op, byoc.Body):
            return self.block(op.body.block, operands)
        raise Unsupported(
            f"op {op.name}", "has no meaning for the interpreter", "it runs relay, qnn, byoc and func ops"
        )


def last_uses(block: Block) -> dict[Operation, list[SSAValue]]:
    """For each op, the values of the block that nothing after it uses: operands used last, results never used."""
    seen: set[SSAValue] = set()
    dead: dict[Operation, list[SSAValue]] = {}
    for op in reversed(block.ops):
        last: list[SSAValue] = []
        for value in (*op.operands, *op.results):
            if value not in seen:
                seen.add(value)
                last.append(value)
        if last:
            dead[op] = last
    return dead
