"""The module that runs during calibration: the float module with the observed values as outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay import signature
from relay.dialects.attributes import WeightAttr
from relay.module import IRModule
from relay.quantize import marks
from relay.signature import TensorInfo
from relay.transforms.dead_ops import erase_dead


def observed(function: FuncOp) -> dict[str, SSAValue]:
    """The values whose statistics calibration collects, by the name that `quantize-annotate` gave them, arguments
    first."""
    return {name: value for _, value in places(function) if (name := marks.name_of(value)) is not None}


def places(function: FuncOp) -> Iterator[tuple[str, SSAValue]]:
    """Yield (position, value) for the function's arguments and the first result of each of its ops. The position is `a`
    and the argument's index, or `v` and the op's index."""
    for argument in function.body.block.args:
        yield f"a{argument.index}", argument
    for number, op in enumerate(function.body.block.ops):
        if op.results:
            yield f"v{number}", op.results[0]


def returning(function: FuncOp, values: Sequence[SSAValue]) -> IRModule:
    """A module whose `@main` is a copy of the function that returns copies of these values, in this order; values that
    are arguments of the function are left out."""
    copies: dict[SSAValue, SSAValue] = {}
    clone = function.clone(copies)
    marks.clear(clone)
    results = [copies[value] for value in values if not isinstance(value, BlockArgument)]
    inputs, _ = signature.read(function)
    block = clone.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    Rewriter.erase_op(last)
    block.add_op(ReturnOp(*results))
    clone.update_function_type()
    for key in (signature.INPUTS, signature.OUTPUTS):
        clone.attributes.pop(key, None)
    module = IRModule(ModuleOp([clone]))
    _, outputs = signature.read(clone)
    plain = [TensorInfo(i.name, i.shape, i.dtype, "input", i.scale, i.zero_point, i.initial) for i in inputs]
    signature.write(clone, plain, [TensorInfo(f"out{n}", o.shape, o.dtype, "output") for n, o in enumerate(outputs)])
    erase_dead(clone.body.walk())
    return module


def fingerprint(function: FuncOp) -> str:
    """A hash of what the function computes, including its weights but not the marks of passes."""
    digest = hashlib.sha256()
    numbers: dict[SSAValue, int] = {}

    def number(value: SSAValue) -> int:
        return numbers.setdefault(value, len(numbers))

    for argument in function.body.block.args:
        digest.update(f"{number(argument)}:{argument.type};".encode())
    for op in function.body.walk():
        parts = [op.name, *(str(number(value)) for value in op.operands), *(str(r.type) for r in op.results)]
        parts += [str(number(result)) for result in op.results]
        parts += _properties(op)
        digest.update("|".join(parts).encode())
    return digest.hexdigest()


def _properties(op: Operation) -> list[str]:
    found: list[str] = []
    for name, attr in sorted(op.properties.items()):
        if name != "label":
            found.append(f"{name}={attr.blob.data.digest if isinstance(attr, WeightAttr) else attr}")
    return found
