"""Example files of a dialect's ops: valid functions, followed by texts that must be rejected, each below a line `//
-----` and a line `// error: MESSAGE` with the expected message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import StringIO

import numpy as np
from xdsl.dialects.builtin import TensorType, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from relay.dialects.attributes import Array, dtype_of
from relay.dialects.op import TensorOp
from relay.dialects.relay import DynamicOp
from relay.errors import InvalidArgument, Malformed
from relay.module import IRModule
from relay.runtime.specification import random_array

BREAK = re.compile(r"^// -----\n", re.MULTILINE)


def valid(text: str) -> str:
    """The part of the text of an example file before the first line `// -----`: a module of functions that are valid.
    Each later part must be rejected."""
    return BREAK.split(text)[0]


def invalid(text: str, name: str) -> list[tuple[str, str]]:
    """The expected message and the text of each invalid example of the file `name`. Raises InvalidArgument if a message
    is missing."""
    found: list[tuple[str, str]] = []
    for each in BREAK.split(text)[1:]:
        message = re.match(r"// error: (.*)\n", each)
        if message is None:
            raise InvalidArgument(name, f"below `// -----` stands {each[:40]!r}", "write `// error: MESSAGE` there")
        found.append((message[1], each))
    return found


def functions(text: str, name: str) -> list[FuncOp]:
    """The functions of the valid examples of the file `name`."""
    module = IRModule.parse(valid(text), name=name)
    return [op for op in module.op.body.block.ops if isinstance(op, FuncOp)]


def ops(function: FuncOp) -> Iterator[TensorOp]:
    """The tensor ops of a function, except those of external compilers (`byoc.*`)."""
    for op in function.body.block.ops:
        if isinstance(op, TensorOp) and not op.name.startswith("byoc."):
            yield op


def sized(function: FuncOp) -> FuncOp | None:
    """The function with every unknown size replaced by 2; None if the function is then invalid."""
    text = StringIO()
    Printer(text).print_op(function)
    try:
        return IRModule.parse(text.getvalue().replace("?", "2"))[function.sym_name.data]
    except Malformed:
        return None


def runnable(function: FuncOp) -> FuncOp | None:
    """A copy of the function with known sizes that returns the result of every op in it; None if it cannot be run."""
    copy = None if "dense_resource" in str(function) else sized(function)
    if copy is None or any(isinstance(op, DynamicOp) and op.static() is None for op in ops(copy)):
        return None
    assert isinstance(end := copy.body.block.last_op, ReturnOp)
    end.operands = [value for op in ops(copy) if op.operands or op.name != "relay.constant" for value in op.results]
    copy.update_function_type()
    return copy if end.operands else None


def one_main(found: Sequence[FuncOp]) -> tuple[IRModule, list[str]]:
    """Concatenate all functions into one `@main`, so that one build covers them all. Returns the module, and for each
    result of `@main` the function and op that it comes from."""
    main, values, names = Block(), list[SSAValue](), list[str]()
    for function in found:
        known: dict[SSAValue, SSAValue] = {}
        for argument in function.body.block.args:
            known[argument] = main.insert_arg(argument.type, len(main.args))
        for op in function.body.block.ops:
            if isinstance(op, ReturnOp):
                values += [known[value] for value in op.arguments]
                names += [
                    f"@{function.sym_name.data}, {value.owner.name}"
                    for value in op.arguments
                    if isinstance(value.owner, Operation)
                ]
            else:
                main.add_op(op.clone(known))
    main.add_op(ReturnOp(*values))
    module = IRModule()
    module["main"] = FuncOp("main", ([a.type for a in main.args], [v.type for v in values]), Region(main))
    return module, names


def random_input(type: TensorType[Attribute], random: np.random.Generator) -> Array:
    """A random array of the type: integer codes over their whole range, i32 up to 2^20, i64 (which may be indices) 0 or
    1, floats around zero, except that the last element is 100, at which formulas may overflow."""
    if type.element_type == i32:
        return random.integers(-(1 << 20), 1 << 20, type.get_shape()).astype(np.int32)
    numbers = random_array(type.get_shape(), dtype_of(type.element_type), random)
    if numbers.dtype.kind == "f":
        numbers[(..., *[-1] * numbers.ndim)] = 100
    return numbers


def random_inputs(module: IRModule) -> list[Array]:
    """A random array for each argument of `@main`."""
    random = np.random.default_rng(0)
    types = module["main"].function_type.inputs
    return [random_input(type, random) for type in types if isa(type, TensorType[Attribute])]
