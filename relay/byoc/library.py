"""`LibraryCompiler`: the base of compilers that pass whole regions to a library of kernels in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.ir import Operation

from relay.byoc import entries
from relay.byoc.compiler import Compiler, Refusal
from relay.byoc.quantized import form_refusal
from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of
from relay.dialects.op import Origin, TensorOp, is_code, is_tensor, tensor
from relay.errors import InvalidArgument

if TYPE_CHECKING:
    from relay.byoc.patterns import Entry


def rounds(op: Operation) -> bool:
    """Whether the op rounds reals to quantized values, so that a library with other rounding may be one step off."""
    if not isinstance(op, TensorOp) or op.origin in (Origin.MOVED, Origin.SELECTED):
        return False
    return op.origin is Origin.AVERAGED or (
        op.dialect_name() == "qnn" and any(is_code(tensor(result).element_type) for result in op.results)
    )


def computes_nothing(op: Operation) -> bool:
    """Whether an op alone is not worth a library call: a constant, or an op that only moves elements."""
    return isinstance(op, relay.ConstantOp) or (isinstance(op, TensorOp) and op.origin is Origin.MOVED)


def unknown_type(ops: Sequence[Operation]) -> str | None:
    """The reason why tensors of these ops cannot be passed to a library, if their element type has no numpy dtype; else
    None."""
    for op in ops:
        for value in (*op.operands, *op.results):
            try:
                if is_tensor(value.type):
                    dtype_of(value.type.element_type)
            except InvalidArgument as error:
                return f"{error.where} {error.what}"
    return None


@dataclass(frozen=True)
class LibraryCompiler(Compiler, ABC):
    """Base class of compilers that pass ops to a library. A subclass implements `reason`; the pattern table and the
    answers for single ops are derived from it.

    `only` names ops, as in `("nn.conv2d", "qnn.conv2d")`: kernels without any of these are left to others.
    """

    only: tuple[str, ...] = ()
    hoists: ClassVar[bool] = False

    def __post_init__(self) -> None:
        from relay.byoc.patterns.names import resolve  # here: only needed when options are given

        wanted = (self.only,) if isinstance(self.only, str) else self.only
        object.__setattr__(self, "only", tuple(map(resolve, wanted)))

    def params(self) -> dict[str, Array]:
        """The parameters that are passed to the loader."""
        return {}

    @abstractmethod
    def reason(self, ops: Sequence[Operation]) -> str | None:
        """The reason why these ops (constants excluded) are not taken as one kernel; None if they are."""

    def check(self, ops: Sequence[Operation]) -> str | None:
        """The reason why the compiler does not take these ops as one kernel: the option `only`, an element type, the
        form of an op, or what the subclass's `reason` returns. None if it takes them."""
        if self.only and not any(op.name in self.only for op in ops):
            names = ", ".join(name.removeprefix("relay.") for name in self.only)
            return f"{self.name} takes {names} only, as its option says"
        return unknown_type(ops) or next(filter(None, map(form_refusal, ops)), None) or self.reason(ops)

    def patterns(self) -> Sequence[Entry]:
        return [*entries.products(self.check), *entries.means(self.check)]

    def supports(self, op: Operation) -> bool | Refusal:
        return entries.supported(self.check, op)

    def off_by(self, ops: Sequence[Operation]) -> int | None:
        return 1 if not self.exact and any(map(rounds, ops)) else 0

    def cost(self, ops: Sequence[Operation]) -> float | None:
        return inf if all(map(computes_nothing, ops)) else None


@dataclass(frozen=True)
class ThreadedCompiler(LibraryCompiler, ABC):
    """A library compiler whose kernels use `threads` threads; the loader gets the number as a parameter."""

    threads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threads < 1:
            raise InvalidArgument(f"compiler {self.name}", f"threads is {self.threads}", "it must be at least 1")

    def params(self) -> dict[str, Array]:
        """The parameters that are passed to the loader: the number of threads."""
        return {"threads": np.array(self.threads, np.int32)}
