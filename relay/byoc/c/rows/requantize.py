"""`qnn.requantize`: of a row of sums behind a contraction, and of a tensor by itself."""

from __future__ import annotations

import numpy as np

from relay.byoc.c.ctype import F32, F64, I32, I64, CType, integer_literal
from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import Access, along, dense
from relay.byoc.c.rows import pointwise
from relay.dialects import qnn
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.op import rank
from relay.errors import Unsupported
from relay.interpreters.meaning import number
from relay.interpreters.qnn import single_multiplier
from relay.transforms.location import place

RESCALES = {
    "tflite": "rescale_tflite",
    "tflite_single": "rescale_upward",
    "upward": "rescale_upward",
    "tonearest": "rescale_tonearest",
}
"""The kernel of each fixed-point rounding."""

REALS = {"f64_away": (F64, "round_away"), "f32_even": (F32, "round_even")}
"""The type of the factor of each floating-point rounding, and the kernel that rounds."""


def row(e: Emitter, op: qnn.RequantizeOp) -> tuple[str, str, str]:
    """The kernel that makes codes of one row of sums (the last axis), the type of its table, and the table."""
    if number(op.input_zero_point):
        raise Unsupported(place(op), "sums with a zero point are no row of c")
    total, code = e.type(op.input), codes(e, op)
    low, high = bounds(op, code)
    factors = factors_of(op)
    channels = np.ndim(factors[0]) > 0
    if channels and op.axis.value.data % rank(op.input) != rank(op.input) - 1:
        raise Unsupported(place(op), "numbers per index of another axis than the last are no row of c")
    offset = number(op.output_zero_point)
    if offset and total == I64 and code == I32:
        raise Unsupported(place(op), "32-bit codes with a zero point, of 64-bit sums, are not supported by c")
    shared = {"low": max(low - offset, I32.range[0]), "high": min(high - offset, I32.range[1]), "zero_point": offset}
    shared = {name: integer_literal(value) for name, value in shared.items()}
    types = {"Sum": total.name, "Code": code.name, "at": "i" if channels else "0"}
    suffix = f"{total.short}_{code.short}" + ("_per_channel" if channels else "")
    rounding = op.rounding.data if total != I64 else "sums64"
    if (real := REALS.get(op.rounding.data)) is not None:
        kind, file = real
        struct = e.kernel("requantize_factor", kind.short, Real=kind.name)
        types |= {"Real": kind.name, "Scale": struct, "round": e.kernel(file, kind.short, Real=kind.name)}
        finish = e.kernel("requantize_real", f"{op.rounding.data}_{suffix}", name="requantize", **types)
        factor = e.numbers(np.atleast_1d(factors[0]), "factor")
        return finish, struct, e.table(struct, "requantize", {"factor": factor, **shared})
    e.kernel("requantize_scale")
    types |= {"rescale": rescale(e, op, total), "Rescaled": "int64_t" if total == I64 else "int32_t"}
    finish = e.kernel("requantize", f"{rounding}_{suffix}", **types)
    multiplier, shift = (e.numbers(np.atleast_1d(v), n) for v, n in zip(factors, ("multiplier", "shift"), strict=True))
    fields = {"multiplier": multiplier, "shift": shift, **shared}
    return finish, "relay_requantize_scale", e.table("relay_requantize_scale", "requantize", fields)


def codes(e: Emitter, op: qnn.RequantizeOp) -> CType:
    """The type of the codes."""
    code = e.type(op.result)
    if code.size > 4 or code.name == "uint32_t":
        raise Unsupported(place(op), f"codes of {op.out_dtype} are not supported by c", "it makes 8, 16 and 32 bits")
    return code


def bounds(op: qnn.RequantizeOp | qnn.QnnBinaryOp, code: CType) -> tuple[int, int]:
    """The least and the largest code."""
    lowest, highest = code.range
    low = lowest if op.min is None else min(max(op.min.value.data, lowest), highest)
    high = highest if op.max is None else min(max(op.max.value.data, lowest), highest)
    return low, high


def factors_of(op: qnn.RequantizeOp) -> tuple[Array, ...]:
    """Multiplier and shift, or the one real factor; each a scalar, or a vector along the axis."""
    if op.rounding.data == "f64_away":
        assert op.real_multiplier is not None
        return (to_numpy(op.real_multiplier).astype(np.float64),)
    if op.rounding.data == "f32_even":
        factor = np.asarray(single_multiplier(op, rank(op.input)))
        return (factor.reshape(-1) if factor.ndim else factor,)
    multiplier, shift = to_numpy(op.multiplier), to_numpy(op.shift)
    if multiplier.ndim != shift.ndim:
        multiplier, shift = np.broadcast_arrays(multiplier, shift)
    return multiplier.astype(np.int32), shift.astype(np.int32)


def rescale(e: Emitter, op: qnn.RequantizeOp, total: CType) -> str:
    """The function that rescales one sum."""
    if total != I64:
        return e.kernel(RESCALES[op.rounding.data])
    if int(np.max(to_numpy(op.shift))) > 14:
        raise Unsupported(place(op), "64-bit sums shifted left by more than 14 bits are not supported by c")
    return e.kernel("rescale_sums64")


def requantize(e: Emitter, op: qnn.RequantizeOp) -> None:
    """A tensor by itself: a table where there is one code per code, else number by number."""
    factors = factors_of(op)
    total, code = e.type(op.input), codes(e, op)
    if total.size == 1 and all(np.ndim(factor) == 0 for factor in factors):
        pointwise.by_table(e, op, op.input)
        return
    low, high = bounds(op, code)
    access = along(op.axis.value.data, rank(op.input))
    e.kernel("clamp")
    names = [e.constant(np.atleast_1d(factor), "factor") for factor in factors]
    extra = [(c, access if np.ndim(f) else Access((0,) * rank(op.input))) for c, f in zip(names, factors, strict=True)]
    steps, offset = f"((int64_t){{0}} - {number(op.input_zero_point)})", number(op.output_zero_point)
    if (real := REALS.get(op.rounding.data)) is not None:
        kind, rounding = real
        function = e.kernel(rounding, kind.short, Real=kind.name)
        rescaled = f"{function}(({kind.name}){steps} * {{1}})"
    else:
        function = rescale(e, op, total)
        if total != I64:
            e.kernel("wrap32")
            steps = f"relay_wrap32{steps}"
        rescaled = f"{function}({steps}, {{1}}, {{2}})"
    expression = f"({code.name})relay_clamp((int64_t){rescaled} + {offset}, {low}, {high})"
    operands = [(e.tensors[op.input], dense(e.shape(op.input))), *extra]
    pointwise.apply(e, op, operands, expression)
