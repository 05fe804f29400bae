"""`Kernels`: what a compiler writes: single ops by a table, composites by what they consist of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from xdsl.ir import Operation

from relay.byoc.compiler import Refusal
from relay.byoc.quantized import PRODUCTS, read_product
from relay.byoc.regions import Kernel, static_refusal
from relay.errors import Unsupported

W = TypeVar("W")


@dataclass(frozen=True)
class Row(Generic[W]):
    """How what is of one kind (an op, a product, several ops) is written, and why some are not (None if one is)."""

    refusal: Callable[[Any], str | None]
    write: Callable[[W, Any], None]


@dataclass(frozen=True)
class Kernels(Generic[W]):
    """The kernels that are written; `what` a row gives, as "ONNX operator", is what errors miss."""

    what: str
    rows: Mapping[type[Operation], Row[W]]
    product: Row[W]
    """Of a `Product`."""
    together: Callable[[Sequence[Operation]], Row[W]]
    """Of other ops that are one kernel."""

    def refusal(self, ops: Sequence[Operation]) -> str | None:
        """Why these ops, without constants, are not written as one kernel; None if they are."""
        return next(filter(None, map(static_refusal, ops)), None) or self._chosen(ops)[0]

    def write(self, writer: W, kernel: Kernel) -> None:
        """Write a kernel. Raises Unsupported, naming the op's place, for what is refused."""
        if (found := self.refusal(kernel.ops)) is not None:
            raise Unsupported(kernel.place, f"is not compiled: {found}", "leave it to the host")
        _, write, what = self._chosen(kernel.ops)
        write(writer, what)

    def _chosen(self, ops: Sequence[Operation]) -> tuple[str | None, Callable[[W, Any], None], Any]:
        """Why the ops are refused, what writes them, and of what."""
        what: object = ops
        if isinstance(ops[0], PRODUCTS):
            row, what = self.product, read_product(ops)
        elif len(ops) > 1:
            row = self.together(ops)
        else:
            row, what = self.rows.get(type(ops[0])), ops[0]
        if row is None:
            row = Row(lambda op: f"there is no {self.what} for {op.name}", _nothing)
        return what.reason if isinstance(what, Refusal) else row.refusal(what), row.write, what


def _nothing(writer: object, op: object) -> None:
    """Nothing is written of what is refused."""
