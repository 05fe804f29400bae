"""Expansions of activations, normalization across channels, and losses."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints, scalar_attr
from relay.dialects.op import rank, shape, tensor
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.rearrange import padded
from relay.transforms.expansions.steps import Expansions, reduced


def relu(new: Expansion, op: relay.ReluOp) -> SSAValue:
    """relay.nn.relu %x  =>  relay.maximum %x, 0"""
    return new.value(relay.MaximumOp, op.data, new.constant_like(0, op.data))


def sloped(new: Expansion, x: SSAValue, slope: SSAValue) -> SSAValue:
    """`where(x > 0, x, x * slope)`."""
    positive = new.value(relay.GreaterOp, x, new.constant_like(0, x))
    return new.value(relay.WhereOp, positive, x, new.value(relay.MultiplyOp, x, slope))


def leaky_relu(new: Expansion, op: relay.LeakyReluOp) -> SSAValue:
    """relay.nn.leaky_relu %x  =>  relay.where %x > 0, %x, %x * alpha"""
    return sloped(new, op.data, new.constant_like(op.alpha.value.data, op.data))


def prelu(new: Expansion, op: relay.PreluOp) -> SSAValue:
    """relay.nn.prelu %x, %alpha  =>  relay.where %x > 0, %x, %x * %alpha"""
    vector = new.reshape(op.alpha, [*shape(op.alpha), *[1] * (rank(op.data) - 1 - op.along)])
    return sloped(new, op.data, vector)


def gelu(new: Expansion, op: relay.GeluOp) -> SSAValue:
    """relay.nn.gelu %x  =>  %x * 0.5 * (relay.erf(%x * sqrt(0.5)) + 1), or by relay.tanh"""
    x = op.data
    if op.approximate.value.data:
        cube = new.value(relay.MultiplyOp, new.value(relay.MultiplyOp, x, x), x)
        inner = new.value(relay.AddOp, x, new.times(cube, 0.044715))
        curve = new.value(relay.TanhOp, new.times(inner, math.sqrt(2 / math.pi)))
    else:
        curve = new.value(relay.ErfOp, new.times(x, math.sqrt(0.5)))
    return new.value(relay.MultiplyOp, new.times(x, 0.5), new.plus(curve, 1))


def log_softmax(new: Expansion, op: relay.LogSoftmaxOp) -> SSAValue:
    """relay.nn.log_softmax %x  =>  %y - log(sum(exp(%y))), %y = %x - max(%x)"""
    centred = new.value(relay.SubtractOp, op.data, reduced(new, relay.MaxOp, op.data, [op.along]))
    powers = reduced(new, relay.SumOp, new.value(relay.ExpOp, centred), [op.along])
    return new.value(relay.SubtractOp, centred, new.value(relay.LogOp, powers))


def fast_softmax(new: Expansion, op: relay.FastSoftmaxOp) -> SSAValue:
    """relay.nn.fast_softmax %x  =>  relay.nn.softmax %x"""
    one = scalar_attr(1.0, tensor(op.data).element_type)
    return new.value(relay.SoftmaxOp, op.data, properties={"beta": one, "axis": op.axis})


def softmax(new: Expansion, op: relay.SoftmaxOp) -> SSAValue | None:
    """relay.nn.softmax %x along another axis  =>  relay.nn.softmax along the last one, between transposes"""
    if op.along_last:
        return None
    width = rank(op.data)
    along = op.axis.value.data % width
    order = [axis for axis in range(width) if axis != along] + [along]
    result = new.value(relay.SoftmaxOp, new.transpose(op.data, order), properties={"beta": op.beta})
    return new.transpose(result, [order.index(axis) for axis in range(width)])


def lrn(new: Expansion, op: relay.LrnOp) -> SSAValue:
    """relay.nn.lrn %x  =>  %x / (bias + alpha / size * the sum of slices of %x * %x)^beta"""
    x, axis, (before, after) = op.data, op.along, op.neighbours()
    squares = new.value(relay.MultiplyOp, x, x)
    widths = [(0, 0)] * axis + [(before, after)]
    wide = padded(new, squares, widths, scalar_attr(0.0, tensor(x).element_type))
    size = shape(x)[axis]
    total = new.total(new.sliced(wide, axis, offset, offset + size) for offset in range(before + after + 1))
    base = new.plus(new.times(total, op.alpha.value.data / op.size.value.data), op.bias.value.data)
    power = new.value(relay.PowerOp, base, new.constant_like(op.beta.value.data, x))
    return new.value(relay.DivideOp, x, power)


def loss(new: Expansion, op: relay.CrossEntropyOp | relay.CrossEntropyWithLogitsOp) -> SSAValue:
    """relay.nn.cross_entropy %x, %y  =>  sum(log(%x) * %y) / -n, n = the size of the first axis;
    cross_entropy_with_logits: without the logarithm"""
    x = op.predictions
    logarithm = new.value(relay.LogOp, x) if isinstance(op, relay.CrossEntropyOp) else x
    product = new.value(relay.MultiplyOp, logarithm, op.targets)
    total = new.value(relay.SumOp, product, properties={"axis": ints(range(rank(x)))})
    return new.value(relay.DivideOp, total, new.constant_like(-shape(x)[0], total))


EXPANSIONS: Expansions = {
    relay.ReluOp: relu,
    relay.LeakyReluOp: leaky_relu,
    relay.GeluOp: gelu,
    relay.PreluOp: prelu,
    relay.LogSoftmaxOp: log_softmax,
    relay.FastSoftmaxOp: fast_softmax,
    relay.SoftmaxOp: softmax,
    relay.LrnOp: lrn,
    relay.CrossEntropyOp: loss,
    relay.CrossEntropyWithLogitsOp: loss,
}
