"""Rules for each kind of op: whether it can compute in another layout, and how the converted op is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import AnyFloat, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type, elements, int_values, ints, scalar_attr, to_numpy
from relay.dialects.layout import Layout, steps
from relay.dialects.op import TensorOp, axis_of, is_tensor, shape, tensor
from relay.transforms.layouts.axes import (
    REDUCTIONS,
    Axes,
    Imaging,
    aligned,
    keeps,
    layout_of_operand,
    layout_of_result,
    reduced,
    whole,
)
from relay.transforms.layouts.moving import Mover, moved, of_parameter, spread

Get = Callable[[SSAValue, Layout], SSAValue]
"""Returns a value in the given layout."""


class Rules:
    """The conversion rules for the ops of a block to the wanted layout."""

    def __init__(self, axes: Axes, wanted: Layout):
        self.axes, self.wanted = axes, wanted

    def target(self, value: SSAValue) -> Layout:
        """The layout for a value with known axes: the wanted one, without the split if C is not a multiple of the
        block."""
        known = self.axes.of[value]
        if not known.letters <= self.wanted.letters:
            return known
        found = self.wanted.only(known.letters)
        return found if found.fits(known.sizes(shape(value))) else found.plain

    def changes(self, value: SSAValue) -> bool:
        """Whether converting the block to the wanted layout changes the layout of this value. False if the value's axes
        are not known."""
        return value in self.axes.of and self.target(value) != self.axes.of[value]

    # Whether it can

    def possible(self, op: Operation) -> bool:
        """Whether the op can compute in the wanted layout."""
        if isinstance(op, Imaging):
            known = self.axes.of.get(op.data), self.axes.of.get(op.result)
            return known == (layout_of_operand(op), layout_of_result(op))
        if len(op.results) == 0 or not all(result in self.axes.of for result in op.results):
            return False
        known = self.axes.of[op.results[0]]
        if isinstance(op, relay.TransposeOp | relay.ReshapeOp):
            return self.renames(op)
        if isinstance(op, REDUCTIONS):
            return self.can_reduce(op)
        if not keeps(op) or any(self.axes.of.get(value) != known for value in (*aligned(op), *op.results)):
            return False
        return self.can_keep(op, known, self.target(op.results[0]))

    def renames(self, op: relay.TransposeOp | relay.ReshapeOp) -> bool:
        """Whether a transpose or reshape only changes the layout, so that it disappears in the wanted layout."""
        known = self.axes.of.get(op.input)
        if known is None or known.letters != self.axes.of[op.result].letters:
            return False
        if isinstance(op, relay.TransposeOp):
            if tuple(known.axes[a] for a in int_values(op.axes)) != tuple(self.axes.of[op.result].axes):
                return False  # it turns the image itself
        if isinstance(op, relay.ReshapeOp):
            wanted = [("reshape", shape(op.result))]
            if steps(shape(op.input), known, self.axes.of[op.result]) != wanted:
                return False
        return self.target(op.input) == self.target(op.result)

    def can_reduce(self, op: relay.ReduceOp | qnn.MeanOp) -> bool:
        """Whether a reduction can compute in the wanted layout: of integers, or a maximum or minimum; an arg-reduction
        only along an axis that is not split."""
        known = self.axes.of.get(op.input)
        if known is None or reduced(op, known) != self.axes.of[op.results[0]]:
            return False
        if isinstance(op, relay.SumOp | relay.ProdOp) and isinstance(tensor(op.input).element_type, AnyFloat):
            return False
        gone, target = {known.axes[a] for a in op.axes()}, self.target(op.input)
        if isinstance(op, relay.ArgOp) and gone & {known.split, target.split}:
            return False
        left = target if bool(op.keepdims.value.data) else target.only(known.letters - gone)
        return left == self.target(op.results[0])

    def can_keep(self, op: TensorOp, known: Layout, target: Layout) -> bool:
        """Whether an op whose result has its operands' axes can compute in the layout `target` instead of `known`."""
        match op:
            case relay.PadOp() | relay.StridedSliceOp():
                loose = {letter for i, letter in enumerate(known.axes) if not op.independent_along(i)}
            case relay.ConcatenateOp() | qnn.ConcatenateOp():
                same = all(value in self.axes.of and self.target(value) == target for value in op.inputs)
                letter = known.axes[axis_of(op.axis.value.data, len(known.axes), op.name)]
                return same and letter.isupper()
            case _ if op.ALONG_AXIS:
                axis = axis_of(axis_property(op), len(known.axes), op.name)
                return all(fits(dims_of(numbers), axis, known) for _, numbers in along_axis(op))
            case _:
                if not op.ELEMENTWISE:  # `keep` would have to know how the op names its axes
                    return False
                given = aligned(op) if isinstance(op, relay.LookupOp) else op.operands
                return bool(aligned(op)) and all(is_tensor(v.type) and fits(shape(v), -1, known) for v in given)
        parts = {known.split, known.split.lower(), target.split} - {""}
        return not loose & parts and all(self.target(v) == target for v in aligned(op))

    # The op that does

    def convert(self, op: Operation, get: Get, mover: Mover) -> Sequence[SSAValue]:
        """Build the op in the wanted layout, and return its results."""
        assert isinstance(op, TensorOp)
        properties = dict[str, Attribute | None](op.properties)
        if isinstance(op, Imaging):
            data, result = self.target(op.data), self.target(op.results[0])
            if isinstance(op, relay.Conv2dBase):
                properties["data_layout"] = StringAttr(str(data))
                properties["out_layout"] = StringAttr("" if result == data else str(result))
                return mover.add(type(op), [get(op.data, data), op.kernel], properties, op).results
            properties["layout"] = StringAttr(str(data))
            return mover.add(type(op), [get(op.data, data)], properties, op).results
        if isinstance(op, relay.TransposeOp | relay.ReshapeOp):
            return [get(op.input, self.target(op.input))]
        if isinstance(op, REDUCTIONS):
            known, target = self.axes.of[op.input], self.target(op.input)
            gone = {known.axes[a].upper() for a in op.axes()}
            properties["axis"] = ints([i for i, letter in enumerate(target.axes) if letter.upper() in gone])
            properties.pop("exclude", None)
            return mover.add(type(op), [get(op.input, target)], properties, op).results
        if op.ALONG_AXIS:
            return self.with_parameters(op, get, mover)
        return self.keep(op, get, mover)

    def keep(self, op: TensorOp, get: Get, mover: Mover) -> Sequence[SSAValue]:
        """Build an op whose result has the axes of its operands in the wanted layout, and return its results."""
        properties = dict[str, Attribute | None](op.properties)
        known, target = self.axes.of[op.results[0]], self.target(op.results[0])
        order = [known.index(letter) if letter in known.axes else -1 for letter in target.axes]
        match op:
            case relay.PadOp():
                widths = op.widths()
                properties["pad_width"] = ints([n for i in order for n in (widths[i] if i >= 0 else (0, 0))])
            case relay.StridedSliceOp():
                ends = target.dims(known.sizes(shape(op.input)))
                split = {known.split, target.split}
                for name, given, every in (
                    ("begin", op.begin, [0] * len(ends)),
                    ("end", op.end, ends),
                    ("strides", op.strides, [1] * len(ends)),
                ):
                    old = int_values(given)
                    kept = [letter.upper() in split for letter in target.axes]
                    properties[name] = ints([every[n] if kept[n] else old[i] for n, i in enumerate(order)])
            case relay.ConcatenateOp() | qnn.ConcatenateOp():
                letter = known.axes[axis_of(op.axis.value.data, len(known.axes), op.name)]
                properties["axis"] = IntegerAttr(target.index(letter), i64)
            case _:
                pass
        data = set(aligned(op))
        table = op.table if isinstance(op, relay.LookupOp) else None
        others = {v: get(v, self.axes.of[v]) if v in self.axes.of else v for v in op.operands if v not in data}
        operands = [
            get(v, target) if v in data else v if v is table else mover.operand(others[v], known, target, op)
            for v in op.operands
        ]
        return mover.add(type(op), operands, properties, op).results

    def with_parameters(self, op: TensorOp, get: Get, mover: Mover) -> Sequence[SSAValue]:
        """Build, in the wanted layout, an op that has operands or properties with one element for each index of an
        axis; these are converted with the axis. Returns the results."""
        properties = dict[str, Attribute | None](op.properties)
        known, target = self.axes.of[op.results[0]], self.target(op.results[0])
        axis, where, operands = axis_of(axis_property(op), len(known.axes), op.name), -1, list[SSAValue]()
        for name, numbers in along_axis(op):
            changes, place = of_parameter(dims_of(numbers), axis, known, target)
            if isinstance(numbers, SSAValue):
                numbers = get(numbers, self.axes.of[numbers]) if numbers in self.axes.of else numbers
                operands.append(mover.move(numbers, changes, op))
            elif changes:
                array = moved(to_numpy(numbers), changes)
                properties[name] = (
                    elements(array) if array.size > 1 else scalar_attr(array.item(), element_type(array.dtype))
                )
            where = max(where, place)
        properties["axis"] = IntegerAttr(where, i64)
        values = [get(op.operands[0], target), *operands]
        if isinstance(op, relay.BiasAddOp) and where < 0:  # its bias is a vector
            return mover.add(relay.AddOp, values, {}, op).results
        return mover.add(type(op), values, properties, op).results


def along_axis(op: TensorOp) -> Iterator[tuple[str, SSAValue | Attribute]]:
    """The operands and properties with one element per index of the op's axis, by name."""
    for name in op.ALONG_AXIS:
        if (numbers := op.properties.get(name) or getattr(op, name)) is not None:
            yield name, numbers


def dims_of(numbers: SSAValue | Attribute) -> tuple[int, ...]:
    return shape(numbers) if isinstance(numbers, SSAValue) else to_numpy(numbers).shape


def fits(dims: Sequence[int], axis: int, known: Layout) -> bool:
    """Whether an operand of shape `dims`, which broadcasts against a tensor with the layout `known`, can be converted:
    it must not have only one of the two parts of a split axis. `axis`: the tensor's axis along which a vector operand
    lies."""
    if len(dims) > len(known.axes):
        return False
    return not dims or whole(spread(dims, axis, len(known.axes)), known)


def axis_property(op: Operation) -> int:
    """The `axis` property of the op."""
    attr = op.properties["axis"]
    assert isinstance(attr, IntegerAttr)
    return attr.value.data
