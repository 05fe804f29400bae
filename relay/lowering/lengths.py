"""Kernels for sequences of any length up to a maximum: the axes that have the sequence's length are found by comparing
the model lowered for two lengths, and marked in the module.

`relay.length_axes` on a function has an array of axes for each argument, on an operation the axes of its result. All
buffers have the size, and the strides, for the maximum; a function that loops over such axes takes the length as an
argument of type index. `schedule` reads the marks and emits loops that end at the length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from xdsl.dialects import arith, func, memref
from xdsl.dialects.bufferization import ToBufferOp
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerType, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from relay.dialects.attributes import Array, elements, int_values, ints, to_numpy
from relay.dialects.op import is_tensor
from relay.errors import Unsupported
from relay.lowering.bufferize import buffer_type
from relay.lowering.builder import INDEX, Before
from relay.lowering.shaped import Extent, is_buffer
from relay.transforms.dead_ops import erase_dead
from relay.transforms.location import function_of, place

AXES = "relay.length_axes"
SHAPES = ("static_output_shape", "static_sizes")
"""Properties that repeat the shape of a result."""
FROM_TYPES = ("function_type", "operandSegmentSizes")


Tables = Mapping[bytes, Callable[[int], Array]]
"""Functions that compute the constants that depend on the length of the sequence: each maps a length to the constant
for it. The key of a function is the constant for the maximum length, as bytes."""


def mark(module: ModuleOp, shorter: ModuleOp, maximum: int, tables: Tables = MappingProxyType({})) -> None:
    """Mark the axes of size `maximum` in a module whose memory is not planned, and give functions the length as their
    last argument. `shorter`: the same model, lowered in the same way for a length that is one less.

    The two may differ only in such axes, in numbers that are one less in `shorter`, in constants whose first part is
    the constant in `shorter`, and in the constants of `tables`, each of which is replaced by one array of its values
    for all lengths. Raises Unsupported if they differ in anything else.
    """
    comparison = Comparison(maximum, tables)
    functions, others = functions_of(module), functions_of(shorter)
    if list(functions) != list(others):
        raise Unsupported("the length", "decides which kernels there are")
    for name, function in functions.items():
        comparison.function(function, others[name])
    open_functions = {
        name: function
        for name, function in functions.items()
        if name == "main" or any(axes for axes in comparison.arguments[function]) or comparison.has_numbers(function)
    }
    readers = {name for buffer in comparison.tables for name in callees(buffer)}
    open_functions |= {name: functions[name] for name in readers if name in functions}
    for name, function in open_functions.items():
        function.attributes[AXES] = ArrayAttr(ints(axes) for axes in comparison.arguments[function])
        length = function.body.block.insert_arg(INDEX, len(function.body.block.args))
        if name == "main":
            length.name_hint = "length"
        function.update_function_type()
    for result, axes in comparison.results.items():
        assert isinstance(result.owner, Operation)
        result.owner.attributes[AXES] = ints(axes)
    for number, offset in comparison.numbers.items():
        replace_number(number, offset)
    replace_tables(functions, comparison.tables)
    for function in open_functions.values():
        for call in [op for op in function.walk() if isinstance(op, func.CallOp)]:
            if call.callee.string_value() in open_functions:
                call.operands = [*call.operands, function.body.block.args[-1]]


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """Return the functions with a body, by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks}


def replace_number(constant: arith.ConstantOp, offset: int) -> None:
    """Replace a constant by the length of the sequence, which is the last argument of its function, plus `offset`."""
    function = function_of(constant)
    assert function is not None
    b, type = Before(constant), constant.result.type
    value = b.plus(function.body.block.args[-1], b.constant(offset, INDEX) if offset else 0)
    assert isinstance(value, SSAValue)
    if not isinstance(type, IndexType):
        value = b.add(arith.IndexCastOp(value, type)).result
    Rewriter.replace_op(constant, [], [value])


def callees(buffer: SSAValue) -> list[str]:
    """Return the functions to which the buffer is passed. Raises Unsupported if it is used otherwise."""
    found = list[str]()
    for use in buffer.uses:
        if not isinstance(use.operation, func.CallOp):
            raise Unsupported(place(use.operation), "reads a constant that follows from the length")
        found.append(use.operation.callee.string_value())
    return found


