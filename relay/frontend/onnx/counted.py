"""Tensors whose size depends on run-time values: they are allocated with their maximum size, with a count of valid
elements.

Elements beyond the count are undefined. Operators that move elements or compute each separately are allowed; any other
would use the undefined elements or their number, and is refused. Public results are cut to the count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.function import output_infos
from relay.frontend.onnx.builder import Counted, Importer
from relay.frontend.onnx.node import Node
from relay.signature import TensorInfo

ELEMENTWISE = frozenset(
    "Abs Add And Cast Ceil Clip Div Equal Erf Exp Floor Greater GreaterOrEqual Identity LeakyRelu Less LessOrEqual Log "
    "Max Min Mod Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sqrt Sub Tanh Where Xor".split()
)
"""Operators that compute each element separately, with broadcast operands."""


def follow(importer: Importer, node: Node, results: Sequence[SSAValue | None]) -> None:
    """If inputs of a node are tensors with a count of valid elements, beyond which their elements are undefined, record
    the axis and count of each result in `importer.counted`. Raises Unsupported if the results would depend on undefined
    elements or their number."""
    found = {n: importer.counted[v] for n, v in enumerate(node.values) if v is not None and v in importer.counted}
    if not found:
        return
    if node.domain or node.kind not in RULES:
        raise _needs(node, next(iter(found)))
    for value in results:
        if value is not None and value not in importer.counted:
            importer.counted[value] = RULES[node.kind](importer, node, found, value)


def finished_infos(
    importer: Importer, names: Sequence[str], results: Sequence[SSAValue]
) -> tuple[list[SSAValue], list[TensorInfo]]:
    """The results of a model, followed by the number of valid elements of each result whose size depends on run-time
    values; and the signature's descriptions of all of them."""
    infos, counts = output_infos(names, results), dict[SSAValue, str]()
    for number, value in enumerate(results):
        if (counted := importer.counted.get(value)) is not None:
            name = counts.setdefault(counted.count, f"{names[number]}.count")
            infos[number] = replace(infos[number], count=name, axis=counted.axis)
    more = output_infos([*counts.values()], [*counts])
    return [*results, *counts], [*infos, *(replace(info, kind="count") for info in more)]


Found = dict[int, Counted]
Rule = Callable[[Importer, Node, Found, SSAValue], Counted]
"""A function that returns along which axis only the first elements of a node's result are valid, and their count. It
gets the same facts for each input that has them (`Found`, by index of the input). Raises Unsupported if the result
depends on elements that are not valid or on their number."""


def _elementwise(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    """The count of valid elements of an elementwise result, and its axis. All inputs whose size along this axis is not
    1, axes being counted from the last, must have the same count. Raises Unsupported."""
    rank = len(importer.shape(result))
    places = {(each.axis - len(importer.shape(_value(node, n))), each.count) for n, each in found.items()}
    (place, count), *others = places
    for number, value in enumerate(node.values):
        dims = () if value is None else importer.shape(value)
        if number not in found and len(dims) >= -place and dims[place] != 1:
            raise _needs(node, next(iter(found)))
    if others:
        raise _needs(node, next(iter(found)))
    return Counted(rank + place, count)


def _transpose(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    rank = len(importer.shape(result))
    order = node.integers("perm") or tuple(range(rank))[::-1]
    return replace(found[0], axis=order.index(found[0].axis))


def _axes(node: Node, rank: int) -> list[int]:
    """The axes that Squeeze and Unsqueeze name."""
    given = node.listed("axes", 1)
    return [] if given is None else node.axes_of(given, rank)


def _squeeze(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    axis, axes = found[0].axis, _axes(node, node.rank(0))
    if axis in axes or not axes:
        raise _needs(node, 0)
    return replace(found[0], axis=axis - sum(each < axis for each in axes))


def _unsqueeze(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    rank = len(importer.shape(result))
    kept = [axis for axis in range(rank) if axis not in _axes(node, rank)]
    return replace(found[0], axis=kept[found[0].axis])


def _gather(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    """The count of valid elements of a gather's result, and its axis. It is the count of the indices, or that of the
    data, unless the data's counted axis is the axis that is gathered. Raises Unsupported."""
    axis, more = node.axis(node.integer("axis", 0), node.rank(0)), node.rank(1) - 1
    if len(found) > 1 or (0 in found and found[0].axis == axis):
        raise _needs(node, 0)
    if 1 in found:
        return replace(found[1], axis=axis + found[1].axis)
    return replace(found[0], axis=found[0].axis + (more if found[0].axis > axis else 0))


def _gather_nd(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    if [*found] != [1] or node.integer("batch_dims", 0) or found[1].axis == node.rank(1) - 1:
        raise _needs(node, next(iter(found)))
    return found[1]


def _slice(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    """The axis of a Slice's result along which only the first elements are valid, and their number: those of the data.
    Raises Unsupported if the slice changes the size of this axis or reverses it, or if another input has elements that
    are not valid."""
    (number, counted), *others = found.items()
    sizes = [importer.shape(value)[counted.axis] for value in (_value(node, number), result)]
    step = int_values(op.strides)[counted.axis] if isinstance(op := result.owner, relay.StridedSliceOp) else 1
    if others or DYNAMIC in sizes or sizes[0] != sizes[1] or step < 0:
        raise _needs(node, number)
    return counted


def _concat(importer: Importer, node: Node, found: Found, result: SSAValue) -> Counted:
    """The axis along which only the first elements of a concatenation are valid, and their count. Raises Unsupported
    unless all inputs have this same axis and count, and are joined along another axis."""
    first = next(iter(found.values()))
    joined = node.axis(node.integer("axis"), len(importer.shape(result)))
    if len(found) != len(node.values) or {*found.values()} != {first} or joined == first.axis:
        raise _needs(node, next(iter(found)))
    return first


def _value(node: Node, number: int) -> SSAValue:
    value = node.values[number]
    assert value is not None
    return value


def _needs(node: Node, number: int) -> Exception:
    what = f"input {number} has a size that follows from values, which the operator would need"
    return node.unsupported(what, "cut it off with outputs")


RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "Concat": _concat,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
