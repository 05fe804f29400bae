"""`share-kernels`: merges kernels that differ only in constants."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    ModuleOp,
    SymbolRefAttr,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.attributes import Array, to_numpy
from relay.lowering.builder import INDEX
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling.given_constants import constant_buffer
from relay.lowering.shaped import is_vector, memref_type, scalar_of
from relay.lowering.walking import walked
from relay.passes import Pass
from relay.target import target_of
from relay.transforms.dead_ops import erase_dead
from relay.transforms.location import function_of

NUMBERS = (f32, f64, i8, i16, i32, i64)
"""The types of constants that a merged kernel may load instead of containing them; sizes and indices stay in its
code."""
Arguments = Mapping[BlockArgument, Sequence[SSAValue]]
"""The values that calls pass for each argument of a kernel."""
Codes = tuple[int, int]
"""A range of 8-bit codes: (lowest, highest)."""


class Numbers:
    """Decides which constants of kernels may differ: in this class, all whose type is in `NUMBERS`."""

    def known(self, op: Operation, index: int, given: Arguments) -> Hashable:
        """Return what two kernels must have in common at this constant operand to be merged: the constant's attribute
        if the constants must be equal, None if they may differ."""
        constant = op.operands[index].owner
        assert isinstance(constant, arith.ConstantOp)
        splat = not isinstance(constant.value, DenseIntOrFPElementsAttr) or constant.value.is_splat()
        return None if splat and scalar_of(constant.result.type) in NUMBERS else constant.value

    def codes(self, op: Operation) -> Codes | None:
        """If the operation is part of a clamp to a range of 8-bit codes, at the end of a body, return that range,
        (lowest, highest); else None. In this class, always None."""
        return None

    def mark_codes(self, block: Block, codes: Codes) -> None:
        """Record in the body of an operation that its result is within the range `codes`, (lowest, highest). It is
        called if kernels that differ in the constants of the clamp are merged, since the range is then no longer
        visible in the body. This class records nothing."""


@dataclass
class Kernel:
    """A function, its calls, and its operations except constants, in the order of the text. `numbers`: the operands
    that are constants, as (position of the operation, index of the operand); `known`: for each of them, a key that
    merged kernels must have in common; `same`: the kernels that can be merged with it."""

    function: FuncOp
    calls: Sequence[CallOp]
    ops: list[Operation]
    numbers: list[tuple[int, int]]
    known: list[Hashable]
    same: list[Kernel] = field(default_factory=list["Kernel"])

    @staticmethod
    def of(function: FuncOp, calls: Sequence[CallOp], inside: Sequence[Operation], rule: Numbers) -> Kernel:
        """Describe a function for merging, with its calls and the operations `inside` it. `rule` decides which of its
        constants may differ from those of a function that it is merged with."""
        arguments = function.body.block.args
        given = {argument: [call.arguments[argument.index] for call in calls] for argument in arguments}
        ops = [op for op in inside if not isinstance(op, arith.ConstantOp)]
        numbers = [
            (place, index)
            for place, op in enumerate(ops)
            for index, operand in enumerate(op.operands)
            if isinstance(operand.owner, arith.ConstantOp)
        ]
        known: list[Hashable] = [
            (ops[place].operands[index].type, rule.known(ops[place], index, given)) for place, index in numbers
        ]
        return Kernel(function, calls, ops, numbers, known)

    @property
    def key(self) -> object:
        """A key that is equal for kernels that may be merged."""
        names = tuple(op.name for op in self.ops)
        return self.function.function_type, names, tuple(self.numbers), tuple(self.known)

    def number(self, place: int, index: int) -> np.generic:
        """Return the first element of the constant that operation number `place` has as operand number `index`."""
        constant = self.ops[place].operands[index].owner
        assert isinstance(constant, arith.ConstantOp)
        return to_numpy(constant.value).reshape(-1)[0]

    def equals(self, other: Kernel) -> bool:
        """Whether a kernel with an equal key differs from this one at most in constants that may differ. xDSL's
        `is_structurally_equivalent` does not answer this: it compares all constants, and no result types."""
        value: dict[SSAValue, SSAValue] = {}
        owner: dict[Operation | Block | None, Operation | Block | None] = {}
        for one, two in zip(self.ops, other.ops, strict=True):
            if one is not self.function and owner.get(one.parent) is not two.parent:
                return False
            operands, others = [*one.operands], [*two.operands]
            if len(operands) != len(others) or len(one.regions) != len(two.regions):
                return False
            for a, b in zip(operands, others, strict=True):
                if value.get(a, a) is not b and not (is_number(a) and is_number(b)):
                    return False
            if [each.type for each in one.results] != [each.type for each in two.results] or not self.alike(one, two):
                return False
            value.update(zip(one.results, two.results, strict=True))
            for a, b in zip(one.regions, two.regions, strict=True):
                if len(a.blocks) != len(b.blocks):
                    return False
                for first, second in zip(a.blocks, b.blocks, strict=True):
                    if [arg.type for arg in first.args] != [arg.type for arg in second.args]:
                        return False
                    owner[first] = second
                    value.update(zip(first.args, second.args, strict=True))
        return True

    def alike(self, one: Operation, two: Operation) -> bool:
        """Whether the attributes of two ops are equal, except the function's own name."""
        properties = one.properties
        if one is self.function:
            properties = {**properties, "sym_name": two.properties["sym_name"]}
        return properties == two.properties and one.attributes == two.attributes