def replace_tables(functions: Mapping[str, FuncOp], tables: Mapping[SSAValue, Array]) -> None:
    """Let kernels load from the constant table of the current length: `table[i]` becomes `tables[length - 1, i]`."""
    arguments = dict[tuple[str, int], set[SSAValue]]()
    for buffer in tables:
        for use in buffer.uses:
            assert isinstance(use.operation, func.CallOp)
            arguments.setdefault((use.operation.callee.string_value(), use.index), set()).add(buffer)
    for (name, index), _ in arguments.items():
        calls = [op for f in functions.values() for op in f.walk() if isinstance(op, func.CallOp)]
        given = [call.arguments[index] for call in calls if call.callee.string_value() == name]
        argument = functions[name].body.block.args[index]
        loads = [use.operation for use in argument.uses]
        if not all(value in tables for value in given) or not all(isinstance(op, memref.LoadOp) for op in loads):
            raise Unsupported(place(functions[name]), "reads a constant that follows from the length")
        every = Rewriter.replace_value_with_new_type(argument, buffer_type(elements(tables[given[0]]).type))
        first = functions[name].body.block.first_op
        assert first is not None
        b = Before(first)
        row = b.index(b.plus(functions[name].body.block.args[-1], -1))
        for load in loads:
            assert isinstance(load, memref.LoadOp)
            new = memref.LoadOp.get(every, [row, *load.indices])
            Rewriter.replace_op(load, new)
        functions[name].update_function_type()
    for buffer, array in tables.items():
        made = buffer.owner
        assert isinstance(made, ToBufferOp) and isinstance(constant := made.tensor.owner, arith.ConstantOp)
        attr = elements(array, label=f"{constant.result.name_hint or 'constant'}.lengths").resource()
        new = arith.ConstantOp.create(result_types=[attr.type], properties={"value": attr}, location=constant.location)
        of_all = ToBufferOp.create(
            operands=[new.result], result_types=[buffer_type(attr.type)], properties=made.properties
        )
        Rewriter.replace_op(made, [new, of_all], [of_all.memref])
        erase_dead([constant])


class Comparison:
    """Compares the modules for two lengths, and records what depends on the length. `arguments`: for each function, the
    axes of each argument that have the length; `results`: such axes of operations' results; `numbers`: constants, and
    their difference from the length; `tables`: for buffers of constants, the constants for all lengths."""

    def __init__(self, maximum: int, known: Tables):
        self.maximum, self.known = maximum, known
        self.tables: dict[SSAValue, Array] = {}
        self.arguments: dict[FuncOp, list[list[int]]] = {}
        self.results: dict[SSAValue, list[int]] = {}
        self.numbers: dict[arith.ConstantOp, int] = {}
        self.same: dict[SSAValue, SSAValue] = {}

    def has_numbers(self, function: FuncOp) -> bool:
        """Whether a constant in the function depends on the length of the sequence."""
        return any(isinstance(op, arith.ConstantOp) and op in self.numbers for op in function.walk())

    def function(self, one: FuncOp, other: FuncOp) -> None:
        """Compare the functions of one name in the modules for two lengths, and record what depends on the length.
        Raises Unsupported if they differ in more than sizes and constants that follow the length."""
        self.attributes(one, other)
        first, second = one.body.block.args, other.body.block.args
        if len(first) != len(second):
            raise Unsupported(place(one), "the length decides what it takes")
        self.arguments[one] = [self.axes(a, b) for a, b in zip(first, second, strict=True)]
        self.same.update(zip(second, first, strict=True))
        self.block(one.body.block, other.body.block)

    def block(self, one: Block, other: Block) -> None:
        """Compare two blocks, whose arguments correspond, op by op. Raises Unsupported if they differ in more than
        sizes and constants that follow the length."""
        first, second = list(one.ops), list(other.ops)
        for a, b in zip(first, second, strict=False):
            self.operation(a, b)
        if len(first) != len(second):
            raise Unsupported(place((first or second)[0]), "the length decides which operations there are")

    def operation(self, one: Operation, other: Operation) -> None:
        """Compare two operations at the same position. Raises Unsupported."""
        operands = [self.same.get(value) for value in other.operands]
        if one.name != other.name or operands != list(one.operands) or len(one.regions) != len(other.regions):
            raise Unsupported(place(one), "the length decides which operations there are")
        if isinstance(one, arith.ConstantOp) and isinstance(other, arith.ConstantOp):
            self.constant(one, other)
        else:
            self.attributes(one, other)
        for a, b in zip(one.results, other.results, strict=True):
            if axes := self.axes(a, b):
                self.results[a] = axes
            self.same[b] = a
        if len(one.results) > 1 and any(value in self.results for value in one.results):
            raise Unsupported(place(one), "has several results that are as long")
        for a, b in zip(one.regions, other.regions, strict=True):
            if len(a.blocks) != len(b.blocks):
                raise Unsupported(place(one), "the length decides which operations there are")
            for block, against in zip(a.blocks, b.blocks, strict=True):
                for value, argument in zip(block.args, against.args, strict=True):
                    if self.axes(value, argument):
                        raise Unsupported(place(one), "has buffers that are as long as arguments of a block")
                    self.same[argument] = value
                self.block(block, against)

    def attributes(self, one: Operation, other: Operation) -> None:
        """Compare the properties and attributes of two operations, except types. Raises Unsupported."""
        for ours, theirs in ((one.properties, other.properties), (one.attributes, other.attributes)):
            for key in {*ours, *theirs} - {*FROM_TYPES}:
                if (a := ours.get(key)) != (b := theirs.get(key)) and not (key in SHAPES and self.shapes(a, b)):
                    raise Unsupported(place(one), f"its {key} follows from the length")

    def shapes(self, one: Attribute | None, other: Attribute | None) -> bool:
        """Whether two shapes are equal, except that an axis whose size is the length of the sequence is one shorter in
        `other`, which belongs to the module for a length of one less."""
        if not isa(one, DenseArrayBase[IntegerType]) or not isa(other, DenseArrayBase[IntegerType]):
            return False
        first, second = int_values(one), int_values(other)
        same = all(a == b or self.is_length(a, b) for a, b in zip(first, second, strict=False))
        return len(first) == len(second) and same

    def is_length(self, one: int, other: int) -> bool:
        return (one, other) == (self.maximum, self.maximum - 1)

    def axes(self, one: SSAValue, other: SSAValue) -> list[int]:
        """Return the axes of a value whose size is the variable length, that is, one less in `other` than in `one`.
        Raises Unsupported if the two types differ otherwise."""
        a, b = one.type, other.type
        if a == b:
            return []
        first, second = shaped(a), shaped(b)
        if first is not None and second is not None and first[0] == second[0] and len(first[1]) == len(second[1]):
            pairs = list(enumerate(zip(first[1], second[1], strict=True)))
            if all(x == y or self.is_length(x, y) for _, (x, y) in pairs):
                return [axis for axis, (x, y) in pairs if x != y]
        owner = one.owner
        if isinstance(owner, Block):
            owner = owner.parent_op()
        where = "the length" if owner is None else place(owner)
        raise Unsupported(where, f"has {a}, and {b} for a length of one less")

    def constant(self, one: arith.ConstantOp, other: arith.ConstantOp) -> None:
        """Compare two constants of modules for neighbouring lengths. They must be equal; or the shorter one must be the
        first part of the other; or they are integers that differ by 1, as the lengths do; or they are constants that a
        function in `known` computes from the length. Raises Unsupported for others."""
        if one.value == other.value and one.result.type == other.result.type:
            return
        axes, ours, theirs = self.axes(one.result, other.result), to_numpy(one.value), to_numpy(other.value)
        if axes and same_bits(ours[tuple(slice(size) for size in theirs.shape)], theirs):
            return
        if not axes and ours.size == 1 and ours.dtype.kind in "iu" and int(ours) - int(theirs) == 1:
            if isinstance(one.result.type, IndexType | IntegerType):
                self.numbers[one] = int(ours) - self.maximum
                return
        if not axes and (table := self.known.get(ours.tobytes())) is not None:
            if same_bits(table(self.maximum - 1), theirs):
                every = np.stack([table(length) for length in range(1, self.maximum + 1)])
                buffers = [use.operation for use in one.result.uses]
                if all(isinstance(op, ToBufferOp) for op in buffers):
                    self.tables.update((op.results[0], every) for op in buffers)
                    return
        raise Unsupported(place(one), "a constant follows from the length, in another way than by its first part")


