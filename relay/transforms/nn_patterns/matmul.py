"""Matrix products: as `relay.nn.dense` where the second operand is one matrix."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import rank, shape
from relay.transforms.expansion import Expansion
from relay.transforms.nn_patterns.rows import Expansions, transpose


def swapped(new: Expansion, x: SSAValue, wanted: bool) -> SSAValue:
    """The last two axes exchanged, if that is wanted."""
    last = rank(x) - 1
    return transpose(new, x, [*range(last - 1), last, last - 1]) if wanted else x


def dense(new: Expansion, op: relay.MatmulOp | relay.BatchMatmulOp) -> SSAValue | None:
    """relay.nn.matmul %a, %b  =>  relay.nn.dense %a, transpose %b; so is batch_matmul of one matrix %b"""
    a, b, result = op.tensor_a, op.tensor_b, shape(op.result)
    if prod(shape(b)[:-2]) != 1:
        return leading(new, op)
    a = swapped(new, a, bool(op.transpose_a.value.data))
    b = swapped(new, new.reshape(b, shape(b)[-2:]), not op.transpose_b.value.data)
    properties = {name: op.properties.get(name) for name in ("out_dtype", "input_zero_point", "kernel_zero_point")}
    return new.reshape(new.value(relay.DenseOp, a, b, properties=properties), result)


def leading(new: Expansion, op: relay.MatmulOp | relay.BatchMatmulOp) -> SSAValue | None:
    """relay.nn.batch_matmul of any leading axes  =>  relay.nn.batch_matmul of one, the same for both, %b as [n, k, m]

    So the innermost loop runs along neighbours of %b and of the result.
    """
    outer, turned = shape(op.result)[:-2], bool(op.transpose_b.value.data)
    if not turned and len(outer) == 1 and shape(op.tensor_a)[:-2] == shape(op.tensor_b)[:-2] == outer:
        return None
    a, b = (stacked(new, value, outer) for value in (op.tensor_a, op.tensor_b))
    properties = {**op.properties, "transpose_b": IntegerAttr.from_bool(False)}
    return new.reshape(
        new.value(relay.BatchMatmulOp, a, swapped(new, b, turned), properties=properties), shape(op.result)
    )


def stacked(new: Expansion, x: SSAValue, outer: tuple[int, ...]) -> SSAValue:
    """x with these leading axes, as one."""
    matrix = shape(x)[-2:]
    if shape(x) != (*outer, *matrix):
        x = new.value(relay.BroadcastToOp, x, properties={"shape": ints([*outer, *matrix])})
    return new.reshape(x, [prod(outer), *matrix])


EXPANSIONS: Expansions = {relay.MatmulOp: dense, relay.BatchMatmulOp: dense}
