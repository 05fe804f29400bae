"""Every kind of kernel that is written: single ops by a table, composites by what they consist of."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from relay.byoc import means
from relay.byoc.onednn import arithmetic, images, products
from relay.byoc.onednn.program import Program
from relay.byoc.onednn.writer import Row, Writer
from relay.byoc.quantized import PRODUCTS
from relay.byoc.regions import Kernel, Region, static_refusal
from relay.errors import Unsupported

ROWS: dict[type[Operation], Row] = {**arithmetic.ROWS, **images.ROWS}


def refusal(ops: Sequence[Operation]) -> str | None:
    """Why these ops, without constants, are not written as one kernel; None if they are."""
    for op in ops:
        if (found := static_refusal(op)) is not None:
            return found
    if isinstance(ops[0], PRODUCTS):
        return products.refusal(ops)
    if len(ops) == 1:
        row = ROWS.get(type(ops[0]))
        return f"there is no oneDNN primitive for {ops[0].name}" if row is None else row.refusal(ops[0])
    return means.refusal(ops)


def program(region: Region) -> Program:
    """The program of a region. Raises Unsupported, naming the op's place, for what is refused."""
    writer = Writer(region)
    for kernel in region.kernels:
        write(writer, kernel)
    return writer.finish()


def write(writer: Writer, kernel: Kernel) -> None:
    ops = kernel.ops
    if (found := refusal(ops)) is not None:
        raise Unsupported(kernel.place, f"is not compiled: {found}", "leave it to the host")
    if isinstance(ops[0], PRODUCTS):
        products.write(writer, ops)
    elif len(ops) == 1:
        ROWS[type(ops[0])].write(writer, ops[0])
    else:
        arithmetic.write_float_mean(writer, ops)
