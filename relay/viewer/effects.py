"""Which buffers an op writes; the graph of a bufferized function is built from this."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

VIEWS = frozenset(
    (
        "bufferization.to_buffer",
        "bufferization.to_tensor",
        "memref.cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.reinterpret_cast",
        "memref.subview",
    )
)
"""Ops whose result is a view of their first operand. `memref.view` is not among them: it creates a new buffer in the
arena."""


def is_buffer(value: SSAValue) -> bool:
    """Whether a value is a memref."""
    return isinstance(value.type, MemRefType)


def root(value: SSAValue) -> SSAValue:
    """The buffer that a value is a view of, through any number of views; the value itself if it is no view."""
    while isinstance(value, OpResult) and value.op.name in VIEWS:
        value = value.op.operands[0]
    return value


class Effects:
    """Finds the buffers that ops of a module write. For each function, the arguments that it writes are computed once
    and kept."""

    def __init__(self, module: ModuleOp):
        self.functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}
        self._arguments: dict[str, frozenset[int]] = {}

    def written(self, op: Operation) -> list[SSAValue]:
        """The operands that an op, or an op in its regions, writes; these may be views of the actual buffers."""
        return [value for inner in op.walk() for value in self._own(inner)]

    def _own(self, op: Operation) -> Iterator[SSAValue]:
        buffers = [value for value in op.operands if is_buffer(value)]
        if not buffers:
            return
        match op:
            case CallOp():
                by_callee = self._of_function(callee_of(op))
                yield from (
                    v for n, v in enumerate(op.operands) if is_buffer(v) and (by_callee is None or n in by_callee)
                )
            case LinalgStructuredOperation():
                yield from filter(is_buffer, op.outputs)
            case memref.CopyOp():
                yield op.destination
            case _ if op.regions:
                return
            case _:
                effects = get_effects(op)
                writes = not op.results if effects is None else any(e.kind is MemoryEffectKind.WRITE for e in effects)
                yield from buffers if writes else ()

    def _of_function(self, name: str) -> frozenset[int] | None:
        """The indices of the arguments that a function writes; None if the function has no body."""
        function = self.functions.get(name)
        if function is None or not function.body.blocks:
            return None
        if name not in self._arguments:
            self._arguments[name] = frozenset()
            written = {root(value) for op in function.body.block.ops for value in self.written(op)}
            numbers = (n for n, argument in enumerate(function.body.block.args) if argument in written)
            self._arguments[name] = frozenset(numbers)
        return self._arguments[name]


def callee_of(op: Operation) -> str:
    """The name of the function that an op calls; "" if it is no call."""
    callee = op.properties.get("callee")
    return callee.string_value() if isinstance(callee, SymbolRefAttr) else ""
