"""Lowers a function of `relay` and `qnn` ops to a C `Program`, with schedules for a processor without vectors and a
step per kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from relay import signature
from relay.artifact import COMPILER, SYMBOL
from relay.byoc.c.ctype import NAMED, TYPES, CType
from relay.byoc.c.program import Constant, Program, Step, Tensor
from relay.dialects import qnn, relay
from relay.dialects.attributes import dtype_of, to_numpy
from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import RelayError, Unsupported
from relay.lowering.c.function import FunctionWriter
from relay.lowering.c.types import memory_name
from relay.lowering.exported_regions import Regions
from relay.lowering.passes import to_kernels, to_loops
from relay.lowering.plan_memory import planned_rows
from relay.lowering.shaped import buffer_of
from relay.module import IRModule
from relay.passes import PassContext, Pipeline
from relay.passes.context import activated
from relay.target import CpuTarget, attach
from relay.transforms.location import place, words

MACHINE = CpuTarget("c", "cortex-m3", frozenset())
"""The target for which C is scheduled: a processor with the costs of a Cortex-M3."""
LARGEST = (1 << 31) - 1
"""The maximum number of elements of a tensor, since indices are `int32_t`."""
OPERATIONS = frozenset((*relay.Relay.operations, *qnn.Qnn.operations))


def refusal(op: Operation) -> str | None:
    """The reason why an op cannot be compiled to C; None if it can."""
    if type(op) not in OPERATIONS or op.regions:
        return f"{op.name} is not supported by c"
    return next(filter(None, map(refusal_of, (*op.operands, *op.results))), None)


def refusal_of(value: SSAValue) -> str | None:
    """The reason why a value cannot be a C array; None if it can."""
    if not is_tensor(value.type):
        return f"a value of type {value.type} is not supported by c"
    shape = value.type.get_shape()
    try:
        known = dtype_of(value.type.element_type) in TYPES
    except RelayError:
        known = False
    if not known:
        return f"elements of {value.type.element_type} are not supported by c"
    if DYNAMIC in shape:
        return "an unknown dimension is not supported by c"
    return None if 0 < prod(shape) <= LARGEST else f"a tensor of {prod(shape)} elements is not supported by c"


def emit(function: FuncOp, regions: Regions | None = None, around: ModuleOp | None = None) -> Program:
    """Return the C program of a function. It may call the external functions of `regions`, which the module `around`
    the function declares. Neither the function nor the module is changed.

    Raises Unsupported, naming the op and its source, for an op that cannot be compiled to C.
    """
    for value in function.body.block.args:
        if (reason := refusal_of(value)) is not None:
            raise Unsupported(f"argument {value.index} of {function.sym_name.data}", reason)
    for op in function.body.block.ops:
        called = isinstance(op, func.CallOp) and regions is not None and op.callee.string_value() in regions.by_name
        if not called and not isinstance(op, func.ReturnOp) and (reason := refusal(op)) is not None:
            raise Unsupported(place(op), reason)
    main = function.clone()
    main.properties["sym_name"] = StringAttr("main")
    main.properties.pop("sym_visibility", None)
    for name in (COMPILER, SYMBOL):
        main.attributes.pop(name, None)
    declared = (
        [op.clone() for op in around.body.block.ops if isinstance(op, FuncOp) and not op.body.blocks] if around else []
    )
    module = ModuleOp([*declared, main], {} if around is None else dict(around.attributes))
    attach(module, MACHINE)
    inputs, outputs = signature.read(main)
    with activated(PassContext()):
        lowered = Pipeline([*to_kernels(), *to_loops()])(IRModule(module))
    return Lowered(lowered, regions).program(inputs, outputs)


@dataclass
class Lowered:
    """Converts a module with planned memory to a program. `names` has the C expression for each value of `@main`."""

    module: IRModule
    regions: Regions | None
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    tensors: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])

    def program(self, inputs: Sequence[signature.TensorInfo], outputs: Sequence[signature.TensorInfo]) -> Program:
        """Convert all ops of `@main`; returns the program with its inputs, outputs, constants, kernels and steps."""
        block = self.module["main"].body.block
        *given, constants, arena = block.args
        made = Program(max(buffer_of(arena).get_shape()[0], 1))
        for number, (value, info) in enumerate(zip(given, [*inputs, *outputs], strict=True)):
            output = number >= len(inputs)
            kind, group = ("output", made.outputs) if output else ("input", made.inputs)
            tensor = Tensor(f"{kind}_{len(group)}", TYPES[info.dtype], info.shape, kind)
            group.append(tensor)
            type = memory_name(buffer_of(value).element_type)
            cast = "" if type == tensor.type.name else f"({type} *)" if output else f"(const {type} *)"
            self.names[value], self.tensors[value] = cast + tensor.name, tensor
        helpers: dict[str, str] = {}
        kernels = {
            name: FunctionWriter(kernel, helpers).write()
            for name, kernel in self.module.functions.items()
            if name != "main" and kernel.body.blocks
        }
        made.kernels = {**helpers, **kernels}
        rows = {row["offset"]: row for row in planned_rows(self.module.op, "relay.constants")}
        writer = FunctionWriter(self.module["main"], helpers)
        for op in block.ops:
            if isinstance(op, memref.ViewOp):
                start = op.byte_shift.owner
                assert isinstance(start, arith.ConstantOp) and isinstance(start.value, IntegerAttr)
                self.view(made, op, start.value.value.data, rows if op.source is constants else None)
            elif isinstance(op, func.CallOp):
                writer.settle()
                made.steps.append(self.call(op, len(made.steps)))
            elif op.name in ("memref.collapse_shape", "memref.expand_shape"):
                (source,), (result,) = op.operands, op.results
                self.names[result] = self.names[source]
                if source in self.tensors:
                    self.tensors[result] = self.tensors[source]
            elif not isinstance(op, func.ReturnOp) and (text := self.statements(op, writer)):
                made.steps.append(Step("", text))
        return made

    def view(self, made: Program, op: memref.ViewOp, offset: int, rows: Mapping[int, Mapping[str, Any]] | None) -> None:
        """Add the C array that the view `op` stands for to the program `made`: if `rows` is given (the planned
        constants, by offset), the constant at `offset`; else a tensor at `offset` in the arena."""
        type = buffer_of(op.result)
        element = NAMED[memory_name(type.element_type)]
        if rows is None:
            tensor = Tensor(f"tensor_{len(made.temporaries)}", element, tuple(type.get_shape()), "arena", offset)
            made.temporaries.append(tensor)
            self.names[op.result], self.tensors[op.result] = tensor.name, tensor
            return
        name = f"{identifier(rows[offset]['name'])}_{offset}"
        if made.constants.setdefault(name, constant(name, element, rows[offset])).type is not element:
            name = f"{name}_{element.name}"
            made.constants[name] = constant(name, element, rows[offset])
        self.names[op.result] = name

    def statements(self, op: Operation, writer: FunctionWriter) -> str:
        """C statements for an op other than a call, such as a copy; empty for an op that only contributes to later
        statements."""
        for value, name in self.names.items():
            pointer = f"({name})" if name.startswith("(") else name
            writer.pointers[value] = pointer, pointer
        for inner in op.walk():
            for value in inner.operands:
                if value in self.tensors:
                    self.tensors[value].used = True
        writer.lines, writer.depth = [], 0
        writer.operation(op)
        return "\n".join(writer.lines)

    def call(self, op: func.CallOp, number: int) -> Step:
        """The call of a kernel or of an external function. If an external function fails, the model returns, and
        reports `number`, the step's index."""
        for value in op.arguments:
            if value in self.tensors:
                self.tensors[value].used = True
        given, callee = [self.names[value] for value in op.arguments], op.callee.string_value()
        comment = f"from {source}" if (source := words(op.location)) else ""
        if self.regions is not None and callee in self.regions.by_name:
            return Step(comment, self.regions.call(callee, given, str(number)))
        return Step(comment, f"{callee}({', '.join(given)});")


def constant(name: str, type: CType, row: Mapping[str, Any]) -> Constant:
    """A planned constant as an array of this element type."""
    array = np.ascontiguousarray(to_numpy(row["value"]))
    return Constant(name, type, array.reshape(-1).view(type.dtype).reshape(array.shape), row["name"])


def identifier(name: str) -> str:
    """The name as a C identifier, with other characters replaced by underscores."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "constant"
