"""`Emitter`: what every row builds with: tensors, constants, kernels, functions and steps of one C program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.byoc.c import kernels
from relay.byoc.c.ctype import TYPES, CType, ctype
from relay.byoc.c.program import Constant, Program, Step, Tensor
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC, tensor
from relay.errors import Unsupported
from relay.transforms.location import place, words

LARGEST = (1 << 31) - 1
"""Elements of a tensor: indices are `int32_t`."""


Key = tuple[bool, str, tuple[int, ...], bytes]
"""What makes two constants one."""


@dataclass
class Emitter:
    """Writes one program. Values of the IR are known by the tensors that hold them."""

    program: Program
    tensors: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])
    used: set[str] = field(default_factory=set[str])
    """The names of tensors that a step or a table uses."""
    _functions: dict[str, str] = field(default_factory=dict[str, str])
    _numbers: dict[Key, Tensor] = field(default_factory=dict[Key, Tensor])
    _touched: list[Tensor] = field(default_factory=list[Tensor])

    # Tensors

    def type(self, value: SSAValue) -> CType:
        """The C type of a value's elements."""
        return ctype(tensor(value).element_type, origin(value))

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        """A value's shape, which must be known."""
        shape = tensor(value).get_shape()
        if DYNAMIC in shape:
            raise Unsupported(origin(value), "an unknown dimension is not supported by c", "give the model's shapes")
        if not 0 < prod(shape) <= LARGEST:
            raise Unsupported(origin(value), f"a tensor of {prod(shape)} elements is not supported by c")
        return shape

    def read(self, value: SSAValue) -> str:
        """The pointer to an operand."""
        return self.touch(self.tensors[value])

    def write(self, value: SSAValue) -> str:
        """The pointer to a result, which is new unless the function returns it."""
        if value not in self.tensors:
            self.tensors[value] = self._temporary("tensor", self.type(value), self.shape(value))
        return self.touch(self.tensors[value])

    def scratch(self, type: CType, count: int) -> str:
        """Memory for one step."""
        return self.touch(self._temporary("scratch", type, (count,)))

    def alias(self, result: SSAValue, value: SSAValue) -> None:
        """The result is the value under another shape: nothing to do, unless the caller wants it elsewhere."""
        source = self.tensors[value]
        if self.tensors.setdefault(result, source) is not source:
            self.step(owner(result), self.copy_call(self.touch(source), self.write(result), source))

    @staticmethod
    def copy_call(source: str, target: str, tensor: Tensor) -> str:
        """A call that copies all of a tensor."""
        return f"memcpy({target}, {source}, {tensor.count} * sizeof *{target});"

    def _temporary(self, kind: str, type: CType, shape: tuple[int, ...]) -> Tensor:
        made = Tensor(f"{kind}_{len(self.program.temporaries)}", type, shape)
        self.program.temporaries.append(made)
        return made

    def touch(self, tensor: Tensor) -> str:
        """The pointer to a tensor that the next step uses."""
        self.used.add(tensor.name)
        self._touched.append(tensor)
        return tensor.name

    # Constants

    def constant(self, array: Array, name: str, label: str = "", weight: bool = False) -> Tensor:
        """An array that the program knows; equal ones are one. `name` is what it is called if it is new; a `weight` is
        only ever named in calls, so that it may lie outside of the program."""
        array = np.ascontiguousarray(array)
        type = TYPES[array.dtype]
        key = weight, type.short, array.shape, array.tobytes()
        if key not in self._numbers:
            unique = f"{identifier(name)}_{len(self.program.constants)}"
            self._numbers[key] = Tensor(unique, type, array.shape, "constant")
            self.program.constants[unique] = Constant(unique, type, array, label or name, weight)
        return self._numbers[key]

    def numbers(self, array: Array, name: str) -> str:
        """The pointer to a constant array."""
        made = self.constant(array, name).name
        self.used.add(made)
        return made

    def table(self, type: str, name: str, fields: Mapping[str, object]) -> str:
        """The address of a `static const` struct; equal ones are one."""
        rows = ",\n".join(f"    .{key} = {value}" for key, value in fields.items())
        text = f"static const {type} ${{name}} = {{\n{rows}\n}};\n"
        if text not in self._functions:
            self._functions[text] = unique = f"{identifier(name)}_{len(self.program.tables)}"
            self.program.tables[unique] = text.replace("${name}", unique)
        return "&" + self._functions[text]

    # Code

    def kernel(self, file: str, suffix: str = "", name: str = "", **types: str) -> str:
        """The name of an instance of a kernel's file: `relay_<name or file>_<suffix>`."""
        uses, template = kernels.read(file)
        for other in uses:
            self.kernel(other)
        unique = "_".join(filter(None, ("relay", name or file, suffix)))
        if unique not in self.program.kernels:
            text = template.substitute(types, name=unique)
            self.program.kernels[unique] = re.sub(r"\n +\n", "\n", text)
        return unique

    def function(self, kind: str, parameters: Sequence[str], body: str) -> str:
        """The name of a function with this body; equal ones are one."""
        text = f"static void ${{name}}({', '.join(parameters)})\n{{\n{body}}}\n"
        if text not in self._functions:
            short = identifier(kind.rpartition(".")[2])
            self._functions[text] = unique = f"relay_{short}_{len(self._functions)}"
            self.program.kernels[unique] = text.replace("${name}", unique)
        return self._functions[text]

    def call(self, ops: Operation | Sequence[Operation], function: str, *arguments: object) -> None:
        """A step that calls a function for an op, or for several at once."""
        self.step(ops, f"{function}({', '.join(map(str, arguments))});")

    def step(self, ops: Operation | Sequence[Operation], text: str) -> None:
        """One step; the tensors whose names were asked for since the last live through it."""
        now = len(self.program.steps)
        for touched in self._touched:
            touched.first = now if touched.first < 0 else touched.first
            touched.last = now
        self._touched.clear()
        self.program.steps.append(Step(describe([ops] if isinstance(ops, Operation) else ops), text))


def identifier(name: str) -> str:
    """The name as an identifier of C: other characters are underscores."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "constant"


def owner(value: SSAValue) -> Sequence[Operation]:
    """The op that gives a value; none of an argument."""
    return [value.owner] if isinstance(value.owner, Operation) else []


def origin(value: SSAValue) -> str:
    """Where a value comes from, for errors."""
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        return f"argument {value.index}" + (f" of {parent.sym_name.data}" if isinstance(parent, FuncOp) else "")
    return place(value.owner) if isinstance(value.owner, Operation) else "a value"


def describe(ops: Sequence[Operation]) -> str:
    """What the ops are, what comes out, and where the first comes from."""
    if not ops:
        return ""
    source = words(ops[0].location)
    shapes = ", ".join(
        "x".join(map(str, (*tensor(result).get_shape(), tensor(result).element_type))) for result in ops[-1].results
    )
    parts = (", ".join(op.name for op in ops), f"-> {shapes}" if shapes else "", f"from {source}" if source else "")
    return " ".join(filter(None, parts))
