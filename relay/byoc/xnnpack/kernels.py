"""Every kind of kernel that is written: single ops by a table, composites by what they consist of."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from relay.byoc import means
from relay.byoc.quantized import PRODUCTS
from relay.byoc.regions import Kernel, static_refusal
from relay.byoc.xnnpack import arithmetic, images, products, shapes
from relay.byoc.xnnpack.writer import Row, Writer
from relay.dialects import relay
from relay.errors import Unsupported

ROWS: dict[type[Operation], Row] = {**arithmetic.ROWS, **shapes.ROWS, **images.ROWS}


def refusal(ops: Sequence[Operation]) -> str | None:
    """Why these ops, without constants, are not written as one kernel."""
    for op in ops:
        if (found := static_refusal(op)) is not None:
            return found
    if isinstance(ops[0], PRODUCTS):
        return products.refusal(ops)
    if len(ops) == 1:
        row = ROWS.get(type(ops[0]))
        return f"there is no TFLite operator for {ops[0].name}" if row is None else row.refusal(ops[0])
    if len(ops) == 2 and isinstance(ops[0], relay.SumOp):
        return means.refusal(ops)
    if len(ops) == 2:
        return images.clipped_refusal(ops)
    return "no TFLite operator computes these ops together"


def write(writer: Writer, kernel: Kernel) -> None:
    """The kernel's operators. Raises Unsupported, naming the op's place, for what is refused."""
    ops = kernel.ops
    if (found := refusal(ops)) is not None:
        raise Unsupported(kernel.place, f"is not compiled: {found}", "leave it to the host")
    if isinstance(ops[0], PRODUCTS):
        products.write(writer, ops)
    elif len(ops) == 1:
        ROWS[type(ops[0])].write(writer, ops[0])
    elif isinstance(ops[0], relay.SumOp):
        images.write_mean(writer, ops)
    else:
        images.write_clipped(writer, ops)
