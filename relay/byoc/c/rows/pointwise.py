"""What every op that computes number by number shares: one loop nest with an expression, or a table of 256 codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import Access, dense, nest
from relay.byoc.c.program import Tensor
from relay.dialects.attributes import Array, elements
from relay.dialects.relay import ConstantOp
from relay.interpreters import evaluate

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


def apply(e: Emitter, op: Operation, operands: Sequence[tuple[Tensor, Access]], expression: str) -> None:
    """`result[...] = expression` in the result's shape; `{0}`, `{1}`, ... are the operands' numbers there."""
    result = op.results[0]
    extents = e.shape(result)
    pointers = [e.touch(tensor) for tensor, _ in operands]
    names = NAMES[: len(operands)]
    parameters = [
        *(f"const {tensor.type.name} *restrict {name}" for (tensor, _), name in zip(operands, names, strict=True)),
        f"{e.type(result).name} *restrict output",
    ]

    def body(indices: list[str]) -> str:
        loaded = [f"{name}[{at}]" for name, at in zip(names, indices, strict=False)]
        return f"output[{indices[-1]}] = {expression.format(*loaded)};"

    text = nest(extents, [*(access for _, access in operands), dense(extents)], body)
    e.call(op, e.function(op.name, parameters, text), *pointers, e.write(result))


def by_table(e: Emitter, op: Operation, codes: SSAValue) -> None:
    """The op as a table of its results for all 256 codes; the interpreter fills it, so it is exact by construction."""
    lookup(e, op, codes, e.constant(table_of(e, op, codes), "table", f"{op.name} of every code"))


def table_of(e: Emitter, op: Operation, codes: SSAValue) -> Array:
    """The result of a unary op of 8-bit codes for each code, from the lowest."""
    dtype = e.type(codes).dtype
    lowest, highest = e.type(codes).range
    every = np.arange(lowest, highest + 1).astype(dtype)
    constant = ConstantOp.make([], {"value": elements(every)})
    probe = op.clone({codes: constant.result})
    (results,) = evaluate(probe, [every])
    probe.erase()
    constant.erase()
    return results


def lookup(e: Emitter, op: Operation, codes: SSAValue, table: Tensor) -> None:
    """`result = table[code - lowest code]`."""
    type, count = e.type(codes), e.tensors[codes].count
    lowest = type.range[0]
    at = "input[i]" if lowest == 0 else f"input[i] + {-lowest}"
    parameters = [
        f"const {table.type.name} *restrict table",
        f"const {type.name} *restrict input",
        "int32_t count",
        f"{table.type.name} *restrict output",
    ]
    body = f"    for (int32_t i = 0; i < count; ++i)\n        output[i] = table[{at}];\n"
    function = e.function("lookup", parameters, body)
    e.call(op, function, e.touch(table), e.read(codes), count, e.write(op.results[0]))
