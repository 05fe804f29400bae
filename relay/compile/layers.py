"""How much memory of the arena each kernel of a planned model needs: its own, and what later ones still read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from relay.lowering.linalg.emitter import number
from relay.lowering.plan_memory import loops, steps
from relay.lowering.shaped import buffer_of, is_buffer, size_of
from relay.target import Target
from relay.transforms.location import words


def layers(main: FuncOp, target: Target) -> list[dict[str, Any]]:
    """For each call of a kernel, in order: its name (`kernel`), the operators that it comes from (`layer`), and the
    `bytes` of all buffers that hold something while it runs, inputs and outputs of the model not among them; those of
    which one overlaps another count once."""
    block = main.body.block
    order = list(steps(block))
    numbers, repeated = {op: at for at, op in enumerate(order)}, loops(order)
    spans: list[tuple[range, int, int]] = []
    for use in block.args[-1].uses:
        view = use.operation
        touched = [numbers[step] for user in readers(view.results[0]) if (step := step_of(user, numbers)) is not None]
        if isinstance(view, memref.ViewOp) and touched:
            first, last = min(touched), max(touched)
            for start, end in repeated:
                last = max(last, end) if first < start <= last else last
            start = int(number(view.byte_shift) or 0)
            spans.append((range(start, start + target.room_of(size_of(buffer_of(view.result)))), first, last))
    return [
        {
            "kernel": op.callee.string_value(),
            "layer": words(op.location),
            "bytes": covered(span for span, first, last in spans if first <= at <= last),
        }
        for at, op in enumerate(order)
        if isinstance(op, CallOp)
    ]


def covered(spans: Iterable[range]) -> int:
    """How many numbers are in at least one of the spans."""
    total = end = 0
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0, span.stop - max(end, span.start))
        end = max(end, span.stop)
    return total


def readers(value: SSAValue) -> Iterator[Operation]:
    """What touches a buffer, or a view of it."""
    for use in value.uses:
        if use.operation.results and is_buffer(use.operation.results[0].type):
            yield from readers(use.operation.results[0])
        else:
            yield use.operation


def step_of(op: Operation, number: dict[Operation, int]) -> Operation | None:
    """The numbered operation that this one is, or is inside of."""
    found: Operation | None = op
    while found is not None and found not in number:
        found = found.parent_op()
    return found