def shaped(type: Attribute) -> tuple[tuple[bool, Attribute], tuple[int, ...]] | None:
    """Return two facts about a memref or tensor type: the pair (whether it is a memref, element type), and the shape.
    None for other types."""
    if is_buffer(type) or is_tensor(type):
        return (is_buffer(type), type.element_type), type.get_shape()
    return None


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays are equal bit by bit, NaNs included."""
    a, b = np.ascontiguousarray(one), np.ascontiguousarray(other)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# For `schedule`


def opened(function: FuncOp) -> bool:
    """Whether the function takes sequences of any length."""
    return AXES in function.attributes


def open_extents(function: FuncOp) -> None:
    """Turn the sizes that the attribute `AXES` marks as known only at run time into `Extent`s in the types of buffers.
    The attribute is removed from all operations, but not from the function."""
    axes = function.attributes[AXES]
    assert isa(axes, ArrayAttr[Attribute])
    for argument, each in zip(list(function.body.block.args), axes.data, strict=False):
        set_extents(argument, each)
    for op in list(function.walk()):
        if (each := op.attributes.pop(AXES, None)) is not None and op is not function:
            set_extents(op.results[0], each)
    function.attributes[AXES] = axes


def set_extents(value: SSAValue, axes: Attribute) -> None:
    """Change the type of a memref so that the sizes of these axes are known only at run time (`Extent`), and the
    present sizes are their maximum."""
    if is_buffer(type := value.type):
        shape = list(type.get_shape())
        for axis in int_values(axes) if isa(axes, DenseArrayBase[IntegerType]) else ():
            shape[axis] = Extent(shape[axis])
        retype(value, shape)


def close_extents(function: FuncOp) -> None:
    """Replace each size that is known only at run time (`Extent`), in the types of all memrefs of the function, by its
    maximum."""
    for value in list(values_of(function)):
        if is_buffer(type := value.type) and any(isinstance(size, Extent) for size in type.get_shape()):
            retype(value, [int(size) for size in type.get_shape()])


def retype(value: SSAValue, shape: Sequence[int]) -> None:
    type = value.type
    assert is_buffer(type)
    Rewriter.replace_value_with_new_type(value, MemRefType(type.element_type, shape, type.layout, type.memory_space))


def values_of(function: FuncOp) -> Iterator[SSAValue]:
    """Yield all values inside the function."""
    for op in function.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args
