"""The pass `quantize-realize`: replaces marked float ops by integer ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from relay.errors import InvalidArgument
from relay.passes import Pass
from relay.quantize import marks
from relay.quantize.edges import codes_at_edges
from relay.quantize.insert_qdq import Insertion
from relay.quantize.observing import observed
from relay.quantize.qdq_to_integer import QdqToInteger
from relay.transforms.dead_ops import erase_dead

IO = ("float", "codes")


@dataclass(frozen=True)
class QuantizeRealize(Pass):
    """Replace the ops that `quantize-annotate` marked by integer ones. The scales are those that `quantize-calibrate`
    chose.

    First `qnn.quantize` and `qnn.dequantize` are inserted around every marked op; with `simulate` the pass stops there,
    with a float module that simulates quantization. Then `qdq-to-integer` replaces them by the integer ops to which
    pre-quantised models are imported. With `io=codes`, arguments of `@main` that are quantized first, and results that
    are dequantized last, are quantized values themselves; the module's signature has their parameters.
    """

    name: ClassVar[str] = "quantize-realize"
    requires = ("quantize-calibrate",)
    invalidates = None
    why = "replaces annotated float ops by integer ones"
    simulate: bool = False
    io: str = "float"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_io(self.io, self.name)
        function = marks.main_of(op, self.name)
        values = observed(function)
        if not values:
            return
        dtype = marks.text(function.attributes, marks.DTYPE) or "int8"
        missing = [name for name, value in values.items() if marks.parameters(value, dtype) is None]
        if missing:
            raise InvalidArgument(self.name, f"values {', '.join(missing[:5])} have no scale", "run quantize-calibrate")
        Insertion(function, dtype).run()
        marks.clear(function)
        erase_dead(function.body.walk())
        if not self.simulate:
            QdqToInteger().apply(ctx, op)
            if self.io == "codes":
                codes_at_edges(function)


def check_io(io: str, where: str) -> str:
    """The form of arguments and results, if it is one of `IO`. Raises InvalidArgument otherwise."""
    if io not in IO:
        raise InvalidArgument(where, f"io {io!r} is unknown", f"use {', '.join(IO)}")
    return io