def is_number(value: SSAValue) -> bool:
    """Whether a value is the result of a constant op. The constants of merged kernels may differ, so they are compared
    separately."""
    return isinstance(value.owner, arith.ConstantOp)


@dataclass(frozen=True)
class ShareKernels(Pass):
    """Merge scheduled kernels that differ only in their constants into one kernel. Layers that were quantized one by
    one have such kernels. The merged kernel loads its constants: each call passes them in a buffer for each type. A
    constant that is equal in all calls stays in the kernel, as do sizes. The code is generated once for all of them."""

    name = "share-kernels"
    requires = ("loops",)
    invalidates = ()
    opt_level = 1
    why = "makes the code of kernels that differ in numbers only once"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        share_alike(op, Numbers())


def share_alike(op: ModuleOp, rule: Numbers) -> None:
    """Merge kernels that are equal except for constants that `rule` allows to differ; each call then passes its
    constants. Does nothing for targets without vectors."""
    if not target_of(op).has_vectors:
        return
    functions = [each for each in op.body.block.ops if isinstance(each, FuncOp) and each.body.blocks]
    inside = {function: walked(function) for function in functions}
    graph = CallGraph(inner for ops in inside.values() for inner in ops)
    shapes: dict[object, list[tuple[FuncOp, Sequence[CallOp], list[Operation]]]] = {}  # most shapes have one kernel
    for function, ops in inside.items():
        calls = graph.of(function)
        if function.sym_visibility is not None and calls and all(map(in_public, calls)):
            shape = function.function_type, tuple(op.name for op in ops if not isinstance(op, arith.ConstantOp))
            shapes.setdefault(shape, []).append((function, calls, ops))
    groups: dict[object, list[Kernel]] = {}
    for candidates in shapes.values():
        for function, calls, ops in candidates if len(candidates) > 1 else ():
            kernel = Kernel.of(function, calls, ops, rule)
            others = groups.setdefault(kernel.key, [])
            first = next((each for each in others if each.equals(kernel)), None)
            if first is None:
                others.append(kernel)
            else:
                first.same.append(kernel)
    for group in groups.values():
        for kernel in group:
            if kernel.same:
                share(kernel, rule)


def in_public(call: CallOp) -> bool:
    """Whether the call is in a public function, whose constants are part of the memory plan."""
    function = function_of(call)
    return function is not None and function.sym_visibility is None


