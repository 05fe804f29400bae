"""Where a kernel's arguments come from: constants that every call passes, and packed constants that replace them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import LocationAttr, i32
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.arith import ExtSIOp
from relay.dialects.attributes import Array, elements, to_numpy
from relay.lowering.bufferize import buffer_type, read_only_buffer
from relay.lowering.shaped import is_buffer
from relay.mapping import spilled

SUFFIXES = ("packed", "start", "third", "fourth", "fifth")
"""Suffixes of the names of packed constants: a strategy packs several constants for each call, and each has the suffix
of its position among them. The second is usually the initial accumulators. File names contain these suffixes."""


class GivenConstants:
    """The constants that calls of a function pass. An argument whose constants were packed is retired: calls no longer
    pass it, and `erase_retired` removes it from the function."""

    def __init__(self, block: Block, calls: Sequence[func.CallOp]):
        self.block, self.calls = block, list(calls)
        self.retired: list[BlockArgument] = []
        self.copied: list[BlockArgument] = []

    def constant(self, argument: BlockArgument) -> bool:
        """Whether every call passes a constant for the argument."""
        at = self.position(argument)
        return all(constant_of(call.arguments[at]) is not None for call in self.calls)

    def constants_of(self, argument: BlockArgument) -> list[arith.ConstantOp]:
        """Return the constants that calls pass for the argument."""
        at = self.position(argument)
        return [constant for call in self.calls if (constant := constant_of(call.arguments[at]))]

    def arrays_of(self, argument: BlockArgument) -> list[Array]:
        """Return the contents of the constants that calls pass for the argument."""
        return [to_numpy(constant.value) for constant in self.constants_of(argument)]

    def position(self, argument: BlockArgument) -> int:
        """Return the index of the argument among the operands of a call. Calls do not pass retired arguments: those
        whose constants were packed into others."""
        return sum(before not in self.retired for before in self.block.args[: argument.index])

    def replace(
        self, argument: BlockArgument, packed: Sequence[Sequence[Array]], suffixes: Sequence[str] = SUFFIXES
    ) -> list[SSAValue]:
        """Replace an argument by packed constants, and return the new arguments. Each row of `packed` has the arrays
        that are packed, for one call, from the constant that it passes for the argument."""
        new = self.beside(argument, packed, suffixes)
        self.retire(argument)
        return new

    def beside(
        self, argument: BlockArgument, packed: Sequence[Sequence[Array]], suffixes: Sequence[str]
    ) -> list[SSAValue]:
        """Add packed constants as arguments after `argument`, which stays; return the new arguments. Each row of
        `packed` has the arrays that are packed, for one call, from the constant that it passes for `argument`."""
        self.copied.append(argument)
        position, weights = self.position(argument) + 1, self.constants_of(argument)
        new: list[SSAValue] = []
        for number, array in enumerate(packed[0]):
            type = buffer_type(elements(array).type)
            new.append(self.block.insert_arg(type, argument.index + 1 + number))
        for call, weight, row in zip(self.calls, weights, packed, strict=True):
            name, names = weight.result.name_hint or "constant", zip(row, suffixes[: len(row)], strict=True)
            buffers = [constant_buffer(call, array, f"{name}.{kind}", weight.location) for array, kind in names]
            arguments = list(call.arguments)
            call.operands = [*arguments[:position], *buffers, *arguments[position:]]
        return new

    def retire_unread(self, among: Iterable[BlockArgument] | None = None) -> None:
        """Make all calls of the function stop passing the arguments that the function does not read, or only those of
        them that are in `among`, if it is given. The function keeps these arguments until `erase_retired`."""
        for argument in tuple(self.block.args if among is None else among):
            if not any(argument.uses) and argument not in self.retired:
                self.retire(argument)

    def retire(self, argument: BlockArgument) -> None:
        """Remove an argument from all calls of the function. The function keeps it until `erase_retired`."""
        position = self.position(argument)
        for call in self.calls:
            call.operands = [operand for at, operand in enumerate(call.operands) if at != position]
        self.retired.append(argument)

    def narrow(self) -> None:
        """Store 32-bit constants in 8 or 16 bits if their values fit and the function only loads them; each load then
        extends the sign. Such constants are shift counts and most initial accumulators."""
        for argument in [each for each in self.block.args if each not in self.retired]:
            type, loads = argument.type, [use.operation for use in argument.uses]
            if not (is_buffer(type) and type.element_type == i32 and type.get_shape() and loads):
                continue
            if not (all(isinstance(load, memref.LoadOp) for load in loads) and self.constant(argument)):
                continue
            arrays = self.arrays_of(argument)
            for dtype in (np.dtype(np.int8), np.dtype(np.int16)):
                narrow = [array.astype(dtype) for array in arrays]
                if all(np.array_equal(array, words) for array, words in zip(narrow, arrays, strict=True)):
                    (new,) = self.replace(argument, [[array] for array in narrow], [dtype.name])
                    for load in loads:
                        assert isinstance(load, memref.LoadOp)
                        widen(load, new)
                    break

    def erase_retired(self) -> None:
        """Remove from the function the arguments that calls no longer pass."""
        for argument in self.retired:
            self.block.erase_arg(argument)


def widen(load: memref.LoadOp, narrow: SSAValue) -> None:
    """Replace the load by a load from the narrow buffer and a sign extension."""
    new = memref.LoadOp.get(narrow, list(load.indices))
    wide = ExtSIOp(new.res, i32)
    Rewriter.replace_op(load, [new, wide], [wide.result])


def argument_of(value: SSAValue) -> BlockArgument | None:
    """Return the function argument that the value is, or is a reshape of, if nothing else uses it; else None."""
    while not isinstance(value, BlockArgument):
        op = value.owner
        if not isinstance(op, memref.CollapseShapeOp | memref.ExpandShapeOp) or not value.has_one_use():
            return None
        value = op.src
    return value if value.has_one_use() else None


def constant_of(value: SSAValue) -> arith.ConstantOp | None:
    """Return the constant that the value is a buffer of (`bufferization.to_buffer`); None for any other value."""
    op = value.owner
    if isinstance(op, bufferization.ToBufferOp) and isinstance(op.tensor.owner, arith.ConstantOp):
        return op.tensor.owner
    return None


def constant_buffer(call: func.CallOp, array: Array, name: str, location: LocationAttr) -> SSAValue:
    """Insert a constant and its buffer before the call; return the buffer."""
    attr = elements(spilled(array), label=name).resource()
    constant = arith.ConstantOp.create(result_types=[attr.type], properties={"value": attr}, location=location)
    constant.result.name_hint = name
    buffer = read_only_buffer(constant)
    Rewriter.insert_op([constant, buffer], InsertPoint.before(call))
    return buffer.memref
