"""A partitioned function as a compiler reads it: kernels in order, each the ops of a composite or a single op.

Composites are transparent: `Region.of` maps a value inside one and the corresponding value outside to the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from relay.dialects import byoc
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import DYNAMIC, shape
from relay.dialects.relay import ConstantOp
from relay.errors import Unsupported

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Kernel:
    """The ops that are computed together, in order, without constants."""

    ops: tuple[Operation, ...]
    entry: str = ""
    """The name of the pattern table's entry, without the compiler's name; empty for a single op."""

    @property
    def root(self) -> Operation:
        """The op whose result is the kernel's."""
        return self.ops[-1]

    @property
    def place(self) -> str:
        """The kernel's origin, for errors: the name of the root's location, or else the root's op name."""
        location = self.root.location
        return location.desc.data if isinstance(location, NameLoc) else self.root.name


class Region:
    """The body of a function with the attribute `compiler`."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.name = function.sym_name.data
        self._aliases: dict[SSAValue, SSAValue] = {}
        block = function.body.block if len(function.body.blocks) == 1 else None
        end = None if block is None else block.last_op
        if block is None or not isinstance(end, ReturnOp):
            raise Unsupported(f"function {self.name}", "is not one block", "give a partitioned function")
        if not end.arguments:
            raise Unsupported(f"function {self.name}", "has no results", "call it for one")
        for number, value in enumerate(block.args):
            if (reason := unknown_size(value)) is not None:
                raise Unsupported(f"argument {number} of {self.name}", reason, "give the model's inputs a static shape")
        self.kernels = tuple(self._kernels(list(block.ops)[:-1]))
        self.inputs = tuple(block.args)
        self.outputs = tuple(self.of(value) for value in end.arguments)

    def of(self, value: SSAValue) -> SSAValue:
        """The value itself, or the one that it stands for: for the result of a composite, the value that its body
        returns; for an argument of the body, the composite's operand."""
        while value in self._aliases:
            value = self._aliases[value]
        return value

    @property
    def ops(self) -> Iterator[Operation]:
        """Every op of the function, with composites replaced by their ops."""
        for kernel in self.kernels:
            yield from kernel.ops

    def _kernels(self, ops: Sequence[Operation]) -> Iterator[Kernel]:
        for op in ops:
            match op:
                case ConstantOp():
                    continue
                case byoc.CompositeOp():
                    yield self._composite(op)
                case _:
                    yield Kernel((op,))

    def _composite(self, op: byoc.CompositeOp) -> Kernel:
        *inner, end = op.body.block.ops
        self._aliases.update(zip(op.body.block.args, op.inputs, strict=True))
        self._aliases.update(zip(op.outputs, end.operands, strict=True))
        entry = op.composite.data.partition(".")[2]
        return Kernel(tuple(each for each in inner if not isinstance(each, ConstantOp)), entry)


class Values(Generic[T]):
    """A table with an entry for each value of a region. Each compiler has entries of its own kind: indices, names or
    addresses. A value inside a composite and the corresponding one outside share the entry. The entry of a constant is
    made by the function `constant` when it is first read."""

    def __init__(self, region: Region, constant: Callable[[Array], T]) -> None:
        self._region, self._constant = region, constant
        self._kept: dict[SSAValue, T] = {}

    def __setitem__(self, value: SSAValue, kept: T) -> None:
        self._kept[self._region.of(value)] = kept

    def __getitem__(self, value: SSAValue) -> T:
        """The entry of a value. Raises KeyError for a value that is neither set nor constant."""
        value = self._region.of(value)
        if value not in self._kept and (array := constant_of(value)) is not None:
            self._kept[value] = self._constant(array)
        return self._kept[value]


def constant_of(value: SSAValue) -> Array | None:
    """The elements of a constant; None for other values."""
    owner = value.owner
    return to_numpy(owner.value) if isinstance(owner, ConstantOp) else None


def static_refusal(op: Operation) -> str | None:
    """The reason why an op with unknown sizes or empty tensors is not supported; None for other ops."""
    for value in (*op.operands, *op.results):
        if (found := unknown_size(value)) is not None:
            return found
        if 0 in shape(value):
            return "a tensor has no elements"
    return None


def unknown_size(value: SSAValue) -> str | None:
    """The reason why the shape of a value is not known; None if it is."""
    try:
        return "a size is known only at run time" if DYNAMIC in shape(value) else None
    except VerifyException:
        return f"{value.type} is no ranked tensor"