def share(kernel: Kernel, rule: Numbers) -> None:
    """Redirect the calls of all kernels in `kernel.same` to this kernel, with their constants as arguments."""
    kernels, block = [kernel, *kernel.same], kernel.function.body.block
    columns: dict[Attribute, dict[bytes, Array]] = {}
    places: list[tuple[Operation, int, Codes | None, tuple[Attribute, bytes]]] = []
    for place, index in kernel.numbers:
        numbers = np.array([each.number(place, index) for each in kernels])
        if len({number.tobytes() for number in numbers}) > 1:
            op = kernel.ops[place]
            type, codes = scalar_of(op.operands[index].type), rule.codes(op)
            if codes is not None and type == i32:
                numbers, type = numbers.astype(np.int8), i8
            columns.setdefault(type, {})[numbers.tobytes()] = numbers
            places.append((op, index, codes, (type, numbers.tobytes())))
    given = Given(block, columns)
    for each, codes in {op.parent: codes for op, _, codes, _ in places}.items():
        if each is not None and codes is not None:
            rule.mark_codes(each, codes)
    replaced = [op.operands[index] for op, index, _, _ in places]
    for (op, index, codes, key), constant in zip(places, replaced, strict=True):
        op.operands[index] = given.instead(constant, *key, codes)
    erase_dead(dict.fromkeys(constant.owner for constant in replaced if isinstance(constant.owner, Operation)))
    kernel.function.update_function_type()
    for number, each in enumerate(kernels):
        for call in each.calls:
            for column in columns.values():
                array = np.array([numbers[number] for numbers in column.values()])
                call.operands = [constant_buffer(call, array, "numbers", call.location), *call.operands]
            call.properties["callee"] = SymbolRefAttr(kernel.function.sym_name)
    for each in kernel.same:
        Rewriter.erase_op(each.function)


class Given:
    """Adds arguments to a merged kernel through which each call passes its own constants: one buffer for each type of
    constants, from which the kernel loads all of them at its start."""

    def __init__(self, block: Block, columns: Mapping[Attribute, Mapping[bytes, Array]]):
        self.block, self.start = block, block.first_op
        self.known: dict[object, SSAValue] = {}
        for type, numbers in columns.items():
            argument = block.insert_arg(memref_type(type, len(numbers)), 0)
            for at, key in enumerate(numbers):
                index = self.add(
                    arith.ConstantOp.create(result_types=[INDEX], properties={"value": IntegerAttr(at, INDEX)})
                )
                self.known[type, key] = self.add(memref.LoadOp.get(argument, [index]))

    def add(self, op: Operation) -> SSAValue:
        """Insert an op at the start of the kernel, after those that this method has inserted before; return the op's
        only result."""
        assert self.start is not None
        self.block.insert_op_before(op, self.start)
        return op.results[0]

    def instead(self, constant: SSAValue, type: Attribute, key: bytes, codes: Codes | None) -> SSAValue:
        """Return the value that replaces `constant` in the kernel: a number of type `type` that a call passes, loaded
        from the argument for constants of this type. `key`: the bytes of the constant's numbers in all merged kernels,
        by which the number is found. If the constant is a vector, the number is broadcast; if it is an integer of more
        bits than `type`, the number is extended, with sign if the range `codes` has negative codes."""
        value, wanted = self.known[type, key], constant.type
        if type == wanted:
            return value
        if (known := self.known.get((constant, key, codes))) is None:
            if is_vector(wanted):
                wide = vector.BroadcastOp(value, wanted)
            else:
                wide = (ExtSIOp if codes is not None and codes[0] < 0 else ExtUIOp)(value, wanted)
            old = constant.owner
            assert isinstance(old, Operation)
            Rewriter.insert_op(wide, InsertPoint.before(old))
            self.known[constant, key, codes] = known = wide.results[0]
        return known
