"""`Kernels`: a compiler's table of code generators for single ops, products and composites."""

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
    """The code generator of one kind of kernel (an op, a product, several ops): `refusal` returns why a kernel is not
    supported (None if it is), `write` generates code."""

    refusal: Callable[[Any], str | None]
    write: Callable[[W, Any], None]


@dataclass(frozen=True)
class Kernels(Generic[W]):
    """The code generators of a compiler; `what` is the generated unit, such as "ONNX operator", for error messages."""

    what: str
    rows: Mapping[type[Operation], Row[W]]
    product: Row[W]
    """The code generator for a convolution or matrix product with the ops fused into it (a `Product`)."""
    together: Callable[[Sequence[Operation]], Row[W]]
    """Returns the code generator for several ops that form one kernel without a convolution or matrix product, such as
    an op and a clamp of its result."""

    def refusal(self, ops: Sequence[Operation]) -> str | None:
        """The reason why these ops (constants excluded) are not supported as one kernel; None if they are."""
        return next(filter(None, map(static_refusal, ops)), None) or self._chosen(ops)[0]

    def write(self, writer: W, kernel: Kernel) -> None:
        """Generate code for a kernel. Raises Unsupported, naming the op's location, for a kernel that is refused."""
        if (found := self.refusal(kernel.ops)) is not None:
            raise Unsupported(kernel.place, f"is not compiled: {found}", "leave it to the host")
        _, write, what = self._chosen(kernel.ops)
        write(writer, what)

    def _chosen(self, ops: Sequence[Operation]) -> tuple[str | None, Callable[[W, Any], None], Any]:
        """The reason why the ops are refused (or None), the generator's `write`, and its argument."""
        what: object = ops
        if isinstance(ops[0], PRODUCTS):
            row, what = self.product, read_product(ops)
        elif len(ops) > 1:
            row = self.together(ops)
        else:
            row, what = self.rows.get(type(ops[0])), ops[0]
        if row is None:
            row = never(f"there is no {self.what} for {ops[0].name}")
        return what.reason if isinstance(what, Refusal) else row.refusal(what), row.write, what


def never(reason: str) -> Row[Any]:
    """The row of an op that is never supported, for this reason."""
    return Row(lambda op: reason, lambda writer, op: None)
