"""What the passes write on ops for each other: the discardable attribute `quantize`, a dictionary.

- `integer` (unit): the op computes on codes;
- `value`: the name of its result where that is a tensor of codes, or is read as one; `group`: the name of the first of
  the values that share its scale; `fixed` (unit): the specification fixes the scale;
- after `quantize-calibrate` also `scale` (f32) and `zero_point`, and on convolutions and products `kernel_scale`,
  `kernel_zero_point`.

A function has one such dictionary for each argument: the attribute `quantize.arguments`. `quantize.value` remains on
the ops of the finished module: the name of the float module's value that the codes stand for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from relay.dialects.attributes import elements, to_numpy
from relay.errors import InvalidArgument
from relay.quantize.parameters import Parameters
from relay.quantize.weights import Kernel

MARK = "quantize"
ARGUMENTS = "quantize.arguments"
VALUE = "quantize.value"
OF_RESULT = ("value", "group", "fixed", "scale", "zero_point")
"""What is written on an op about its result."""
DTYPE = "quantize.dtype"
"""On the function: the dtype of its codes."""


def of(op: Operation) -> Mapping[str, Attribute]:
    """What is written on an op; nothing is an empty dictionary."""
    attr = op.attributes.get(MARK)
    return attr.data if isinstance(attr, DictionaryAttr) else {}


def write(op: Operation, /, **entries: Attribute) -> None:
    """Write entries beside those that are there."""
    op.attributes[MARK] = DictionaryAttr({**of(op), **entries})


def integer(op: Operation) -> bool:
    """Whether the op is to compute on codes."""
    return "integer" in of(op)


def of_value(value: SSAValue) -> Mapping[str, Attribute]:
    """What is written about a value: on the op whose first result it is, or for an argument on the function."""
    if isinstance(value, OpResult) and value.index == 0:
        return of(value.op)
    if isinstance(value, BlockArgument) and isinstance(function := value.block.parent_op(), FuncOp):
        rows = function.attributes.get(ARGUMENTS)
        if isa(rows, ArrayAttr[DictionaryAttr]):
            return rows.data[value.index].data
    return {}


def write_value(value: SSAValue, /, **entries: Attribute) -> None:
    """Write entries about a value."""
    if isinstance(value, OpResult):
        write(value.op, **entries)
    elif isinstance(value, BlockArgument) and isinstance(function := value.block.parent_op(), FuncOp):
        rows = [dict(of_value(argument)) for argument in value.block.args]
        rows[value.index].update(entries)
        function.attributes[ARGUMENTS] = ArrayAttr([DictionaryAttr(row) for row in rows])


def move(old: Operation, new: Operation) -> None:
    """Let another op, that computes on codes if the old one does, have what is written about the old one's result."""
    entries = of(old)
    moved = {key: entries[key] for key in OF_RESULT if key in entries}
    write(new, **moved, **({"integer": unit()} if integer(old) else {}))
    old.attributes[MARK] = DictionaryAttr({key: attr for key, attr in entries.items() if key not in moved})


def name_of(value: SSAValue) -> str | None:
    """The name under which a value is observed."""
    return text(of_value(value), "value")


def text(mark: Mapping[str, Attribute], key: str) -> str | None:
    attr = mark.get(key)
    return attr.data if isinstance(attr, StringAttr) else None


def parameters(value: SSAValue, dtype: str) -> Parameters | None:
    """The scale and zero point that `quantize-calibrate` has written about a value."""
    mark = of_value(value)
    scale, zero_point = mark.get("scale"), mark.get("zero_point")
    if isa(scale, FloatAttr) and isa(zero_point, IntegerAttr):
        return Parameters(float(np.float32(scale.value.data)), zero_point.value.data, dtype)
    return None


def write_parameters(value: SSAValue, found: Parameters) -> None:
    write_value(value, scale=FloatAttr(found.scale, f32), zero_point=IntegerAttr(found.zero_point, 32))


def write_kernel(op: Operation, kernel: Kernel) -> None:
    """Write on a convolution or product how the codes of its kernel stand for reals."""
    scale = elements(kernel.scale, label="scale")
    write(op, kernel_scale=scale, kernel_zero_point=IntegerAttr(kernel.zero_point, 32))


def kernel(op: Operation, axis: int, dtype: str) -> Kernel | None:
    """What `write_kernel` wrote."""
    scale, zero_point = of(op).get("kernel_scale"), of(op).get("kernel_zero_point")
    if scale is None or not isa(zero_point, IntegerAttr):
        return None
    return Kernel(np.atleast_1d(to_numpy(scale)), zero_point.value.data, axis, dtype)


def unit() -> UnitAttr:
    return UnitAttr()


def clear(function: FuncOp) -> None:
    """Take away what the passes wrote for each other; `quantize.value` stays."""
    for key in (ARGUMENTS, DTYPE):
        function.attributes.pop(key, None)
    for op in function.body.walk():
        op.attributes.pop(MARK, None)


def main_of(module: ModuleOp, where: str) -> FuncOp:
    """The function that is quantised: `main`, of one block. Raises InvalidArgument."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main" and len(op.body.blocks) == 1:
            return op
    raise InvalidArgument(where, "the module has no function main of one block", "import a model with relay.frontend")
