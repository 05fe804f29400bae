"""Imports operators that create tensors from scalars and shapes. Operands that determine a shape must be constants."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.tflite.builder import Importer, numpy_type
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import ALL_CODES, INDICES, NUMBERS, Node
from relay.frontend.tflite.table import operator

MOST = 1 << 24
"""The maximum number of elements that an operator may create."""


def one_number(node: Node, tensor: Tensor) -> int:
    """The only element of a constant."""
    numbers = node.numbers(tensor)
    if len(numbers) != 1:
        raise node.malformed(f"{tensor} has {len(numbers)} numbers, not one")
    return numbers[0]


def same_type(node: Node, *tensors: Tensor) -> None:
    """Raise Unsupported for tensors of different types, or quantized tensors of different scales."""
    if any(tensor.type != node.output().type for tensor in tensors):
        raise node.refuse_types(*tensors, node.output())
    if node.output().type in ALL_CODES:
        node.same_codes(*tensors, node.output())


@operator("FILL", versions=(1, 5), inputs=(2, 2))
def fill(importer: Importer, node: Node) -> list[SSAValue]:
    """Import FILL: a scalar broadcast to a constant shape."""
    dims, value = node.input(0), node.input(1)
    same_type(node, value)
    filler = importer.reshape(importer.value(value), [])
    return [importer.call(relay.FullOp, filler, shape=node.numbers(dims))]


@operator("ZEROS_LIKE", versions=(1, 1), inputs=(1, 1))
def zeros_like(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    node.one_type(NUMBERS, data, node.output())
    return [importer.call(relay.ZerosLikeOp, importer.value(data))]


@operator("RANGE", versions=(1, 2), inputs=(3, 3))
def range_(importer: Importer, node: Node) -> list[SSAValue]:
    """Import RANGE of constants: `start + i * delta` up to the limit, exclusively."""
    every = node.inputs()
    node.one_type(NUMBERS)
    numbers = [node.array(tensor).reshape(-1) for tensor in every]
    if any(array.size != 1 for array in numbers) or not numbers[2][0]:
        raise node.malformed("start, limit and delta are no single numbers, or delta is 0")
    start, limit, delta = (array[0].item() for array in numbers)
    count = (limit - start) / delta
    if not abs(count) < MOST:
        raise node.unsupported(f"a range of {count} numbers")
    places = np.arange(max(int(np.ceil(count)), 0)).astype(numbers[0].dtype)
    return [importer.unnamed(numbers[0][0] + places * numbers[2][0])]


@operator("SHAPE", versions=(1, 1), inputs=(1, 1))
def shape(importer: Importer, node: Node) -> list[SSAValue]:
    out = node.output()
    if out.type not in INDICES:
        raise node.refuse_types(out)
    return [importer.call(relay.ShapeOfOp, importer.value(node.input(0)), dtype=importer.element(out))]


@operator("RANK", versions=(1, 1), inputs=(1, 1))
def rank(importer: Importer, node: Node) -> list[SSAValue]:
    if node.output().type != "INT32":
        raise node.refuse_types(node.output())
    return [importer.unnamed(np.array(len(node.input(0).shape), np.int32))]


@operator("ONE_HOT", versions=(1, 1), inputs=(4, 4))
def one_hot(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ONE_HOT with a constant depth."""
    indices, depth, on, off = node.inputs()
    if indices.type not in INDICES or on.type != off.type or on.type != node.output().type:
        raise node.refuse_types(indices, on, off, node.output())
    values = [importer.value(indices), *(importer.reshape(importer.value(value), []) for value in (on, off))]
    axis = node.integer("axis") % (len(indices.shape) + 1)
    count = one_number(node, depth)
    if count > MOST:
        raise node.unsupported(f"a depth of {count}")
    return [importer.call(relay.OneHotOp, *values, depth=count, axis=axis)]


@operator("BROADCAST_TO", versions=(1, 4), inputs=(2, 2))
def broadcast_to(importer: Importer, node: Node) -> list[SSAValue]:
    data = node.input(0)
    same_type(node, data)
    return [importer.broadcast(importer.value(data), node.numbers(node.input(1)))]


@operator("BROADCAST_ARGS", versions=(1, 1), inputs=(2, 2))
def broadcast_args(importer: Importer, node: Node) -> list[SSAValue]:
    """Import BROADCAST_ARGS: the shape to which two shapes broadcast; of each pair of sizes the one that is not 1."""
    lhs, rhs = node.inputs()
    node.one_type(INDICES)
    width = max(node.shape(lhs, 1)[0], node.shape(rhs, 1)[0])
    if width > MOST:
        raise node.unsupported(f"shapes of {width} dimensions")
    sides: list[SSAValue] = []
    for tensor in (lhs, rhs):
        value = importer.value(tensor)
        if (missing := width - tensor.shape[0]) > 0:
            ones = importer.unnamed(np.ones(missing, numpy_type(tensor)))
            value = importer.call(relay.ConcatenateOp, ones, value, axis=0)
        sides.append(value)
    single = importer.call(relay.EqualOp, sides[0], importer.scalar(1, sides[0]))
    return [importer.call(relay.WhereOp, single, sides[1], sides[0])]


@operator("DENSIFY", versions=(1, 1), inputs=(1, 1))
def densify(importer: Importer, node: Node) -> list[SSAValue]:
    """Import DENSIFY, whose constant was already made dense when the file was read."""
    raise node.unsupported(f"{node.input(0)} is no sparse constant of the result's type")
