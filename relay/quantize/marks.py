"""The attributes by which the quantization passes communicate: on an op the discardable attribute `quantize`, a
dictionary.

- `integer` (unit): the op is to compute on quantized values;
- `value`: the name of its result, if that is to be quantized or is read by an op that is; `group`: the name of the
  first of the values that share its scale; `fixed` (unit): the specification fixes the scale;
- after `quantize-calibrate` also `scale` (f32) and `zero_point`, and for convolutions and products `kernel_scale` and
  `kernel_zero_point`.

A function has one such dictionary for each argument in the attribute `quantize.arguments`. The attribute
`quantize.value` stays on the ops of the quantized module: the name of the float module's value that corresponds to the
quantized one.
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
"""The keys of an op's attribute `quantize` that describe the op's result; the other keys describe the op itself."""
DTYPE = "quantize.dtype"
"""The attribute of a function with the dtype of its quantized values."""


def of(op: Operation) -> Mapping[str, Attribute]:
    """The dictionary in the attribute `quantize` of an op; empty if the op has none."""
    attr = op.attributes.get(MARK)
    return attr.data if isinstance(attr, DictionaryAttr) else {}


def write(op: Operation, /, **entries: Attribute) -> None:
    """Add entries to the dictionary in the attribute `quantize` of an op."""
    op.attributes[MARK] = DictionaryAttr({**of(op), **entries})


def integer(op: Operation) -> bool:
    """Whether the op is to compute on quantized values."""
    return "integer" in of(op)


def of_value(value: SSAValue) -> Mapping[str, Attribute]:
    """The quantization notes of a value, by name: the attribute `quantize` of the op whose first result it is, or, for
    an argument, its dictionary in the attribute `quantize.arguments` of the function; empty for other values."""
    if isinstance(value, OpResult) and value.index == 0:
        return of(value.op)
    if isinstance(value, BlockArgument) and isinstance(function := value.block.parent_op(), FuncOp):
        rows = function.attributes.get(ARGUMENTS)
        if isa(rows, ArrayAttr[DictionaryAttr]):
            return rows.data[value.index].data
    return {}


def write_value(value: SSAValue, /, **entries: Attribute) -> None:
    """Add entries to the dictionary for a value (see `of_value`)."""
    if isinstance(value, OpResult):
        write(value.op, **entries)
    elif isinstance(value, BlockArgument) and isinstance(function := value.block.parent_op(), FuncOp):
        rows = [dict(of_value(argument)) for argument in value.block.args]
        rows[value.index].update(entries)
        function.attributes[ARGUMENTS] = ArrayAttr([DictionaryAttr(row) for row in rows])


def move(old: Operation, new: Operation) -> None:
    """Move the marks that describe the result of `old` (its name, group, scale and zero point) to `new`, which is also
    marked `integer` if `old` is. The other marks stay on `old`."""
    entries = of(old)
    moved = {key: entries[key] for key in OF_RESULT if key in entries}
    write(new, **moved, **({"integer": UnitAttr()} if integer(old) else {}))
    old.attributes[MARK] = DictionaryAttr({key: attr for key, attr in entries.items() if key not in moved})


def name_of(value: SSAValue) -> str | None:
    """The name under which calibration observes a value; None if it does not."""
    return text(of_value(value), "value")


def text(mark: Mapping[str, Attribute], key: str) -> str | None:
    attr = mark.get(key)
    return attr.data if isinstance(attr, StringAttr) else None


def parameters(value: SSAValue, dtype: str) -> Parameters | None:
    """The scale and zero point that `quantize-calibrate` chose for a value; None if there are none."""
    mark = of_value(value)
    scale, zero_point = mark.get("scale"), mark.get("zero_point")
    if isa(scale, FloatAttr) and isa(zero_point, IntegerAttr):
        return Parameters(float(np.float32(scale.value.data)), zero_point.value.data, dtype)
    return None


def write_parameters(value: SSAValue, found: Parameters) -> None:
    write_value(value, scale=FloatAttr(found.scale, f32), zero_point=IntegerAttr(found.zero_point, 32))


def write_kernel(op: Operation, kernel: Kernel) -> None:
    """Record the scale and zero point of the weights of a convolution or product on the op, as `kernel_scale` and
    `kernel_zero_point`."""
    scale = elements(kernel.scale, label="scale")
    write(op, kernel_scale=scale, kernel_zero_point=IntegerAttr(kernel.zero_point, 32))


def kernel(op: Operation, axis: int, dtype: str) -> Kernel | None:
    """The quantization parameters of an op's kernel that `write_kernel` stored; None if it stored none. `axis`: the
    kernel's axis along which the scales lie."""
    scale, zero_point = of(op).get("kernel_scale"), of(op).get("kernel_zero_point")
    if scale is None or not isa(zero_point, IntegerAttr):
        return None
    return Kernel(np.atleast_1d(to_numpy(scale)), zero_point.value.data, axis, dtype)


def clear(function: FuncOp) -> None:
    """Remove the attributes of the quantization passes, except `quantize.value`."""
    for key in (ARGUMENTS, DTYPE):
        function.attributes.pop(key, None)
    for op in function.body.walk():
        op.attributes.pop(MARK, None)


def main_of(module: ModuleOp, where: str) -> FuncOp:
    """The function to quantize: `main`, with a single block. Raises InvalidArgument."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main" and len(op.body.blocks) == 1:
            return op
    raise InvalidArgument(where, "the module has no function main of one block", "import a model with relay.frontend")
