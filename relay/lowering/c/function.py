"""The class `FunctionWriter`: the text of one function in C, from loops over planned memory (stage 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from relay.errors import Unsupported
from relay.lowering.c.expressions import ATOM, PRODUCT, ROWS, SUM, Expression, Helpers, full
from relay.lowering.c.types import bits, memory_name, type_name
from relay.lowering.overlap import overlapping
from relay.lowering.shaped import buffer_of, layout
from relay.transforms.location import place

LONGEST = 72
"""The most characters of an expression inside another one; longer ones are assigned to variables."""
LOOPS = "ijklmn"
DECLARED = re.compile(r" *(?:\w+ \*const|const \w+) (\w+) = ")
"""Matches the declaration of a pointer, or of a variable whose initial value is an expression without side effects."""
ENDS = ("scf.yield", "scf.condition", "func.return")
"""Ops that end a block."""


class FunctionWriter:
    """Writes one function. A value that is used once, in its own block, is written where it is used, unless it reads
    memory that is written in between; any other value is assigned to a variable. Memory is an array of its element
    type."""

    def __init__(self, function: FuncOp, helpers: Helpers):
        self.function = function
        self.helpers = helpers
        self.lines: list[str] = []
        self.values: dict[SSAValue, Expression] = {}
        self.waiting: dict[SSAValue, None] = {}
        """Values that read memory and are not written yet."""
        self.pointers: dict[SSAValue, tuple[str, str]] = {}
        """A buffer's pointer, and the array that it points into."""
        self.written: set[str] = set()
        self.depth, self.loops, self.counter = 1, 0, 0

    def write(self) -> str:
        """Write the whole function."""
        arguments = self.function.body.block.args
        for number, argument in enumerate(arguments):
            self.pointers[argument] = f"a{number}", f"a{number}"
        self.body(self.function.body.block)
        text = "\n".join(self.used_lines())
        names, used = [self.pointers[argument][0] for argument in arguments], set(re.findall(r"\w+", text))
        unused = "".join(f"    (void){name};\n" for name in names if name not in used)
        return f"{self.head}\n{{\n{unused}{text}\n}}\n"

    @property
    def head(self) -> str:
        """The function's declaration in C, without a semicolon."""
        shared = overlapping(self.function)
        parameters = [
            f"{'' if name in self.written else 'const '}{memory_name(buffer_of(value).element_type)} "
            f"*{'' if number in shared else 'restrict '}{name}"
            for number, value in enumerate(self.function.body.block.args)
            for name, _ in [self.pointers[value]]
        ]
        return f"static void {self.function.sym_name.data}({', '.join(parameters) or 'void'})"

    # Statements

    def used_lines(self) -> list[str]:
        """Return the function's lines of C, without declarations of pointers and variables that no later line uses, for
        example a variable for an index that has only one possible value: `element` writes that value instead."""
        kept: list[str] = []
        used: set[str] = set()
        for line in reversed(self.lines):
            declared = DECLARED.match(line)
            if declared is None or declared[1] in used:
                used.update(re.findall(r"\w+", line))
                kept.append(line)
        return kept[::-1]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, start: str) -> str:
        self.counter += 1
        return f"{start}{self.counter}"

    def body(self, block: Block) -> None:
        """Write the operations of a block, except its terminator, whose operands may be expressions that are not yet
        written."""
        for op in block.ops:
            if op.name not in ENDS:
                self.operation(op)

    def operation(self, op: Operation) -> None:
        """Write one operation. Raises Unsupported if it has no translation."""
        if (row := ROWS.get(op.name)) is not None:
            self.value(op, row(self.helpers, op, self.taken(op.operands)), op.operands)
        elif (writer := WRITERS.get(op.name)) is not None:
            writer(self, op)
        else:
            raise Unsupported(f"c: {place(op)}", "has no translation", "run the passes up to plan-memory first")

    def taken(self, operands: Sequence[SSAValue]) -> list[Expression]:
        """Return the operands as C expressions for the operation that uses them, and remove them from `waiting`, the
        values that would otherwise be assigned to variables before the next store."""
        for value in operands:
            self.waiting.pop(value, None)
        return [self.values[value] for value in operands]

    def value(self, op: Operation, found: Expression, operands: Sequence[SSAValue]) -> None:
        """Record the result of an operation without side effects: as an expression for its only user, or in a
        variable."""
        result = op.results[0]
        if op.name == "arith.constant" or not result.uses:
            self.values[result] = found
            return
        found = replace(found, loads=found.loads or any(self.values[each].loads for each in operands))
        self.values[result] = found
        (first, *more) = result.uses
        if more or first.operation.parent is not op.parent or len(found.text) > LONGEST:
            if found.level != ATOM or found.loads or not found.text.isidentifier():
                self.variable(result)
        elif found.loads:
            self.waiting[result] = None

    def variable(self, value: SSAValue) -> None:
        """Assign a value to a new variable, instead of writing its expression where it is used."""
        found = self.values[value]
        name = self.name("t")
        self.line(f"const {type_name(value.type)} {name} = {found.text};")
        self.values[value] = Expression(name, ATOM, found.low, found.high)
        self.waiting.pop(value, None)

    def settle(self) -> None:
        """Assign the values that read memory and are not written yet (`waiting`) to variables. It is called before an
        op that changes memory is written."""
        for value in list(self.waiting):
            self.variable(value)

    def block(self, block: Block) -> None:
        """Write a block, indented by one more level."""
        self.depth += 1
        self.body(block)
        self.depth -= 1

    def assign(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Assign new values to variables, as if all at once."""
        self.depth += 1
        found = self.taken(values)
        for number, (name, value) in enumerate(zip(names, values, strict=True)):
            if (set(names) - {name}).intersection(re.findall(r"\w+", found[number].text)):
                fresh = self.name("t")
                self.line(f"const {type_name(value.type)} {fresh} = {found[number].text};")
                found[number] = Expression(fresh)
        for name, each in zip(names, found, strict=True):
            if each.text != name:
                self.line(f"{name} = {each.text};")
        self.depth -= 1

    def carried(self, values: Sequence[SSAValue], arguments: Sequence[SSAValue]) -> list[str]:
        """Declare variables for the values that a loop carries, with their initial values; return their names."""
        names: list[str] = []
        for value, argument in zip(self.taken(values), arguments, strict=True):
            names.append(name := self.name("v"))
            self.line(f"{type_name(argument.type)} {name} = {value.text};")
            self.values[argument] = full(name, argument.type)
        return names

    # Memory

    def element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Return an element's expression, such as `a[i * 8 + j]`."""
        strides, offset = layout(buffer_of(buffer))
        terms: list[str] = []
        for index, stride in zip(self.taken(indices), strides, strict=True):
            if stride == 0 or index.text == "0":
                continue
            if index.low == index.high:
                offset += index.low * stride
            else:
                terms.append(index.within(SUM) if stride == 1 else f"{index.within(PRODUCT)} * {stride}")
        if offset or not terms:
            terms.append(str(offset))
        return f"{self.pointers[buffer][0]}[{' + '.join(terms)}]"

    def alias(self, result: SSAValue, source: SSAValue, shift: str = "0") -> None:
        """Make `result` the same memory as `source` from `shift` bytes on, as an array of the result's elements."""
        pointer, array = self.pointers[source]
        before, after = (memory_name(buffer_of(each).element_type) for each in (source, result))
        if shift != "0":
            pointer = f"{pointer} + {shift}"
        if before != after:
            pointer = f"({after} *)(void *)({pointer})" if shift != "0" else f"({after} *)(void *){pointer}"
        if not pointer.isidentifier():
            name = self.name("p")
            self.line(f"{after} *const {name} = {pointer};")
            self.written.add(array)
            pointer = name
        self.pointers[result] = pointer, array


def write_load(w: FunctionWriter, op: Operation) -> None:
    """Record a load as the C expression that reads the element; it is written where the value is used, or assigned to a
    variable before memory changes."""
    assert isinstance(op, memref.LoadOp)
    w.value(op, replace(full(w.element(op.memref, op.indices), op.res.type), loads=True), ())


def write_store(w: FunctionWriter, op: Operation) -> None:
    """Write the store of an element."""
    assert isinstance(op, memref.StoreOp)
    (value,) = w.taken([op.value])
    at = w.element(op.memref, op.indices)
    w.settle()
    w.written.add(w.pointers[op.memref][1])
    w.line(f"{at} = {'(uint8_t)' + value.within(ATOM) if bits(op.value.type) == 1 else value.text};")


def write_view(w: FunctionWriter, op: Operation) -> None:
    """Name a part of the arena, which is an array of bytes."""
    assert isinstance(op, memref.ViewOp)
    w.alias(op.result, op.source, w.taken([op.byte_shift])[0].text)


def write_alias(w: FunctionWriter, op: Operation) -> None:
    """Let the result of a reshape, cast or subview denote the memory of its operand. The offset and strides of a
    subview are constants of its type, so no code is written."""
    w.alias(op.results[0], op.operands[0])


def write_address(w: FunctionWriter, op: Operation) -> None:
    """Translate the address of a buffer to the C expression `(pointer != 0)`: generated code only compares addresses
    with null, and an index of 32 bits cannot hold an address."""
    assert isinstance(op, memref.ExtractAlignedPointerAsIndexOp)
    w.values[op.aligned_pointer] = Expression(f"({w.pointers[op.source][0]} != 0)", ATOM, 0, 1)


def write_alloca(w: FunctionWriter, op: Operation) -> None:
    """Declare a local array of the block."""
    assert isinstance(op, memref.AllocaOp)
    type = buffer_of(op.memref)
    name = w.name("s")
    w.line(f"{memory_name(type.element_type)} {name}[{max(prod(type.get_shape()), 1)}];")
    w.pointers[op.memref] = name, name


def write_for(w: FunctionWriter, op: Operation) -> None:
    """Write a counting loop."""
    assert isinstance(op, scf.ForOp)
    for bound in (op.ub, op.step):
        if w.values[bound].loads:
            w.variable(bound)
    low, high, step = w.taken([op.lb, op.ub, op.step])
    names = w.carried(op.iter_args, op.body.block.args[1:])
    w.settle()
    index = LOOPS[w.loops] if w.loops < len(LOOPS) else f"i{w.loops}"
    w.values[op.body.block.args[0]] = Expression(index, ATOM, low.low, max(high.high - 1, low.low))
    turn = f"++{index}" if step.text == "1" else f"{index} += {step.text}"
    w.line(f"for (int32_t {index} = {low.text}; {index} < {high.within(SUM)}; {turn}) {{")
    w.loops += 1
    w.block(op.body.block)
    end = op.body.block.last_op
    assert end is not None
    w.assign(names, end.operands)
    w.loops -= 1
    w.line("}")
    for result, name in zip(op.res, names, strict=True):
        w.values[result] = full(name, result.type)


def write_if(w: FunctionWriter, op: Operation) -> None:
    """Write a branch; its results are variables that both sides assign."""
    assert isinstance(op, scf.IfOp)
    (condition,) = w.taken([op.cond])
    w.settle()
    names = [w.name("v") for _ in op.results]
    for name, result in zip(names, op.results, strict=True):
        w.line(f"{type_name(result.type)} {name};")
        w.values[result] = full(name, result.type)
    for head, region in ((f"if ({condition.text}) {{", op.true_region), ("} else {", op.false_region)):
        if not region.blocks or (not names and len(region.block.ops) == 1 and head != f"if ({condition.text}) {{"):
            continue
        w.line(head)
        w.block(region.block)
        end = region.block.last_op
        w.assign(names, end.operands if names and end is not None else [])
    w.line("}")


def write_while(w: FunctionWriter, op: Operation) -> None:
    """Write a loop with its test in the middle."""
    assert isinstance(op, scf.WhileOp)
    first, second = op.before_region.block, op.after_region.block
    names = w.carried(op.arguments, first.args)
    w.settle()
    given = [w.name("v") for _ in op.res]
    for name, result, argument in zip(given, op.res, second.args, strict=True):
        w.line(f"{type_name(result.type)} {name};")
        w.values[result] = w.values[argument] = full(name, result.type)
    w.line("for (;;) {")
    w.block(first)
    test = first.last_op
    assert isinstance(test, scf.ConditionOp)
    (condition,) = w.taken([test.condition])
    w.depth += 1
    hold = w.name("t")
    w.line(f"const int {hold} = {condition.text};")
    w.depth -= 1
    w.assign(given, test.args)
    w.depth += 1
    w.line(f"if (!{hold})")
    w.line("    break;")
    w.depth -= 1
    w.block(second)
    end = second.last_op
    assert end is not None
    w.assign(names, end.operands)
    w.line("}")


WRITERS: Mapping[str, Callable[[FunctionWriter, Operation], None]] = {
    "memref.load": write_load,
    "memref.store": write_store,
    "memref.view": write_view,
    "memref.extract_aligned_pointer_as_index": write_address,
    "memref.collapse_shape": write_alias,
    "memref.expand_shape": write_alias,
    "memref.reinterpret_cast": write_alias,
    "memref.subview": write_alias,
    "memref.cast": write_alias,
    "memref.alloca": write_alloca,
    "scf.for": write_for,
    "scf.if": write_if,
    "scf.while": write_while,
}
"""The writers of ops that become statements."""
