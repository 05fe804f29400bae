"""Patterns for functions of one code: tables over all codes, computed by the op's own interpreter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import dtype_of, elements, to_numpy
from relay.dialects.op import TensorOp, tensor
from relay.interpreters import evaluate
from relay.transforms.expansion import Expansion, limits
from relay.transforms.legalization import Legalization, pattern


def every_code(type: Attribute) -> npt.NDArray[np.generic]:
    """All codes of a type, lowest first."""
    least, most = limits(type)
    return np.arange(least, most + 1).astype(dtype_of(type))


UNARY = (
    qnn.SigmoidOp
    | qnn.TanhOp
    | qnn.GeluOp
    | qnn.EluOp
    | qnn.ExpOp
    | qnn.LogOp
    | qnn.RsqrtOp
    | qnn.SqrtOp
    | qnn.HardSwishOp
)
"""The qnn ops that compute a function of each code alone; `unary` replaces them by a table lookup, for codes of 8 or 16
bits."""


@pattern
def unary(new: Expansion, op: UNARY) -> SSAValue:
    """qnn.sigmoid, tanh, gelu, elu, exp, log, rsqrt, sqrt, hard_swish %x  =>  relay.lookup %x, table"""
    return by_table(new, op)


def by_table(new: Expansion, op: UNARY | qnn.LeakyReluOp) -> SSAValue:
    """The result of a function of one code, from a lookup table that the op's interpreter computes."""
    (table,) = evaluate(op, [every_code(tensor(op.input).element_type)])
    return new.lookup(op.input, table, table.dtype)


@pattern
def concatenate(new: Expansion, op: qnn.ConcatenateOp) -> SSAValue:
    """qnn.concatenate %a, %b => relay.concatenate; operands of another scale or zero point are rescaled by a table"""
    inputs = list(op.inputs)
    scales, zero_points = to_numpy(op.input_scales).astype(np.float32), to_numpy(op.input_zero_points)
    own = (np.float32(op.output_scale.value.data), op.output_zero_point.value.data)
    tables: dict[tuple[float, int], npt.NDArray[np.generic]] = {}
    for i, (scale, zero_point) in enumerate(zip(scales, zero_points, strict=True)):
        if (scale, zero_point) == own:
            continue
        key = (float(scale), int(zero_point))
        if key not in tables:
            tables[key] = rescaling_table(op, *key)
        inputs[i] = new.lookup(inputs[i], tables[key], tables[key].dtype)
    return new.value(relay.ConcatenateOp, *inputs, properties={"axis": op.axis})


def rescaling_table(op: qnn.ConcatenateOp, scale: float, zero_point: int) -> npt.NDArray[np.generic]:
    """The table that rescales codes with these parameters to the op's result: the interpreter's result for a
    concatenation of one operand."""
    codes = every_code(tensor(op.result).element_type)
    properties: dict[str, Attribute] = {
        "axis": IntegerAttr(0, 64),
        "input_scales": elements([scale], np.float32),
        "input_zero_points": elements([zero_point], np.int32),
        "output_scale": op.output_scale,
        "output_zero_point": op.output_zero_point,
    }
    source = relay.ConstantOp.make([], {"value": elements(codes)})
    single: TensorOp = qnn.ConcatenateOp.make([source], properties)
    (table,) = evaluate(single, [codes])
    return table


PATTERNS: list[type[Legalization]] = [unary, concatenate]
