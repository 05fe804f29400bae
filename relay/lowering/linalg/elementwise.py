"""Groups elementwise ops that become one loop nest, and emits the `linalg.generic` of such a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import int_values, to_numpy
from relay.dialects.op import axis_of, rank, shape, tensor
from relay.lowering.linalg import norm, pool, softmax
from relay.lowering.linalg.emitter import Emitter, Operand, axes, identity, over, signless
from relay.lowering.linalg.scalar import Scalar, is_scalar, scalar

Prologue = Callable[[Emitter, Operation, Sequence[SSAValue]], Sequence[Operand]]

EPILOGUES: dict[type[Operation], tuple[Prologue, Scalar]] = {
    relay.AvgPool1dOp: (pool.average_operands, pool.average),
    relay.AvgPool2dOp: (pool.average_operands, pool.average),
    relay.AvgPool3dOp: (pool.average_operands, pool.average),
    relay.SoftmaxOp: (softmax.operands, softmax.normalise),
    relay.LayerNormOp: (norm.operands, norm.normalise),
    relay.RmsNormOp: (norm.operands, norm.normalise_by_root),
}
"""Ops that end in a loop nest over their result: a function that emits the ops before the nest, and the scalar code
inside it."""


def fusible(op: Operation) -> bool:
    """Whether the op can be computed in the body of one `linalg.generic` together with other elementwise ops: scalar
    code is known for it, or it is one of `EPILOGUES`."""
    return is_scalar(op) or type(op) in EPILOGUES


def result_shape(op: Operation) -> tuple[int, ...]:
    return shape(op.results[0])


def reads(op: Operation) -> Sequence[AffineMap | None]:
    """Return the map by which each operand is read at a position of the result; None for an operand that is read as a
    whole."""
    width = len(result_shape(op))
    match op:
        case relay.LookupOp():
            return [identity(width), None]
        case relay.BiasAddOp():
            return [identity(width), vector(op.bias, result_shape(op), op.axis.value.data)]
        case relay.FixedPointMultiplyOp():
            parameters = (op.multiplier, op.shift)
            return [identity(width), *(vector(p, result_shape(op), op.axis.value.data) for p in parameters)]
        case relay.TransposeOp():
            permutation = int_values(op.axes)
            return [axes(width, *(permutation.index(i) for i in range(width)))]
        case _:
            return [broadcast(shape(value), result_shape(op)) for value in op.operands]


def vector(value: SSAValue, whole: Sequence[int], axis: int) -> AffineMap:
    """Return the map by which a position in the shape `whole` reads a value: a scalar, a vector with an element for
    each index of `axis`, or a tensor that broadcasts."""
    if rank(value) > 1:
        return broadcast(shape(value), whole)
    width = len(whole)
    return axes(width, *([axis_of(axis, width, "axis")] if rank(value) else []))


def broadcast(given: Sequence[int], wanted: Sequence[int]) -> AffineMap:
    """Return the map of numpy's broadcasting: missing axes are leading ones, an axis of size 1 is read at 0."""
    missing = len(wanted) - len(given)
    results = [
        0 if size == 1 and wanted[missing + i] != 1 else AffineExpr.dimension(missing + i)
        for i, size in enumerate(given)
    ]
    return over(len(wanted), results)


class Group:
    """Ops with equal result shapes, in program order, that become one `linalg.generic`."""

    def __init__(self, first: Operation):
        self.ops = [first]


def groups(ops: Sequence[Operation], alone: Callable[[Operation], bool]) -> dict[Operation, Group]:
    """Return the group of each fusible op of a block. Groups are the largest that can each become one `linalg.generic`,
    joined greedily from producer to consumer.

    Two groups join unless another op or group lies on a path of values between them, or one is an op that stays
    `alone`.
    """
    order = {op: i for i, op in enumerate(ops)}
    of = {op: Group(op) for op in ops}

    def before(group: Group) -> set[Group]:
        owners = {value.owner for op in group.ops for inner in op.walk() for value in inner.operands}
        found = {of[owner] for owner in owners if isinstance(owner, Operation) and owner in of}
        return found - {group}

    def another_path(source: Group, target: Group) -> bool:
        start = min(order[op] for op in source.ops)
        seen: set[Group] = set()
        todo = list(before(target) - {source})
        while todo:
            group = todo.pop()
            if group is source:
                return True
            if group in seen or max(order[op] for op in group.ops) < start:
                continue
            seen.add(group)
            todo += before(group)
        return False

    for op in ops:
        if not is_scalar(op) or alone(op):
            continue
        for value, map in zip(op.operands, reads(op), strict=True):
            producer = value.owner
            if not isinstance(producer, Operation) or producer not in of or not fusible(producer) or alone(producer):
                continue
            source, target = of[producer], of[op]
            if source is target or result_shape(producer) != result_shape(op) or map != identity(len(result_shape(op))):
                continue
            if not another_path(source, target):
                source.ops = sorted([*source.ops, *target.ops], key=order.__getitem__)
                for member in target.ops:
                    of[member] = source
    return {op: group for op, group in of.items() if fusible(op)}


def one_number(value: SSAValue) -> bool:
    """Whether the value is a constant of a single element."""
    return isinstance(value.owner, relay.ConstantOp) and all(size == 1 for size in shape(value))


def emit(e: Emitter, group: Group, lowered: Callable[[SSAValue], SSAValue]) -> dict[SSAValue, SSAValue]:
    """Emit the group's generic; return the new value of each result that is used outside the group."""
    members = set(group.ops)
    outside = [
        result for op in group.ops for result in op.results if any(use.operation not in members for use in result.uses)
    ]
    if not outside:
        return {}
    inputs: dict[tuple[SSAValue, AffineMap], int] = {}
    plans: list[list[int | SSAValue]] = []

    def read(value: SSAValue, map: AffineMap) -> int:
        return inputs.setdefault((value, map), len(inputs))

    inner = {result for op in group.ops for result in op.results}
    for op in group.ops:
        plan: list[int | SSAValue] = []
        if (epilogue := EPILOGUES.get(type(op))) is not None:
            at = e.at(op.location)
            plan += [read(value, map) for value, map in epilogue[0](at, op, [lowered(x) for x in op.operands])]
        else:
            for value, map in zip(op.operands, reads(op), strict=True):
                if map is None:
                    plan.append(lowered(value))
                elif value in inner:
                    plan.append(value)
                elif one_number(value):
                    plan.append(scalar_constant(e, value))
                else:
                    plan.append(read(lowered(value), map))
        plans.append(plan)

    def body(inside: Emitter, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        computed: dict[SSAValue, SSAValue] = {}
        for op, plan in zip(group.ops, plans, strict=True):
            xs = [args[x] if isinstance(x, int) else computed.get(x, x) for x in plan]
            at = inside.at(op.location)
            epilogue = EPILOGUES.get(type(op))
            new = scalar(at, op, xs) if epilogue is None else epilogue[1](at, op, xs)
            computed.update(zip(op.results, new, strict=True))
        return [computed[result] for result in outside]

    elements: list[Attribute] = [signless(tensor(result).element_type) for result in outside]
    new = e.map(list(inputs), result_shape(group.ops[0]), elements, body)
    return dict(zip(outside, new, strict=True))


def scalar_constant(e: Emitter, value: SSAValue) -> SSAValue:
    """Return the element of a constant with one element, as a scalar."""
    owner = value.owner
    assert isinstance(owner, relay.ConstantOp) and isa(value.type, TensorType)
    return e.constant(to_numpy(owner.value).item(), value.type.element_type)
