"""`share-kernels`: kernels that differ in numbers only become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FunctionType,
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
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.lowering.builder import INDEX
from relay.lowering.call_graph import CallGraph
from relay.lowering.scheduling.arguments import constant_buffer
from relay.lowering.shaped import is_vector, memref_type, scalar_of
from relay.lowering.walking import walked
from relay.passes import Pass
from relay.target import target_of
from relay.transforms.location import function_of

NUMBERS = (f32, f64, i8, i16, i32, i64)
"""Types of numbers that a kernel may read instead: those of sizes and places stay in its text."""


@dataclass
class Kernel:
    """A function, its calls, and all inside of it in the order of the text. `same`: kernels that differ from it in
    numbers only."""

    function: FuncOp
    calls: Sequence[CallOp]
    ops: list[Operation]
    same: list[Kernel] = field(default_factory=list["Kernel"])

    @property
    def key(self) -> object:
        """Equal kernels have equal ones."""
        return self.function.function_type, tuple(op.name for op in self.ops)

    def equals(self, other: Kernel) -> bool:
        """Whether the other one, whose key is equal, has other numbers at most: `is_structurally_equivalent` of xDSL
        compares all numbers, and no types of results."""
        value: dict[SSAValue, SSAValue] = {}
        owner: dict[Operation | Block | None, Operation | Block | None] = {}
        for one, two in zip(self.ops, other.ops, strict=True):
            if one is not self.function and owner.get(one.parent) is not two.parent:
                return False
            operands, others = [*one.operands], [*two.operands]
            if len(operands) != len(others) or len(one.regions) != len(two.regions):
                return False
            for a, b in zip(operands, others, strict=True):
                if value.get(a, a) is not b:
                    return False
            if len(one.results) != len(two.results):
                return False
            for a, b in zip(one.results, two.results, strict=True):
                if a.type is not b.type and a.type != b.type:
                    return False
                value[a] = b
            if not self.alike(one, two) and not (is_number(one) and is_number(two)):
                return False
            for a, b in zip(one.regions, two.regions, strict=True):
                if len(a.blocks) != len(b.blocks):
                    return False
                for first, second in zip(a.blocks, b.blocks, strict=True):
                    if not equal([arg.type for arg in first.args], [arg.type for arg in second.args]):
                        return False
                    owner[first] = second
                    value.update(zip(first.args, second.args, strict=True))
        return True

    def alike(self, one: Operation, two: Operation) -> bool:
        """Whether the operations have equal attributes, but for the names of the functions."""
        for a, b in ((one.properties, two.properties), (one.attributes, two.attributes)):
            if not a and not b:
                continue
            if a.keys() != b.keys():
                return False
            for name, attribute in a.items():
                if attribute is not b[name] and attribute != b[name]:
                    if one is not self.function or name != "sym_name":
                        return False
        return True


def equal(these: Sequence[Attribute], those: Sequence[Attribute]) -> bool:
    """Whether the attributes are equal, one by one."""
    return len(these) == len(those) and all(a is b or a == b for a, b in zip(these, those, strict=True))


def is_number(op: Operation) -> bool:
    """Whether the operation is a number that may be read instead, or a vector of one."""
    if not isinstance(op, arith.ConstantOp) or scalar_of(op.result.type) not in NUMBERS:
        return False
    return not isinstance(op.value, DenseIntOrFPElementsAttr) or op.value.is_splat()


@dataclass(frozen=True)
class ShareKernels(Pass):
    """Kernels of vectors that differ in numbers only, such as those of the layers of a network that was quantized layer
    by layer, become one, which reads its numbers: each call gives them as constants, for each type a buffer. A number
    that is the same in all calls stays where it is, as do sizes. Code is made once for all of them.
    """

    name = "share-kernels"
    requires = ("loops",)
    invalidates = ()
    opt_level = 1
    why = "makes the code of kernels that differ in numbers only once"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not target_of(op).has_vectors:
            return
        functions = [each for each in op.body.block.ops if isinstance(each, FuncOp) and each.body.blocks]
        inside = {function: walked(function) for function in functions}
        graph = CallGraph(inner for ops in inside.values() for inner in ops)
        groups: dict[object, list[Kernel]] = {}
        for function, ops in inside.items():
            calls = graph.of(function)
            if function.sym_visibility is None or not calls or not all(map(in_public, calls)):
                continue
            kernel = Kernel(function, calls, ops)
            known = groups.setdefault(kernel.key, [])
            first = next((each for each in known if each.equals(kernel)), None)
            if first is None:
                known.append(kernel)
            else:
                first.same.append(kernel)
        for group in groups.values():
            for kernel in group:
                if kernel.same:
                    share(kernel)


def in_public(call: CallOp) -> bool:
    """Whether the call is in a function whose constants have a place in memory."""
    function = function_of(call)
    return function is not None and function.sym_visibility is None


def share(kernel: Kernel) -> None:
    """Have the calls of all kernels that differ in numbers only be calls of this one."""
    kernels = [kernel, *kernel.same]
    read = [place for place, op in enumerate(kernel.ops) if op.name == arith.ConstantOp.name and is_number(op)]
    columns: dict[Attribute, dict[bytes, Array]] = {}
    places: dict[int, tuple[Attribute, bytes]] = {}
    for place in read:
        numbers = np.array([number_of(each.ops[place]) for each in kernels])
        if len({number.tobytes() for number in numbers}) > 1:
            type = scalar_of(kernel.ops[place].results[0].type)
            columns.setdefault(type, {})[numbers.tobytes()] = numbers
            places[place] = type, numbers.tobytes()
    block = kernel.function.body.block
    start = block.first_op
    assert start is not None
    loaded: dict[tuple[Attribute, bytes], SSAValue] = {}
    for type, numbers in columns.items():
        argument = block.insert_arg(memref_type(type, len(numbers)), 0)
        for at, key in enumerate(numbers):
            index = arith.ConstantOp.create(result_types=[INDEX], properties={"value": IntegerAttr(at, INDEX)})
            load = memref.LoadOp.get(argument, [index.result])
            block.insert_ops_before([index, load], start)
            loaded[type, key] = load.res
    for place, key in places.items():
        constant = kernel.ops[place]
        value, type = loaded[key], constant.results[0].type
        if is_vector(type):
            wide = vector.BroadcastOp(value, type)
            assert constant.parent is not None
            constant.parent.insert_op_before(wide, constant)
            value = wide.vector
        constant.results[0].replace_all_uses_with(value)
        constant.detach()
        constant.erase()
    inputs = [argument.type for argument in block.args]
    kernel.function.properties["function_type"] = FunctionType.from_lists(inputs, [])
    for number, each in enumerate(kernels):
        for call in each.calls:
            for column in columns.values():
                array = np.array([numbers[number] for numbers in column.values()])
                call.operands = [constant_buffer(call, array, "numbers", call.location), *call.operands]
            call.properties["callee"] = SymbolRefAttr(kernel.function.sym_name)
    for each in kernel.same:
        each.function.detach()
        each.function.erase()


def number_of(op: Operation) -> Array:
    """The number of a constant."""
    assert isinstance(op, arith.ConstantOp)
    return to_numpy(op.value).reshape(-1)[0]
