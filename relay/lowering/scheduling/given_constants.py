"""The arguments of a kernel for which every call gives a constant, and packed constants in their place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.ir import Block, BlockArgument, SSAValue

from relay.dialects.attributes import Array, elements
from relay.lowering.bufferize import buffer_type
from relay.lowering.scheduling.arguments import constant_of, packed_constant

SUFFIXES = ("packed", "start", "third", "fourth", "fifth")
"""What the names of packed constants end in, in the order of a strategy's columns; the second are usually what sums
start from. Files have these names."""


class GivenConstants:
    """What the calls of a function give as constants. Arguments whose constants were packed are retired: calls do not
    give them any more, the function has them until `erase_retired`."""

    def __init__(self, block: Block, calls: Sequence[func.CallOp]):
        self.block, self.calls = block, list(calls)
        self.retired: list[BlockArgument] = []

    def constant(self, argument: BlockArgument) -> bool:
        """Whether every call gives a constant for the argument."""
        at = self.position(argument)
        return all(constant_of(call.arguments[at]) is not None for call in self.calls)

    def constants_of(self, argument: BlockArgument) -> list[arith.ConstantOp]:
        """The constants that the calls give for the argument."""
        at = self.position(argument)
        return [constant for call in self.calls if (constant := constant_of(call.arguments[at]))]

    def position(self, argument: BlockArgument) -> int:
        """Where calls have the argument."""
        return sum(before not in self.retired for before in self.block.args[: argument.index])

    def replace(
        self, argument: BlockArgument, weights: Sequence[arith.ConstantOp], packed: Sequence[Sequence[Array]]
    ) -> list[SSAValue]:
        """Have calls give packed constants, a row for each call, in place of an argument; returns the new ones."""
        position = self.position(argument)
        new: list[SSAValue] = []
        for number, array in enumerate(packed[0]):
            type = buffer_type(elements(array).type)
            new.append(self.block.insert_arg(type, argument.index + 1 + number))
        for call, weight, row in zip(self.calls, weights, packed, strict=True):
            buffers = [
                packed_constant(call, weight, array, kind)
                for array, kind in zip(row, SUFFIXES[: len(row)], strict=True)
            ]
            arguments = list(call.arguments)
            call.operands = [*arguments[:position], *buffers, *arguments[position + 1 :]]
        self.retired.append(argument)
        return new

    def retire_unread(self) -> None:
        """Have calls give no more what the function does not read."""
        for argument in [each for each in self.block.args if not any(each.uses) and each not in self.retired]:
            position = self.position(argument)
            for call in self.calls:
                call.operands = [operand for at, operand in enumerate(call.operands) if at != position]
            self.retired.append(argument)

    def erase_retired(self) -> None:
        """Take retired arguments off the function."""
        for argument in self.retired:
            self.block.erase_arg(argument)
